//! The sessions: one connection after the other. A session begins with a durable card and a
//! question, and ends at any error or change of the connection. The next one must compare its
//! position again before it follows.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use async_nats::datetime::DateTime;
use async_nats::jetstream::consumer::DeliverPolicy;
use async_nats::jetstream::consumer::push::{Ordered, OrderedConfig};
use async_nats::jetstream::context::ContextBuilder;
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::publish::PublishAck;
use async_nats::jetstream::stream::{LastRawMessageErrorKind, Stream};
use async_nats::jetstream::{Context, Message};
use async_nats::{Client, Subscriber};
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::sync::watch;

use crate::Level;
use crate::cluster::{Cluster, State};
use crate::entry::{Entry, EntryId};
use crate::error::Error;
use crate::follower::{FollowAction, Loss, StreamFacts};
use crate::members::{Card, EntryAcknowledgement, MEMBERS_MAX};
use crate::nats_connection::{NatsConnection, Servers, first};
use crate::position::{Epoch, Position, Stamp};
use crate::progress::StreamProgress;
use crate::settings::question_ms;
use crate::stance::Stance;
use crate::streams;

/// The most entries that are being sent at a time.
const IN_FLIGHT_MAX: usize = 512;
/// The first and the longest pause after a failed session.
const PAUSE_MS: (u64, u64) = (100, 5_000);
/// The longest pause if only the connection or the servers' agreement failed.
const LINK_PAUSE_MS: u64 = 400;
/// The interval at which the position is saved.
const SAVE: Duration = Duration::from_secs(1);
/// The longest time for leaving.
const LEAVE: Duration = Duration::from_secs(2);

type BoxedFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;
/// The result of a question to the stream.
type StreamReplyResult = Result<StreamReply, Error>;
/// An entry's number, and the stream's answer.
type PublishOutcome = (u64, Result<PublishAck, Error>);

/// An answer of the stream, and the events before it.
struct StreamReply {
    facts: StreamFacts,
    /// The time of the question.
    asked_ms: u64,
    /// The sequence of the card that was shown.
    shown: u64,
}

impl Cluster {
    /// Runs the node's part until the cluster ends.
    pub async fn run(self: Arc<Self>) {
        let mut pause_ms = PAUSE_MS.0;
        let mut servers = Servers::new(&self.settings, self.run as usize);
        let mut link: Option<NatsConnection> = None;
        let mut reported = None;
        let mut ending = self.ending.subscribe();
        while !*self.ending.borrow() {
            let connected = match link.take() {
                Some(link) => Ok(link),
                None => tokio::select! {
                    connected = servers.connect() => connected,
                    () = wait_until_set(&mut ending) => return,
                },
            };
            let ended = match connected {
                Ok(mut own) => {
                    let ended = self.session(&mut own, &mut reported, &mut pause_ms).await;
                    // The error may be one of the connection.
                    link = ended.is_ok().then_some(own);
                    ended
                }
                Err(error) => Err(error),
            };
            self.end_session();
            let Err(error) = ended else { continue };
            if reported.as_ref() != Some(&error) {
                self.host.say(&format!("out of touch: {error}"));
                reported = Some(error.clone());
            }
            let wait_ms = match error {
                // Two nodes with one name cannot be told apart, so neither may serve stored
                // responses.
                Error::Name(_) => self.settings.max_isolation_ms.max(pause_ms),
                Error::Link(_) => pause_ms.min(LINK_PAUSE_MS),
                _ => pause_ms,
            };
            self.state.lock().problem = Some(error);
            self.note_change();
            // Spread, so that nodes that lost a server do not return at one moment.
            let wait_ms = wait_ms + self.run % (wait_ms / 4 + 1);
            tokio::select! {
                () = rt::time::sleep(Duration::from_millis(wait_ms)) => {}
                () = wait_until_set(&mut ending) => {}
            }
            pause_ms = (pause_ms * 2).min(PAUSE_MS.1);
        }
    }

    /// The pause between two questions, which grows with the number of nodes.
    fn question_pause(&self) -> Duration {
        let count = self.state.lock().members.count_live(rt::now().mono_ms);
        Duration::from_millis(question_ms(self.settings.max_isolation_ms, count))
    }

    /// Removes the state of the session.
    fn end_session(&self) {
        let mut state = self.state.lock();
        (state.context, state.cards_seen) = (None, None);
        let unknown = std::mem::take(&mut state.in_flight);
        state.outbox.put_back(unknown.into_values());
        drop(state);
        self.note_change();
    }

