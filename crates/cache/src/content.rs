//! The content of a response (RFC 9110 6.4): whole in memory, filling, or elsewhere.
//!
//! It goes from filling to one of the others once, and stays there: a response whose content moves
//! is another object, under the same key.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use base::Account;
use bytes::Bytes;
use message::Trailers;

use crate::borrowed_body::{BodyChunks, BorrowedBody};
use crate::fill::{Fill, HeldTrailers, IncompleteBody};
use crate::forms::EncodedForms;
use crate::size;
use crate::sync::Mutex;

/// Where the content of a response is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Location<'a> {
    /// All of it is in memory.
    Whole(BorrowedBody<'a>),
    /// It is coming, or broke off.
    Filling,
    /// All of it is somewhere else.
    Elsewhere(&'a Arc<dyn ExternalBody>),
}

impl<'a> Location<'a> {
    pub(crate) fn whole(self) -> Option<BorrowedBody<'a>> {
        if let Self::Whole(whole) = self { Some(whole) } else { None }
    }
}

/// The reason for which a body elsewhere is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyOpenError {
    /// As much is read there as may be.
    Full,
    /// It can no longer be had, and neither can the response be found any more.
    Gone,
}

/// A complete body that is not in memory as one piece.
pub trait ExternalBody: fmt::Debug + Send + Sync {
    /// The body's length in bytes.
    fn length(&self) -> u64;
    /// Begins to read at the body's beginning. Nothing is brought before bytes are asked for.
    fn open(self: Arc<Self>) -> Box<dyn ExternalBodyReader>;
    /// Begins to read it for one who can fetch it instead.
    ///
    /// # Errors
    /// The reason for which it is better fetched.
    fn open_within(self: Arc<Self>) -> Result<Box<dyn ExternalBodyReader>, BodyOpenError> {
        Ok(self.open())
    }
    /// Bytes of memory that it takes by being there. They are reserved with the object that has it.
    fn memory(&self) -> u64 {
        0
    }
    /// Itself, for whoever knows what else it may be.
    fn as_any(&self) -> Option<&dyn Any> {
        None
    }
    /// Trailers that come behind it, for whoever reads it alone. Those of a stored body are its
    /// object's.
    fn trailers(&self) -> Option<Trailers> {
        None
    }
    /// The bytes that a store below memory keeps in its place, where it is made of stored objects
    /// of their own; otherwise `None`.
    fn kept(&self) -> Option<Vec<u8>> {
        None
    }
    /// The life of those objects: they go with its last owner. `None` where there are none.
    fn life(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        None
    }
    /// Words for operators on how much of it is there.
    fn told(&self) -> Option<String> {
        None
    }
}

/// The way in which a read comes by its bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BodyDerivation {
    /// They are there, or come by themselves.
    #[default]
    None,
    /// They are made, as they are asked for, of what is in memory.
    OfWhole,
    /// They are made, as they are asked for, of what still comes.
    OfComing,
}

