//! The members of a cluster, as one node knows them: their cards, and which of them have applied an
//! entry. Pure. A member must count until it has been silent for longer than it would trust its
//! store: its `max_isolation` by the listener's clock, plus a margin for clock speeds. Before that
//! it may have ended, or only be unreachable.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

/// Members remembered. Cards of further ones are rejected and counted.
pub(crate) const MEMBERS_MAX: usize = 4_096;

/// Milliseconds after which a silent member is forgotten.
const FORGOTTEN_MS: u64 = 24 * 3_600_000;

/// Milliseconds between two searches for silent members, because each visits all members.
const LOOK_MS: u64 = 60_000;

/// The most bytes of a name.
const NAME_BYTES: usize = 64;

/// The most bytes of a card.
pub(crate) const CARD_BYTES: usize = 4_096;

/// The card that a node shows to the others. Unknown fields are ignored, so that fields may be
/// added.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Card {
    /// Its name.
    pub name: String,
    /// Its run: a random number drawn at its start.
    pub run: u64,
    /// The program's version.
    pub version: String,
    /// Milliseconds after its last contact at which it stops trusting its store.
    pub max_isolation_ms: u64,
    /// The creation of the stream that it follows; 0 before it knows one.
    pub epoch: u64,
    /// The sequence up to which it has applied the stream.
    pub sequence: u64,
    /// True if it serves stored responses without revalidation.
    pub trusts: bool,
    /// True for a member that wants no more clients.
    pub draining: bool,
    /// True if it has left: it serves no stored response without revalidation.
    pub left: bool,
    /// True if it has left because another run has its name.
    pub displaced: bool,
    /// Another run of its name that may still serve stored responses; 0 for none.
    pub displaces: u64,
    /// Stored responses.
    pub objects: u64,
    /// Bytes in use for them.
    pub bytes: u64,
    /// Requests that the hit ratio counts as hits.
    pub hits: u64,
    /// Requests that the hit ratio is a part of.
    pub judged: u64,
    /// All requests.
    pub requests: u64,
    /// The address and port for other nodes' questions; empty without one.
    pub peer: String,
    /// SHA-256 of its certificate there, in hex.
    pub shows: String,
    /// True if it asks the origins for the others.
    pub shields: bool,
    /// True if it uses the shared configuration.
    pub takes_configuration: bool,
    /// The version of the shared configuration in force here; empty without one.
    pub configuration: String,
    /// The reason why another version that it should have is not in force; empty if it is.
    pub configuration_fault: String,
}

impl Card {
    /// The card as JSON, so that other tools can read it.
    pub fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Milliseconds of silence after which this run trusts nothing that it stored.
    pub(crate) fn patience_ms(&self) -> u64 {
        let own = self.max_isolation_ms;
        own.saturating_add(own / 10).saturating_add(1_000)
    }

    /// Decodes the card of the node `name`; `None` for anything else.
    pub fn decode(name: &str, bytes: &[u8]) -> Option<Self> {
        let card: Self = serde_json::from_slice(bytes.get(..bytes.len().min(CARD_BYTES))?).ok()?;
        (card.name == name && is_name(name)).then_some(card)
    }
}

/// A member's acknowledgement that it has applied an entry whose maker waits for all. A position
/// would prove nothing, because a stream that has lost an entry reuses its sequence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntryAcknowledgement {
    /// The member's name.
    pub name: String,
    /// The member's run.
    pub run: u64,
    /// The entry's number in its maker's run.
    pub number: u64,
}

impl EntryAcknowledgement {
    /// The acknowledgement as JSON.
    pub fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Decodes an acknowledgement; `None` for anything else.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let ack: Self = serde_json::from_slice(bytes.get(..bytes.len().min(CARD_BYTES))?).ok()?;
        is_name(&ack.name).then_some(ack)
    }
}

/// Runs that have applied an entry.
pub type AppliedRuns = BTreeSet<u64>;

/// Returns true for a valid node name: a token of a subject.
pub fn is_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    !name.is_empty() && name.len() <= NAME_BYTES && name.bytes().all(is_plain)
}

/// A member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its last card.
    pub card: Card,
    /// The time of the card, in milliseconds of the listener's clock.
    pub heard_ms: u64,
}

impl Member {
    /// Returns true if it has been silent for longer than it trusts its store.
    fn is_silent(&self, now_ms: u64) -> bool {
        now_ms >= self.heard_ms.saturating_add(self.card.patience_ms())
    }

    /// Its state: `ready`, `asks` (it revalidates stored responses), `draining`, `left`,
    /// `displaced` (another run has its name), or `gone` (silent for too long).
    pub fn state(&self, now_ms: u64) -> &'static str {
        match &self.card {
            card if card.displaced => "displaced",
            card if card.left => "left",
            _ if !self.is_live(now_ms) => "gone",
            card if card.draining => "draining",
            card if card.trusts => "ready",
            _ => "asks",
        }
    }

    /// Returns true if it may serve stored responses.
    pub fn is_live(&self, now_ms: u64) -> bool {
        !self.card.left && !self.is_silent(now_ms)
    }
}

