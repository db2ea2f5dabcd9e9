//! One request's task: waits for the reply, hands its body over as it comes, or carries a tunnel.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::io;
use std::ops::Range;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use base::Account;
use bytes::{Buf, Bytes};
use cache::{Aborted, Making, Reader};
use files::Opened;
use flow::{ClientEnds, Front, Interims, Owner, Part, Reply, ReplyBody, Slow, Tunnel, pages};
use message::{HeaderId, Status};

use super::lane::Asked;
use super::mail::{Feed, Item, Promise};
use crate::account;
use crate::core::CoreCtx;
use crate::exchange;
use crate::file;
use crate::guard::Guard;
use crate::peers::Entry;
use crate::segments::copy_range;
use crate::tunnel::{self, Carrier, Side};

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
    pub(crate) promise: Promise,
}

impl Task {
    /// Waits for the reply to a request and hands it over. `body` is the request's.
    pub(crate) async fn answer(self, slow: Box<Slow>, body: Option<Reader>) {
        if slow.is_upgrade() {
            return self.upgrade(slow, body).await;
        }
        // Given back before the body comes: it is most of what the task takes.
        let reply = Box::pin(self.reply(slow, body)).await;
        self.hand_over(reply).await;
    }

    /// Waits for the reply, handing over interim responses meanwhile.
    async fn reply(&self, slow: Box<Slow>, body: Option<Reader>) -> Reply {
        let Self { core, asked, ends, owner, window, account, promise, .. } = self;
        let interims = Rc::<Interims>::default();
        let (interims_to, owner) = (Some(&interims), Some(owner));
        let (ends, window) = (*ends, *window);
        let front = Front { interims: interims_to, ends, window, account, owner };
        let mut run = pin!(slow.run(&core.flow, &asked.request, body, front));
        poll_fn(|cx| {
            let done = run.as_mut().poll(cx);
            while let Poll::Ready(response) = interims.poll_take(cx) {
                promise.tell(Item::Interim(Box::new(response)));
            }
            done
        })
        .await
    }

    /// Hands a reply over whose body is not all there yet, or not where it could be sent from.
    pub(crate) async fn hand_over(self, mut reply: Reply) {
        let length = reply.length();
        match std::mem::replace(&mut reply.body, ReplyBody::None) {
            ReplyBody::Stream { reader, .. } => self.stream(reply, reader, length).await,
            ReplyBody::Parts(parts) if parts.has_file() => {
                let feed = self.begin(reply, length);
                for part in parts {
                    match part {
                        Part::Bytes(bytes) => self.piece(&feed, bytes).await,
                        Part::Stored(object, range) => {
                            let mut bytes = Vec::new();
                            copy_range(&object, range, &mut bytes);
                            self.piece(&feed, bytes.into()).await;
                        }
                        Part::File(opened, range) => {
                            if !self.file(&feed, &opened, range).await {
                                return self.promise.keep(Item::Broke);
                            }
                        }
                    }
                }
                self.promise.keep(Item::End(None));
            }
            body => {
                reply.body = body;
                self.promise.keep(Item::Reply { reply: Box::new(reply), feed: None, length: None });
            }
        }
    }

    fn begin(&self, reply: Reply, length: Option<u64>) -> Rc<Feed> {
        self.begin_made(reply, length, Making::None)
    }

    /// Begins a reply whose body comes as `making` says.
    fn begin_made(&self, reply: Reply, length: Option<u64>, making: Making) -> Rc<Feed> {
        let feed = Rc::new(Feed::of(making));
        let (reply, own) = (Box::new(reply), Some(Rc::clone(&feed)));
        self.promise.tell(Item::Reply { reply, feed: own, length });
        feed
    }

    /// Hands a piece over when there is room for it.
    async fn piece(&self, feed: &Feed, bytes: Bytes) {
        feed.room().await;
        self.give(feed, bytes);
    }

    fn give(&self, feed: &Feed, bytes: Bytes) {
        feed.gave(bytes.len());
        self.promise.tell(Item::Piece(bytes));
    }

    /// Hands over part of a file; whether it was all there.
    async fn file(&self, feed: &Feed, opened: &Arc<Opened>, range: Range<u64>) -> bool {
        let mut at = range.start;
        while at < range.end {
            feed.room().await;
            let piece = at..range.end.min(at + FILE_BYTES);
            let Ok(bytes) = file::read(opened, piece, &self.core).await else { return false };
            if bytes.is_empty() {
                return false;
            }
            at += bytes.len() as u64;
            self.piece(feed, bytes.into()).await;
        }
        true
    }

