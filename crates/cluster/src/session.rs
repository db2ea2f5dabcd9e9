//! The link: one session after the other. A session begins with a card that is durable and a
//! question, and ends with whatever goes wrong, or when the connection changes: the next one asks
//! again before it follows.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::consumer::DeliverPolicy;
use async_nats::jetstream::consumer::push::{Ordered, OrderedConfig};
use async_nats::jetstream::context::ContextBuilder;
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::publish::PublishAck;
use async_nats::jetstream::stream::{LastRawMessageErrorKind, Stream};
use async_nats::jetstream::{Context, Message};
use async_nats::{Client, ClientError, ConnectErrorKind, ConnectOptions, Event, Subscriber};
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::Level;
use crate::cluster::Cluster;
use crate::entry::{Entry, EntryId};
use crate::error::Error;
use crate::follower::{Course, Facts, Loss};
use crate::members::{Card, MEMBERS_MAX, Word};
use crate::outbox::Letter;
use crate::position::{Epoch, Position};
use crate::settings::Credentials;
use crate::stance::Stance;
use crate::streams;

/// Entries on their way at a time.
const IN_FLIGHT_MAX: usize = 512;
/// The pause after a session that ended: the first, and the longest.
const PAUSE_MS: (u64, u64) = (100, 5_000);
/// The time between two times that the position is kept.
const SAVE: Duration = Duration::from_secs(1);
/// The longest time that leaving may take.
const LEAVE: Duration = Duration::from_secs(2);

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;
/// An answer of the stream, and when the question was put.
type Answer = Result<(Facts, u64), Error>;
/// A letter's number, and what the stream said.
type Ack = (u64, Result<PublishAck, Error>);

impl Cluster {
    /// Does the node's part for as long as it runs, or until it is told to end.
    pub async fn run(self: Arc<Self>) {
        let (mut pause_ms, longest_ms) = PAUSE_MS;
        let (moved, mut moves) = watch::channel(0_u64);
        let mut client: Option<Client> = None;
        let mut told = None;
        let refusal = Arc::new(Mutex::new(None));
        let mut ending = self.ending.subscribe();
        while !*self.ending.borrow() {
            let connected = match client.clone() {
                Some(client) => Ok(client),
                None => tokio::select! {
                    connected = self.connect(moved.clone(), Arc::clone(&refusal)) => connected,
                    () = told_to(&mut ending) => return,
                },
            };
            let ended = match connected {
                Ok(own) => {
                    client = Some(own.clone());
                    moves.borrow_and_update();
                    self.session(own, &mut moves, &mut told, &mut pause_ms).await
                }
                Err(error) => Err(error),
            };
            self.end_session();
            let Err(mut error) = ended else { continue };
            // A client that was connected goes on trying by itself, and says why in passing.
            if let (Error::Link(why), Some(known)) = (&mut error, refusal.lock().clone()) {
                *why = known;
            }
            if told.as_ref() != Some(&error) {
                self.host.say(&format!("out of touch: {error}"));
                told = Some(error.clone());
            }
            // A name that two have helps neither: what either stores is not to be used.
            let wait_ms = match error {
                Error::Name(_) => self.settings.max_isolation_ms.max(pause_ms),
                _ => pause_ms,
            };
            self.state.lock().problem = Some(error);
            self.note_change();
            let pause = rt::time::sleep(Duration::from_millis(wait_ms));
            tokio::select! {
                () = pause => {}
                () = told_to(&mut ending) => {}
                _ = moves.changed() => {}
            }
            pause_ms = (pause_ms * 2).min(longest_ms);
        }
    }

    /// Forgets what only held during the session.
    fn end_session(&self) {
        let mut state = self.state.lock();
        (state.context, state.cards_seen) = (None, None);
        let unknown = std::mem::take(&mut state.in_flight);
        state.outbox.put_back(unknown.into_values());
        drop(state);
        self.note_change();
    }

