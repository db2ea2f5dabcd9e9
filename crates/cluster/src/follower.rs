//! The follower: a node's view of the stream, as a state machine without sockets and clocks. It
//! must never trust stored responses because of the log alone: JetStream can lose acknowledged
//! entries. Trust is a lease, renewed by comparing the stream with the node's own position. A node
//! that is disconnected, stopped or behind has no lease.

use std::collections::VecDeque;
use std::fmt;

use crate::entry::{Entry, EntryDecodeError};
use crate::position::{Epoch, Position, Stamp};

/// Questions whose answers have not been caught up with. A later one waits.
const PENDING_MAX: usize = 16;

/// Milliseconds for which a stream may end before the position without a loss: its leader, which
/// answers, may store later what another server has stored and delivered. (Seen with NATS 2.9 at a
/// thousand entries a second.) Trust is not renewed meanwhile.
const BEHIND_MS: u64 = 1_000;

/// The stream's answer to a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamFacts {
    /// The stream's creation.
    pub epoch: Epoch,
    /// The first sequence that it has.
    pub first: u64,
    /// The last sequence.
    pub last: u64,
    /// The last entry, if any.
    pub last_stamp: Option<Stamp>,
    /// The position that was asked about.
    pub asked: Option<Position>,
    /// The entry at that sequence, if any.
    pub found: Option<Stamp>,
}

/// The reason to trust nothing that was stored before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The node has no position: it joins.
    Joined,
    /// The stream was recreated.
    Anew,
    /// The stream ends before the position, or before an end that it has reported: entries are
    /// lost.
    Back,
    /// The stream has another entry at the position, or the same one stored again: entries are lost
    /// and replaced.
    Other,
    /// Entries between the position and the stream's first are gone: the node was away for too
    /// long.
    Gap,
    /// An entry cannot be decoded.
    Entry(EntryDecodeError),
    /// An invalidation of an entry cannot be applied.
    Content,
    /// Another node has reported a loss.
    Told,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Joined => "the node joins the cluster",
            Self::Anew => "the stream was created again",
            Self::Back => "the stream has lost entries that it had",
            Self::Other => "the stream has other entries than the node has applied",
            Self::Gap => "the stream has dropped entries that the node has not applied",
            Self::Entry(error) => return write!(f, "the stream has {error}"),
            Self::Told => "another node has reported lost entries",
            Self::Content => "the stream has an invalidation that cannot be applied",
        })
    }
}

impl Loss {
    /// Returns true if other nodes may not detect the loss themselves, so that it is sent to them.
    pub fn is_for_all(self) -> bool {
        matches!(self, Self::Back | Self::Other)
    }
}

/// The action for an entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EntryAction {
    /// First, trust nothing that was stored before.
    pub doubt: Option<Loss>,
    /// Apply the entry.
    pub apply: bool,
}

/// The action after an answer of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FollowAction {
    /// Continue.
    On,
    /// Trust nothing that was stored before, and follow again from the position.
    Doubt(Loss),
}

/// A node's view of the stream.
///
/// A position is a creation of the stream, a sequence, and the entry there with its identity and
/// its time. A stream with anything else at that position has lost entries, or is another one. Then
/// no object stored before is trusted until the origin has revalidated it. (Jepsen found in 2025
/// that JetStream loses acknowledged writes on power failures, as by default it syncs every two
/// minutes, and on damaged files of a replica.)
///
/// A lease begins when a question is sent to the stream, and lasts for `max_isolation`. It is valid
/// once all entries that the stream had at the answer have been applied, and a later question,
/// about a position behind them, was answered with the same stream and the same entry. (Entries
/// alone prove nothing: they may be those of a recreated stream.)
#[derive(Clone, Debug)]
pub struct StreamFollower {
    max_isolation_ms: u64,
    position: Option<Position>,
    /// Times of questions, each with the sequence to catch up with.
    pending: VecDeque<(u64, u64)>,
    /// The last time at which nothing was missing, in milliseconds of the node's own clock.
    lease_ms: Option<u64>,
    /// It has left: it follows, and trusts nothing.
    has_left: bool,
    /// Another node has its name: it trusts nothing.
    is_displaced: bool,
    /// A position behind the end that the stream has reported, and the time of the first question
    /// about it. No other question is asked until the entry is there, or is lost.
    unseen: Option<(Position, u64)>,
    /// The time of its return. A question is valid only if sent later.
    back_ms: Option<u64>,
}

