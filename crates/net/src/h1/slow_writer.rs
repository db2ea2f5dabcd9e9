//! Slow writer: writes to a client that may be slow, charges unsent bytes to its account, and is
//! timed by the sweep.

use std::future::poll_fn;
use std::io;
use std::task::Poll;

use base::Limit;

use crate::account::{self, BufferCharge};
use crate::core::CoreCtx;
use crate::guard::Guard;
use crate::segments::Segments;
use crate::stream::{SharedStream, Stream};

/// Writes `segments` completely, noting progress, unless the sweep ends the connection.
pub(super) async fn write_all(
    guard: &Guard,
    core: &CoreCtx,
    stream: &SharedStream<'_>,
    segments: &mut Segments,
) -> io::Result<()> {
    let mut buffered = BufferCharge::default();
    poll_fn(|cx| {
        let mut stream = stream.borrow_mut();
        let (before, wire_before) = (segments.left(), stream.wire_bytes());
        let done = segments.poll_write(cx, &mut **stream, core);
        let wrote = before - segments.left();
        if wrote > 0 || stream.wire_bytes() > wire_before {
            guard.sent(wrote as usize, core.flow.now().mono_ms);
        }
        match done {
            Poll::Pending if !hold_unsent(core, &stream, segments, &mut buffered) => {
                Poll::Ready(Err(io::ErrorKind::OutOfMemory.into()))
            }
            Poll::Pending => {
                if guard.wants_look() {
                    guard.holds(stream.held_by_kernel(), core.flow.now().mono_ms);
                }
                guard.poll_expired(cx).map(|_| Err(io::ErrorKind::TimedOut.into()))
            }
            ready => ready,
        }
    })
    .await
}

/// Charges unsent bytes; false if there is no memory.
fn hold_unsent(
    core: &CoreCtx,
    stream: &Stream,
    segments: &mut Segments,
    buffered: &mut BufferCharge,
) -> bool {
    segments.fit();
    let bytes = segments.kept() + stream.unsent();
    let held = buffered.set(bytes as u64, || account::open(core));
    if held.is_err() {
        core.flow.counters.limit(Limit::ClientMemory);
    }
    held.is_ok()
}
