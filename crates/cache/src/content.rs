//! The content of a response (RFC 9110 6.4): whole in memory, filling, or external.
//!
//! It changes from filling to one of the others once, and never again: a response whose content
//! moves is another object, under the same key.

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

/// The location of a response's content.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Location<'a> {
    /// Whole, in memory.
    Whole(BorrowedBody<'a>),
    /// Still arriving, or incomplete.
    Filling,
    /// Whole, outside memory.
    External(&'a Arc<dyn ExternalBody>),
}

impl<'a> Location<'a> {
    pub(crate) fn whole(self) -> Option<BorrowedBody<'a>> {
        if let Self::Whole(whole) = self { Some(whole) } else { None }
    }
}

/// The reason why an external body is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyOpenError {
    /// Too many reads of such bodies are under way.
    Full,
    /// The body is lost, and its response is no longer in the index.
    Gone,
}

/// A complete body that is not in memory as one piece.
pub trait ExternalBody: fmt::Debug + Send + Sync {
    /// The body's length in bytes.
    fn length(&self) -> u64;
    /// Begins to read at the body's beginning. Nothing is loaded before bytes are requested.
    fn open(self: Arc<Self>) -> Box<dyn ExternalBodyReader>;
    /// Begins to read, for a caller that can fetch the body instead.
    ///
    /// # Errors
    /// The reason why the caller should fetch it.
    fn open_within(self: Arc<Self>) -> Result<Box<dyn ExternalBodyReader>, BodyOpenError> {
        Ok(self.open())
    }
    /// Bytes of memory that this value takes. They are reserved with its object.
    fn memory(&self) -> u64 {
        0
    }
    /// Itself, for callers that look for a concrete type.
    fn as_any(&self) -> Option<&dyn Any> {
        None
    }
    /// Trailers behind the body, for a reader without the object. The trailers of a stored body are
    /// in its object.
    fn trailers(&self) -> Option<Trailers> {
        None
    }
    /// The bytes that the lower tier stores instead of a body that consists of stored objects;
    /// otherwise `None`.
    fn kept(&self) -> Option<Vec<u8>> {
        None
    }
    /// The owner of those objects: they are removed with its last reference. `None` without such
    /// objects.
    fn life(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        None
    }
    /// A description for operators of how much of the body is stored.
    fn told(&self) -> Option<String> {
        None
    }
}

/// The derivation of the bytes that a read gives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BodyDerivation {
    /// None: the bytes are stored, or arrive as they are.
    #[default]
    None,
    /// Derived on request from bytes in memory.
    OfWhole,
    /// Derived on request from bytes that still arrive.
    OfComing,
}

/// A sequential read of an [`ExternalBody`]. Dropping the reader cancels the read.
pub trait ExternalBodyReader: fmt::Debug + Send + Sync {
    /// Continues at `offset`.
    fn seek(&mut self, offset: u64);
    /// Declares that no byte from `offset` on will be requested, which limits readahead.
    fn until(&mut self, _offset: u64) {}
    /// Returns true if the reader can seek back to bytes that it has given.
    fn goes_back(&self) -> bool {
        true
    }
    /// [`Reader::park`](crate::Reader::park), for the bytes that this reader holds.
    fn park(&mut self) {}
    /// [`Reader::unpark`](crate::Reader::unpark), for the bytes that this reader holds.
    fn unpark(&mut self) -> bool {
        true
    }
    /// The derivation of its bytes.
    fn making(&self) -> BodyDerivation {
        BodyDerivation::None
    }
    /// Returns true if the read broke off for lack of memory.
    fn is_starved(&self) -> bool {
        false
    }
    /// Takes the trailers behind the body, at the body's end.
    fn take_trailers(&mut self) -> Option<Box<HeldTrailers>> {
        None
    }
    /// The next bytes, at least one; `None` at the body's end. Copies are held by `account`.
    ///
    /// # Errors
    /// [`IncompleteBody`] if the bytes are lost.
    fn poll_next(
        &mut self,
        account: Option<&Arc<Account>>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, IncompleteBody>>;
}

/// The owner of a body, its own or another object's: a stored response.
pub(crate) trait BodyOwner: fmt::Debug + Send + Sync {
    /// The location of the body.
    fn state(&self) -> Location<'_>;
    /// The body's length: as declared while it arrives, as counted once it is complete.
    fn length(&self) -> Option<u64>;
    /// The [`Fill`] of a body that is still arriving.
    fn fill(&self) -> Option<Arc<Fill>>;
    /// Returns true if the body will never be complete.
    fn is_broken(&self) -> bool;
    /// Bytes that the owner uses, including its body.
    fn memory(&self) -> u64;
    /// Further forms of the body, if it may have any.
    fn forms(&self) -> Option<&EncodedForms>;
    /// The trailers behind the body, once it is complete.
    fn trailers(&self) -> Option<&Trailers>;
}

/// A complete body, in two machine words: a body of one chunk, as most are, costs its bytes and no
/// more.
#[derive(Debug)]
pub(crate) enum CompleteBody {
    /// The whole body in one exact allocation.
    One(Box<[u8]>),
    /// Any other body, behind one machine word, so that the enum needs no tag.
    Other(Box<IndirectBody>),
}

/// A body that is not a single allocation of its object.
#[derive(Debug)]
pub(crate) enum IndirectBody {
    /// One exact allocation of a body that may have further forms.
    Formed { bytes: Box<[u8]>, forms: EncodedForms },
    /// Several chunks, each with its own charge.
    Many {
        pieces: BodyChunks,
        /// Bytes that the chunks have reserved.
        cost: u64,
        forms: EncodedForms,
    },
    /// One chunk that other variants of the key have, too. It has its own charge, which its last
    /// object returns.
    Common {
        bytes: Bytes,
        /// Bytes that the chunk has reserved.
        cost: u64,
        forms: EncodedForms,
    },
    /// Another object's body (after a 304). That body is never itself shared.
    Shared(Arc<dyn BodyOwner>),
    /// Not in memory.
    External(Arc<dyn ExternalBody>),
    /// A body of another kind, except a shared one, with trailers behind it.
    Trailed { body: CompleteBody, trailers: Trailers },
}

impl CompleteBody {
    /// Bytes to reserve for an [`IndirectBody`].
    pub(crate) const OTHER_BYTES: u64 = size::class(size_of::<IndirectBody>());