/// The members by name.
#[derive(Clone, Debug, Default)]
pub struct Members {
    all: BTreeMap<String, Member>,
    /// Other runs of members' names that may serve stored responses, or are displaced, until they
    /// are silent for long enough.
    others: Vec<Member>,
    /// The time of the next search for silent members.
    look_ms: u64,
    /// Cards rejected because there were too many members.
    pub refused: u64,
}

impl Members {
    /// Takes a card. Returns false if there are too many members.
    ///
    /// A run reports its own leaving only. A new run of a name reports whether its predecessor may
    /// still be live.
    pub fn heard(&mut self, card: Card, now_ms: u64) -> bool {
        if now_ms >= self.look_ms {
            self.look_ms = now_ms.saturating_add(LOOK_MS);
            self.all.retain(|_, member| now_ms < member.heard_ms.saturating_add(FORGOTTEN_MS));
        }
        self.others.retain(|other| other.card.run != card.run && !other.is_silent(now_ms));
        let Some(own) = self.all.get_mut(&card.name) else {
            if self.all.len() >= MEMBERS_MAX {
                self.refused += 1;
                return false;
            }
            self.displaced(&card, None, now_ms);
            self.all.insert(card.name.clone(), Member { card, heard_ms: now_ms });
            return true;
        };
        let is_other = own.card.run != card.run;
        if is_other && card.left && own.is_live(now_ms) {
            if card.displaced && self.others.len() < MEMBERS_MAX {
                self.others.push(Member { card, heard_ms: now_ms });
            }
            return true;
        }
        let before = std::mem::replace(own, Member { card: card.clone(), heard_ms: now_ms });
        self.displaced(&card, Some(before).filter(|_| is_other), now_ms);
        true
    }

    /// Continues to wait for the run that `card` has displaced, unless it has left. Its own last
    /// card, if known, has the time of its last life.
    fn displaced(&mut self, card: &Card, before: Option<Member>, now_ms: u64) {
        let run = card.displaces;
        let is_known = self.others.iter().any(|other| other.card.run == run);
        if run == 0 || run == card.run || is_known || self.others.len() >= MEMBERS_MAX {
            return;
        }
        let before = before.filter(|before| before.card.run == run);
        if before.as_ref().is_some_and(|before| before.card.left) {
            return;
        }
        let unheard = || Member {
            card: Card { run, displaces: 0, trusts: true, ..card.clone() },
            heard_ms: now_ms,
        };
        self.others.push(before.unwrap_or_else(unheard));
    }

    /// Names of live members whose runs have not acknowledged an entry.
    pub fn missing(&self, applied: &AppliedRuns, now_ms: u64) -> Vec<String> {
        self.late(applied, now_ms).map(|member| member.card.name.clone()).collect()
    }

    /// Returns true if every live member's run has acknowledged an entry. It stops at the first
    /// that has not, because it is called for each acknowledgement.
    pub fn have_all(&self, applied: &AppliedRuns, now_ms: u64) -> bool {
        self.late(applied, now_ms).next().is_none()
    }

