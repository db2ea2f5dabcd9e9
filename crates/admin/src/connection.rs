//! A connection: its requests, one after the other, and their limits.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use base::Limit;
use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::api::{AdminPeer, Api};
use crate::connection_limiter::ConnectionPermit;
use crate::http1::ListenerState;
use crate::routes::RouteSet;
use crate::write_timeout::WriteTimeoutStream;

/// The smallest limit of a head: the library accepts no lower one.
const HEAD_BYTES_MIN: u64 = 8 << 10;

/// Fields of a request's head.
const FIELDS_MAX: usize = 100;

/// Serves a connection's requests until it ends. Once `last` is over, the current response is the
/// last.
pub(crate) async fn converse<A: Api>(
    state: Arc<ListenerState<A>>,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send,
    peer: AdminPeer,
    permit: Arc<ConnectionPermit>,
    last: impl Future<Output = ()>,
) {
    let limits = state.api.limits();
    let patience = Duration::from_millis(limits.admin_timeout);
    let head_bytes = limits.admin_head_bytes.max(HEAD_BYTES_MIN);
    // True once something has arrived since the last response.
    let received = Arc::new(AtomicBool::new(false));
    let service = service_fn(|mut request: Request<Incoming>| {
        let (state, received) = (Arc::clone(&state), Arc::clone(&received));
        request.extensions_mut().insert(Arc::clone(&permit));
        async move {
            let answer = state.answer(peer, request).await;
            received.store(false, Ordering::Relaxed);
            answer
        }
    });
    let stream = WriteTimeoutStream::new(stream, patience, Arc::clone(&received));
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        // A client that has sent its request and closed its end gets a response.
        .half_close(true)
        // Every client may connect to a health port: for the next request it connects again.
        .keep_alive(state.part != RouteSet::Health)
        .header_read_timeout(patience)
        .max_buf_size(usize::try_from(head_bytes).unwrap_or(usize::MAX))
        .max_headers(FIELDS_MAX)
        .serve_connection(TokioIo::new(stream), service);
    let mut served = pin!(served);
    let served = tokio::select! {
        // Requests that arrived meanwhile get no response.
        biased;
        () = last => {
            served.as_mut().graceful_shutdown();
            served.await
        }
        served = served.as_mut() => served,
    };
    // The end of an idle connection is no timeout. Other failures are the client's: it has its
    // response, or is gone.
    if let Err(error) = served {
        if error.is_timeout() && received.load(Ordering::Relaxed) {
            state.api.count_limit(Limit::AdminTimeout);
        } else if error.is_parse_too_large() {
            state.api.count_limit(Limit::AdminHeadBytes);
        }
    }
}
