//! The secret store: the shared secrets as one node knows them, by name, and the holder of the
//! lease. Pure.
//!
//! An entry that is not sealed, has another name, or is older than a known one must be rejected.
//! The former secret then stays in use.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::members::is_name;
use crate::seal::{SEALED_MORE, SealKeyring};

/// The name of the lease's entry.
pub(crate) const LEASE: &str = "lease";
/// The most bytes of an entry's name.
const ENTRY_NAME_BYTES: usize = 400;

/// A secret, and the node that shares it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Secret {
    /// The node that wrote it.
    pub node: String,
    /// The node's run.
    pub run: u64,
    /// The number under which the run waits for acknowledgements; 0 if it does not.
    pub number: u64,
    /// The secret itself.
    pub value: Vec<u8>,
}

impl fmt::Debug for Secret {
    /// Without the secret itself.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret({} of run {:016x})", self.node, self.run)
    }
}

impl Secret {
    /// Encodes the secret, to be sealed.
    pub fn encode(&self) -> Vec<u8> {
        postcard::to_extend(self, Vec::new())
            .expect("every length is known beforehand, and a Vec takes any number of bytes")
    }

    /// Decodes what [`Secret::encode`] wrote; `None` for anything else.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (read, left): (Self, _) = postcard::take_from_bytes(bytes).ok()?;
        (left.is_empty() && is_name(&read.node)).then_some(read)
    }
}

/// A received entry of the bucket.
#[derive(Clone, Copy, Debug)]
pub struct ReceivedSecret<'a> {
    /// Its name.
    pub name: &'a str,
    /// The name that the seal is bound to: that of its subject.
    pub sealed_as: &'a str,
    /// Its sequence in the stream.
    pub revision: u64,
    /// Its bytes, sealed.
    pub bytes: &'a [u8],
    /// The time of reception, in milliseconds of this node's clock.
    pub now_ms: u64,
}

/// The outcome of a received entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReceiptOutcome {
    /// It is new, and was stored.
    Accepted(Arc<Secret>),
    /// It was known.
    Known,
    /// It was rejected, with the reason.
    Refused(String),
    /// It was rejected because of a limit.
    TooMuch(Bound),
}

/// A limit of the bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// The number of entries.
    Entries,
    /// The bytes of an entry.
    Bytes,
    /// The bytes of a large entry.
    LargeBytes,
}

/// The limits of an entry's bytes, before it is sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteBounds {
    /// The most bytes of an entry.
    pub most: usize,
    /// The prefix of the names of large entries.
    pub large: &'static str,
    /// The most bytes of a large entry.
    pub large_most: usize,
}

impl ByteBounds {
    /// The limit that an entry of this many sealed bytes exceeds.
    pub(crate) fn reached(&self, name: &str, sealed: usize) -> Option<Bound> {
        let is_large = !self.large.is_empty() && name.starts_with(self.large);
        let (most, bound) = match is_large {
            true => (self.large_most, Bound::LargeBytes),
            false => (self.most, Bound::Bytes),
        };
        (sealed > most.saturating_add(SEALED_MORE)).then_some(bound)
    }
}

/// The last entry of a name.
#[derive(Clone, Debug, Default)]
pub struct SecretSlot {
    /// Its sequence in the stream; 0 if it is absent.
    pub revision: u64,
    /// The highest version seen.
    pub version: u64,
    /// The last secret that was accepted.
    pub accepted: Option<Arc<Secret>>,
    /// The reason why the present entry was rejected.
    pub refused: Option<String>,
    /// The time of reception, in milliseconds of this node's clock.
    pub heard_ms: u64,
    /// True if it was received in this session.
    is_there: bool,
}

/// The state of the lease, as a node sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseState {
    /// No node holds it.
    Free,
    /// This run holds it.
    Own,
    /// Its holder has been silent for too long.
    Expired(String),
    /// Another node holds it.
    Others(String),
}

/// The entries by name.
#[derive(Debug)]
pub struct SecretStore {
    slots: BTreeMap<String, SecretSlot>,
    /// The node's own name.
    name: String,
    /// The node's own run.
    run: u64,
    /// The most entries.
    most: usize,
    /// The most bytes of an entry.
    bytes: ByteBounds,
}