impl StreamFollower {
    /// A node that has applied all entries up to `position`; `None` for a new node.
    pub fn new(position: Option<Position>, max_isolation_ms: u64) -> Self {
        Self {
            max_isolation_ms,
            position,
            pending: VecDeque::new(),
            lease_ms: None,
            has_left: false,
            is_displaced: false,
            unseen: None,
            back_ms: None,
        }
    }

    /// The position up to which all entries have been applied.
    pub fn position(&self) -> Option<Position> {
        self.position
    }

    /// The position of the next question.
    pub fn asks_about(&self) -> Option<Position> {
        self.unseen.map(|(unseen, _)| unseen).or(self.position)
    }

    /// The end of trust, in milliseconds of the node's own clock; 0 without trust.
    pub fn trusted_until_ms(&self) -> u64 {
        self.lease_ms.map_or(0, |lease_ms| lease_ms.saturating_add(self.max_isolation_ms))
    }

    /// Ends trust until [`StreamFollower::come_back`], and continues to follow.
    pub fn leave(&mut self) {
        self.has_left = true;
        self.lease_ms = None;
        self.pending.clear();
    }

    /// Permits trust again by questions sent after `now_ms`: before, the others may have seen the
    /// node as away.
    pub fn come_back(&mut self, now_ms: u64) {
        if self.has_left {
            (self.has_left, self.back_ms) = (false, Some(now_ms));
        }
    }

    /// Returns true after leaving, until the return.
    pub fn has_left(&self) -> bool {
        self.has_left
    }

    /// Ends trust, because another node has the name and others cannot tell them apart.
    pub fn displace(&mut self) {
        self.is_displaced = true;
        self.lease_ms = None;
        self.pending.clear();
    }

    /// Permits trust again by questions sent after `now_ms`: the name is its own.
    pub fn take_name(&mut self, now_ms: u64) {
        if self.is_displaced {
            (self.is_displaced, self.back_ms) = (false, Some(now_ms));
        }
    }

    /// Returns true if another node has its name.
    pub fn is_displaced(&self) -> bool {
        self.is_displaced
    }

    /// Returns true if a question sent at `asked_ms` can begin trust.
    fn counts(&self, asked_ms: u64) -> bool {
        !self.has_left
            && !self.is_displaced
            && self.back_ms.is_none_or(|back_ms| asked_ms > back_ms)
    }

    /// Takes the answer to a question sent at `asked_ms`, after the node's card was durable among
    /// the members'.
    pub fn answered(&mut self, facts: &StreamFacts, asked_ms: u64) -> FollowAction {
        // Its position has been given up meanwhile.
        if facts.asked.map(|asked| asked.epoch) != self.position.map(|own| own.epoch) {
            return FollowAction::On;
        }
        let loss = self.loss(facts);
        if let (Some(Loss::Back), Some(asked)) = (loss, facts.asked) {
            let (_, since_ms) = *self.unseen.get_or_insert((asked, asked_ms));
            if asked_ms.saturating_sub(since_ms) < BEHIND_MS {
                return FollowAction::On;
            }
        }
        self.unseen = None;
        if let Some(loss) = loss {
            let StreamFacts { epoch, last: sequence, last_stamp: stamp, .. } = *facts;
            self.position = Some(Position { epoch, sequence, stamp });
            self.pending.clear();
            self.lease_ms = Some(asked_ms).filter(|asked_ms| self.counts(*asked_ms));
            return FollowAction::Doubt(loss);
        }
        if self.pending.len() < PENDING_MAX && self.counts(asked_ms) {
            self.pending.push_back((asked_ms, facts.last));
        }
        let confirmed = facts.asked.map_or(0, |asked| asked.sequence);
        while let Some((asked_ms, _)) = self.pending.front().filter(|(_, at)| *at <= confirmed) {
            self.lease_ms = self.lease_ms.max(Some(*asked_ms));
            self.pending.pop_front();
        }
        FollowAction::On
    }