    async fn session(
        self: &Arc<Self>,
        link: &mut NatsConnection,
        reported: &mut Option<Error>,
        pause_ms: &mut u64,
    ) -> Result<(), Error> {
        let mut session = Session::begin(self, link.client.clone()).await?;
        self.state.lock().problem = None;
        *pause_ms = PAUSE_MS.0;
        if reported.take().is_some() {
            self.host.say("in touch again");
        }
        let ended = session.go_on(&mut link.lost).await;
        if matches!(ended, Err(Error::Name(_))) {
            self.give_way(&session.context).await;
        }
        ended
    }

    /// Determines the latest run with this node's name. A displaced run has its name again if no
    /// other has been shown since.
    async fn look_at_name(
        self: &Arc<Self>,
        context: &Context,
        cards: &Stream,
    ) -> Result<(), Error> {
        let name = &self.settings.name;
        let last =
            match cards.get_last_raw_message_by_subject(&self.settings.card_subject(name)).await {
                Ok(message) => Card::decode(name, &message.payload),
                Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => None,
                Err(error) => return Err(Error::link(error)),
            };
        let is_ended = |card: &Card| card.left || self.settings.before == Some(card.run);
        let other = last.filter(|card| card.run != self.run && !is_ended(card));
        if other.is_some() && self.state.lock().follower.is_displaced() {
            self.give_way(context).await;
            return Err(Error::Name(name.clone()));
        }
        let (now_ms, mut state) = (rt::now().mono_ms, self.state.lock());
        state.follower.take_name(now_ms);
        state.displaces = other.map(|card| (card.run, now_ms.saturating_add(card.patience_ms())));
        Ok(())
    }

    /// Ends trust: another run has this node's name, and an acknowledgement by `all` would include
    /// only one of them.
    fn displaced(&self, state: &mut State) {
        state.follower.displace();
        self.host.trust_until(0);
    }

    /// Shows that this run has given up its name, so that no entry waits for it.
    async fn give_way(self: &Arc<Self>, context: &Context) {
        let (card, turn) = self.card();
        let card = Card { left: true, displaced: true, displaces: 0, ..card };
        // Without this card, the others wait for as long as this run could trust.
        _ = rt::time::timeout(LEAVE, self.show(context, card, turn)).await;
    }

    /// The last sequence of the members' cards; `None` without contact.
    pub(crate) async fn cards_last(&self) -> Option<u64> {
        let context = self.state.lock().context.clone()?;
        let stream = context.get_stream(self.settings.cards_stream()).await.ok()?;
        Some(stream.cached_info().state.last_sequence)
    }

    /// The node's card, and the number of its stance.
    fn card(&self) -> (Card, u64) {
        let state = self.state.lock();
        let position = state.follower.position();
        let (epoch, sequence) = position.map_or((0, 0), |own| (own.epoch.0, own.sequence));
        let now_ms = rt::now().mono_ms;
        let trusts = now_ms < state.follower.trusted_until_ms();
        let displaces = state.displaces.filter(|(_, until_ms)| now_ms < *until_ms);
        let displaces = displaces.map_or(0, |(run, _)| run);
        let posture = state.posture;
        drop(state);
        let mut card = Card {
            name: self.settings.name.clone(),
            run: self.run,
            max_isolation_ms: self.settings.max_isolation_ms,
            epoch,
            sequence,
            trusts,
            draining: posture.stance == Stance::Draining,
            left: posture.stance == Stance::Left,
            displaces,
            ..Card::default()
        };
        self.host.figures(&mut card);
        (card, posture.turn)
    }

    /// Makes a card with the stance of this `turn` durable among the members. Returns its sequence.
    async fn show(
        self: &Arc<Self>,
        context: &Context,
        card: Card,
        turn: u64,
    ) -> Result<u64, Error> {
        let subject = self.settings.card_subject(&self.settings.name);
        let sent = context.publish(subject, Bytes::from(card.encode())).await;
        let stored = sent.map_err(Error::link)?.await.map_err(Error::link)?;
        let posture = &mut self.state.lock().posture;
        posture.shown = posture.shown.max(turn);
        Ok(stored.sequence)
    }

