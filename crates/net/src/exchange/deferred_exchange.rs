//! Deferred exchange: a reply that is awaited and sent while the request's body is received. A
//! truncated body must never be sent as complete.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use base::Account;
use bytes::Bytes;
use cache::{HeldTrailers, Reader};
use flow::{
    ClientEnds, Interims, Owner, Reply, ReplyBody, RequestConnection, WaitingRequest, pages,
};
use message::{Status, Version};

use super::body::broke_off;
use super::engine::{Engine, ExchangeAbort};
use super::note::DeferredRequest;
use crate::connection_counts::Entry;
use crate::core::CoreCtx;
use crate::tunnel;

/// The context of one exchange.
pub(crate) struct Exchange<'a> {
    pub(crate) core: &'a CoreCtx,
    pub(crate) deferred: &'a DeferredRequest,
    /// Both ends of the connection.
    pub(crate) ends: Option<ClientEnds>,
    /// The connection's identity as owner of origin connections.
    pub(crate) owner: &'a Owner,
    /// Bytes by which a body in transit may be ahead of its client; 0 for the limit.
    pub(crate) window: u64,
    /// The account that they are charged to.
    pub(crate) account: &'a Arc<Account>,
}

impl Exchange<'_> {
    /// Waits for the reply to the request with body `body`, and sends it.
    pub(crate) async fn answer(
        &self,
        engine: &impl Engine,
        slow: Box<WaitingRequest>,
        body: Option<Reader>,
    ) -> Result<(), ExchangeAbort> {
        let Self { core, deferred, .. } = *self;
        let place = match slow.is_upgrade() {
            true => match tunnel::place(core, deferred.client, &deferred.live.limits) {
                Ok(place) => Some(place),
                Err(limit) => return self.send(engine, tunnel::no_place(limit), None).await,
            },
            false => None,
        };
        // Freed before the body arrives: it is most of an exchange's memory.
        let mut reply =
            Box::pin(self.wait(engine, slow, body)).await.ok_or(ExchangeAbort::Early)?;
        // A successful reply to an extended CONNECT would open the tunnel (RFC 8441 5).
        if place.is_some()
            && deferred.request.version >= Version::Http2
            && reply.status.code() / 100 == 2
            && !matches!(reply.body, ReplyBody::Tunnel(_))
        {
            let reason = "The origin did not switch protocols.";
            reply = pages::refused(Status::BAD_GATEWAY, reason);
        }
        self.send(engine, reply, place).await
    }

    /// Waits for the reply; `None` if the client has left.
    async fn wait(
        &self,
        engine: &impl Engine,
        slow: Box<WaitingRequest>,
        body: Option<Reader>,
    ) -> Option<Reply> {
        if let Some(refusal) = engine.refusal() {
            return Some(refusal);
        }
        let Self { core, deferred, ends, owner, window, account } = *self;
        let interims = Rc::<Interims>::default();
        let (known, owner) = (Some(&interims), Some(owner));
        let front = RequestConnection { interims: known, ends, window, account, owner };
        let mut run = pin!(slow.run(&core.flow, &deferred.request, body, front));
        let waiting = poll_fn(|cx| {
            let done = run.as_mut().poll(cx);
            while let Poll::Ready(response) = interims.poll_take(cx) {
                engine.interim(response);
            }
            done
        });
        let reply = watched(engine, pin!(waiting)).await?;
        Some(engine.refusal().unwrap_or(reply))
    }

    /// Sends `reply` while the request's body may still be received. A reply that opens a tunnel
    /// takes `place`.
    pub(crate) async fn send(
        &self,
        engine: &impl Engine,
        mut reply: Reply,
        place: Option<Entry>,
    ) -> Result<(), ExchangeAbort> {
        reply.answer_to(&self.deferred.request);
        match std::mem::replace(&mut reply.body, ReplyBody::None) {
            ReplyBody::Stream { mut reader, length } => {
                reader.hold_for(self.account);
                let coming = ArrivingBody { reader, left: length };
                let broken = |is_starved| broke_off(self.deferred, is_starved);
                let streaming = pin!(stream(engine, reply, coming, broken));
                // A client may leave while the next bytes are awaited.
                watched(engine, streaming).await.unwrap_or(Err(ExchangeAbort::Late))
            }
            ReplyBody::Tunnel(origin) => {
                self.deferred.keep_for_tunnel();
                engine.tunnel(reply, origin, place).await
            }
            body => {
                reply.body = body;
                let mut sending = pin!(engine.whole(reply));
                poll_fn(|cx| poll_beside(engine, cx, sending.as_mut())).await
            }
        }
    }
}