    fn loss(&self, facts: &StreamFacts) -> Option<Loss> {
        let (Some(own), Some(asked)) = (self.position, facts.asked) else {
            return Some(Loss::Joined);
        };
        let differs = |(own, found): (Stamp, Stamp)| !own.is_same(found);
        if facts.epoch != own.epoch {
            Some(Loss::Anew)
        } else if asked.sequence.max(self.reported_last()) > facts.last {
            Some(Loss::Back)
        } else if asked.stamp.zip(facts.found).is_some_and(differs) {
            Some(Loss::Other)
        } else if facts.first > own.sequence.saturating_add(1) {
            Some(Loss::Gap)
        } else {
            None
        }
    }

    /// The last reported end of the stream that is not caught up with. If the stream has lost it,
    /// waiting for its sequence would hide the loss.
    fn reported_last(&self) -> u64 {
        self.pending.iter().map(|(_, last)| *last).max().unwrap_or(0)
    }

    /// Returns true if an early question would help: all entries of an earlier answer have been
    /// applied, and half of the lease is over. (Otherwise every node would ask a busy stream all
    /// the time, and each question has a card that all nodes get.)
    pub fn wants_question(&self, now_ms: u64) -> bool {
        let own = self.position.map_or(0, |own| own.sequence);
        let is_short = now_ms.saturating_add(self.max_isolation_ms / 2) >= self.trusted_until_ms();
        let is_ready = self.pending.front().is_some_and(|(_, at)| *at <= own);
        self.unseen.is_none() && is_short && is_ready
    }

