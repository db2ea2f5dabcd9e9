//! Monitoring: listeners on any address for kubelets and balancers, which ask for health, and for
//! Prometheus.
//!
//! They must serve only their rows of the table. Health is public. Metrics need a token or a client
//! certificate.

use std::fmt;
use std::future::{Future, pending};
use std::sync::Arc;
use std::time::Duration;

use base::{Counter, Limit};
use rt::time::timeout;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use crate::api::{AdminPeer, Api};
use crate::audit::Audit;
use crate::connection::converse;
use crate::connection_limiter::{ConnectionLimiter, ConnectionPermit};
use crate::cross_site_checks::HostAllowlist;
use crate::http1::ListenerState;
use crate::listen::{PAUSE, or_handed_over};
use crate::routes::RouteSet;
use crate::tokens::Tokens;

/// The authentication of metrics clients.
#[derive(Clone)]
pub struct MetricsAuthentication {
    tokens: Option<Arc<Tokens>>,
    acceptor: Option<TlsAcceptor>,
    /// Handshakes succeed only with a valid client certificate.
    certified: bool,
}

impl fmt::Debug for MetricsAuthentication {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tokens, acceptor, certified } = self;
        f.debug_struct("Terms")
            .field("token", &tokens.is_some())
            .field("tls", &acceptor.is_some())
            .field("certified", certified)
            .finish()
    }
}

impl MetricsAuthentication {
    /// Requires one of `tokens`, over plain TCP.
    pub fn plain(tokens: Arc<Tokens>) -> Self {
        Self { tokens: Some(tokens), acceptor: None, certified: false }
    }

    /// Returns true if clients speak TLS.
    pub fn is_secure(&self) -> bool {
        self.acceptor.is_some()
    }

    /// Requires one of `tokens`, if given, over TLS of `acceptor`. `certified` states that its
    /// handshakes succeed only with a valid client certificate. Without either no client gets
    /// metrics.
    pub fn secure(
        tokens: Option<Arc<Tokens>>,
        acceptor: impl Into<TlsAcceptor>,
        certified: bool,
    ) -> Self {
        Self { tokens, acceptor: Some(acceptor.into()), certified }
    }
}

/// Serves health to clients of `listener` until the runtime ends.
pub async fn serve_health<A: Api>(api: Arc<A>, listener: TcpListener) {
    let (names, audit) = (HostAllowlist::any(), Audit::default());
    let part = RouteSet::Health;
    let state =
        Arc::new(ListenerState { api, names, tokens: None, audit, open_metrics: false, part });
    let limiter = ConnectionLimiter::new();
    while let Some((stream, peer)) = or_handed_over(&*state.api, accept(&listener)).await {
        let own = Arc::clone(&state);
        let talk = |permit| async move {
            let api = Arc::clone(&own.api);
            converse(own, stream, peer, permit, api.handed_over()).await;
        };
        admit(&state, &limiter, talk);
    }
}

/// Serves metrics with the current `terms`. A connection that began with other terms ends after its
/// current response.
pub async fn serve_metrics<A: Api>(
    api: Arc<A>,
    listener: TcpListener,
    terms: watch::Receiver<Arc<MetricsAuthentication>>,
) {
    let limiter = ConnectionLimiter::new();
    while let Some((stream, peer)) = or_handed_over(&*api, accept(&listener)).await {
        let mut next = terms.clone();
        let terms = Arc::clone(&next.borrow_and_update());
        let state = Arc::new(ListenerState {
            api: Arc::clone(&api),
            names: HostAllowlist::any(),
            tokens: terms.tokens.clone(),
            audit: Audit::default(),
            open_metrics: terms.certified && terms.tokens.is_none(),
            part: RouteSet::Metrics,
        });
        let own = Arc::clone(&state);
        let last = Arc::clone(&api);
        let talk = |permit| async move {
            let changed = async move {
                let changed = async {
                    if next.changed().await.is_err() {
                        pending::<()>().await;
                    }
                };
                _ = or_handed_over(&*last, changed).await;
            };
            match &terms.acceptor {
                None => converse(own, stream, peer, permit, changed).await,
                Some(acceptor) => {
                    let Some(stream) = shake(&*own, acceptor, stream).await else { return };
                    if terms.certified {
                        // At the limit of authenticated connections it may still be evicted.
                        _ = permit.mark_authenticated(own.connections());
                    }
                    converse(own, stream, peer, permit, changed).await;
                }
            }
        };
        admit(&state, &limiter, talk);
    }
}

/// Accepts the next connection.
async fn accept(listener: &TcpListener) -> (TcpStream, AdminPeer) {
    loop {
        match listener.accept().await {
            Ok((stream, from)) => return (stream, AdminPeer::Address(from.ip().to_canonical())),
            Err(_) => rt::time::sleep(PAUSE).await,
        }
    }
}

/// Serves a client until it ends or is evicted.
fn admit<A: Api, T: Future<Output = ()> + Send + 'static>(
    state: &Arc<ListenerState<A>>,
    limiter: &Arc<ConnectionLimiter>,
    talk: impl FnOnce(Arc<ConnectionPermit>) -> T,
) {
    let (permit, eviction, is_full) = limiter.enter(state.connections());
    if is_full {
        state.api.count_limit(state.part.connections());
    }
    let talk = talk(Arc::new(permit));
    rt::spawn(async move {
        tokio::select! {
            () = talk => {}
            () = eviction.evicted() => {}
        }
    });
}

/// The stream behind a TLS handshake; `None` after a failure or a timeout.
async fn shake<A: Api>(
    state: &ListenerState<A>,
    acceptor: &TlsAcceptor,
    stream: TcpStream,
) -> Option<tokio_rustls::server::TlsStream<TcpStream>> {
    let patience = Duration::from_millis(state.api.limits().admin_timeout);
    match timeout(patience, acceptor.accept(stream)).await {
        Ok(shaken) => {
            let counter = match &shaken {
                Ok(_) => Counter::TlsHandshakes,
                Err(_) => Counter::TlsFailures,
            };
            state.api.count(counter);
            shaken.ok()
        }
        Err(_) => {
            state.api.count_limit(Limit::AdminTimeout);
            None
        }
    }
}
