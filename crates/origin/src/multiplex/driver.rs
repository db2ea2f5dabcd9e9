//! Driver: the task that moves the bytes of one multiplexed connection.

use std::future::{Future as _, poll_fn};
use std::io::IoSlice;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use rt::time::{Sleep, sleep};

use super::connection::{ConnectionOpening, MultiplexedConnection};
use super::failure::StreamFailure;
use super::pool::OpeningGuard;
use crate::pool::{CorePoolState, Workspace};
use crate::server::Server;
use crate::stream::Stream;
use crate::upstream_connection::UpstreamConnection;

/// Reads in one turn, after which other tasks have theirs.
const TURNS: usize = 32;
/// The longest time of an alarm.
const LONGEST_MS: u64 = 86_400_000;

/// The request's part in the opening of a connection.
pub(crate) struct MultiplexOpening {
    /// Bytes in front of the protocol's own.
    pub(crate) first: Vec<u8>,
    /// The time in which the server must send its settings.
    pub(crate) greeting_ms: u64,
    pub(crate) guard: OpeningGuard,
}

/// Adds a multiplexed connection to `server` over `link`, and drives it.
pub(crate) fn connect(
    core: &Rc<CorePoolState>,
    server: &Arc<Server>,
    link: UpstreamConnection,
    opening: MultiplexOpening,
) -> Rc<MultiplexedConnection> {
    let MultiplexOpening { first, greeting_ms, guard } = opening;
    let connection = guard.opened(ConnectionOpening {
        server: Arc::clone(server),
        peer: link.peer,
        first,
        settings: core.stream_settings,
        greeting_ms,
        silence_ms: core.silence_ms,
        interim_responses: core.interim_responses,
        counters: Arc::clone(&core.counters),
    });
    rt::spawn_local(drive(Rc::clone(&connection), Rc::clone(core), link.stream));
    connection
}

/// Moves the bytes of `connection` until it ends.
async fn drive(connection: Rc<MultiplexedConnection>, core: Rc<CorePoolState>, mut stream: Stream) {
    let mut work = Workspace::lend(&core);
    let mut clock = None;
    // A sign of life that has come is read before its time is up.
    let failure = poll_fn(|cx| match poll_drive(&connection, cx, &mut stream, &mut work) {
        Poll::Ready(failure) => Poll::Ready(failure),
        Poll::Pending => poll_clock(&connection, cx, &mut clock),
    })
    .await;
    connection.end(failure);
    // The reason of the end, and bytes that only TLS holds.
    _ = connection.write(|bytes| {
        let mut cx = Context::from_waker(std::task::Waker::noop());
        stream.poll_write_vectored(&mut cx, &[IoSlice::new(bytes)])
    });
    _ = poll_fn(|cx| Poll::Ready(stream.poll_shutdown(cx))).await;
}

/// A timer, and its time in monotonic milliseconds.
type Alarm = (Pin<Box<Sleep>>, u64);

/// Takes the steps that are due, and waits for the next; ready if the connection has failed. An
/// alarm may be early: most are put off by what the server says.
fn poll_clock(
    connection: &MultiplexedConnection,
    cx: &mut Context<'_>,
    alarm: &mut Option<Alarm>,
) -> Poll<StreamFailure> {
    loop {
        let now_ms = rt::now().mono_ms;
        let due_ms = match connection.tick(now_ms) {
            Ok(Some(due_ms)) => due_ms,
            Ok(None) => return Poll::Pending,
            Err(failure) => return Poll::Ready(failure),
        };
        if alarm.as_ref().is_none_or(|(_, at_ms)| *at_ms > due_ms) {
            let wait = Duration::from_millis(due_ms.saturating_sub(now_ms).clamp(1, LONGEST_MS));
            *alarm = Some((Box::pin(sleep(wait)), due_ms));
        }
        if let Some((timer, _)) = alarm
            && timer.as_mut().poll(cx).is_pending()
        {
            return Poll::Pending;
        }
        *alarm = None;
    }
}

/// Writes and reads as much as the socket takes and has; ready at the connection's end.
fn poll_drive(
    connection: &MultiplexedConnection,
    cx: &mut Context<'_>,
    stream: &mut Stream,
    work: &mut Workspace,
) -> Poll<StreamFailure> {
    connection.set_driver(cx.waker());
    for _ in 0..TURNS {
        let wrote =
            connection.write(|bytes| stream.poll_write_vectored(cx, &[IoSlice::new(bytes)]));
        let is_full = match wrote {
            Ok(is_full) => is_full,
            Err(error) => return Poll::Ready(StreamFailure::Io(error.kind())),
        };
        if connection.is_over() {
            return Poll::Ready(StreamFailure::Closed);
        }
        if is_full {
            // What the server makes this end say must leave before more is read.
            return Poll::Pending;
        }
        match work.poll_fill(cx, stream, usize::MAX) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Ok(0)) => return Poll::Ready(StreamFailure::Closed),
            Poll::Ready(Err(error)) => return Poll::Ready(StreamFailure::Io(error.kind())),
            Poll::Ready(Ok(_)) => match connection.read(work.unread()) {
                Ok(used) => {
                    work.start += used;
                    work.rest();
                }
                Err(failure) => return Poll::Ready(failure),
            },
        }
    }
    cx.waker().wake_by_ref();
    Poll::Pending
}