    /// Shows the node's card, and asks the stream.
    async fn ask(self: Arc<Self>, context: Context, entries: Stream) -> StreamReplyResult {
        let asked_ms = rt::now().mono_ms;
        let (card, turn) = self.card();
        let shown = self.show(&context, card, turn).await?;
        let asked = self.state.lock().follower.asks_about();
        let info = entries.get_info().await.map_err(Error::link)?;
        let (first, last) = (info.state.first_sequence, info.state.last_sequence);
        let epoch = Epoch(nanos(info.created));
        let found = match asked.filter(|own| own.epoch == epoch) {
            Some(own) => stamp_at(&entries, own.sequence, first, last).await?,
            None => None,
        };
        let last_stamp = stamp_at(&entries, last, first, last).await?;
        let facts = StreamFacts { epoch, first, last, last_stamp, asked, found };
        Ok(StreamReply { facts, asked_ms, shown })
    }

    /// Takes an answer of the stream. Returns true if the stream is to be followed again.
    pub(crate) fn take_answer(self: &Arc<Self>, facts: &StreamFacts, asked_ms: u64) -> bool {
        let mut state = self.state.lock();
        let course = state.follower.answered(facts, asked_ms);
        state.last = state.last.max(facts.last);
        if let FollowAction::Doubt(loss) = course {
            state.last = facts.last;
            drop(state);
            self.doubt(loss);
            state = self.state.lock();
            let position = state.follower.position();
            state.in_force.reset(position);
            // Others may never get them. They doubt all stored responses, or receive an entry for
            // it.
            state.outstanding.clear();
        }
        // After the doubt, because only later responses are trusted.
        self.host.trust_until(state.follower.trusted_until_ms());
        drop(state);
        self.note_change();
        course != FollowAction::On
    }

    fn doubt(self: &Arc<Self>, loss: Loss) {
        self.host.doubt(loss);
        self.state.lock().counts.doubts += 1;
        if loss != Loss::Joined {
            self.host.say(&format!("what is stored is validated before it is used again: {loss}"));
        }
        if loss.is_for_all() {
            self.send_loss();
        }
    }

    /// Takes the next entry to be sent.
    fn take_queued(&self) -> Option<(EntryId, Bytes)> {
        let mut state = self.state.lock();
        let queued = state.outbox.take()?;
        let taken = (queued.id, queued.bytes.clone());
        state.in_flight.insert(queued.id.number, queued);
        Some(taken)
    }

    /// Takes an entry of the stream, stored at `stored_ns` ([`Stamp`]), with its bytes. Returns the
    /// acknowledgement that its maker waits for.
    pub(crate) fn take_entry(
        self: &Arc<Self>,
        sequence: u64,
        stored_ns: u64,
        payload: &[u8],
    ) -> Option<EntryId> {
        let awaited = self.carry_out(sequence, stored_ns, payload);
        let mut state = self.state.lock();
        let position = state.follower.position();
        state.in_force.advance(position);
        awaited
    }

    fn carry_out(
        self: &Arc<Self>,
        sequence: u64,
        stored_ns: u64,
        payload: &[u8],
    ) -> Option<EntryId> {
        let read = Entry::decode(payload);
        let mut state = self.state.lock();
        let decoded = read.as_ref().map_err(|error| *error);
        let step = state.follower.entry(sequence, stored_ns, decoded);
        state.last = state.last.max(sequence);
        state.counts.applied += u64::from(step.apply);
        if let Ok(entry) = read.as_ref()
            && entry.id.run == self.run
        {
            state.note_delivered(entry.id.number, sequence);
        }
        drop(state);
        if let Some(loss) = step.doubt {
            self.doubt(loss);
        }
        let entry = read.ok().filter(|_| step.apply)?;
        let apply = |one: &Vec<u8>| match self.host.apply(one) {
            Ok(()) => true,
            Err(why) => {
                self.host.say(&format!("an invalidation of {}: {why}", entry.node));
                false
            }
        };
        if entry.invalidations.is_empty() && entry.id.run != self.run {
            self.doubt(Loss::Told);
        }
        // All are applied, even if one fails.
        let refused = entry.invalidations.iter().filter(|one| !apply(one)).count();
        if refused > 0 {
            self.doubt(Loss::Content);
        }
        (entry.level == Level::All && entry.id.run != self.run).then_some(entry.id)
    }
}

/// Nanoseconds since 1970; 0 for an earlier time.
fn nanos(time: DateTime) -> u64 {
    u64::try_from(time.unix_timestamp_nanos()).unwrap_or(0)
}

