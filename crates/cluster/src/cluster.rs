//! The cluster as a node's daemon sees it: sending, waiting, and status. The session does the work.
//! It must never report a purge as applied everywhere before every live node has confirmed it.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use base::HashSeed;
use bytes::Bytes;
use parking_lot::Mutex;
use purge::{Invalidation, PeerCaches, PreparedPropagation, Propagation, PropagationBatch};
use serde::Serialize;
use tokio::sync::{Notify, watch};

use crate::Level;
use crate::entries_in_force::EntriesInForce;
use crate::entry::{ENTRY_BYTES, ENTRY_INVALIDATIONS, Entry, EntryId};
use crate::error::{Error, PropagationError};
use crate::follower::StreamFollower;
use crate::link::Context;
use crate::members::{AppliedRuns, Card, Members};
use crate::outbox::{EntryFate, Outbox, OutboxEntry};
use crate::position::Position;
use crate::settings::{Host, Settings};
use crate::stance::{Posture, Stance};

/// Bytes of an entry beside its invalidations: its head, and lengths.
const HEAD_BYTES: usize = 1_024;
/// The interval in milliseconds at which live members are determined again.
const LOOK_MS: u64 = 100;

/// A cluster, as one of its nodes.
pub struct Cluster {
    pub(crate) settings: Settings,
    pub(crate) host: Arc<dyn Host>,
    /// The number of this run.
    pub(crate) run: u64,
    pub(crate) state: Mutex<State>,
    /// Signals an entry to be sent.
    pub(crate) bell: Notify,
    /// Changes with the knowledge of other members.
    pub(crate) changed: watch::Sender<u64>,
    /// Signals a changed stance, to be shown.
    pub(crate) turned: Notify,
    /// Set at the end.
    pub(crate) ending: watch::Sender<bool>,
}

pub(crate) struct State {
    pub(crate) follower: StreamFollower,
    /// The entries in force here. The follower's position is ahead of it while an entry is applied.
    pub(crate) in_force: EntriesInForce,
    pub(crate) members: Members,
    pub(crate) outbox: Outbox,
    pub(crate) in_flight: BTreeMap<u64, OutboxEntry>,
    /// Entries of this run that all members should apply, with the end of the longest wait for
    /// each.
    pub(crate) awaited: BTreeMap<u64, (AppliedRuns, u64)>,
    numbers: u64,
    /// The sequence up to which all cards are known.
    pub(crate) cards_seen: Option<u64>,
    pub(crate) context: Option<Context>,
    pub(crate) problem: Option<Error>,
    pub(crate) last: u64,
    /// Entries of this run that the stream has stored and not delivered back yet.
    pub(crate) outstanding: BTreeSet<u64>,
    pub(crate) posture: Posture,
    /// Another run of this name that may be live, and until when.
    pub(crate) displaces: Option<(u64, u64)>,
    pub(crate) counts: Counts,
}

/// Counters since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Entries of this node that the stream has stored.
    pub told: u64,
    /// Entries of the stream that were applied here.
    pub applied: u64,
    /// Times all stored responses lost their trust.
    pub doubts: u64,
    /// Times the outbox overflowed, and one entry that says "trust nothing" replaced its contents.
    pub overflows: u64,
    /// Waits that ended without their confirmation.
    pub not_reached: u64,
    /// Sessions begun.
    pub sessions: u64,
    /// Malformed cards and acknowledgements, which were ignored.
    pub strange: u64,
}

/// The status of a member.
#[derive(Clone, Debug, Serialize)]
pub struct MemberStatus {
    /// Its last card.
    #[serde(flatten)]
    pub card: Card,
    /// Milliseconds since its last card.
    pub silent_ms: u64,
    /// True if it counts for `all`.
    pub live: bool,
    /// Its state: [`crate::Member::state`].
    pub state: &'static str,
    /// Entries of the stream that it has not reported as applied.
    pub lag: u64,
}

/// The status of a node and its cluster.
#[derive(Clone, Debug, Serialize)]
pub struct Status {
    /// Its name.
    pub name: String,
    /// True if it is connected to the stream.
    pub connected: bool,
    /// Its stance.
    pub stance: Stance,
    /// True if the others have been shown this stance.
    pub is_shown: bool,
    /// True if stored responses are served without revalidation.
    pub trusted: bool,
    /// Milliseconds until that ends without contact.
    pub trusted_ms: u64,
    /// The reason why it is not connected.
    pub problem: Option<String>,
    /// The sequence up to which the stream was applied here.
    pub sequence: u64,
    /// The stream's last sequence at the last contact.
    pub last: u64,
    /// Entries in the outbox.
    pub queued: u64,
    /// Counters.
    pub counts: Counts,
    /// All members, by name.
    pub members: Vec<MemberStatus>,
}