    /// Connects; what is told of later tries is in `refusal`.
    async fn connect(
        &self,
        moved: watch::Sender<u64>,
        refusal: Arc<Mutex<Option<String>>>,
    ) -> Result<Client, Error> {
        let settings = &self.settings;
        let question = Duration::from_millis(settings.question_ms());
        let mut options = ConnectOptions::new()
            .name(format!("larder {}", settings.name))
            .connection_timeout(Duration::from_secs(5))
            .request_timeout(Some(
                (question * 3).clamp(Duration::from_secs(1), Duration::from_secs(5)),
            ))
            .ping_interval(question.max(Duration::from_secs(1)))
            .reconnect_delay_callback(|tries| {
                Duration::from_millis((100_u64 << tries.min(6)).min(5_000))
            })
            .event_callback(move |event| {
                let is_move = matches!(event, Event::Connected | Event::Disconnected);
                match event {
                    Event::Connected => *refusal.lock() = None,
                    Event::ClientError(ClientError::Other(why)) => *refusal.lock() = Some(why),
                    _ => {}
                }
                if is_move {
                    moved.send_modify(|count| *count += 1);
                }
                std::future::ready(())
            });
        options = match settings.credentials.clone() {
            Credentials::None => options,
            Credentials::Password(user, password) => options.user_and_password(user, password),
            Credentials::Token(token) => options.token(token),
            Credentials::Nkey(seed) => options.nkey(seed),
            Credentials::File(text) => {
                let read = options.credentials(&text);
                read.map_err(|error| Error::Setting(format!("credentials: {error}")))?
            }
        };
        if settings.tls.is_required {
            options = options.require_tls(true);
        }
        if let Some(ca) = &settings.tls.ca {
            options = options.add_root_certificates(ca.clone());
        }
        if let Some((certificate, key)) = &settings.tls.certificate {
            options = options.add_client_certificate(certificate.clone(), key.clone());
        }
        options.connect(settings.servers.clone()).await.map_err(|error| match error.kind() {
            ConnectErrorKind::Authentication => {
                Error::Setting(format!("the nkey or the credentials cannot be used: {error}"))
            }
            _ => Error::link(error),
        })
    }

    async fn session(
        self: &Arc<Self>,
        client: Client,
        moves: &mut watch::Receiver<u64>,
        told: &mut Option<Error>,
        pause_ms: &mut u64,
    ) -> Result<(), Error> {
        let mut session = Session::begin(self, client).await?;
        self.state.lock().problem = None;
        *pause_ms = PAUSE_MS.0;
        if told.take().is_some() {
            self.host.say("in touch again");
        }
        session.go_on(moves).await
    }

    /// The last sequence of the members' cards; `None` if the node is out of touch.
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
        let trusts = rt::now().mono_ms < state.follower.trusted_until_ms();
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
            ..Card::default()
        };
        self.host.figures(&mut card);
        (card, posture.turn)
    }

    /// Has a card be durable among the members'. The result is its sequence.
    async fn show(
        self: &Arc<Self>,
        context: &Context,
        (card, turn): (Card, u64),
    ) -> Result<u64, Error> {
        let subject = self.settings.card_subject(&self.settings.name);
        let sent = context.publish(subject, Bytes::from(card.encode())).await;
        let stored = sent.map_err(Error::link)?.await.map_err(Error::link)?;
        let posture = &mut self.state.lock().posture;
        posture.shown = posture.shown.max(turn);
        Ok(stored.sequence)
    }

    /// Shows the node's card, and asks the stream.
    async fn ask(self: Arc<Self>, context: Context, entries: Stream) -> Answer {
        let asked_ms = rt::now().mono_ms;
        self.show(&context, self.card()).await?;
        let asked = self.state.lock().follower.position();
        let info = entries.get_info().await.map_err(Error::link)?;
        let (first, last) = (info.state.first_sequence, info.state.last_sequence);
        let nanos = info.created.unix_timestamp_nanos();
        let epoch = Epoch(u64::try_from(nanos).unwrap_or(0));
        let found = match asked.filter(|own| own.epoch == epoch) {
            Some(own) => id_at(&entries, own.sequence, first, last).await?,
            None => None,
        };
        let last_id = id_at(&entries, last, first, last).await?;
        Ok((Facts { epoch, first, last, last_id, asked, found }, asked_ms))
    }

    /// Takes an answer of the stream. Returns true if it is to be followed anew.
    fn take_answer(self: &Arc<Self>, facts: &Facts, asked_ms: u64) -> bool {
        let mut state = self.state.lock();
        let course = state.follower.answered(facts, asked_ms);
        state.last = state.last.max(facts.last);
        if let Course::Doubt(loss) = course {
            state.last = facts.last;
            drop(state);
            self.doubt(loss);
            state = self.state.lock();
        }
        // Behind the doubt: what is trusted is what comes after it.
        self.host.trust_until(state.follower.trusted_until_ms());
        drop(state);
        self.note_change();
        course != Course::On
    }

    fn doubt(self: &Arc<Self>, loss: Loss) {
        self.host.doubt(loss);
        self.state.lock().counts.doubts += 1;
        if loss != Loss::Joined {
            self.host.say(&format!("what is stored is validated before it is used again: {loss}"));
        }
        if loss.is_for_all() {
            self.tell_of_loss();
        }
    }

    /// Takes what is to be sent next; it is on its way from here on.
    fn take_letter(&self) -> Option<(EntryId, Bytes)> {
        let mut state = self.state.lock();
        let letter = state.outbox.take()?;
        let taken = (letter.id, letter.bytes.clone());
        state.in_flight.insert(letter.id.number, letter);
        Some(taken)
    }

    /// Takes an entry of the stream. The result is the word that its maker waits for.
    fn take_entry(self: &Arc<Self>, sequence: u64, payload: &[u8]) -> Option<EntryId> {
        let read = Entry::decode(payload);
        let mut state = self.state.lock();
        let step = state.follower.entry(sequence, read.as_ref().map_err(|error| *error));
        state.last = state.last.max(sequence);
        state.counts.applied += u64::from(step.apply);
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
        // All of them, whatever becomes of one.
        let refused = entry.invalidations.iter().filter(|one| !apply(one)).count();
        if refused > 0 {
            self.doubt(Loss::Content);
        }
        (entry.level == Level::All && entry.id.run != self.run).then_some(entry.id)
    }
}