/// The stamp of the entry at `sequence`, if the stream has one.
async fn stamp_at(
    entries: &Stream,
    sequence: u64,
    first: u64,
    last: u64,
) -> Result<Option<Stamp>, Error> {
    if sequence == 0 || sequence < first || sequence > last {
        return Ok(None);
    }
    match entries.get_raw_message(sequence).await {
        Ok(message) => {
            let id = message.headers.get(async_nats::header::NATS_MESSAGE_ID);
            let id = id.and_then(|id| EntryId::read(id.as_str()));
            Ok(Some(Stamp { id, stored_ns: nanos(message.time) }))
        }
        Err(error) if matches!(error.kind(), LastRawMessageErrorKind::NoMessageFound) => Ok(None),
        Err(error) => Err(Error::link(error)),
    }
}

/// A session.
struct Session {
    cluster: Arc<Cluster>,
    context: Context,
    client: Client,
    entries_stream: Stream,
    entries: Ordered,
    cards: Ordered,
    acknowledgements: Subscriber,
    /// The sequence of this node's first card in the session.
    shown: u64,
    /// The progress through entries and cards.
    progress: [StreamProgress; 2],
    question: Option<BoxedFuture<StreamReplyResult>>,
    acks: FuturesUnordered<BoxedFuture<PublishOutcome>>,
    saving: Option<BoxedFuture<Result<Position, String>>>,
    saved: Option<Position>,
}

impl Session {
    async fn begin(cluster: &Arc<Cluster>, client: Client) -> Result<Self, Error> {
        let settings = &cluster.settings;
        let timeout = settings.patience();
        let context =
            ContextBuilder::new().timeout(timeout).ack_timeout(timeout).build(client.clone());
        for name in [settings.entries_stream(), settings.cards_stream()] {
            first(|| streams::answers(&context, &name)).await?;
        }
        let entries_stream = streams::have(&context, streams::entries(settings)).await?;
        let cards_stream = streams::have(&context, streams::cards(settings)).await?;
        cluster.look_at_name(&context, &cards_stream).await?;
        let acknowledgements = client
            .subscribe(settings.acknowledgement_subject(cluster.run))
            .await
            .map_err(Error::link)?;
        let (card, turn) = cluster.card();
        let shown = cluster.show(&context, card, turn).await?;
        let answer = Arc::clone(cluster).ask(context.clone(), entries_stream.clone()).await?;
        cluster.take_answer(&answer.facts, answer.asked_ms);
        let from = cluster.state.lock().follower.position().map_or(1, |own| own.sequence + 1);
        let follow = DeliverPolicy::ByStartSequence { start_sequence: from };
        let subject = settings.entries_subject();
        let entries = first(|| ordered(&client, &entries_stream, subject.clone(), follow)).await?;
        let (subject, latest) = (settings.card_subject("*"), DeliverPolicy::LastPerSubject);
        let cards = first(|| ordered(&client, &cards_stream, subject.clone(), latest)).await?;
        let progress = [StreamProgress::new(rt::now().mono_ms); 2];
        let mut state = cluster.state.lock();
        state.context = Some(context.clone());
        state.counts.sessions += 1;
        drop(state);
        Ok(Self {
            cluster: Arc::clone(cluster),
            context,
            client,
            entries_stream,
            entries,
            cards,
            acknowledgements,
            shown,
            progress,
            question: None,
            acks: FuturesUnordered::new(),
            saving: None,
            saved: None,
        })
    }

    /// Runs until an error, or until the stream is to be followed again.
    async fn go_on(&mut self, lost: &mut watch::Receiver<bool>) -> Result<(), Error> {
        let mut questions = rt::time::interval(self.cluster.question_pause());
        let mut saves = rt::time::interval(SAVE);
        let mut ending = self.cluster.ending.subscribe();
        self.put();
        loop {
            self.send().await?;
            tokio::select! {
                entry = self.entries.next() => self.entry(taken(entry)?).await?,
                card = self.cards.next() => self.card(&taken(card)?)?,
                Some(ack) = self.acknowledgements.next() => self.take_acknowledgement(&ack.payload),
                _ = questions.tick() => {
                    self.put();
                    questions.reset_after(self.cluster.question_pause());
                }
                answer = polled(&mut self.question) => {
                    self.question = None;
                    let answer = answer?;
                    if !self.cluster.state.lock().posture.is_shown() {
                        self.put();
                    }
                    if self.cluster.take_answer(&answer.facts, answer.asked_ms) {
                        return Ok(());
                    }
                    self.look_at_progress(&answer)?;
                }
                Some((number, ack)) = self.acks.next() => self.acknowledged(number, ack)?,
                _ = saves.tick() => {
                    self.cluster.forget_acknowledgements(rt::now().mono_ms);
                    self.save();
                }
                saved = polled(&mut self.saving) => self.kept(saved),
                () = self.cluster.bell.notified() => {}
                () = wait_until_set(lost) => return Err(Error::Link("the connection was lost".into())),
                () = self.cluster.turned.notified() => self.put(),
                () = wait_until_set(&mut ending) => return self.leave().await,
            }
        }
    }

