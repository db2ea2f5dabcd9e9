//! The entries of the stream: a batch of invalidations each, in the encoding of `purge`.
//!
//! An entry of an unknown version must not be skipped: it is rejected, and counts as lost.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Level;

/// The version that is written: postcard's wire format 1 of [`WireEntry`].
const VERSION: u8 = 1;

/// The most bytes of an entry: half of a server's default limit for a message.
pub const ENTRY_BYTES: usize = 512 * 1024;

/// The most invalidations of an entry.
pub const ENTRY_INVALIDATIONS: usize = 1_000;

/// The identity of an entry, unique, and equal when it is sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct EntryId {
    /// The run of the node that made it: a random number drawn at its start.
    pub run: u64,
    /// Its number among the entries of this run.
    pub number: u64,
}

impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}-{}", self.run, self.number)
    }
}

impl EntryId {
    /// Parses the display form.
    pub fn read(text: &str) -> Option<Self> {
        let (run, number) = text.split_once('-')?;
        let is_plain = run.len() == 16 && number.bytes().all(|byte| byte.is_ascii_digit());
        let run = u64::from_str_radix(run, 16).ok().filter(|_| is_plain)?;
        Some(Self { run, number: number.parse().ok()? })
    }
}

/// An entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its identity.
    pub id: EntryId,
    /// The name of the node that made it.
    pub node: String,
    /// The level that its maker waits for: nodes acknowledge at once for `all`.
    pub level: Level,
    /// Invalidations, encoded by `purge::Invalidation::encode`, in the order of their effects. An
    /// empty entry reports a loss: nothing stored before is trusted.
    pub invalidations: Vec<Vec<u8>>,
}

/// The encoded form of an entry. The order of fields is part of the format.
#[derive(Serialize, Deserialize)]
struct WireEntry {
    run: u64,
    number: u64,
    node: String,
    level: u8,
    invalidations: Vec<Vec<u8>>,
}

/// The reason why bytes are not an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryDecodeError {
    /// There are no bytes.
    Empty,
    /// A version that this program does not know.
    Version(u8),
    /// The bytes end early, continue behind the entry, or have an invalid value.
    Malformed,
    /// Too many bytes or invalidations.
    TooLarge,
}

impl fmt::Display for EntryDecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("an entry without bytes"),
            Self::Version(version) => write!(f, "an entry of the unknown version {version}"),
            Self::Malformed => f.write_str("a malformed entry"),
            Self::TooLarge => f.write_str("an entry that is too large"),
        }
    }
}

impl std::error::Error for EntryDecodeError {}

impl Entry {
    /// Encodes the entry. The first byte is the version.
    ///
    /// # Errors
    /// It has too many bytes or invalidations.
    pub fn encode(&self) -> Result<Vec<u8>, EntryDecodeError> {
        let wire = WireEntry {
            run: self.id.run,
            number: self.id.number,
            node: self.node.clone(),
            level: self.level as u8,
            invalidations: self.invalidations.clone(),
        };
        let bytes = postcard::to_extend(&wire, vec![VERSION])
            .expect("every length is known beforehand, and a Vec takes any number of bytes");
        let fits = bytes.len() <= ENTRY_BYTES && wire.invalidations.len() <= ENTRY_INVALIDATIONS;
        if fits { Ok(bytes) } else { Err(EntryDecodeError::TooLarge) }
    }

    /// Decodes what [`Entry::encode`] wrote.
    ///
    /// # Errors
    /// The bytes are no entry of this version.
    pub fn decode(bytes: &[u8]) -> Result<Self, EntryDecodeError> {
        let rest = match bytes.split_first() {
            None => return Err(EntryDecodeError::Empty),
            Some((&VERSION, rest)) => rest,
            Some((version, _)) => return Err(EntryDecodeError::Version(*version)),
        };
        if bytes.len() > ENTRY_BYTES {
            return Err(EntryDecodeError::TooLarge);
        }
        let (wire, left): (WireEntry, _) =
            postcard::take_from_bytes(rest).map_err(|_| EntryDecodeError::Malformed)?;
        if wire.invalidations.len() > ENTRY_INVALIDATIONS {
            return Err(EntryDecodeError::TooLarge);
        }
        let level = Level::ALL.get(usize::from(wire.level)).copied();
        match level {
            Some(level) if left.is_empty() => Ok(Self {
                id: EntryId { run: wire.run, number: wire.number },
                node: wire.node,
                level,
                invalidations: wire.invalidations,
            }),
            _ => Err(EntryDecodeError::Malformed),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entry(invalidations: Vec<Vec<u8>>) -> Entry {
        let id = EntryId { run: 0xabc, number: 7 };
        Entry { id, node: "n1".to_owned(), level: Level::All, invalidations }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            run: u64,
            number: u64,
            node in "[a-z]{0,20}",
            level in prop::sample::select(&Level::ALL[..]),
            invalidations in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..9),
        ) {
            let id = EntryId { run, number };
            let entry = Entry { id, node, level, invalidations };
            let bytes = entry.encode().expect("small");
            prop_assert_eq!(Entry::decode(&bytes), Ok(entry));
            prop_assert_eq!(EntryId::read(&id.to_string()), Some(id));
            for end in 1..bytes.len() {
                prop_assert!(Entry::decode(&bytes[..end]).is_err());
            }
        }

        #[test]
        fn nothing_that_comes_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut own = vec![VERSION];
            own.extend_from_slice(&bytes);
            _ = (Entry::decode(&bytes), Entry::decode(&own));
            _ = EntryId::read(&String::from_utf8_lossy(&bytes));
        }
    }

    #[test]
    fn what_is_unknown_is_refused_by_name() {
        let bytes = entry(vec![b"one".to_vec()]).encode().expect("small");
        let mut next = bytes.clone();
        next[0] = 2;
        let mut more = bytes;
        more.push(0);
        for (bytes, error, said) in [
            (&b""[..], EntryDecodeError::Empty, "an entry without bytes"),
            (&next, EntryDecodeError::Version(2), "an entry of the unknown version 2"),
            (&more, EntryDecodeError::Malformed, "a malformed entry"),
        ] {
            assert_eq!(Entry::decode(bytes), Err(error));
            assert_eq!(error.to_string(), said);
        }
    }

    #[test]
    fn an_entry_has_bounds() {
        let large = entry(vec![vec![0; ENTRY_BYTES]]);
        let many = entry(vec![Vec::new(); ENTRY_INVALIDATIONS + 1]);
        assert_eq!(large.encode(), Err(EntryDecodeError::TooLarge));
        assert_eq!(many.encode(), Err(EntryDecodeError::TooLarge));
        assert!(entry(vec![Vec::new(); ENTRY_INVALIDATIONS]).encode().is_ok());
    }

    #[test]
    fn an_identity_has_one_spelling() {
        for bad in ["", "-", "1-1", "0000000000000001", "0000000000000001-", "000000000000000g-1"] {
            assert_eq!(EntryId::read(bad), None, "{bad}");
        }
        assert!(EntryId::read("0000000000000001-+1").is_none());
    }
}
