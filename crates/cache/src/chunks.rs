//! A complete body.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use crate::fill::Fill;
use crate::size;

/// Keeps a body, its own or another keeper's: a stored response.
pub(crate) trait Keeper: fmt::Debug + Send + Sync {
    /// The complete body; `None` while it is still coming.
    fn whole(&self) -> Option<Whole<'_>>;
    /// The body's length: as declared while it comes, as counted when it is complete.
    fn length(&self) -> Option<u64>;
    /// The state of a body that is still coming.
    fn fill(&self) -> Option<Arc<Fill>>;
    /// Whether the body will never be complete.
    fn is_broken(&self) -> bool;
    /// Bytes that the keeper has in use, its body included.
    fn memory(&self) -> u64;
}

/// The body of a complete object. Two words: a body of one chunk, as most are, costs its bytes and
/// nothing else.
#[derive(Debug)]
pub(crate) enum Chunks {
    /// The whole body in one exact allocation.
    One(Box<[u8]>),
    /// Anything else, behind one word so that the enum needs no tag.
    Other(Box<Other>),
}

/// A body that is not one allocation of its object's own.
#[derive(Debug)]
pub(crate) enum Other {
    /// Several chunks, none of them empty, each with its own charge.
    Many {
        chunks: Box<[Bytes]>,
        /// What the chunks have reserved.
        cost: u64,
    },
    /// Another object's body (after a 304). That one is never itself shared.
    Shared(Arc<dyn Keeper>),
}

impl Chunks {
    /// Bytes to reserve for an [`Other`].
    pub(crate) const OTHER_BYTES: u64 = size::class(size_of::<Other>());

    pub(crate) fn shared(other: Arc<dyn Keeper>) -> Self {
        Self::Other(Box::new(Other::Shared(other)))
    }

    pub(crate) fn many(chunks: Box<[Bytes]>, cost: u64) -> Self {
        Self::Other(Box::new(Other::Many { chunks, cost }))
    }

    pub(crate) fn whole(&self) -> Option<Whole<'_>> {
        match self {
            Self::One(bytes) => Some(Whole::One(bytes)),
            Self::Other(other) => match &**other {
                Other::Many { chunks, .. } => Some(Whole::Many(chunks)),
                Other::Shared(owner) => owner.whole(),
            },
        }
    }

    /// The object whose body this is, if it is another's.
    pub(crate) fn owner(&self) -> Option<&Arc<dyn Keeper>> {
        match self {
            Self::Other(other) => match &**other {
                Other::Shared(owner) => Some(owner),
                Other::Many { .. } => None,
            },
            Self::One(_) => None,
        }
    }

    /// Bytes that the object gives back itself when it is dropped.
    pub(crate) fn own_memory(&self) -> u64 {
        match self {
            Self::One(bytes) => size::class(bytes.len()),
            Self::Other(_) => Self::OTHER_BYTES,
        }
    }

    /// Bytes beside those which this body keeps in use.
    pub(crate) fn held_memory(&self) -> u64 {
        match self {
            Self::One(_) => 0,
            Self::Other(other) => match &**other {
                Other::Many { cost, .. } => *cost,
                Other::Shared(owner) => owner.memory(),
            },
        }
    }
}

/// A complete body, borrowed from its object: nothing is counted, locked or copied.
#[derive(Clone, Copy, Debug)]
pub enum Whole<'a> {
    /// The body in one piece.
    One(&'a [u8]),
    /// The body in several pieces, none of them empty.
    Many(&'a [Bytes]),
}

impl<'a> Whole<'a> {
    /// The body's length in bytes.
    pub fn len(&self) -> u64 {
        match self {
            Self::One(bytes) => bytes.len() as u64,
            Self::Many(chunks) => chunks.iter().map(|chunk| chunk.len() as u64).sum(),
        }
    }

    /// Whether the body has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The pieces in order.
    pub fn pieces(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let (one, many) = match *self {
            Self::One(bytes) => (Some(bytes), &[][..]),
            Self::Many(chunks) => (None, chunks),
        };
        one.into_iter().chain(many.iter().map(|chunk| &chunk[..]))
    }
}