impl SecretStore {
    /// The empty store of the node `name` in this run.
    pub fn new(name: String, run: u64, most: usize, bytes: ByteBounds) -> Self {
        Self { slots: BTreeMap::new(), name, run, most, bytes }
    }

    /// The limit that an entry of this many sealed bytes exceeds.
    pub fn reached(&self, name: &str, sealed: usize) -> Option<Bound> {
        self.bytes.reached(name, sealed)
    }

    /// Begins a session: the present entries are received again.
    pub fn begin(&mut self) {
        self.slots.values_mut().for_each(|slot| slot.is_there = false);
    }

    /// Removes entries that were not received in this session. Their versions stay known.
    pub fn settle(&mut self) {
        for slot in self.slots.values_mut().filter(|slot| !slot.is_there) {
            (slot.revision, slot.accepted, slot.refused) = (0, None, None);
        }
    }

    /// Stores or rejects an entry.
    pub fn receive(&mut self, came: ReceivedSecret<'_>, seal: &SealKeyring) -> ReceiptOutcome {
        let ReceivedSecret { name, sealed_as, revision, bytes, now_ms } = came;
        if !is_entry_name(name) {
            return ReceiptOutcome::Refused("its name is invalid".to_owned());
        }
        if !self.slots.contains_key(name) && self.slots.len() >= self.most {
            return ReceiptOutcome::TooMuch(Bound::Entries);
        }
        let slot = self.slots.entry(name.to_owned()).or_default();
        let is_same = slot.revision == revision;
        slot.is_there = true;
        if !is_same {
            (slot.revision, slot.heard_ms) = (revision, now_ms);
        } else if slot.accepted.is_some() || slot.refused.is_some() {
            return ReceiptOutcome::Known;
        }
        if let Some(bound) = self.bytes.reached(name, bytes.len()) {
            slot.refused = Some("it is too large".to_owned());
            return ReceiptOutcome::TooMuch(bound);
        }
        match open(slot, sealed_as, bytes, seal) {
            Ok((version, secret)) if version > slot.version || slot.accepted.is_none() => {
                slot.version = version;
                slot.refused = None;
                let secret = Arc::new(secret);
                slot.accepted = Some(Arc::clone(&secret));
                ReceiptOutcome::Accepted(secret)
            }
            Ok(_) => {
                slot.refused = None;
                ReceiptOutcome::Known
            }
            Err(why) => {
                slot.refused = Some(why.clone());
                ReceiptOutcome::Refused(why)
            }
        }
    }

    /// Notes that the bucket has accepted an entry of this node.
    pub fn wrote(&mut self, name: &str, revision: u64, version: u64, secret: Secret, now_ms: u64) {
        let slot = self.slots.entry(name.to_owned()).or_default();
        // A later entry of another node may have been received first.
        if revision >= slot.revision {
            let accepted = Some(Arc::new(secret));
            let refused = None;
            *slot = SecretSlot {
                revision,
                version,
                accepted,
                refused,
                heard_ms: now_ms,
                is_there: true,
            };
        }
    }

    /// Marks an entry as unusable.
    pub fn refuse(&mut self, name: &str, secret: &Arc<Secret>, why: &str) -> bool {
        let Some(slot) = self.slots.get_mut(name) else { return false };
        let is_it = slot.accepted.as_ref().is_some_and(|own| Arc::ptr_eq(own, secret));
        let is_new = is_it && slot.refused.is_none();
        if is_new {
            slot.refused = Some(why.to_owned());
        }
        is_new
    }

    /// The last entry of `name`.
    pub fn get(&self, name: &str) -> Option<&SecretSlot> {
        self.slots.get(name).filter(|slot| slot.revision > 0)
    }

    /// The present entries by name.
    pub fn all(&self) -> impl Iterator<Item = (&String, &SecretSlot)> {
        self.slots.iter().filter(|(_, slot)| slot.revision > 0)
    }

    /// The revision of the present entry, 0 for none, and the version of the next one.
    ///
    /// # Errors
    /// There is no room for another name.
    pub fn next(&self, name: &str, unix_ms: u64) -> Result<(u64, u64), Bound> {
        match self.slots.get(name) {
            Some(slot) => Ok((slot.revision, slot.version.saturating_add(1).max(unix_ms))),
            None if self.slots.len() >= self.most => Err(Bound::Entries),
            None => Ok((0, unix_ms)),
        }
    }

