//! The body of a client's request on its way to an origin.

use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use cache::Reader;
use message::{Framing, Request, Response, Status, Trailers};
use origin::{BodySource, SourceError};

use crate::interims::Interims;
use crate::trailers::TrailerFilter;

/// A request's body on its way to the origin.
pub(crate) enum Upload {
    /// The request has none.
    None,
    /// It is kept, and can be sent again.
    Kept(Bytes),
    /// It comes as the client sends it, once.
    Stream {
        reader: Reader,
        /// The client waits for a 100, and gets it when the body is first asked for.
        expects: bool,
        /// The gate that its trailers pass; without one they are dropped.
        gate: Option<TrailerFilter>,
    },
    /// It has been sent.
    Spent,
}

impl Upload {
    /// A body that comes as the client sends it, if there is one.
    pub(crate) fn of(reader: Option<Reader>) -> Self {
        reader.map_or(Self::None, |reader| Self::Stream { reader, expects: false, gate: None })
    }

    /// The body, if it is kept.
    pub(crate) fn kept(&self) -> Option<&Bytes> {
        match self {
            Self::Kept(body) => Some(body),
            _ => None,
        }
    }

    /// Tells whether there is a body, sent or not.
    pub(crate) fn is_some(&self) -> bool {
        !matches!(self, Self::None)
    }

    /// Tells whether the body cannot be sent any more.
    pub(crate) fn is_spent(&self) -> bool {
        matches!(self, Self::Spent)
    }

    /// Has trailers of a body that the client sends pass through `gate`.
    pub(crate) fn let_trailers_pass(&mut self, its: TrailerFilter) {
        if let Self::Stream { gate, .. } = self {
            *gate = Some(its);
        }
    }

    /// Takes the body to send it with `request`, whose framing follows a kept body's length.
    pub(super) fn take(
        &mut self,
        request: &mut Request,
        interims: Option<&Rc<Interims>>,
    ) -> Option<UploadSource> {
        match std::mem::replace(self, Self::Spent) {
            Self::None => {
                *self = Self::None;
                None
            }
            Self::Kept(bytes) => {
                request.framing = Framing::Length(bytes.len() as u64);
                *self = Self::Kept(bytes.clone());
                Some(UploadSource::Whole(bytes))
            }
            Self::Stream { reader, expects, gate } => {
                let waits = expects.then(|| interims.cloned()).flatten();
                Some(UploadSource::Streamed { reader, waits, gate, begun: false })
            }
            Self::Spent => None,
        }
    }

    /// Puts back a body that nobody took anything of: another try can have it.
    pub(super) fn put_back(&mut self, source: UploadSource) {
        if let UploadSource::Streamed { reader, waits, gate, begun: false } = source {
            *self = Self::Stream { reader, expects: waits.is_some(), gate };
        }
    }
}

/// A request's body as the origin client pulls it.
pub(super) enum UploadSource {
    /// It is there already.
    Whole(Bytes),
    /// It comes from the client.
    Streamed {
        reader: Reader,
        /// The client that waits for a 100, until it has got it.
        waits: Option<Rc<Interims>>,
        gate: Option<TrailerFilter>,
        /// Some of it has been asked for.
        begun: bool,
    },
}

impl BodySource for UploadSource {
    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, SourceError>> {
        match self {
            Self::Whole(bytes) => {
                let all = std::mem::take(bytes);
                Poll::Ready(Ok((!all.is_empty()).then_some(all)))
            }
            Self::Streamed { reader, waits, begun, .. } => {
                *begun = true;
                if let Some(client) = waits.take() {
                    client.put(Response::new(Status::CONTINUE));
                }
                reader.poll_next(cx).map_err(|_| SourceError("the client's body broke off"))
            }
        }
    }

    fn take_trailers(&mut self) -> Option<Trailers> {
        match self {
            Self::Streamed { reader, gate: Some(gate), .. } => {
                gate.pass(reader.take_trailers()?.trailers)
            }
            _ => None,
        }
    }
}
