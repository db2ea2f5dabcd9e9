//! One request's task: a stream's side of its exchange, which says to the connection what is to be
//! sent.

use std::cell::{OnceCell, RefCell};
use std::io;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use base::Account;
use bytes::{Buf, Bytes};
use cache::{Making, Reader, Trailed};
use files::Opened;
use flow::{ClientEnds, Owner, Part, Reply, ReplyBody, Slow, Tunnel};
use message::{HeaderId, Response, Status};

use super::mail::{Feed, Item, Promise};
use crate::core::CoreCtx;
use crate::exchange::{Asked, Broken, Engine, Exchange};
use crate::file;
use crate::guard::Guard;
use crate::peers::Entry;
use crate::segments::copy_range;
use crate::tunnel::{Carrier, Run, Side};

/// Bytes of a file read at once.
const FILE_BYTES: u64 = 16 * 1024;

/// The context of a task whose request must wait.
pub(crate) struct Task {
    pub(crate) core: Rc<CoreCtx>,
    pub(crate) asked: Rc<Asked>,
    pub(crate) ends: Option<ClientEnds>,
    /// The connection as owner of others.
    pub(crate) owner: Owner,
    /// Bytes that a passing body may be ahead of its client.
    pub(crate) window: u64,
    /// For whom they are held.
    pub(crate) account: Arc<Account>,
    /// The client's windows let its answer through, as it begins.
    pub(crate) is_open: bool,
    /// Broken, it tells that the exchange is.
    pub(crate) promise: Promise,
    pub(crate) feed: OnceCell<Rc<Feed>>,
    /// Bytes from the client that are another protocol's, if that is agreed on.
    pub(crate) up: RefCell<Option<Reader>>,
}

impl Task {
    /// Waits for the reply to a request and hands it over. `body` is the request's.
    pub(crate) async fn answer(self, slow: Box<Slow>, body: Option<Reader>) {
        _ = self.exchange().answer(&self, slow, body).await;
    }

    /// Hands a reply over whose body is not all there yet, or not where it could be sent from.
    pub(crate) async fn hand_over(self, reply: Reply) {
        _ = self.exchange().send(&self, reply, None).await;
    }

    fn exchange(&self) -> Exchange<'_> {
        let Self { core, asked, ends, owner, window, account, .. } = self;
        Exchange { core, asked, ends: *ends, owner, window: *window, account }
    }

    /// Hands a piece over when there is room for it.
    async fn give_on(&self, feed: &Feed, bytes: Bytes) {
        feed.room().await;
        self.give(feed, bytes);
    }

    fn give(&self, feed: &Feed, bytes: Bytes) {
        feed.gave(bytes.len());
        self.promise.tell(Item::Piece(bytes));
    }

    /// Hands over part of a file.
    async fn file(
        &self,
        feed: &Feed,
        opened: &Arc<Opened>,
        range: Range<u64>,
    ) -> Result<(), Broken> {
        let mut at = range.start;
        while at < range.end {
            feed.room().await;
            let piece = at..range.end.min(at + FILE_BYTES);
            let read = file::read(opened, piece, &self.core).await;
            let bytes = read.ok().filter(|bytes| !bytes.is_empty()).ok_or(Broken::Cut)?;
            at += bytes.len() as u64;
            self.give_on(feed, bytes.into()).await;
        }
        Ok(())
    }
}

impl Engine for Task {
    type Begun = Rc<Feed>;

    fn interim(&self, response: Response) {
        self.promise.tell(Item::Interim(Box::new(response)));
    }

    /// Nothing is made that the client's windows do not let through.
    fn is_open(&self, making: Making) -> bool {
        match making {
            Making::None => true,
            Making::OfWhole => false,
            Making::OfComing => self.is_open,
        }
    }

    fn begin(&self, reply: Reply, length: Option<u64>, making: Making) -> &Rc<Feed> {
        let feed = self.feed.get_or_init(|| Rc::new(Feed::of(making)));
        let (reply, own) = (Box::new(reply), Some(Rc::clone(feed)));
        self.promise.tell(Item::Reply { reply, feed: own, length });
        feed
    }

    fn poll_room(&self, feed: &Rc<Feed>, cx: &mut Context<'_>) -> Poll<()> {
        feed.poll_room(cx)
    }

    async fn piece(&self, feed: &Rc<Feed>, data: Bytes) -> Result<(), Broken> {
        self.give(feed, data);
        Ok(())
    }

    async fn end(&self, _: &Rc<Feed>, trailed: Option<Box<Trailed>>) -> Result<(), Broken> {
        self.promise.keep(Item::End(trailed));
        Ok(())
    }

    async fn whole(&self, mut reply: Reply) -> Result<(), Broken> {
        let length = reply.length();
        let parts = match std::mem::replace(&mut reply.body, ReplyBody::None) {
            ReplyBody::Parts(parts) if parts.has_file() => parts,
            body => {
                reply.body = body;
                self.promise.keep(Item::Reply { reply: Box::new(reply), feed: None, length: None });
                return Ok(());
            }
        };
        let feed = self.begin(reply, length, Making::None);
        for part in parts {
            match part {
                Part::Bytes(bytes) => self.give_on(feed, bytes).await,
                Part::Stored(object, range) => {
                    let mut bytes = Vec::new();
                    copy_range(&object, range, &mut bytes);
                    self.give_on(feed, bytes.into()).await;
                }
                Part::File(opened, range) => self.file(feed, &opened, range).await?,
            }
        }
        self.end(feed, None).await
    }

    async fn tunnel(
        &self,
        mut reply: Reply,
        origin: Box<Tunnel>,
        place: Option<Entry>,
    ) -> Result<(), Broken> {
        // What says yes in HTTP/1 is a plain success here (RFC 8441 5).
        reply.status = Status::OK;
        if let flow::reply::Head::Owned(response) = &mut reply.head {
            response.headers.remove(HeaderId::Upgrade);
            response.headers.remove_named(b"Sec-WebSocket-Accept");
        }
        let Self { core, account, promise, .. } = self;
        let feed = self.begin(reply, None, Making::None);
        let up = self.up.take().ok_or(Broken::Early)?;
        let guard = Guard::new(core.flow.now().mono_ms);
        let seat = core.sweep.join(Rc::clone(&guard));
        let _seat = Seat { core, seat };
        let carrier = Carrier { core, guard: &guard, account };
        let mut side = StreamSide { promise, up, rest: Bytes::new(), feed };
        let run = Run::new(carrier, origin, Vec::new(), place);
        run.carry(&RefCell::new(&mut side)).await;
        // A limit, or the end of a drain: in order, as the other side.
        self.end(feed, None).await
    }
}

/// A place in the sweep, given back however the task ends.
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
    feed: &'a Feed,
}

impl Side for StreamSide<'_> {
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
        self.feed.gave(bytes.len());
        self.promise.tell(Item::Piece(Bytes::copy_from_slice(bytes)));
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.promise.keep(Item::End(None));
        Poll::Ready(Ok(()))
    }

    fn cut(&mut self) {
        self.promise.keep(Item::Broke);
    }
}