/// A wait for entries that were sent.
pub struct Ticket {
    cluster: Arc<Cluster>,
    level: Level,
    fates: Vec<watch::Receiver<EntryFate>>,
    /// Numbers of entries that all members should apply.
    awaited: Vec<u64>,
}

impl Cluster {
    /// A node that continues from `position`; `None` for a node without stored responses. It
    /// becomes active in [`Cluster::run`].
    pub fn new(settings: Settings, host: Arc<dyn Host>, position: Option<Position>) -> Arc<Self> {
        let state = State {
            follower: StreamFollower::new(position, settings.max_isolation_ms),
            in_force: EntriesInForce::new(position),
            members: Members::default(),
            outbox: Outbox::new(settings.queue),
            in_flight: BTreeMap::new(),
            awaited: BTreeMap::new(),
            numbers: 0,
            cards_seen: None,
            context: None,
            problem: None,
            last: 0,
            outstanding: BTreeSet::new(),
            posture: Posture::default(),
            displaces: None,
            counts: Counts::default(),
        };
        host.trust_until(0);
        Arc::new(Self {
            settings,
            host,
            run: HashSeed::draw(),
            state: Mutex::new(state),
            bell: Notify::new(),
            changed: watch::Sender::new(0),
            turned: Notify::new(),
            ending: watch::Sender::new(false),
        })
    }

    /// The default consistency level.
    pub fn level(&self) -> Level {
        self.settings.level
    }

    /// Encodes a batch for the other nodes.
    ///
    /// # Errors
    /// A part of it is too large for an entry.
    pub fn entries(&self, batch: &[&Invalidation]) -> Result<PropagationBatch, String> {
        let (mut entries, mut bytes) = (vec![Vec::new()], 0);
        for one in batch.iter().map(|one| one.encode()) {
            if one.len() + HEAD_BYTES > ENTRY_BYTES {
                let (found, most) = (one.len(), ENTRY_BYTES - HEAD_BYTES);
                return Err(format!(
                    "an invalidation of {found} bytes; the limit of the stream is {most}"
                ));
            }
            let Some(last) = entries.last_mut() else { continue };
            // Each has a length of up to ten bytes before it.
            let fits = bytes + one.len() + 10 + HEAD_BYTES <= ENTRY_BYTES;
            if fits && last.len() < ENTRY_INVALIDATIONS {
                bytes += one.len() + 10;
                last.push(one);
            } else {
                bytes = one.len() + 10;
                entries.push(vec![one]);
            }
        }
        entries.retain(|entry| !entry.is_empty());
        Ok(entries)
    }

    /// Sends what is in force here to the others, in the order of the calls, without waiting.
    pub fn send(self: &Arc<Self>, entries: PropagationBatch, level: Level) -> Ticket {
        let until_ms = rt::now().mono_ms.saturating_add(2 * self.settings.wait_ms);
        let mut state = self.state.lock();
        let state = &mut *state;
        let (mut fates, mut awaited) = (Vec::with_capacity(entries.len()), Vec::new());
        for invalidations in entries {
            let queued = self.new_entry(&mut state.numbers, level, invalidations);
            fates.push(queued.follow());
            if level == Level::All {
                let own = AppliedRuns::from([self.run]);
                state.awaited.insert(queued.id.number, (own, until_ms));
                awaited.push(queued.id.number);
            }
            let numbers = &mut state.numbers;
            state.outbox.add(queued, || self.new_entry(numbers, Level::Local, Vec::new()));
        }
        if state.outbox.overflows > state.counts.overflows {
            state.counts.overflows = state.outbox.overflows;
            self.host.overflowed();
        }
        self.bell.notify_one();
        Ticket { cluster: Arc::clone(self), level, fates, awaited }
    }

    /// The connection of the present session, and the session's number; `None` without contact.
    pub(crate) fn in_touch(&self) -> Option<(Context, u64)> {
        let state = self.state.lock();
        Some((state.context.clone()?, state.counts.sessions))
    }

    /// A number for acknowledgements by all members, and the wait for them.
    pub(crate) fn await_all(self: &Arc<Self>) -> (u64, Ticket) {
        let until_ms = rt::now().mono_ms.saturating_add(2 * self.settings.wait_ms);
        let mut state = self.state.lock();
        state.numbers += 1;
        let number = state.numbers;
        let own = AppliedRuns::from([self.run]);
        state.awaited.insert(number, (own, until_ms));
        drop(state);
        let cluster = Arc::clone(self);
        (number, Ticket { cluster, level: Level::All, fates: Vec::new(), awaited: vec![number] })
    }

    /// A wait for all entries that are being sent.
    fn all_sent(self: &Arc<Self>) -> Ticket {
        let state = self.state.lock();
        let fates = state.outbox.entries().chain(state.in_flight.values()).map(OutboxEntry::follow);
        let (fates, awaited) = (fates.collect(), state.awaited.keys().copied().collect());
        Ticket { cluster: Arc::clone(self), level: self.settings.level, fates, awaited }
    }

