//! Upload: the body of a client's request on its way to an origin.

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
    /// The body is buffered and can be sent again.
    Kept(Bytes),
    /// The body is read from the client, once.
    Stream {
        reader: Reader,
        /// The client expects a 100, and gets it when the body is first read.
        expects: bool,
        /// The filter of its trailers; without one they are dropped.
        filter: Option<TrailerFilter>,
    },
    /// It has been sent.
    Spent,
}

impl Upload {
    /// The upload of a streamed body, if there is one.
    pub(crate) fn of(reader: Option<Reader>) -> Self {
        reader.map_or(Self::None, |reader| Self::Stream { reader, expects: false, filter: None })
    }

    /// The buffered body.
    pub(crate) fn kept(&self) -> Option<&Bytes> {
        match self {
            Self::Kept(body) => Some(body),
            _ => None,
        }
    }

    /// Returns true if there is a body, sent or not.
    pub(crate) fn is_some(&self) -> bool {
        !matches!(self, Self::None)
    }

    /// Returns true if the body can no longer be sent.
    pub(crate) fn is_spent(&self) -> bool {
        matches!(self, Self::Spent)
    }

    /// Passes the trailers of a streamed body through `filter`.
    pub(crate) fn let_trailers_pass(&mut self, filter: TrailerFilter) {
        if let Self::Stream { filter: present, .. } = self {
            *present = Some(filter);
        }
    }

    /// Takes the body to send it with `request`, whose framing is set by a buffered body's length.
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
            Self::Stream { reader, expects, filter } => {
                let waits = expects.then(|| interims.cloned()).flatten();
                Some(UploadSource::Streamed { reader, waits, filter, begun: false })
            }
            Self::Spent => None,
        }
    }

    /// Takes an unread body back, for another try.
    pub(super) fn put_back(&mut self, source: UploadSource) {
        if let UploadSource::Streamed { reader, waits, filter, begun: false } = source {
            *self = Self::Stream { reader, expects: waits.is_some(), filter };
        }
    }
}

/// The source from which the origin client pulls a request's body.
pub(super) enum UploadSource {
    /// A buffered body.
    Whole(Bytes),
    /// A body from the client.
    Streamed {
        reader: Reader,
        /// The queue of a client that waits for a 100, until it was sent.
        waits: Option<Rc<Interims>>,
        filter: Option<TrailerFilter>,
        /// Some of the body has been read.
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
            Self::Streamed { reader, filter: Some(filter), .. } => {
                filter.pass(reader.take_trailers()?.trailers)
            }
            _ => None,
        }
    }
}
