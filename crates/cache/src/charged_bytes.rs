//! Charged bytes: a chunk of a body that returns its reservation when its last reader drops it.

use base::HeldBytes;
use bytes::Bytes;

use crate::borrowed_body::BodyChunks;
use crate::ledger::Charge;
use crate::size;

/// The cost of a chunk of a long body beside its bytes: its entry in the lists, and the owner's
/// record of `Bytes`.
pub(crate) const CHUNK_OVERHEAD: u64 =
    BodyChunks::OVERHEAD + size::class(size_of::<ChargedBytes<Bytes>>() + 4 * size_of::<usize>());

/// The reservation of a chunk's memory.
#[derive(Debug)]
pub(crate) enum ChunkReservation {
    /// Reserved by the store.
    Stored(Charge),
    /// Held for the client that the body passes through to.
    Held(#[expect(dead_code, reason = "it is there to be dropped")] HeldBytes),
}

/// Bytes that return their reservation when the last reader drops them.
pub(crate) struct ChargedBytes<T> {
    data: T,
    _cost: ChunkReservation,
}

impl<T: AsRef<[u8]> + Send + 'static> ChargedBytes<T> {
    pub(crate) fn into_bytes(data: T, cost: ChunkReservation) -> Bytes {
        Bytes::from_owner(Self { data, _cost: cost })
    }
}

impl<T: AsRef<[u8]>> AsRef<[u8]> for ChargedBytes<T> {
    fn as_ref(&self) -> &[u8] {
        self.data.as_ref()
    }
}