/// A read of what is [`Elsewhere`], going on from byte to byte; to drop it is to give it up.
pub trait ExternalBodyReader: fmt::Debug + Send + Sync {
    /// Goes on at `offset`.
    fn seek(&mut self, offset: u64);
    /// Says that no byte from `offset` on will be asked for: none need be brought ahead.
    fn until(&mut self, _offset: u64) {}
    /// Returns true if it can go back to bytes that it has brought.
    fn goes_back(&self) -> bool {
        true
    }
    /// As [`Reader::park`](crate::Reader::park), for what it reads itself.
    fn park(&mut self) {}
    /// As [`Reader::unpark`](crate::Reader::unpark), for what it reads itself.
    fn unpark(&mut self) -> bool {
        true
    }
    /// The way in which its bytes come.
    fn making(&self) -> BodyDerivation {
        BodyDerivation::None
    }
    /// Returns true if it broke off for want of memory.
    fn is_starved(&self) -> bool {
        false
    }
    /// Takes the trailers that have come behind the body, once it has come to its end.
    fn take_trailers(&mut self) -> Option<Box<HeldTrailers>> {
        None
    }
    /// The next bytes, at least one; `None` at the body's end. Copies are held by `account`.
    ///
    /// # Errors
    /// [`Aborted`] where the bytes can no longer be had.
    fn poll_next(
        &mut self,
        account: Option<&Arc<Account>>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, IncompleteBody>>;
}

/// Keeps a body, its own or another keeper's: a stored response.
pub(crate) trait BodyOwner: fmt::Debug + Send + Sync {
    /// Where the body is.
    fn state(&self) -> Location<'_>;
    /// The body's length: as declared while it comes, as counted when it is complete.
    fn length(&self) -> Option<u64>;
    /// The [`Fill`] of a body that is still coming.
    fn fill(&self) -> Option<Arc<Fill>>;
    /// Returns true if the body will never be complete.
    fn is_broken(&self) -> bool;
    /// Bytes that the keeper has in use, its body included.
    fn memory(&self) -> u64;
    /// Further forms of the body, if it may have any.
    fn forms(&self) -> Option<&EncodedForms>;
    /// The trailers that came behind the body, once it is complete.
    fn trailers(&self) -> Option<&Trailers>;
}

/// A body that has come. Two words: a body of one chunk, as most are, costs its bytes and nothing
/// else.
#[derive(Debug)]
pub(crate) enum CompleteBody {
    /// The whole body in one exact allocation.
    One(Box<[u8]>),
    /// Anything else, behind one word so that the enum needs no tag.
    Other(Box<IndirectBody>),
}

/// A body that is not one allocation of its object's own.
#[derive(Debug)]
pub(crate) enum IndirectBody {
    /// One exact allocation, of a body that may have further forms.
    Formed { bytes: Box<[u8]>, forms: EncodedForms },
    /// Several chunks, each with its own charge.
    Many {
        pieces: BodyChunks,
        /// Bytes that the chunks have reserved.
        cost: u64,
        forms: EncodedForms,
    },
    /// Another object's body (after a 304). That one is never itself shared.
    Shared(Arc<dyn BodyOwner>),
    /// Not in memory.
    Elsewhere(Arc<dyn ExternalBody>),
    /// A body of one of the other kinds, but for a shared one, that trailers came behind.
    Trailed { body: CompleteBody, trailers: Trailers },
}

impl CompleteBody {
    /// Bytes to reserve for an [`Other`].
    pub(crate) const OTHER_BYTES: u64 = size::class(size_of::<IndirectBody>());

    /// Bytes to reserve for a body that is elsewhere.
    pub(crate) fn elsewhere_bytes(body: &dyn ExternalBody) -> u64 {
        Self::OTHER_BYTES + body.memory()
    }

    pub(crate) fn shared(keeper: Arc<dyn BodyOwner>) -> Self {
        Self::Other(Box::new(IndirectBody::Shared(keeper)))
    }

    pub(crate) fn elsewhere(body: Arc<dyn ExternalBody>) -> Self {
        Self::Other(Box::new(IndirectBody::Elsewhere(body)))
    }

    pub(crate) fn many(chunks: Vec<Bytes>, cost: u64) -> Self {
        let forms = EncodedForms::default();
        Self::Other(Box::new(IndirectBody::Many { pieces: BodyChunks::new(chunks), cost, forms }))
    }

    /// Bytes to reserve for `trailers` behind a body.
    pub(crate) fn trailed_bytes(trailers: &Trailers) -> u64 {
        Self::OTHER_BYTES + size::class(trailers.memory())
    }

    /// This body with `trailers` behind it; [`Complete::trailed_bytes`] are reserved for them.
    pub(crate) fn trailed(self, trailers: Trailers) -> Self {
        Self::Other(Box::new(IndirectBody::Trailed { body: self, trailers }))
    }

    /// A body of one piece that may have further forms; [`Complete::OTHER_BYTES`] are reserved for
    /// that.
    pub(crate) fn formed(bytes: Box<[u8]>) -> Self {
        Self::Other(Box::new(IndirectBody::Formed { bytes, forms: EncodedForms::default() }))
    }

    #[inline]
    fn state(&self) -> Location<'_> {
        match self {
            Self::One(bytes) => Location::Whole(BorrowedBody::One(bytes)),
            Self::Other(other) => match &**other {
                IndirectBody::Formed { bytes, .. } => Location::Whole(BorrowedBody::One(bytes)),
                IndirectBody::Many { pieces, .. } => Location::Whole(BorrowedBody::Many(pieces)),
                IndirectBody::Shared(keeper) => keeper.state(),
                IndirectBody::Elsewhere(body) => Location::Elsewhere(body),
                IndirectBody::Trailed { body, .. } => body.state(),
            },
        }
    }

    /// Bytes that the object gives back itself when it is dropped.
    fn own_memory(&self) -> u64 {
        match self {
            Self::One(bytes) => size::class(bytes.len()),
            Self::Other(other) => match &**other {
                IndirectBody::Formed { bytes, .. } => Self::OTHER_BYTES + size::class(bytes.len()),
                IndirectBody::Elsewhere(body) => Self::elsewhere_bytes(&**body),
                IndirectBody::Trailed { body, trailers } => {
                    Self::trailed_bytes(trailers) + body.own_memory()
                }
                IndirectBody::Many { .. } | IndirectBody::Shared(_) => Self::OTHER_BYTES,
            },
        }
    }