    /// Forgets acknowledgements whose waits have ended.
    pub(crate) fn forget_acknowledgements(&self, now_ms: u64) {
        self.state.lock().awaited.retain(|_, (_, until_ms)| now_ms < *until_ms);
    }

    /// Sends an entry by which no stored response is trusted.
    pub(crate) fn send_loss(self: &Arc<Self>) {
        drop(self.send(vec![Vec::new()], Level::Local));
    }

    fn new_entry(
        &self,
        numbers: &mut u64,
        level: Level,
        invalidations: Vec<Vec<u8>>,
    ) -> OutboxEntry {
        *numbers += 1;
        let id = EntryId { run: self.run, number: *numbers };
        let entry = Entry { id, node: self.settings.name.clone(), level, invalidations };
        let bytes = entry.encode().expect("`entries` has looked at its size");
        OutboxEntry::new(id, Bytes::from(bytes))
    }

    /// Signals a change of the members.
    pub(crate) fn note_change(&self) {
        self.changed.send_modify(|count| *count += 1);
    }

    /// Ends the node's part: the others stop waiting for it. It must not serve clients any more.
    pub fn end(&self) {
        self.ending.send_replace(true);
    }

    /// Saves the position, if possible. May wait.
    pub fn keep_position(&self) {
        let position = self.state.lock().in_force.position();
        if let Some(Err(why)) = position.map(|position| self.host.save(position)) {
            self.host.say(&format!("its position cannot be saved: {why}"));
        }
    }

    /// The status of the node and its cluster.
    pub fn status(&self) -> Status {
        let now_ms = rt::now().mono_ms;
        let state = self.state.lock();
        let until_ms = state.follower.trusted_until_ms();
        let member = |member: &crate::Member| MemberStatus {
            card: member.card.clone(),
            silent_ms: now_ms.saturating_sub(member.heard_ms),
            live: member.is_live(now_ms),
            state: member.state(now_ms),
            lag: state.last.saturating_sub(member.card.sequence),
        };
        Status {
            name: self.settings.name.clone(),
            connected: state.context.is_some(),
            stance: state.posture.stance,
            is_shown: state.posture.is_shown(),
            trusted: now_ms < until_ms,
            trusted_ms: until_ms.saturating_sub(now_ms),
            problem: state.problem.as_ref().map(ToString::to_string),
            sequence: state.follower.position().map_or(0, |own| own.sequence),
            last: state.last,
            queued: (state.outbox.len() + state.in_flight.len()) as u64,
            counts: state.counts,
            members: state.members.all().map(member).collect(),
        }
    }
}

impl Ticket {
    /// Waits for the confirmation of the level.
    ///
    /// # Errors
    /// It has not come in time.
    pub async fn wait(mut self) -> Result<(), PropagationError> {
        if self.level == Level::Local {
            return Ok(());
        }
        let most = Duration::from_millis(self.cluster.settings.wait_ms);
        let mut reached = DeliveryProgress::default();
        let done = rt::time::timeout(most, self.reach(&mut reached)).await;
        if matches!(done, Ok(true)) {
            return Ok(());
        }
        let missing = self.missing(rt::now().mono_ms);
        let mut state = self.cluster.state.lock();
        state.counts.not_reached += 1;
        self.cluster.host.waited_in_vain();
        Err(PropagationError {
            level: self.level,
            is_stored: reached.is_stored,
            missing: if reached.is_stored { missing } else { Vec::new() },
            problem: state.problem.as_ref().map(ToString::to_string),
        })
    }

    /// Returns true when the level is reached; false if it cannot be.
    async fn reach(&mut self, reached: &mut DeliveryProgress) -> bool {
        for fate in &mut self.fates {
            match fate.wait_for(|fate| *fate != EntryFate::Waits).await.as_deref() {
                Ok(EntryFate::Stored(_)) => {}
                _ => return false,
            }
        }
        reached.is_stored = true;
        if self.level == Level::Quorum {
            return true;
        }
        let mut changed = self.cluster.changed.subscribe();
        let Some(cards) = self.cluster.cards_last().await else { return false };
        loop {
            changed.borrow_and_update();
            let now_ms = rt::now().mono_ms;
            let knows_all = self.cluster.state.lock().cards_seen >= Some(cards);
            if knows_all && self.is_applied(now_ms) {
                return true;
            }
            // Time changes the result too: a silent member ceases to count.
            _ = rt::time::timeout(Duration::from_millis(LOOK_MS), changed.changed()).await;
        }
    }

    /// Returns true if no live member is missing.
    fn is_applied(&self, now_ms: u64) -> bool {
        let state = self.cluster.state.lock();
        let none = AppliedRuns::new();
        self.awaited.iter().all(|number| {
            let applied = state.awaited.get(number).map_or(&none, |(applied, _)| applied);
            state.members.have_all(applied, now_ms)
        })
    }

