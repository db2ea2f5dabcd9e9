//! Driver: the task that moves the bytes of one multiplexed connection.

use std::future::poll_fn;
use std::io::IoSlice;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::connection::{ConnectionOpening, MultiplexedConnection, StreamFailure};
use super::pool::OpeningGuard;
use crate::pool::{CorePoolState, Workspace};
use crate::server::Server;
use crate::stream::Stream;
use crate::upstream_connection::UpstreamConnection;

/// Reads in one turn, after which other tasks have theirs.
const TURNS: usize = 32;

/// Adds a multiplexed connection to `server` over `link`, and drives it. `first` comes before the
/// protocol's own bytes.
pub(crate) fn connect(
    core: &Rc<CorePoolState>,
    server: &Arc<Server>,
    link: UpstreamConnection,
    first: Vec<u8>,
    guard: OpeningGuard,
) -> Rc<MultiplexedConnection> {
    let connection = guard.opened(ConnectionOpening {
        server: Arc::clone(server),
        peer: link.peer,
        first,
        settings: core.stream_settings,
        interim_responses: core.interim_responses,
        counters: Arc::clone(&core.counters),
    });
    rt::spawn_local(drive(Rc::clone(&connection), Rc::clone(core), link.stream));
    connection
}

/// Moves the bytes of `connection` until it ends.
async fn drive(connection: Rc<MultiplexedConnection>, core: Rc<CorePoolState>, mut stream: Stream) {
    let mut work = Workspace::lend(&core);
    let failure = poll_fn(|cx| poll_drive(&connection, cx, &mut stream, &mut work)).await;
    connection.end(failure);
    // The reason of the end, and bytes that only TLS holds.
    _ = connection.write(|bytes| {
        let mut cx = Context::from_waker(std::task::Waker::noop());
        stream.poll_write_vectored(&mut cx, &[IoSlice::new(bytes)])
    });
    _ = poll_fn(|cx| Poll::Ready(stream.poll_shutdown(cx))).await;
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
