//! HTTP/2 exchange: the task of one waiting request, which sends its output to the connection as
//! messages. It must never touch the socket.

use std::cell::{OnceCell, RefCell};
use std::io;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use base::Account;
use bytes::{Buf, Bytes};
use cache::{BodyDerivation, HeldTrailers, Reader};
use files::OpenFile;
use flow::{BodyPart, ClientEnds, Owner, Reply, ReplyBody, Tunnel, WaitingRequest};
use message::{HeaderId, Response, Status};

use super::mailbox::{BodyBackpressure, Promise, StreamMessage};
use crate::connection_counts::Entry;
use crate::core::CoreCtx;
use crate::exchange::{DeferredRequest, Engine, Exchange, ExchangeAbort};
use crate::file;
use crate::guard::Guard;
use crate::segments::copy_range;
use crate::tunnel::{ActiveTunnel, Carrier, TunnelSide};

/// Bytes of a file read at once.
const FILE_BYTES: u64 = 16 * 1024;

/// The context of a waiting request's task.
pub(crate) struct Task {
    pub(crate) core: Rc<CoreCtx>,
    pub(crate) deferred: Rc<DeferredRequest>,
    pub(crate) ends: Option<ClientEnds>,
    /// The connection's identity as owner of origin connections.
    pub(crate) owner: Owner,
    /// Bytes by which a body in transit may be ahead of its client.
    pub(crate) window: u64,
    /// The account that they are charged to.
    pub(crate) account: Arc<Account>,
    /// The client's flow-control window permits the first bytes of the reply.
    pub(crate) is_open: bool,
    /// Dropped before its end, it reports the failure to the connection.
    pub(crate) promise: Promise,
    pub(crate) feed: OnceCell<Rc<BodyBackpressure>>,
    /// Bytes of a tunnel from the client.
    pub(crate) up: RefCell<Option<Reader>>,
}

impl Task {
    /// Waits for the reply to a request and sends it. `body` is the request's.
    pub(crate) async fn answer(self, slow: Box<WaitingRequest>, body: Option<Reader>) {
        _ = self.exchange().answer(&self, slow, body).await;
    }

    /// Sends a reply whose body is incomplete, or in files.
    pub(crate) async fn hand_over(self, reply: Reply) {
        _ = self.exchange().send(&self, reply, None).await;
    }

    fn exchange(&self) -> Exchange<'_> {
        let Self { core, deferred, ends, owner, window, account, .. } = self;
        Exchange { core, deferred, ends: *ends, owner, window: *window, account }
    }

    /// Sends a piece when the connection has space for it.
    async fn give_on(&self, feed: &BodyBackpressure, bytes: Bytes) {
        feed.room().await;
        self.give(feed, bytes);
    }

    fn give(&self, feed: &BodyBackpressure, bytes: Bytes) {
        feed.note_produced(bytes.len());
        self.promise.tell(StreamMessage::Piece(bytes));
    }

    /// Sends a part of a file.
    async fn file(
        &self,
        feed: &BodyBackpressure,
        opened: &Arc<OpenFile>,
        range: Range<u64>,
    ) -> Result<(), ExchangeAbort> {
        let mut at = range.start;
        while at < range.end {
            feed.room().await;
            let piece = at..range.end.min(at + FILE_BYTES);
            let read = file::read(opened, piece, &self.core).await;
            let bytes = read.ok().filter(|bytes| !bytes.is_empty()).ok_or(ExchangeAbort::Cut)?;
            at += bytes.len() as u64;
            self.give_on(feed, bytes.into()).await;
        }
        Ok(())
    }
}

impl Engine for Task {
    type Begun = Rc<BodyBackpressure>;

    fn interim(&self, response: Response) {
        self.promise.tell(StreamMessage::Interim(Box::new(response)));
    }

    /// A body is produced only as far as the client's window permits.
    fn is_open(&self, making: BodyDerivation) -> bool {
        match making {
            BodyDerivation::None => true,
            BodyDerivation::OfWhole => false,
            BodyDerivation::OfComing => self.is_open,
        }
    }

    fn begin(
        &self,
        reply: Reply,
        length: Option<u64>,
        making: BodyDerivation,
    ) -> &Rc<BodyBackpressure> {
        let feed = self.feed.get_or_init(|| Rc::new(BodyBackpressure::of(making)));
        let (reply, own) = (Box::new(reply), Some(Rc::clone(feed)));
        self.promise.tell(StreamMessage::Reply { reply, feed: own, length });
        feed
    }