    fn late<'a>(&'a self, applied: &AppliedRuns, now_ms: u64) -> impl Iterator<Item = &'a Member> {
        let has = |card: &Card| applied.contains(&card.run);
        self.all().filter(move |member| member.is_live(now_ms) && !has(&member.card))
    }

    /// The number of live members.
    pub fn count_live(&self, now_ms: u64) -> usize {
        self.all.values().filter(|member| member.is_live(now_ms)).count()
    }

    /// The latest run of each name, by name.
    pub fn named(&self) -> impl Iterator<Item = &Member> {
        self.all.values()
    }

    /// All known members by name, and then other runs of their names.
    pub fn all(&self) -> impl Iterator<Item = &Member> {
        self.all.values().chain(&self.others)
    }

    /// The run of the member `name`.
    pub fn run_of(&self, name: &str) -> Option<u64> {
        self.all.get(name).map(|member| member.card.run)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card(name: &str, run: u64, sequence: u64) -> Card {
        let (max_isolation_ms, epoch) = (30_000, 7);
        Card { name: name.into(), run, max_isolation_ms, epoch, sequence, ..Card::default() }
    }

    #[test]
    fn a_member_counts_until_it_cannot_use_what_it_stored() {
        let mut members = Members::default();
        members.heard(card("a", 1, 5), 1_000);
        members.heard(card("b", 2, 4), 2_000);
        let mut applied = AppliedRuns::from([1]);
        assert_eq!(members.missing(&applied, 3_000), ["b"]);
        applied.insert(9);
        assert_eq!(members.missing(&applied, 3_000), ["b"], "another run's acknowledgement");
        applied.insert(2);
        assert!(members.missing(&applied, 3_000).is_empty());
        let nobody = AppliedRuns::new();
        assert_eq!(members.missing(&nobody, 34_999), ["a", "b"]);
        assert_eq!(members.missing(&nobody, 35_000), ["b"], "a is silent for long enough");
        members.heard(card("b", 3, 5), 35_001);
        assert_eq!(members.missing(&applied, 35_001), ["b"], "a new run has not said so");
        members.heard(Card { left: true, ..card("b", 2, 5) }, 35_001);
        assert_eq!(members.missing(&nobody, 35_001), ["b"], "the run before it says that late");
        members.heard(Card { left: true, ..card("b", 3, 5) }, 35_002);
        assert!(members.missing(&nobody, 35_002).is_empty());
        assert!(members.have_all(&nobody, 35_002) && !members.have_all(&nobody, 34_999));
        assert_eq!((members.count_live(2_000), members.count_live(35_002)), (1, 0));
    }

    #[test]
    fn a_run_that_another_of_its_name_displaced_counts_until_it_has_left() {
        let none = AppliedRuns::new();
        let (first, second) = (card("b", 2, 4), Card { displaces: 2, ..card("b", 3, 4) });
        let mut heard = Members::default();
        heard.heard(first.clone(), 1_000);
        heard.heard(second.clone(), 2_000);
        let mut joined = Members::default();
        joined.heard(second.clone(), 2_000);
        for (members, until_ms) in [(&mut heard, 35_000), (&mut joined, 36_000)] {
            assert_eq!(members.missing(&none, 3_000), ["b", "b"], "both may serve");
            assert_eq!(members.missing(&AppliedRuns::from([3]), 3_000), ["b"], "the first run");
            assert!(members.have_all(&AppliedRuns::from([2, 3]), 3_000));
            members.heard(Card { displaces: 2, ..card("b", 3, 5) }, 30_000);
            assert!(!members.have_all(&AppliedRuns::from([3]), until_ms - 1));
            members.heard(card("b", 3, 6), until_ms);
            assert!(members.have_all(&AppliedRuns::from([3]), until_ms), "its lease is over");
            members.heard(Card { displaces: 2, ..second.clone() }, until_ms + 1);
            assert!(!members.have_all(&AppliedRuns::from([3]), until_ms + 1));
            let displaced = Card { left: true, displaced: true, ..first.clone() };
            members.heard(displaced, until_ms + 2);
            assert!(members.have_all(&AppliedRuns::from([3]), until_ms + 2), "it has left");
            let states: Vec<_> = members.all().map(|one| one.state(until_ms + 2)).collect();
            assert_eq!(states, ["asks", "displaced"], "and all are shown both");
        }
        // It has left before: no entry waits for it.
        let mut left = Members::default();
        left.heard(Card { left: true, ..first }, 1_000);
        left.heard(second, 1_001);
        assert!(left.have_all(&AppliedRuns::from([3]), 1_001));
    }

    #[test]
    fn a_member_has_one_state() {
        let member = |trusts, draining, left| {
            let card = Card { trusts, draining, left, ..card("a", 1, 5) };
            Member { card, heard_ms: 0 }
        };
        for (member, at_once, later) in [
            (member(true, false, false), "ready", "gone"),
            (member(false, false, false), "asks", "gone"),
            (member(true, true, false), "draining", "gone"),
            (member(false, true, true), "left", "left"),
        ] {
            assert_eq!((member.state(1), member.state(34_000)), (at_once, later), "{member:?}");
        }
    }

    #[test]
    fn members_are_bounded_and_silent_ones_forgotten() {
        let mut members = Members::default();
        for n in 0..MEMBERS_MAX {
            assert!(members.heard(card(&format!("n{n}"), 1, 1), 0));
        }
        assert!(!members.heard(card("more", 1, 1), 1));
        assert!(members.heard(card("n0", 1, 1), FORGOTTEN_MS - 1));
        assert!(members.heard(card("more", 1, 1), FORGOTTEN_MS - 1 + LOOK_MS));
        assert_eq!((members.all().count(), members.refused), (2, 1));
    }

    #[test]
    fn a_card_belongs_to_the_node_of_its_subject() {
        let bytes = card("a", 1, 5).encode();
        assert_eq!(Card::decode("a", &bytes), Some(card("a", 1, 5)));
        assert_eq!(Card::decode("b", &bytes), None);
        assert_eq!(Card::decode("a", b"{"), None);
        let ack = EntryAcknowledgement { name: "a".into(), run: 1, number: 2 };
        assert_eq!(EntryAcknowledgement::decode(&ack.encode()), Some(ack));
        assert_eq!(EntryAcknowledgement::decode(b""), None);
        assert_eq!(EntryAcknowledgement::decode(br#"{"name":"a.b","run":1,"number":2}"#), None);
        let later = br#"{"name":"a","run":1,"of a later version":[]}"#;
        assert!(Card::decode("a", later).is_some());
        for bad in ["", "a.b", "a b", "*", ">", "ä", &"a".repeat(NAME_BYTES + 1)] {
            assert!(!is_name(bad), "{bad}");
        }
        assert!(is_name("web-1_b"));
    }
}