    /// Names of live members that have not acknowledged all entries.
    fn missing(&self, now_ms: u64) -> Vec<String> {
        let state = self.cluster.state.lock();
        let none = AppliedRuns::new();
        let of = |number: &u64| {
            let applied = state.awaited.get(number).map_or(&none, |(applied, _)| applied);
            state.members.missing(applied, now_ms)
        };
        let mut names: Vec<_> = self.awaited.iter().flat_map(of).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

/// A ticket as a propagation.
impl Propagation for Ticket {
    fn wait(self: Box<Self>) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send>> {
        Box::pin(async move { Self::wait(*self).await.map_err(|why| why.to_string()) })
    }
}

/// Encoded entries for the stream.
struct Entries {
    cluster: Arc<Cluster>,
    batch: PropagationBatch,
}

impl PreparedPropagation for Entries {
    fn tell(self: Box<Self>, level: Option<Level>) -> Box<dyn Propagation> {
        let level = level.unwrap_or(self.cluster.settings.level);
        Box::new(self.cluster.send(self.batch, level))
    }
}

/// The cluster as peer caches.
pub struct ClusterPeers(pub Arc<Cluster>);

impl PeerCaches for ClusterPeers {
    fn prepare(
        &self,
        batch: &[&Invalidation],
    ) -> Result<Option<Box<dyn PreparedPropagation>>, String> {
        let batch = self.0.entries(batch)?;
        Ok(Some(Box::new(Entries { cluster: Arc::clone(&self.0), batch })))
    }

    fn outstanding(&self) -> Option<Box<dyn Propagation>> {
        let is_in_touch = self.0.state.lock().context.is_some();
        let waits = is_in_touch && self.0.settings.level > Level::Local;
        waits.then(|| Box::new(self.0.all_sent()) as Box<dyn Propagation>)
    }
}

#[derive(Default)]
struct DeliveryProgress {
    is_stored: bool,
}

#[cfg(test)]
mod tests {
    use purge::{Cause, Id, InvalidationTarget, Sites};

    use super::*;
    use crate::testing::{nobody, settings};

    fn invalidation(sequence: u64, key: usize) -> Invalidation {
        let what = InvalidationTarget::Key(vec![0; key].into());
        let id = Id { node: 1, sequence };
        let cause = Cause::default();
        Invalidation { id, at_unix_ms: 0, sites: Sites::Every, soft: false, what, cause }
    }

    fn cluster() -> Arc<Cluster> {
        Cluster::new(settings("n1"), nobody(), None)
    }

    #[test]
    fn a_batch_that_is_larger_than_an_entry_is_several_in_order() {
        let cluster = cluster();
        let large: Vec<_> = (0..5).map(|n| invalidation(n, 200_000)).collect();
        let many: Vec<_> = (0..2_500).map(|n| invalidation(n, 10)).collect();
        for (batch, lengths) in [(large, vec![2, 2, 1]), (many, vec![1_000, 1_000, 500])] {
            let told = cluster.entries(&batch.iter().collect::<Vec<_>>()).expect("they fit");
            assert_eq!(told.iter().map(Vec::len).collect::<Vec<_>>(), lengths);
            let order: Vec<_> = told.iter().flatten().cloned().collect();
            assert_eq!(order, batch.iter().map(Invalidation::encode).collect::<Vec<_>>());
            drop(cluster.send(told, Level::Local));
        }
        assert!(cluster.entries(&[&invalidation(0, ENTRY_BYTES)]).is_err());
        assert!(cluster.entries(&[]).is_ok_and(|told| told.is_empty()));
    }

    #[tokio::test]
    async fn a_wait_ends_with_the_confirmation_or_names_what_is_missing() {
        let settings = Settings { wait_ms: 20, ..settings("n1") };
        let cluster = Cluster::new(settings, nobody(), None);
        let told = cluster.entries(&[&invalidation(0, 1)]).expect("it fits");
        assert_eq!(cluster.send(told.clone(), Level::Local).wait().await, Ok(()));
        let late = cluster.send(told.clone(), Level::Quorum).wait().await.expect_err("no stream");
        assert!(!late.is_stored && late.to_string().contains("has not stored it"), "{late}");
        let ticket = cluster.send(told.clone(), Level::Quorum);
        let entries = std::iter::from_fn(|| cluster.state.lock().outbox.take());
        entries.for_each(|queued| queued.stored(1));
        assert_eq!(ticket.wait().await, Ok(()));
        let all = ClusterPeers(Arc::clone(&cluster));
        assert!(all.outstanding().is_none(), "without contact no wait begins");
        assert_eq!(cluster.status().counts.not_reached, 1);
    }
}