    fn forms(&self) -> Option<&EncodedForms> {
        let Self::Other(other) = self else { return None };
        match &**other {
            IndirectBody::Formed { forms, .. } | IndirectBody::Many { forms, .. } => Some(forms),
            IndirectBody::Shared(keeper) => keeper.forms(),
            IndirectBody::Trailed { body, .. } => body.forms(),
            IndirectBody::Elsewhere(_) => None,
        }
    }

    fn trailers(&self) -> Option<&Trailers> {
        let Self::Other(other) = self else { return None };
        match &**other {
            IndirectBody::Trailed { trailers, .. } => Some(trailers),
            IndirectBody::Shared(keeper) => keeper.trailers(),
            IndirectBody::Formed { .. }
            | IndirectBody::Many { .. }
            | IndirectBody::Elsewhere(_) => None,
        }
    }

    /// Bytes beside those which this body keeps in use.
    fn held_memory(&self) -> u64 {
        match self {
            Self::One(_) => 0,
            Self::Other(other) => match &**other {
                IndirectBody::Formed { forms, .. } => forms.memory(),
                IndirectBody::Many { cost, forms, .. } => *cost + forms.memory(),
                IndirectBody::Shared(keeper) => keeper.memory(),
                IndirectBody::Trailed { body, .. } => body.held_memory(),
                IndirectBody::Elsewhere(_) => 0,
            },
        }
    }
}

/// The content of one object.
#[derive(Debug)]
pub(crate) struct Content {
    complete: OnceLock<CompleteBody>,
    fill: Mutex<Option<Arc<Fill>>>,
}

impl Content {
    /// Content that `fill` brings, or that is set at once.
    pub(crate) fn new(fill: Option<Arc<Fill>>) -> Self {
        Self { complete: OnceLock::new(), fill: Mutex::new(fill) }
    }

    #[inline]
    pub(crate) fn state(&self) -> Location<'_> {
        self.complete.get().map_or(Location::Filling, CompleteBody::state)
    }

    /// Further forms of the body, wherever it is kept; `None` if it may have none.
    #[inline]
    pub(crate) fn forms(&self) -> Option<&EncodedForms> {
        self.complete.get()?.forms()
    }

    /// The trailers that came behind the body, wherever it is kept.
    #[inline]
    pub(crate) fn trailers(&self) -> Option<&Trailers> {
        self.complete.get()?.trailers()
    }

    /// Whoever keeps the body, if that is another.
    pub(crate) fn keeper(&self) -> Option<&Arc<dyn BodyOwner>> {
        match self.complete.get()? {
            CompleteBody::Other(other) => match &**other {
                IndirectBody::Shared(keeper) => Some(keeper),
                _ => None,
            },
            CompleteBody::One(_) => None,
        }
    }

    /// The body's length: as declared while it comes, as counted when it is complete.
    pub(crate) fn length(&self) -> Option<u64> {
        if let Some(keeper) = self.keeper() {
            return keeper.length();
        }
        let counted = || match self.state() {
            Location::Whole(whole) => Some(whole.len()),
            Location::Elsewhere(body) => Some(body.length()),
            Location::Filling => None,
        };
        let declared = || self.fill.lock().as_ref().map(|fill| fill.declared);
        // A fill that is gone was completed between the two looks.
        counted().or_else(|| declared().unwrap_or_else(counted))
    }

    /// The [`Fill`] of the body, if the body is still coming.
    pub(crate) fn fill(&self) -> Option<Arc<Fill>> {
        if self.complete.get().is_some() { None } else { self.fill.lock().clone() }
    }

    /// The body has come. Its bytes have been reserved.
    pub(crate) fn complete(&self, body: CompleteBody) {
        // Only the one writer completes an object.
        let _ = self.complete.set(body);
    }

    /// Forgets what brought the body; it is complete.
    pub(crate) fn forget_fill(&self) {
        let fill = self.fill.lock().take();
        drop(fill);
    }

    /// Bytes that the object gives back itself when it is dropped.
    pub(crate) fn own_memory(&self) -> u64 {
        self.complete.get().map_or(0, CompleteBody::own_memory)
    }

    /// Bytes beside those which the body keeps in use.
    pub(crate) fn held_memory(&self) -> u64 {
        self.complete.get().map_or(0, CompleteBody::held_memory)
    }
}