    /// Bytes to reserve for an external body.
    pub(crate) fn elsewhere_bytes(body: &dyn ExternalBody) -> u64 {
        Self::OTHER_BYTES + body.memory()
    }

    pub(crate) fn shared(keeper: Arc<dyn BodyOwner>) -> Self {
        Self::Other(Box::new(IndirectBody::Shared(keeper)))
    }

    pub(crate) fn elsewhere(body: Arc<dyn ExternalBody>) -> Self {
        Self::Other(Box::new(IndirectBody::External(body)))
    }

    pub(crate) fn many(chunks: Vec<Bytes>, cost: u64) -> Self {
        let forms = EncodedForms::default();
        Self::Other(Box::new(IndirectBody::Many { pieces: BodyChunks::new(chunks), cost, forms }))
    }

    /// A chunk that other objects may have, too, and that has reserved `cost` bytes. Each of its
    /// objects reserves [`CompleteBody::OTHER_BYTES`].
    pub(crate) fn common(bytes: Bytes, cost: u64) -> Self {
        let forms = EncodedForms::default();
        Self::Other(Box::new(IndirectBody::Common { bytes, cost, forms }))
    }

    /// This chunk for another object; `None` for a body of another kind.
    pub(crate) fn in_common(&self) -> Option<Self> {
        let Self::Other(other) = self else { return None };
        match &**other {
            IndirectBody::Common { bytes, cost, .. } => Some(Self::common(bytes.clone(), *cost)),
            IndirectBody::Trailed { body, .. } => body.in_common(),
            _ => None,
        }
    }

    /// Returns true if several objects may have this chunk.
    pub(crate) fn is_common(&self) -> bool {
        let Self::Other(other) = self else { return false };
        matches!(**other, IndirectBody::Common { .. })
    }

    /// Returns true if the body is whole, and is `bytes` themselves.
    pub(crate) fn is_at(&self, bytes: &[u8]) -> bool {
        matches!(self.state(), Location::Whole(BorrowedBody::One(own)) if std::ptr::eq(own, bytes))
    }

    /// Bytes to reserve for `trailers` behind a body.
    pub(crate) fn trailed_bytes(trailers: &Trailers) -> u64 {
        Self::OTHER_BYTES + size::class(trailers.memory())
    }

    /// This body with `trailers` behind it, for which [`CompleteBody::trailed_bytes`] are reserved.
    pub(crate) fn trailed(self, trailers: Trailers) -> Self {
        Self::Other(Box::new(IndirectBody::Trailed { body: self, trailers }))
    }

    /// A body of one piece that may have further forms, for which [`CompleteBody::OTHER_BYTES`] are
    /// reserved.
    pub(crate) fn formed(bytes: Box<[u8]>) -> Self {
        Self::Other(Box::new(IndirectBody::Formed { bytes, forms: EncodedForms::default() }))
    }

    #[inline]
    pub(crate) fn state(&self) -> Location<'_> {
        match self {
            Self::One(bytes) => Location::Whole(BorrowedBody::One(bytes)),
            Self::Other(other) => match &**other {
                IndirectBody::Formed { bytes, .. } => Location::Whole(BorrowedBody::One(bytes)),
                IndirectBody::Many { pieces, .. } => Location::Whole(BorrowedBody::Many(pieces)),
                IndirectBody::Common { bytes, .. } => Location::Whole(BorrowedBody::One(bytes)),
                IndirectBody::Shared(keeper) => keeper.state(),
                IndirectBody::External(body) => Location::External(body),
                IndirectBody::Trailed { body, .. } => body.state(),
            },
        }
    }

