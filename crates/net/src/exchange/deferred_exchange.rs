//! The course of an exchange whose request is not answered at once: its answer is awaited and sent
//! while the request's body goes up.

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

/// An exchange, as its request is dealt with.
pub(crate) struct Exchange<'a> {
    pub(crate) core: &'a CoreCtx,
    pub(crate) asked: &'a DeferredRequest,
    /// Both ends of the connection.
    pub(crate) ends: Option<ClientEnds>,
    /// The connection as owner of others.
    pub(crate) owner: &'a Owner,
    /// Bytes that a passing body may be ahead of its client; 0 for the limit.
    pub(crate) window: u64,
    /// For whom they are held.
    pub(crate) account: &'a Arc<Account>,
}

impl Exchange<'_> {
    /// Waits for the answer to the request, whose body is `body`, and sends it.
    pub(crate) async fn answer(
        &self,
        engine: &impl Engine,
        slow: Box<WaitingRequest>,
        body: Option<Reader>,
    ) -> Result<(), ExchangeAbort> {
        let Self { core, asked, .. } = *self;
        let place = match slow.is_upgrade() {
            true => match tunnel::place(core, asked.client, &asked.live.limits) {
                Ok(place) => Some(place),
                Err(limit) => return self.send(engine, tunnel::no_place(limit), None).await,
            },
            false => None,
        };
        // Given back before the body comes: it is most of what an exchange takes.
        let mut reply =
            Box::pin(self.wait(engine, slow, body)).await.ok_or(ExchangeAbort::Early)?;
        // There a success would say that the tunnel is open (RFC 8441 5).
        if place.is_some()
            && asked.request.version >= Version::Http2
            && reply.status.code() / 100 == 2
            && !matches!(reply.body, ReplyBody::Tunnel(_))
        {
            let reason = "The origin answered without a change of the protocol.";
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
        let Self { core, asked, ends, owner, window, account } = *self;
        let interims = Rc::<Interims>::default();
        let (known, owner) = (Some(&interims), Some(owner));
        let front = RequestConnection { interims: known, ends, window, account, owner };
        let mut run = pin!(slow.run(&core.flow, &asked.request, body, front));
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

    /// Sends `reply`, the request's body perhaps still on its way. A reply that opens a tunnel does
    /// so at `place`.
    pub(crate) async fn send(
        &self,
        engine: &impl Engine,
        mut reply: Reply,
        place: Option<Entry>,
    ) -> Result<(), ExchangeAbort> {
        reply.answer_to(&self.asked.request);
        match std::mem::replace(&mut reply.body, ReplyBody::None) {
            ReplyBody::Stream { mut reader, length } => {
                reader.hold_for(self.account);
                let streaming = pin!(stream(engine, reply, ArrivingBody { reader, left: length }));
                // Whoever follows what still comes may leave while there is nothing to send.
                watched(engine, streaming).await.unwrap_or(Err(ExchangeAbort::Late))
            }
            ReplyBody::Tunnel(origin) => {
                self.asked.keep_for_tunnel();
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

/// Polls `main` while the request's body is moved on.
fn poll_beside<T>(
    engine: &impl Engine,
    cx: &mut Context<'_>,
    main: Pin<&mut impl Future<Output = T>>,
) -> Poll<T> {
    engine.poll_body(cx);
    main.poll(cx)
}

/// Awaits `main` while the request's body is moved on; `None` if the client leaves before it is
/// done.
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

/// Sends a body as it comes. One that fails before its first byte becomes a page that says so.
async fn stream(
    engine: &impl Engine,
    reply: Reply,
    mut coming: ArrivingBody,
) -> Result<(), ExchangeAbort> {
    let (making, length) = (coming.reader.making(), coming.left);
    let mut next = match engine.is_open(making) {
        true => coming.at_once().await,
        false => None,
    };
    if let Some(BodyEvent::Broken) = next {
        return engine.whole(broke_off(coming.reader.is_starved())).await;
    }
    let begun = engine.begin(reply, length, making);
    loop {
        if next.is_none() {
            // What there is no room for stays in the window, where it counts.
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
                // What came before it leaves first.
                engine.flush(begun).await?;
                return Err(ExchangeAbort::Cut);
            }
        }
    }
}

/// A body that is still coming.
struct ArrivingBody {
    reader: Reader,
    /// Bytes that are still to come, if it was said how many.
    left: Option<u64>,
}

/// The next part of [`Coming`].
enum BodyEvent {
    Piece(Bytes),
    /// The body is whole.
    All(Option<Box<HeldTrailers>>),
    /// Nothing more comes, and what came is not whole.
    Broken,
}

impl ArrivingBody {
    /// Returns true if only the end is left.
    fn is_spent(&self) -> bool {
        self.left == Some(0) || self.reader.is_spent()
    }

    /// The next part, if it is there.
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