    /// The state of the lease, which its holder must renew every `lease_ms`.
    pub fn right(&self, now_ms: u64, lease_ms: u64) -> LeaseState {
        let Some(slot) = self.get(LEASE) else { return LeaseState::Free };
        let is_silent = now_ms.saturating_sub(slot.heard_ms) >= lease_ms;
        // An unreadable entry may be that of a holder.
        let holder = match (&slot.accepted, &slot.refused) {
            (Some(secret), None) if secret.value.is_empty() => return LeaseState::Free,
            (Some(secret), None) if secret.run == self.run => return LeaseState::Own,
            // The node's former run has ended.
            (Some(secret), None) if secret.node == self.name => return LeaseState::Free,
            (Some(secret), None) => secret.node.clone(),
            _ => "a node whose entry cannot be read".to_owned(),
        };
        if is_silent { LeaseState::Expired(holder) } else { LeaseState::Others(holder) }
    }
}

/// The version and the secret of an entry.
fn open(
    slot: &SecretSlot,
    sealed_as: &str,
    bytes: &[u8],
    seal: &SealKeyring,
) -> Result<(u64, Secret), String> {
    let opened = seal.open(sealed_as, bytes).map_err(|why| why.to_string())?;
    if opened.version < slot.version {
        return Err("it is older than a known one".to_owned());
    }
    let secret = Secret::decode(&opened.bytes);
    Ok((opened.version, secret.ok_or("its content is not an entry")?))
}