    /// Takes the next entry of the stream, stored at `stored_ns` ([`Stamp`]). The action must be
    /// carried out before any further call.
    pub fn entry(
        &mut self,
        sequence: u64,
        stored_ns: u64,
        entry: Result<&Entry, EntryDecodeError>,
    ) -> EntryAction {
        let Some(own) = &mut self.position else { return EntryAction::default() };
        if sequence <= own.sequence {
            // It was delivered twice.
            return EntryAction::default();
        }
        let gap = (sequence > own.sequence + 1).then_some(Loss::Gap);
        own.sequence = sequence;
        own.stamp = Some(Stamp { id: entry.ok().map(|entry| entry.id), stored_ns });
        EntryAction { doubt: gap.or_else(|| entry.err().map(Loss::Entry)), apply: entry.is_ok() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Level;
    use crate::entry::EntryId;

    const ID: EntryId = EntryId { run: 1, number: 1 };
    const HERE: Stamp = Stamp { id: Some(ID), stored_ns: 500 };
    const OTHER: Stamp = Stamp { id: Some(EntryId { run: 1, number: 2 }), stored_ns: 600 };
    const AT: Position = Position { epoch: Epoch(7), sequence: 10, stamp: Some(HERE) };

    fn facts(last: u64) -> StreamFacts {
        let (first, last_stamp) = (1, Some(OTHER));
        StreamFacts { epoch: Epoch(7), first, last, last_stamp, asked: Some(AT), found: Some(HERE) }
    }

    fn entry(number: u64) -> Entry {
        let id = EntryId { run: 2, number };
        Entry { id, node: "a".into(), level: Level::Local, invalidations: Vec::new() }
    }

    #[test]
    fn a_stream_that_is_another_than_it_was_is_a_loss() {
        let good = facts(12);
        for (facts, loss) in [
            (good, None),
            (StreamFacts { last: 10, ..good }, None),
            (StreamFacts { first: 11, ..good }, None),
            // Expired: nothing can be compared, and nothing is missing.
            (StreamFacts { first: 11, found: None, ..good }, None),
            (StreamFacts { epoch: Epoch(8), ..good }, Some(Loss::Anew)),
            (StreamFacts { epoch: Epoch(6), last: 10, ..good }, Some(Loss::Anew)),
            (StreamFacts { last: 9, found: None, ..good }, Some(Loss::Back)),
            (StreamFacts { last: 0, first: 0, found: None, ..good }, Some(Loss::Back)),
            (StreamFacts { found: Some(OTHER), ..good }, Some(Loss::Other)),
            // The same entry, stored again, perhaps behind other entries: later, or earlier by
            // another server's clock.
            (
                StreamFacts { found: Some(Stamp { stored_ns: 501, ..HERE }), ..good },
                Some(Loss::Other),
            ),
            (
                StreamFacts { found: Some(Stamp { stored_ns: 499, ..HERE }), ..good },
                Some(Loss::Other),
            ),
            (StreamFacts { found: Some(Stamp { id: None, ..HERE }), ..good }, None),
            (StreamFacts { first: 12, found: None, ..good }, Some(Loss::Gap)),
            // All entries were removed, including missed ones.
            (StreamFacts { first: 13, last: 12, found: None, ..good }, Some(Loss::Gap)),
        ] {
            let mut follower = StreamFollower::new(Some(AT), 30_000);
            let course = loss.map_or(FollowAction::On, FollowAction::Doubt);
            if loss == Some(Loss::Back) {
                assert_eq!(follower.answered(&facts, 5), FollowAction::On, "it may only be late");
            }
            assert_eq!(follower.answered(&facts, 5 + BEHIND_MS), course, "{facts:?}");
            let after = follower.position().expect("known");
            match loss {
                None => assert_eq!(after, AT),
                Some(_) => assert_eq!((after.epoch, after.sequence), (facts.epoch, facts.last)),
            }
        }
        let mut begins = StreamFollower::new(None, 30_000);
        let first = StreamFacts { asked: None, found: None, ..good };
        assert_eq!(begins.answered(&first, 5), FollowAction::Doubt(Loss::Joined));
        assert_eq!(begins.position().map(|at| (at.sequence, at.stamp)), Some((12, Some(OTHER))));
    }

    #[test]
    fn a_leader_that_is_late_renews_no_trust_and_is_no_loss() {
        let mut follower = StreamFollower::new(Some(AT), 30_000);
        assert_eq!(follower.answered(&facts(10), 100), FollowAction::On);
        assert_eq!(follower.trusted_until_ms(), 30_100);
        let late = StreamFacts { last: 9, found: None, ..facts(9) };
        for asked_ms in [200, 1_199] {
            assert_eq!(follower.answered(&late, asked_ms), FollowAction::On);
        }
        assert_eq!(follower.trusted_until_ms(), 30_100, "as before");
        // The late entry has arrived, and another is late: the time begins again.
        assert_eq!(follower.answered(&facts(10), 1_200), FollowAction::On);
        assert_eq!(follower.trusted_until_ms(), 31_200);
        assert_eq!(follower.answered(&late, 1_300), FollowAction::On);
        assert_eq!(follower.answered(&late, 2_300), FollowAction::Doubt(Loss::Back));
        assert_eq!(follower.position().map(|at| at.sequence), Some(9));
    }

    #[test]
    fn an_entry_that_is_lost_is_one_whatever_follows_it_meanwhile() {
        let mut follower = StreamFollower::new(Some(AT), 30_000);
        let late = StreamFacts { last: 9, found: None, ..facts(9) };
        assert_eq!(follower.answered(&late, 200), FollowAction::On);
        // The entry that replaces it is not delivered, but the next one is.
        assert_eq!(
            follower.entry(11, 711, Ok(&entry(2))),
            EntryAction { doubt: None, apply: true }
        );
        assert_eq!(follower.asks_about(), Some(AT));
        assert_eq!(
            follower.answered(&StreamFacts { found: Some(OTHER), ..facts(11) }, 300),
            FollowAction::Doubt(Loss::Other)
        );
        assert_eq!(follower.trusted_until_ms(), 30_300);
        let mut follower = StreamFollower::new(Some(AT), 30_000);
        assert_eq!(follower.answered(&late, 200), FollowAction::On);
        follower.entry(11, 711, Ok(&entry(2)));
        assert_eq!(follower.answered(&facts(11), 300), FollowAction::On, "it was late");
        assert_eq!(follower.asks_about(), follower.position());
        assert_eq!(follower.trusted_until_ms(), 0, "the next one confirms");
        follower.answered(&about(&follower, 11), 400);
        assert_eq!(follower.trusted_until_ms(), 30_400);
    }

    #[test]
    fn a_reported_end_that_is_lost_is_a_loss() {
        let mut follower = StreamFollower::new(Some(AT), 30_000);
        assert_eq!(follower.answered(&facts(12), 100), FollowAction::On);
        // It has lost two entries that were not applied here, and has the one that was.
        assert_eq!(follower.answered(&facts(10), 200), FollowAction::On, "it may only be late");
        assert_eq!(follower.trusted_until_ms(), 0);
        assert_eq!(follower.answered(&facts(11), 1_200), FollowAction::Doubt(Loss::Back));
        assert_eq!(follower.trusted_until_ms(), 31_200);
        let mut follower = StreamFollower::new(Some(AT), 30_000);
        follower.answered(&facts(12), 100);
        follower.answered(&facts(10), 200);
        assert_eq!(follower.answered(&facts(12), 1_200), FollowAction::On, "it was late");
        (11..=12).for_each(|own| _ = follower.entry(own, 700 + own, Ok(&entry(own))));
        follower.answered(&about(&follower, 12), 1_300);
        assert_eq!(follower.trusted_until_ms(), 31_300);
    }

    #[test]
    fn an_answer_about_an_abandoned_position_is_ignored() {
        let mut follower = StreamFollower::new(Some(AT), 30_000);
        let anew = StreamFacts { epoch: Epoch(8), last: 3, ..facts(3) };
        assert_eq!(follower.answered(&anew, 5), FollowAction::Doubt(Loss::Anew));
        assert_eq!(follower.trusted_until_ms(), 30_005);
        assert_eq!(
            follower.answered(&anew, 9),
            FollowAction::On,
            "asked before the first was answered"
        );
        assert_eq!(follower.trusted_until_ms(), 30_005);
    }

    #[test]
    fn entries_are_applied_once_and_in_order_and_what_is_missing_is_a_loss() {
        let mut follower = StreamFollower::new(Some(AT), 30_000);
        let (one, apply) = (entry(1), EntryAction { doubt: None, apply: true });
        assert_eq!(follower.entry(10, 500, Ok(&one)), EntryAction::default());
        assert_eq!(follower.entry(11, 700, Ok(&one)), apply);
        assert_eq!(follower.entry(11, 701, Ok(&one)), EntryAction::default());
        let stamp = Stamp { id: Some(one.id), stored_ns: 700 };
        assert_eq!(follower.position().and_then(|at| at.stamp), Some(stamp), "of the first");
        let gap = EntryAction { doubt: Some(Loss::Gap), apply: true };
        assert_eq!(follower.entry(13, 750, Ok(&one)), gap);
        let (bad, unknown) = (EntryDecodeError::Version(9), Stamp { id: None, stored_ns: 800 });
        let unread = EntryAction { doubt: Some(Loss::Entry(bad)), apply: false };
        assert_eq!(follower.entry(14, 800, Err(bad)), unread);
        assert_eq!(
            follower.position().map(|at| (at.sequence, at.stamp)),
            Some((14, Some(unknown)))
        );
        assert_eq!(follower.entry(15, 850, Ok(&one)), apply);
        assert_eq!(StreamFollower::new(None, 1).entry(1, 100, Ok(&one)), EntryAction::default());
    }

    /// The answer to a question about `sequence`, where the stream has the follower's entry.
    fn about(follower: &StreamFollower, last: u64) -> StreamFacts {
        let asked = follower.position();
        StreamFacts { asked, found: asked.and_then(|asked| asked.stamp), ..facts(last) }
    }

    #[test]
    fn trust_begins_with_a_question_whose_answer_was_caught_up_with_and_confirmed() {
        let mut follower = StreamFollower::new(Some(AT), 30_000);
        assert_eq!(follower.trusted_until_ms(), 0);
        follower.answered(&about(&follower, 12), 100);
        assert_eq!(follower.trusted_until_ms(), 0, "two entries are missing");
        follower.entry(11, 711, Ok(&entry(1)));
        assert!(!follower.wants_question(150));
        follower.entry(12, 712, Ok(&entry(2)));
        assert!(follower.wants_question(150));
        assert_eq!(follower.trusted_until_ms(), 0, "not confirmed");
        follower.answered(&about(&follower, 13), 200);
        assert_eq!(follower.trusted_until_ms(), 30_100);
        follower.entry(13, 713, Ok(&entry(3)));
        assert!(!follower.wants_question(15_099), "the next one is in time");
        assert!(follower.wants_question(15_100), "half of it is over");
        follower.answered(&about(&follower, 13), 300);
        assert_eq!(follower.trusted_until_ms(), 30_300);
    }

    #[test]
    fn entries_of_a_stream_that_was_made_anew_confirm_nothing() {
        let mut follower = StreamFollower::new(Some(AT), 30_000);
        follower.answered(&about(&follower, 11), 100);
        follower.entry(11, 711, Ok(&entry(1)));
        let anew = StreamFacts { epoch: Epoch(8), ..about(&follower, 11) };
        assert_eq!(follower.answered(&anew, 200), FollowAction::Doubt(Loss::Anew));
        let mut follower = StreamFollower::new(Some(AT), 30_000);
        follower.answered(&about(&follower, 11), 100);
        follower.entry(11, 711, Ok(&entry(1)));
        let other = StreamFacts { found: Some(OTHER), ..about(&follower, 12) };
        assert_eq!(follower.answered(&other, 200), FollowAction::Doubt(Loss::Other));
    }

    #[test]
    fn one_that_has_left_follows_and_trusts_nothing_until_it_is_back_and_was_shown() {
        let mut follower = StreamFollower::new(Some(AT), 30_000);
        follower.answered(&about(&follower, 10), 100);
        assert_eq!(follower.trusted_until_ms(), 30_100);
        follower.answered(&about(&follower, 11), 150);
        follower.leave();
        assert_eq!(follower.trusted_until_ms(), 0, "at once");
        follower.answered(&about(&follower, 11), 200);
        assert_eq!(
            follower.entry(11, 711, Ok(&entry(1))),
            EntryAction { doubt: None, apply: true }
        );
        follower.answered(&about(&follower, 11), 300);
        assert_eq!(follower.trusted_until_ms(), 0, "whatever is answered");
        follower.come_back(400);
        follower.answered(&about(&follower, 11), 400);
        assert_eq!(follower.trusted_until_ms(), 0, "the others were shown one that is away");
        follower.answered(&about(&follower, 11), 401);
        assert_eq!(follower.trusted_until_ms(), 30_401);
        follower.come_back(500);
        assert_eq!(follower.trusted_until_ms(), 30_401, "it was there");
        let anew = StreamFacts { epoch: Epoch(8), ..about(&follower, 11) };
        follower.leave();
        assert_eq!(follower.answered(&anew, 600), FollowAction::Doubt(Loss::Anew));
        assert_eq!(follower.trusted_until_ms(), 0);
    }

    #[test]
    fn trust_counts_from_the_last_question_that_is_caught_up_with() {
        let mut follower = StreamFollower::new(Some(AT), 30_000);
        for question in 0..100 {
            follower.answered(&about(&follower, 20 + question), 1_000 * question);
        }
        for sequence in 11..=21 {
            follower.entry(sequence, 700 + sequence, Ok(&entry(sequence)));
        }
        follower.answered(&about(&follower, 200), 100_000);
        assert_eq!(follower.trusted_until_ms(), 31_000, "of the second question");
    }
}