/// The identity of the entry at `sequence`, if the stream has one there.
async fn id_at(
    entries: &Stream,
    sequence: u64,
    first: u64,
    last: u64,
) -> Result<Option<EntryId>, Error> {
    if sequence == 0 || sequence < first || sequence > last {
        return Ok(None);
    }
    match entries.get_raw_message(sequence).await {
        Ok(message) => {
            let id = message.headers.get(async_nats::header::NATS_MESSAGE_ID);
            Ok(id.and_then(|id| EntryId::read(id.as_str())))
        }
        Err(error) if matches!(error.kind(), LastRawMessageErrorKind::NoMessageFound) => Ok(None),
        Err(error) => Err(Error::link(error)),
    }
}

/// A time in touch.
struct Session {
    cluster: Arc<Cluster>,
    context: Context,
    client: Client,
    entries_stream: Stream,
    entries: Ordered,
    cards: Ordered,
    words: Subscriber,
    /// The sequence of the first card that this node showed in the session.
    shown: u64,
    question: Option<Boxed<Answer>>,
    acks: FuturesUnordered<Boxed<Ack>>,
    saving: Option<Boxed<Result<Position, String>>>,
    saved: Option<Position>,
}

impl Session {
    async fn begin(cluster: &Arc<Cluster>, client: Client) -> Result<Self, Error> {
        let settings = &cluster.settings;
        let timeout = Duration::from_millis(settings.question_ms() * 3);
        let timeout = timeout.clamp(Duration::from_secs(1), Duration::from_secs(5));
        let context =
            ContextBuilder::new().timeout(timeout).ack_timeout(timeout).build(client.clone());
        let entries_stream = streams::have(&context, streams::entries(settings)).await?;
        let cards_stream = streams::have(&context, streams::cards(settings)).await?;
        let words =
            client.subscribe(settings.word_subject(cluster.run)).await.map_err(Error::link)?;
        let shown = cluster.show(&context, cluster.card()).await?;
        let asked = Arc::clone(cluster).ask(context.clone(), entries_stream.clone()).await?;
        cluster.take_answer(&asked.0, asked.1);
        let from = cluster.state.lock().follower.position().map_or(1, |own| own.sequence + 1);
        let follow = DeliverPolicy::ByStartSequence { start_sequence: from };
        let subject = settings.entries_subject();
        let entries = ordered(&client, &entries_stream, subject, follow).await?;
        let subject = settings.card_subject("*");
        let cards = ordered(&client, &cards_stream, subject, DeliverPolicy::LastPerSubject).await?;
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
            words,
            shown,
            question: None,
            acks: FuturesUnordered::new(),
            saving: None,
            saved: None,
        })
    }

    /// Goes on until something is wrong, or is to be begun anew.
    async fn go_on(&mut self, moves: &mut watch::Receiver<u64>) -> Result<(), Error> {
        let mut questions =
            rt::time::interval(Duration::from_millis(self.cluster.settings.question_ms()));
        let mut saves = rt::time::interval(SAVE);
        let mut ending = self.cluster.ending.subscribe();
        self.put();
        loop {
            self.send().await?;
            tokio::select! {
                entry = self.entries.next() => self.entry(taken(entry)?).await?,
                card = self.cards.next() => self.card(&taken(card)?)?,
                Some(word) = self.words.next() => self.word(&word.payload),
                _ = questions.tick() => self.put(),
                answer = polled(&mut self.question) => {
                    self.question = None;
                    let (facts, asked_ms) = answer?;
                    if !self.cluster.state.lock().posture.is_shown() {
                        self.put();
                    }
                    if self.cluster.take_answer(&facts, asked_ms) {
                        return Ok(());
                    }
                }
                Some((number, ack)) = self.acks.next() => self.acknowledged(number, ack)?,
                _ = saves.tick() => {
                    self.cluster.forget_words(rt::now().mono_ms);
                    self.save();
                }
                saved = polled(&mut self.saving) => self.kept(saved),
                () = self.cluster.bell.notified() => {}
                _ = moves.changed() => return Err(Error::Link("the connection was lost".into())),
                () = self.cluster.turned.notified() => self.put(),
                () = told_to(&mut ending) => return self.leave().await,
            }
        }
    }

    /// Puts a question, unless one is on its way.
    fn put(&mut self) {
        if self.question.is_none() {
            let (context, entries) = (self.context.clone(), self.entries_stream.clone());
            self.question = Some(Box::pin(Arc::clone(&self.cluster).ask(context, entries)));
        }
    }

    /// Sends what waits.
    #[expect(clippy::needless_pass_by_ref_mut, reason = "shared, it would have to be Sync")]
    async fn send(&mut self) -> Result<(), Error> {
        while self.acks.len() < IN_FLIGHT_MAX {
            let Some((id, bytes)) = self.cluster.take_letter() else { return Ok(()) };
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
        if let Some(letter) = state.in_flight.remove(&number) {
            state.counts.told += 1;
            Letter::stored(&letter, ack.sequence);
        }
        Ok(())
    }

    async fn entry(&mut self, message: Message) -> Result<(), Error> {
        let sequence = message.info().map_err(Error::link)?.stream_sequence;
        let awaited = self.cluster.take_entry(sequence, &message.payload);
        if self.cluster.state.lock().follower.wants_question() {
            self.put();
        }
        let Some(id) = awaited else { return Ok(()) };
        let (cluster, client) = (Arc::clone(&self.cluster), self.client.clone());
        rt::spawn(async move {
            // A word that a crash takes back would be none.
            let host = Arc::clone(&cluster.host);
            let settled = rt::blocking(move || host.settle()).await;
            if !matches!(settled, Ok(Ok(()))) {
                return;
            }
            let name = cluster.settings.name.clone();
            let word = Word { name, run: cluster.run, number: id.number };
            let subject = cluster.settings.word_subject(id.run);
            // What is lost on the way is missing, and named.
            _ = client.publish(subject, Bytes::from(word.encode())).await;
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
        // They come in their order, so with this node's own all others have come.
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
            return Err(Error::Name(card.name));
        }
        state.members.heard(card, rt::now().mono_ms);
        drop(state);
        cluster.note_change();
        if is_behind {
            // The run before says late that it has left, over the card of this one.
            self.put();
        }
        Ok(())
    }

    fn word(&self, payload: &[u8]) {
        let mut state = self.cluster.state.lock();
        match Word::decode(payload) {
            Some(word) => {
                let applied = state.awaited.get_mut(&word.number).map(|(applied, _)| applied);
                if let Some(applied) = applied.filter(|applied| applied.len() < MEMBERS_MAX) {
                    applied.insert(word.name, word.run);
                }
            }
            None => state.counts.strange += 1,
        }
        drop(state);
        self.cluster.note_change();
    }

    /// Has the position kept, unless it is.
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
            Err(why) => self.cluster.host.say(&format!("its position cannot be kept: {why}")),
        }
    }

    /// Tells the others that they need not wait, and sends what has not been sent.
    async fn leave(&mut self) -> Result<(), Error> {
        let (card, turn) = self.cluster.card();
        let card = Card { left: true, ..card };
        let ending = async {
            self.send().await?;
            while let Some((number, ack)) = self.acks.next().await {
                self.acknowledged(number, ack)?;
            }
            self.cluster.show(&self.context, (card, turn)).await.map(|_| ())
        };
        rt::time::timeout(LEAVE, ending).await.unwrap_or(Ok(()))
    }
}

/// Waits until the node is told to end.
async fn told_to(ending: &mut watch::Receiver<bool>) {
    // Whoever could tell it lives as long as the cluster.
    _ = ending.wait_for(|ending| *ending).await;
}

fn taken<T, E: std::fmt::Display>(next: Option<Result<T, E>>) -> Result<T, Error> {
    let ended = || Error::Link("the stream's messages ended".to_owned());
    next.ok_or_else(ended)?.map_err(Error::link)
}

/// The outcome of what is under way; it never comes if nothing is.
async fn polled<T>(under_way: &mut Option<Boxed<T>>) -> T {
    match under_way {
        Some(future) => future.await,
        None => std::future::pending().await,
    }
}

async fn ordered(
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
