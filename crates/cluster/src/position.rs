//! The place in the stream up to which a node has applied all there is.

use serde::{Deserialize, Serialize};

use crate::entry::EntryId;

/// The stream of one creation: when it was made, in nanoseconds since 1970 by the server's clock.
/// One that was deleted and made anew has another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Epoch(pub u64);

/// The place up to which a node has applied the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// The stream.
    pub epoch: Epoch,
    /// The sequence of the last entry that was applied, or passed over; zero before the first.
    pub sequence: u64,
    /// The identity of the entry there, if it is known: a stream that says another has lost
    /// something.
    pub id: Option<EntryId>,
}

/// The memory of a node beside its disk: what a start goes on from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Saved {
    /// The place in the stream. All up to it is in the disk's journal.
    pub position: Position,
    /// Everything that was stored before this moment (milliseconds since 1970) is to be validated
    /// before it is used; 0 for nothing.
    pub doubted_unix_ms: u64,
}

/// The version that is written: postcard's wire format 1 of [`Saved`], behind the version, with a
/// sum before the two.
const VERSION: u8 = 1;
/// The key of the sums. It is part of the format.
const SUM_SEED: u64 = 0x6c61_7264_6572_0001;

impl Saved {
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
        let id = Some(EntryId { run: 1, number: 2 });
        let position = Position { epoch: Epoch(3), sequence: 4, id };
        let saved = Saved { position, doubted_unix_ms: 5 };
        let bytes = saved.encode();
        assert_eq!(Saved::decode(&bytes), Some(saved));
        for at in 0..bytes.len() {
            let mut bad = bytes.clone();
            bad[at] ^= 1;
            assert_eq!(Saved::decode(&bad), None, "{at}");
            assert_eq!(Saved::decode(&bytes[..at]), None, "{at}");
        }
    }
}
