//! The place in the stream up to which a node has applied all there is.

use serde::{Deserialize, Serialize};

use crate::entry::EntryId;

/// The stream of one creation: when it was made, in nanoseconds since 1970 by the server's clock.
/// One that was deleted and made anew has another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Epoch(pub u64);

/// An entry as the stream has it at a sequence. One that was lost and is sent again has the same
/// identity, perhaps even its old sequence, but behind other entries than before; the time at which
/// it was stored tells the two apart. (JetStream copies the leader's time with the message, so all
/// servers say the same, whoever leads.)
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    /// Its identity, if it can be read.
    pub id: Option<EntryId>,
    /// When the stream stored it, in nanoseconds since 1970 by the clock of the server that led.
    pub stored_ns: u64,
}

impl Stamp {
    /// Returns true if both are the same entry, stored once. Identities are compared if both are
    /// known.
    pub fn is_same(self, other: Self) -> bool {
        let is_same_entry = self.id.zip(other.id).is_none_or(|(own, other)| own == other);
        is_same_entry && self.stored_ns == other.stored_ns
    }
}

/// The place up to which a node has applied the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// The stream.
    pub epoch: Epoch,
    /// The sequence of the last entry that was applied, or passed over; zero before the first.
    pub sequence: u64,
    /// The entry there, if it is known: a stream that says another has lost something.
    pub stamp: Option<Stamp>,
}

/// The memory of a node beside its disk: what a start goes on from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedPosition {
    /// The place in the stream. All up to it is in the disk's journal.
    pub position: Position,
    /// Everything that was stored before this moment (milliseconds since 1970) is to be validated
    /// before it is used; 0 for nothing.
    pub doubted_unix_ms: u64,
}

/// The version that is written: postcard's wire format 1 of [`Saved`], behind the version, with a
/// sum before the two. Version 1 had no time in its position, and such a position shows too little.
const VERSION: u8 = 2;
/// The key of the sums. It is part of the format.
const SUM_SEED: u64 = 0x6c61_7264_6572_0001;

impl SavedPosition {
    /// The bytes of a file.
    pub fn encode(&self) -> Vec<u8> {
        let body = postcard::to_extend(self, vec![VERSION])
            .expect("every length is known beforehand, and a Vec takes any number of bytes");
        Self::summed(body)
    }

    /// The sum of a body, and the body.
    pub(crate) fn summed(body: Vec<u8>) -> Vec<u8> {
        let mut bytes = sum(&body).to_le_bytes().to_vec();
        bytes.extend(body);
        bytes
    }

    /// The memory that [`Saved::encode`] wrote; `None` for anything else. A node that knows no
    /// position trusts nothing that it stored before.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (told, body) = bytes.split_first_chunk()?;
        let (version, rest) = body.split_first()?;
        if u64::from_le_bytes(*told) != sum(body) || *version != VERSION {
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
    /// Bytes of version 1: position (creation, sequence, identity) and moment of the last doubt.
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