/// Returns true for a valid entry name: tokens of a subject.
pub fn is_entry_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let is_word = |word: &str| !word.is_empty() && word.bytes().all(is_plain);
    name.len() <= ENTRY_NAME_BYTES && name.split('.').all(is_word)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &[u8] = b"the secret of an operator of a cluster";

    fn seal() -> SealKeyring {
        SealKeyring::new([SECRET], "larder").expect("a good secret")
    }

    fn store() -> SecretStore {
        let bytes = ByteBounds { most: 100, large: "large.", large_most: 200 };
        SecretStore::new("n1".to_owned(), 1, 3, bytes)
    }

    fn secret(node: &str, run: u64, value: &[u8]) -> Secret {
        Secret { node: node.to_owned(), run, number: 0, value: value.to_vec() }
    }

    fn bytes(name: &str, version: u64, secret: &Secret) -> Vec<u8> {
        seal().seal(name, version, &secret.encode()).expect("random bytes")
    }

    fn came<'a>(name: &'a str, revision: u64, bytes: &'a [u8]) -> ReceivedSecret<'a> {
        ReceivedSecret { name, sealed_as: name, revision, bytes, now_ms: revision * 100 }
    }

    #[test]
    fn the_last_entry_counts_and_none_that_is_older_or_another_names() {
        let mut store = store();
        let value = |store: &SecretStore| store.get("a").and_then(|slot| slot.accepted.clone());
        let (old, new) = (bytes("a", 7, &secret("n2", 2, b"7")), secret("n2", 2, b"8"));
        assert!(matches!(store.receive(came("a", 1, &old), &seal()), ReceiptOutcome::Accepted(_)));
        assert_eq!(store.receive(came("a", 1, &old), &seal()), ReceiptOutcome::Known);
        let newer = bytes("a", 8, &new);
        assert_eq!(
            store.receive(came("a", 2, &newer), &seal()),
            ReceiptOutcome::Accepted(Arc::new(new.clone()))
        );
        for (revision, wrong, why) in [
            (3, old.clone(), "older"),
            (4, bytes("b", 9, &new), "belongs to another entry"),
            (5, seal().seal("a", 9, b"\xff").expect("random bytes"), "is not an entry"),
            (6, Vec::new(), "not a sealed entry"),
        ] {
            let heard = store.receive(came("a", revision, &wrong), &seal());
            assert!(
                matches!(&heard, ReceiptOutcome::Refused(said) if said.contains(why)),
                "{heard:?}"
            );
            assert_eq!(value(&store).as_deref(), Some(&new), "what was taken stays");
            let next = store.next("a", 0);
            assert_eq!(next, Ok((revision, 9)), "it can be written over");
        }
        assert_eq!(
            store.receive(came("a", 7, &newer), &seal()),
            ReceiptOutcome::Known,
            "as it was"
        );
    }

    #[test]
    fn limits_hold_and_names_are_tokens() {
        let mut store = store();
        let some = secret("n2", 2, b"x");
        for name in ["a", "b.c", "d"] {
            let heard = store.receive(came(name, 1, &bytes(name, 1, &some)), &seal());
            assert!(matches!(heard, ReceiptOutcome::Accepted(_)));
        }
        let heard = store.receive(came("e", 1, &bytes("e", 1, &some)), &seal());
        assert_eq!(heard, ReceiptOutcome::TooMuch(Bound::Entries));
        assert_eq!(store.next("e", 0), Err(Bound::Entries));
        let large = bytes("a", 2, &secret("n2", 2, &[0; 101]));
        assert_eq!(
            store.receive(came("a", 2, &large), &seal()),
            ReceiptOutcome::TooMuch(Bound::Bytes)
        );
        for (name, length, reached) in [
            ("a", 100, None),
            ("a", 101, Some(Bound::Bytes)),
            ("large.a", 200, None),
            ("large.a", 201, Some(Bound::LargeBytes)),
        ] {
            assert_eq!(store.reached(name, length + SEALED_MORE), reached, "{name} {length}");
        }
        for name in ["", ".", "a.", "a b", "a*", ">", &"a".repeat(ENTRY_NAME_BYTES + 1)] {
            assert!(
                matches!(store.receive(came(name, 1, b""), &seal()), ReceiptOutcome::Refused(_)),
                "{name}"
            );
        }
    }

    #[test]
    fn an_entry_missing_in_a_new_session_is_absent_and_stays_so() {
        let mut store = store();
        let old = bytes("a", 7, &secret("n2", 2, b"7"));
        store.receive(came("a", 4, &old), &seal());
        store.begin();
        assert!(store.get("a").is_some(), "until it is clear");
        store.settle();
        assert!(store.get("a").is_none());
        assert_eq!(store.next("a", 3), Ok((0, 8)));
        let older = bytes("a", 6, &secret("n2", 2, b"6"));
        assert!(matches!(store.receive(came("a", 1, &older), &seal()), ReceiptOutcome::Refused(_)));
    }

    #[test]
    fn a_lease_is_held_until_its_holder_is_silent_for_too_long() {
        let mut store = store();
        let mut hear = |revision, run, node: &str, value: &[u8]| {
            let sealed = bytes(LEASE, revision, &secret(node, run, value));
            store.receive(came(LEASE, revision, &sealed), &seal());
            [0, 999, 1_000].map(|ms| store.right(revision * 100 + ms, 1_000))
        };
        let (others, expired) = (LeaseState::Others("n2".into()), LeaseState::Expired("n2".into()));
        assert_eq!(hear(1, 2, "n2", b"1"), [others.clone(), others, expired]);
        assert_eq!(hear(2, 2, "n2", b""), [const { LeaseState::Free }; 3], "it was given up");
        assert_eq!(hear(3, 1, "n1", b"1"), [const { LeaseState::Own }; 3]);
        assert_eq!(hear(4, 9, "n1", b"1"), [const { LeaseState::Free }; 3], "a run before");
        store.receive(came(LEASE, 5, b"nonsense"), &seal());
        assert!(matches!(store.right(500, 1_000), LeaseState::Others(_)));
        assert!(matches!(store.right(1_500, 1_000), LeaseState::Expired(_)));
    }

    #[test]
    fn what_cannot_be_used_is_refused_once() {
        let mut store = store();
        let ReceiptOutcome::Accepted(taken) =
            store.receive(came("a", 1, &bytes("a", 1, &secret("n2", 2, b"x"))), &seal())
        else {
            panic!("it is good")
        };
        assert!(store.refuse("a", &taken, "no use"));
        assert!(!store.refuse("a", &taken, "no use"));
        assert!(!store.refuse("b", &taken, "no use"));
        assert_eq!(store.get("a").and_then(|slot| slot.refused.as_deref()), Some("no use"));
    }
}