    /// Checks that entries and cards arrive that the streams have.
    fn look_at_progress(&mut self, answer: &StreamReply) -> Result<(), Error> {
        let now_ms = rt::now().mono_ms;
        let question_ms = self.cluster.question_pause().as_millis() as u64;
        let state = self.cluster.state.lock();
        let applied = state.follower.position().map_or(0, |own| own.sequence);
        let seen = state.cards_seen.unwrap_or(0);
        drop(state);
        let places = [(applied, answer.facts.last), (seen, answer.shown)];
        let mut is_stuck = false;
        for (own, (at, last)) in self.progress.iter_mut().zip(places) {
            is_stuck |= own.is_stuck(at, last, now_ms, question_ms);
        }
        let why = "a server does not deliver what the streams have";
        if is_stuck { Err(Error::Link(why.to_owned())) } else { Ok(()) }
    }

    /// Sends a question, unless one is under way.
    fn put(&mut self) {
        if self.question.is_none() {
            let (context, entries) = (self.context.clone(), self.entries_stream.clone());
            self.question = Some(Box::pin(Arc::clone(&self.cluster).ask(context, entries)));
        }
    }

    /// Sends the outbox.
    #[expect(clippy::needless_pass_by_ref_mut, reason = "shared, it would have to be Sync")]
    async fn send(&mut self) -> Result<(), Error> {
        while self.acks.len() < IN_FLIGHT_MAX {
            let Some((id, bytes)) = self.cluster.take_queued() else { return Ok(()) };
            let message = PublishMessage::build().payload(bytes).message_id(id.to_string());
            let subject = self.cluster.settings.entries_subject();
            let sent = self.context.send_publish(subject, message).await.map_err(Error::link)?;
            self.acks.push(Box::pin(async move { (id.number, sent.await.map_err(Error::link)) }));
        }
        Ok(())
    }

    fn acknowledged(&self, number: u64, ack: Result<PublishAck, Error>) -> Result<(), Error> {
        let ack = ack?;
        let mut state = self.cluster.state.lock();
        if let Some(queued) = state.in_flight.remove(&number) {
            state.note_stored(&queued, ack.sequence);
        }
        Ok(())
    }

    async fn entry(&mut self, message: Message) -> Result<(), Error> {
        let info = message.info().map_err(Error::link)?;
        let (sequence, stored_ns) = (info.stream_sequence, nanos(info.published));
        let awaited = self.cluster.take_entry(sequence, stored_ns, &message.payload);
        if self.cluster.state.lock().follower.wants_question(rt::now().mono_ms) {
            self.put();
        }
        let Some(id) = awaited else { return Ok(()) };
        let (cluster, client) = (Arc::clone(&self.cluster), self.client.clone());
        rt::spawn(async move {
            // An acknowledgement must survive a crash, so the entries become durable first.
            let host = Arc::clone(&cluster.host);
            let settled = rt::blocking(move || host.settle()).await;
            if !matches!(settled, Ok(Ok(()))) {
                return;
            }
            let name = cluster.settings.name.clone();
            let ack = EntryAcknowledgement { name, run: cluster.run, number: id.number };
            let subject = cluster.settings.acknowledgement_subject(id.run);
            // A lost acknowledgement is reported as missing.
            _ = client.publish(subject, Bytes::from(ack.encode())).await;
        });
        Ok(())
    }