    fn poll_room(&self, feed: &Rc<BodyBackpressure>, cx: &mut Context<'_>) -> Poll<()> {
        feed.poll_room(cx)
    }

    async fn piece(&self, feed: &Rc<BodyBackpressure>, data: Bytes) -> Result<(), ExchangeAbort> {
        self.give(feed, data);
        Ok(())
    }

    async fn end(
        &self,
        _: &Rc<BodyBackpressure>,
        trailed: Option<Box<HeldTrailers>>,
    ) -> Result<(), ExchangeAbort> {
        self.promise.keep(StreamMessage::End(trailed));
        Ok(())
    }

    async fn whole(&self, mut reply: Reply) -> Result<(), ExchangeAbort> {
        let length = reply.length();
        let parts = match std::mem::replace(&mut reply.body, ReplyBody::None) {
            ReplyBody::Parts(parts) if parts.has_file() => parts,
            body => {
                reply.body = body;
                self.promise.keep(StreamMessage::Reply {
                    reply: Box::new(reply),
                    feed: None,
                    length: None,
                });
                return Ok(());
            }
        };
        let feed = self.begin(reply, length, BodyDerivation::None);
        for part in parts {
            match part {
                BodyPart::Bytes(bytes) => self.give_on(feed, bytes).await,
                BodyPart::Stored(object, range) => {
                    let mut bytes = Vec::new();
                    copy_range(&object, range, &mut bytes);
                    self.give_on(feed, bytes.into()).await;
                }
                BodyPart::File(opened, range) => self.file(feed, &opened, range).await?,
            }
        }
        self.end(feed, None).await
    }

    async fn tunnel(
        &self,
        mut reply: Reply,
        origin: Box<Tunnel>,
        place: Option<Entry>,
    ) -> Result<(), ExchangeAbort> {
        // HTTP/1's 101 is a plain 200 here (RFC 8441 5).
        reply.status = Status::OK;
        if let flow::reply::HeadSource::Owned(response) = &mut reply.head {
            response.headers.remove(HeaderId::Upgrade);
            response.headers.remove_named(b"Sec-WebSocket-Accept");
        }
        let Self { core, account, promise, .. } = self;
        let feed = self.begin(reply, None, BodyDerivation::None);
        let up = self.up.take().ok_or(ExchangeAbort::Early)?;
        let guard = Guard::new(core.flow.now().mono_ms);
        let seat = core.sweep.join(Rc::clone(&guard));
        let _seat = Seat { core, seat };
        let carrier = Carrier { core, guard: &guard, account };
        let mut side = StreamSide { promise, up, rest: Bytes::new(), feed };
        let run = ActiveTunnel::new(carrier, origin, Vec::new(), place);
        run.carry(&RefCell::new(&mut side)).await;
        // A limit, or the end of a drain: an orderly end, as on the other side.
        self.end(feed, None).await
    }
}

/// A slot in the sweep, released however the task ends.
struct Seat<'a> {
    core: &'a CoreCtx,
    seat: usize,
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        self.core.sweep.leave(self.seat);
    }
}

/// The client's end of a tunnel: a stream of its connection.
struct StreamSide<'a> {
    promise: &'a Promise,
    up: Reader,
    rest: Bytes,
    feed: &'a BodyBackpressure,
}

impl TunnelSide for StreamSide<'_> {
    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut [u8],
        _: &CoreCtx,
    ) -> Poll<io::Result<usize>> {
        if self.rest.is_empty() {
            match ready!(self.up.poll_next(cx)) {
                Ok(Some(bytes)) => self.rest = bytes,
                Ok(None) => return Poll::Ready(Ok(0)),
                Err(_) => return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
            }
        }
        let taken = self.rest.len().min(buf.len());
        self.rest.copy_to_slice(&mut buf[..taken]);
        Poll::Ready(Ok(taken))
    }

    fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &[u8],
        _: &CoreCtx,
    ) -> Poll<io::Result<usize>> {
        if self.promise.is_kept() {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        ready!(self.feed.poll_room(cx));
        self.feed.note_produced(bytes.len());
        self.promise.tell(StreamMessage::Piece(Bytes::copy_from_slice(bytes)));
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.promise.keep(StreamMessage::End(None));
        Poll::Ready(Ok(()))
    }

    fn cut(&mut self) {
        self.promise.keep(StreamMessage::Broke);
    }
}