/// Polls `main` while the request's body is received.
fn poll_beside<T>(
    engine: &impl Engine,
    cx: &mut Context<'_>,
    main: Pin<&mut impl Future<Output = T>>,
) -> Poll<T> {
    engine.poll_body(cx);
    main.poll(cx)
}

/// Awaits `main` while the request's body is received; `None` if the client leaves first.
async fn watched<T>(
    engine: &impl Engine,
    mut main: Pin<&mut impl Future<Output = T>>,
) -> Option<T> {
    poll_fn(|cx| match poll_beside(engine, cx, main.as_mut()) {
        Poll::Ready(done) => Poll::Ready(Some(done)),
        Poll::Pending => engine.poll_gone(cx).map(|()| None),
    })
    .await
}

/// Sends a body as it arrives. One that fails before its first byte is replaced by the page that
/// `broken` makes; its argument is true if memory was lacking.
async fn stream(
    engine: &impl Engine,
    reply: Reply,
    mut coming: ArrivingBody,
    broken: impl FnOnce(bool) -> Reply,
) -> Result<(), ExchangeAbort> {
    let (making, length) = (coming.reader.making(), coming.left);
    let mut next = match engine.is_open(making) {
        true => coming.at_once().await,
        false => None,
    };
    if let Some(BodyEvent::Broken) = next {
        return engine.whole(broken(coming.reader.is_starved())).await;
    }
    let begun = engine.begin(reply, length, making);
    loop {
        if next.is_none() {
            // Bytes without space stay in the window, where they are charged.
            if !coming.is_spent() {
                poll_fn(|cx| engine.poll_room(begun, cx)).await;
            }
            next = coming.at_once().await;
        }
        let come = match next.take() {
            Some(come) => come,
            None => {
                engine.flush(begun).await?;
                poll_fn(|cx| coming.poll_next(cx)).await
            }
        };
        match come {
            BodyEvent::Piece(data) => engine.piece(begun, data).await?,
            BodyEvent::All(trailed) => return engine.end(begun, trailed).await,
            BodyEvent::Broken => {
                // The bytes before it leave first.
                engine.flush(begun).await?;
                return Err(ExchangeAbort::Cut);
            }
        }
    }
}

/// A body that is still arriving.
struct ArrivingBody {
    reader: Reader,
    /// Bytes that are still to come, if the length is known.
    left: Option<u64>,
}

/// The next event of an [`ArrivingBody`].
enum BodyEvent {
    Piece(Bytes),
    /// The body is complete.
    All(Option<Box<HeldTrailers>>),
    /// The body has ended early.
    Broken,
}

impl ArrivingBody {
    /// Returns true if only the end is left.
    fn is_spent(&self) -> bool {
        self.left == Some(0) || self.reader.is_spent()
    }

    /// The next event, if it needs no waiting.
    async fn at_once(&mut self) -> Option<BodyEvent> {
        poll_fn(|cx| match self.poll_next(cx) {
            Poll::Pending => Poll::Ready(None),
            come => come.map(Some),
        })
        .await
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<BodyEvent> {
        if self.left == Some(0) {
            return Poll::Ready(BodyEvent::All(self.reader.take_trailers()));
        }
        Poll::Ready(match ready!(self.reader.poll_next(cx)) {
            Ok(Some(mut data)) => {
                if let Some(left) = &mut self.left {
                    data.truncate((*left).min(data.len() as u64) as usize);
                    *left -= data.len() as u64;
                }
                BodyEvent::Piece(data)
            }
            Ok(None) if self.left.is_none() => BodyEvent::All(self.reader.take_trailers()),
            Ok(None) | Err(_) => BodyEvent::Broken,
        })
    }
}

#[cfg(test)]
mod tests;