    /// Hands a body over as it comes. A body that fails before its first byte becomes a page that
    /// says so.
    async fn stream(self, reply: Reply, mut reader: Reader, length: Option<u64>) {
        reader.hold_for(&self.account);
        let making = reader.making();
        // Nothing is made that the client's windows do not let through.
        let waits = match making {
            Making::None => false,
            Making::OfWhole => true,
            Making::OfComing => !self.is_open,
        };
        if waits {
            let feed = self.begin_made(reply, length, making);
            return self.go_on(&feed, reader, length, None).await;
        }
        let first = poll_fn(|cx| match reader.poll_next(cx) {
            Poll::Pending => Poll::Ready(None),
            come => come.map(Some),
        });
        let first = match first.await {
            Some(Err(_)) => {
                let page = Box::new(exchange::broke_off(reader.is_starved()));
                return self.promise.keep(Item::Reply { reply: page, feed: None, length: None });
            }
            first => first,
        };
        let feed = self.begin_made(reply, length, making);
        self.go_on(&feed, reader, length, first).await;
    }

    /// Hands over the rest of a body; `next` comes first.
    async fn go_on(
        self,
        feed: &Feed,
        mut reader: Reader,
        length: Option<u64>,
        mut next: Option<Result<Option<Bytes>, Aborted>>,
    ) {
        let mut left = length.unwrap_or(u64::MAX);
        loop {
            let come = match next.take() {
                Some(come) => come,
                None => {
                    // What there is no room for stays in the window, where it counts.
                    if !reader.is_spent() {
                        feed.room().await;
                    }
                    reader.next().await
                }
            };
            match come {
                Ok(Some(mut data)) => {
                    data.truncate(left.min(data.len() as u64) as usize);
                    left -= data.len() as u64;
                    self.give(feed, data);
                    if left == 0 {
                        return self.promise.keep(Item::End(None));
                    }
                }
                Ok(None) if length.is_none() || left == 0 => {
                    return self.promise.keep(Item::End(reader.take_trailers()));
                }
                _ => return,
            }
        }
    }

    /// Waits for the origin to change its protocol, and carries what is spoken from then on.
    async fn upgrade(self, slow: Box<Slow>, up: Option<Reader>) {
        let place = match tunnel::place(&self.core, self.asked.client, &self.asked.live.limits) {
            Ok(place) => place,
            Err(limit) => return self.hand_over(tunnel::no_place(limit)).await,
        };
        let mut reply = Box::pin(self.reply(slow, None)).await;
        let origin = match std::mem::replace(&mut reply.body, ReplyBody::None) {
            ReplyBody::Tunnel(origin) => origin,
            // A success would say that the tunnel is open (RFC 8441 5).
            _ if reply.status.code() / 100 == 2 => {
                let reason = "The origin answered without a change of the protocol.";
                return self.hand_over(pages::refused(Status::BAD_GATEWAY, reason)).await;
            }
            body => {
                reply.body = body;
                return self.hand_over(reply).await;
            }
        };
        // What says yes in HTTP/1 is a plain success here (RFC 8441 5).
        reply.status = Status::OK;
        if let flow::reply::Head::Owned(response) = &mut reply.head {
            response.headers.remove(HeaderId::Upgrade);
            response.headers.remove_named(b"Sec-WebSocket-Accept");
        }
        let feed = self.begin(reply, None);
        let Some(up) = up else { return };
        self.carry(origin, up, feed, place).await;
    }

    async fn carry(self, origin: Box<Tunnel>, up: Reader, feed: Rc<Feed>, place: Entry) {
        let Self { core, asked, account, promise, .. } = self;
        account::keep_for_tunnel(&mut asked.held.borrow_mut(), &asked.request);
        drop(asked);
        let guard = Guard::new(core.flow.now().mono_ms);
        let seat = core.sweep.join(Rc::clone(&guard));
        let _seat = Seat { core: &core, seat };
        let carrier = Carrier { core: &core, guard: &guard, account: &account };
        let mut side = StreamSide { promise: Some(promise), up, rest: Bytes::new(), feed };
        let run = tunnel::Run::new(carrier, origin, Vec::new(), Some(place));
        run.carry(&RefCell::new(&mut side)).await;
        // A limit, or the end of a drain: in order, as the other side.
        if let Some(promise) = side.promise {
            promise.keep(Item::End(None));
        }
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
struct StreamSide {
    promise: Option<Promise>,
    up: Reader,
    rest: Bytes,
    feed: Rc<Feed>,
}

impl Side for StreamSide {
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
        let Some(promise) = &self.promise else {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        };
        ready!(self.feed.poll_room(cx));
        self.feed.gave(bytes.len());
        promise.tell(Item::Piece(Bytes::copy_from_slice(bytes)));
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Some(promise) = self.promise.take() {
            promise.keep(Item::End(None));
        }
        Poll::Ready(Ok(()))
    }

    fn cut(&mut self) {
        // A promise that is not kept says that it broke.
        self.promise = None;
    }
}
