//! Lingering close of a connection, for both engines: the client must be able to read its last
//! reply.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use base::{Counter, Limit};
use tokio::io::{AsyncWrite, ReadBuf};

use crate::core::CoreCtx;
use crate::guard::{ConnectionPhase, Guard};
use crate::stream::Stream;

/// Ends a connection whose client may still be sending. To close it with bytes unread would be a
/// reset, which may overtake the reply (RFC 9112 9.6). So this side shuts down first, and received
/// bytes are discarded until the client closes or a limit is reached (nginx: `lingering_close`).
/// `most` limits the bytes of a client that only sends.
pub(crate) async fn linger(stream: &mut Stream, guard: &Guard, core: &CoreCtx, most: u64) {
    guard.enter(ConnectionPhase::Linger, core.flow.now().mono_ms);
    if poll_fn(|cx| Pin::new(&mut *stream).poll_shutdown(cx)).await.is_err() {
        return;
    }
    let (mut still_sending, mut left) = (false, most);
    loop {
        let read = poll_fn(|cx| {
            if guard.poll_expired(cx).is_ready() {
                return Poll::Ready(Ok(0));
            }
            let mut scratch = core.scratch.borrow_mut();
            let mut buf = ReadBuf::new(&mut scratch.input);
            stream.poll_discard(cx, &mut buf).map_ok(|()| buf.filled().len())
        });
        match read.await {
            Ok(read @ 1..) => {
                guard.received(read, core.flow.now().mono_ms);
                core.flow.counters.add(Counter::BytesIn, read as u64);
                if !std::mem::replace(&mut still_sending, true) {
                    core.flow.counters.inc(Counter::Lingers);
                }
                left = left.saturating_sub(read as u64);
                if left == 0 {
                    core.flow.counters.limit(Limit::DrainBytes);
                    return;
                }
            }
            _ => return,
        }
    }
}