    /// Bytes that the object itself returns when it is dropped.
    fn own_memory(&self) -> u64 {
        match self {
            Self::One(bytes) => size::class(bytes.len()),
            Self::Other(other) => match &**other {
                IndirectBody::Formed { bytes, .. } => Self::OTHER_BYTES + size::class(bytes.len()),
                IndirectBody::External(body) => Self::elsewhere_bytes(&**body),
                IndirectBody::Trailed { body, trailers } => {
                    Self::trailed_bytes(trailers) + body.own_memory()
                }
                IndirectBody::Many { .. }
                | IndirectBody::Common { .. }
                | IndirectBody::Shared(_) => Self::OTHER_BYTES,
            },
        }
    }

    fn forms(&self) -> Option<&EncodedForms> {
        let Self::Other(other) = self else { return None };
        match &**other {
            IndirectBody::Formed { forms, .. }
            | IndirectBody::Many { forms, .. }
            | IndirectBody::Common { forms, .. } => Some(forms),
            IndirectBody::Shared(keeper) => keeper.forms(),
            IndirectBody::Trailed { body, .. } => body.forms(),
            IndirectBody::External(_) => None,
        }
    }

    fn trailers(&self) -> Option<&Trailers> {
        let Self::Other(other) = self else { return None };
        match &**other {
            IndirectBody::Trailed { trailers, .. } => Some(trailers),
            IndirectBody::Shared(keeper) => keeper.trailers(),
            IndirectBody::Formed { .. }
            | IndirectBody::Many { .. }
            | IndirectBody::Common { .. }
            | IndirectBody::External(_) => None,
        }
    }

    /// Further bytes that this body keeps in use.
    fn held_memory(&self) -> u64 {
        match self {
            Self::One(_) => 0,
            Self::Other(other) => match &**other {
                IndirectBody::Formed { forms, .. } => forms.memory(),
                // Each object of a common chunk weighs as if it had it alone.
                IndirectBody::Many { cost, forms, .. }
                | IndirectBody::Common { cost, forms, .. } => *cost + forms.memory(),
                IndirectBody::Shared(keeper) => keeper.memory(),
                IndirectBody::Trailed { body, .. } => body.held_memory(),
                IndirectBody::External(_) => 0,
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

    /// Further forms of the body, whichever object owns it. `None` if it may have none.
    #[inline]
    pub(crate) fn forms(&self) -> Option<&EncodedForms> {
        self.complete.get()?.forms()
    }

    /// The trailers behind the body, whichever object owns it.
    #[inline]
    pub(crate) fn trailers(&self) -> Option<&Trailers> {
        self.complete.get()?.trailers()
    }

    /// The body for another object, if it is one chunk that several may have.
    pub(crate) fn in_common(&self) -> Option<CompleteBody> {
        self.complete.get()?.in_common()
    }

    /// The owner of the body, if it is another object.
    pub(crate) fn keeper(&self) -> Option<&Arc<dyn BodyOwner>> {
        match self.complete.get()? {
            CompleteBody::Other(other) => match &**other {
                IndirectBody::Shared(keeper) => Some(keeper),
                _ => None,
            },
            CompleteBody::One(_) => None,
        }
    }

    /// The body's length: as declared while it arrives, as counted once it is complete.
    pub(crate) fn length(&self) -> Option<u64> {
        if let Some(keeper) = self.keeper() {
            return keeper.length();
        }
        let counted = || match self.state() {
            Location::Whole(whole) => Some(whole.len()),
            Location::External(body) => Some(body.length()),
            Location::Filling => None,
        };
        let declared = || self.fill.lock().as_ref().map(|fill| fill.declared);
        // A missing fill was completed between the two loads.
        counted().or_else(|| declared().unwrap_or_else(counted))
    }

    /// The [`Fill`] of the body, if the body is still arriving.
    pub(crate) fn fill(&self) -> Option<Arc<Fill>> {
        if self.complete.get().is_some() { None } else { self.fill.lock().clone() }
    }

    /// Sets the complete body, whose bytes are reserved.
    pub(crate) fn complete(&self, body: CompleteBody) {
        // An object has one writer, which completes it once.
        let _ = self.complete.set(body);
    }

    /// Forgets the fill of a complete body.
    pub(crate) fn forget_fill(&self) {
        let fill = self.fill.lock().take();
        drop(fill);
    }

    /// Bytes that the object itself returns when it is dropped.
    pub(crate) fn own_memory(&self) -> u64 {
        self.complete.get().map_or(0, CompleteBody::own_memory)
    }

    /// Further bytes that the body keeps in use.
    pub(crate) fn held_memory(&self) -> u64 {
        self.complete.get().map_or(0, CompleteBody::held_memory)
    }
}
