//! The position of a node: the point of the stream up to which it has applied all entries. A
//! position alone must identify lost or replaced entries.

use serde::{Deserialize, Serialize};

use crate::entry::EntryId;

/// A creation of the stream, by its time in nanoseconds since 1970 on the server's clock. A
/// recreated stream has another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Epoch(pub u64);

/// The stamp of an entry at a sequence. An entry that was lost and sent again has the same
/// identity, and perhaps its old sequence behind other entries; its time differs. (JetStream copies
/// the leader's time with the message, so all servers agree.)
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    /// Its identity, if it can be decoded.
    pub id: Option<EntryId>,
    /// The time at which the stream stored it, in nanoseconds since 1970 by the leading server's
    /// clock.
    pub stored_ns: u64,
}

impl Stamp {
    /// Returns true if both are one entry, stored once. Identities are compared if both are known.
    pub fn is_same(self, other: Self) -> bool {
        let is_same_entry = self.id.zip(other.id).is_none_or(|(own, other)| own == other);
        is_same_entry && self.stored_ns == other.stored_ns
    }
}

/// The point up to which a node has applied the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// The stream.
    pub epoch: Epoch,
    /// The sequence of the last applied or skipped entry; zero before the first.
    pub sequence: u64,
    /// The stamp of the entry there, if known. A stream with another one has lost entries.
    pub stamp: Option<Stamp>,
}

/// A node's saved position, from which a start continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedPosition {
    /// The position. All entries up to it are in the disk's journal.
    pub position: Position,
    /// Objects stored before this time (milliseconds since 1970) must be revalidated before use; 0
    /// for none.
    pub doubted_unix_ms: u64,
}

/// The version that is written: postcard's wire format 1 of [`SavedPosition`], behind a checksum
/// and the version. Version 1 had no time in its position, which proves too little.
const VERSION: u8 = 2;
/// The seed of the checksums. It is part of the format.
const SUM_SEED: u64 = 0x6c61_7264_6572_0001;

impl SavedPosition {
    /// Encodes the file.
    pub fn encode(&self) -> Vec<u8> {
        let body = postcard::to_extend(self, vec![VERSION])
            .expect("every length is known beforehand, and a Vec takes any number of bytes");
        Self::summed(body)
    }

    /// The checksum of a body, and the body.
    pub(crate) fn summed(body: Vec<u8>) -> Vec<u8> {
        let mut bytes = sum(&body).to_le_bytes().to_vec();
        bytes.extend(body);
        bytes
    }

    /// Decodes what [`SavedPosition::encode`] wrote; `None` for anything else. A node without a
    /// position trusts nothing that it stored before.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (stored_sum, body) = bytes.split_first_chunk()?;
        let (version, rest) = body.split_first()?;
        if u64::from_le_bytes(*stored_sum) != sum(body) || *version != VERSION {
            return None;
        }
        let (saved, left) = postcard::take_from_bytes(rest).ok()?;
        left.is_empty().then_some(saved)
    }
}

fn sum(body: &[u8]) -> u64 {
    base::HashSeed::from_u64(SUM_SEED).hash(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_saved_is_read_and_nothing_else_is() {
        let stamp = Some(Stamp { id: Some(EntryId { run: 1, number: 2 }), stored_ns: 3 });
        let position = Position { epoch: Epoch(3), sequence: 4, stamp };
        let saved = SavedPosition { position, doubted_unix_ms: 5 };
        let bytes = saved.encode();
        assert_eq!(SavedPosition::decode(&bytes), Some(saved));
        for at in 0..bytes.len() {
            let mut bad = bytes.clone();
            bad[at] ^= 1;
            assert_eq!(SavedPosition::decode(&bad), None, "{at}");
            assert_eq!(SavedPosition::decode(&bytes[..at]), None, "{at}");
        }
    }
    /// Bytes of version 1: position (creation, sequence, identity) and time of the last doubt.
    #[test]
    fn a_position_without_a_time_is_not_taken() {
        let id = Some(EntryId { run: 1, number: 2 });
        let old = (Epoch(3), 4_u64, id, 5_u64);
        let body = postcard::to_extend(&old, vec![1]).expect("small");
        assert_eq!(SavedPosition::decode(&SavedPosition::summed(body)), None);
        let now = (Epoch(3), 4_u64, Some((id, 9_u64)), 5_u64);
        let body = postcard::to_extend(&now, vec![VERSION]).expect("small");
        let stamp = Some(Stamp { id, stored_ns: 9 });
        let position = Position { epoch: Epoch(3), sequence: 4, stamp };
        assert_eq!(
            SavedPosition::decode(&SavedPosition::summed(body)),
            Some(SavedPosition { position, doubted_unix_ms: 5 }),
            "the same, with a time"
        );
    }

    #[test]
    fn an_entry_that_was_stored_again_is_another() {
        let (one, two) = (EntryId { run: 1, number: 1 }, EntryId { run: 1, number: 2 });
        let stamp = |id, stored_ns| Stamp { id, stored_ns };
        let own = stamp(Some(one), 7);
        for (other, is_same) in [
            (own, true),
            (stamp(Some(one), 8), false),
            (stamp(Some(one), 6), false),
            (stamp(Some(two), 7), false),
            (stamp(None, 7), true),
            (stamp(None, 8), false),
        ] {
            assert_eq!((own.is_same(other), other.is_same(own)), (is_same, is_same), "{other:?}");
        }
    }
}