    fn card(&mut self, message: &Message) -> Result<(), Error> {
        let info = message.info().map_err(Error::link)?;
        let sequence = info.stream_sequence;
        let cluster = Arc::clone(&self.cluster);
        let settings = &cluster.settings;
        let subject = message.subject.as_str();
        let name = subject.strip_prefix(settings.card_subject("").as_str()).unwrap_or_default();
        let card = Card::decode(name, &message.payload);
        let mut state = cluster.state.lock();
        // Cards arrive in order: with this node's own, all others have arrived.
        if sequence >= self.shown {
            state.cards_seen = Some(sequence);
        }
        let Some(card) = card else {
            state.counts.strange += 1;
            drop(state);
            cluster.note_change();
            return Ok(());
        };
        let is_own = card.name == settings.name && card.run != cluster.run;
        let is_behind = is_own && sequence > self.shown;
        if is_behind && !card.left {
            cluster.displaced(&mut state);
            return Err(Error::Name(card.name));
        }
        let has_ended = is_own && card.left;
        if has_ended
            && state.displaces.take_if(|(run, _)| *run == card.run).is_some()
            && card.displaced
        {
            let why = "give each node a name of its own, as `[cluster] name` or as its host's name";
            cluster.host.say(&format!("another node has the name `{}`, too: {why}", card.name));
        }
        state.members.heard(card, rt::now().mono_ms);
        drop(state);
        cluster.note_change();
        if is_behind {
            // The former run reports its leaving late, over this run's card.
            self.put();
        }
        Ok(())
    }

    fn take_acknowledgement(&self, payload: &[u8]) {
        let mut state = self.cluster.state.lock();
        match EntryAcknowledgement::decode(payload) {
            Some(ack) => {
                let applied = state.awaited.get_mut(&ack.number).map(|(applied, _)| applied);
                if let Some(applied) = applied.filter(|applied| applied.len() < MEMBERS_MAX) {
                    applied.insert(ack.run);
                }
            }
            None => state.counts.strange += 1,
        }
        drop(state);
        self.cluster.note_change();
    }

    /// Saves the position, unless it is saved.
    fn save(&mut self) {
        let position = self.cluster.state.lock().follower.position();
        let Some(position) = position.filter(|own| Some(*own) != self.saved) else { return };
        if self.saving.is_none() {
            let host = Arc::clone(&self.cluster.host);
            let saving = rt::blocking(move || host.save(position).map(|()| position));
            self.saving = Some(Box::pin(async move {
                saving.await.unwrap_or_else(|error| Err(error.to_string()))
            }));
        }
    }

    fn kept(&mut self, saved: Result<Position, String>) {
        self.saving = None;
        match saved {
            Ok(position) => self.saved = Some(position),
            Err(why) => self.cluster.host.say(&format!("its position cannot be saved: {why}")),
        }
    }

    /// Shows that no entry needs to wait for this node, and sends the outbox.
    async fn leave(&mut self) -> Result<(), Error> {
        let (card, turn) = self.cluster.card();
        let card = Card { left: true, ..card };
        let ending = async {
            self.send().await?;
            while let Some((number, ack)) = self.acks.next().await {
                self.acknowledged(number, ack)?;
            }
            self.cluster.show(&self.context, card, turn).await.map(|_| ())
        };
        rt::time::timeout(LEAVE, ending).await.unwrap_or(Ok(()))
    }
}

/// Waits until the flag is true.
pub(crate) async fn wait_until_set(is_so: &mut watch::Receiver<bool>) {
    // The sender lives as long as the cluster or the connection.
    _ = is_so.wait_for(|is_so| *is_so).await;
}

pub(crate) fn taken<T, E: std::fmt::Display>(next: Option<Result<T, E>>) -> Result<T, Error> {
    let ended = || Error::Link("the stream's messages ended".to_owned());
    next.ok_or_else(ended)?.map_err(Error::link)
}

/// The result of work under way; waits forever without any.
async fn polled<T>(under_way: &mut Option<BoxedFuture<T>>) -> T {
    match under_way {
        Some(future) => future.await,
        None => std::future::pending().await,
    }
}

pub(crate) async fn ordered(
    client: &Client,
    stream: &Stream,
    filter_subject: String,
    from: DeliverPolicy,
) -> Result<Ordered, Error> {
    let config = OrderedConfig {
        deliver_subject: client.new_inbox(),
        deliver_policy: from,
        filter_subject,
        ..OrderedConfig::default()
    };
    let consumer = stream.create_consumer(config).await.map_err(Error::link)?;
    consumer.messages().await.map_err(Error::link)
}
