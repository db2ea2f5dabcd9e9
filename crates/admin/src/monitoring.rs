//! Listeners for one purpose each, on addresses of any interface: for kubelets and balancers, which
//! ask for health, and for Prometheus.
//!
//! They answer their part of the table and nothing else. Health is for everyone. Figures are for
//! clients with a token or a certificate.

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
use crate::listen::PAUSE;
use crate::routes::RouteSet;
use crate::tokens::Tokens;

/// The proof that clients must show to be told figures.
#[derive(Clone)]
pub struct MetricsAuthentication {
    tokens: Option<Arc<Tokens>>,
    acceptor: Option<TlsAcceptor>,
    /// Handshakes end well only with clients that have a good certificate.
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
    /// One of `tokens` is wanted, over plain TCP.
    pub fn plain(tokens: Arc<Tokens>) -> Self {
        Self { tokens: Some(tokens), acceptor: None, certified: false }
    }

    /// Returns true if clients speak TLS.
    pub fn is_secure(&self) -> bool {
        self.acceptor.is_some()
    }

    /// One of `tokens` is wanted, if there are any, over TLS that is accepted by `acceptor`.
    /// `certified` says that its handshakes end well only with clients that have a good
    /// certificate. Without that and without tokens nobody is told anything.
    pub fn secure(
        tokens: Option<Arc<Tokens>>,
        acceptor: impl Into<TlsAcceptor>,
        certified: bool,
    ) -> Self {
        Self { tokens, acceptor: Some(acceptor.into()), certified }
    }
}

/// Has questions about health answered that reach `listener`, until the runtime ends.
pub async fn serve_health<A: Api>(api: Arc<A>, listener: TcpListener) {
    let (names, audit) = (HostAllowlist::any(), Audit::default());
    let part = RouteSet::Health;
    let desk =
        Arc::new(ListenerState { api, names, tokens: None, audit, open_metrics: false, part });
    let lobby = ConnectionLimiter::new();
    loop {
        let (stream, peer) = accept(&listener).await;
        let talk = |place| converse(Arc::clone(&desk), stream, peer, place, pending());
        admit(&desk, &lobby, talk);
    }
}

/// The same for figures, on the `terms` of the moment. A connection that began on others ends with
/// the answer under way.
pub async fn serve_metrics<A: Api>(
    api: Arc<A>,
    listener: TcpListener,
    terms: watch::Receiver<Arc<MetricsAuthentication>>,
) {
    let lobby = ConnectionLimiter::new();
    loop {
        let (stream, peer) = accept(&listener).await;
        let mut next = terms.clone();
        let terms = Arc::clone(&next.borrow_and_update());
        let desk = Arc::new(ListenerState {
            api: Arc::clone(&api),
            names: HostAllowlist::any(),
            tokens: terms.tokens.clone(),
            audit: Audit::default(),
            open_metrics: terms.certified && terms.tokens.is_none(),
            part: RouteSet::Metrics,
        });
        let own = Arc::clone(&desk);
        let talk = |place| async move {
            let changed = async move {
                if next.changed().await.is_err() {
                    pending::<()>().await;
                }
            };
            match &terms.acceptor {
                None => converse(own, stream, peer, place, changed).await,
                Some(acceptor) => {
                    let Some(stream) = shake(&*own, acceptor, stream).await else { return };
                    if terms.certified {
                        // Where too many are known already, it may still be asked to leave.
                        _ = place.mark_authenticated(own.connections());
                    }
                    converse(own, stream, peer, place, changed).await;
                }
            }
        };
        admit(&desk, &lobby, talk);
    }
}

/// A connection, whenever there is the next.
async fn accept(listener: &TcpListener) -> (TcpStream, AdminPeer) {
    loop {
        match listener.accept().await {
            Ok((stream, from)) => return (stream, AdminPeer::Address(from.ip().to_canonical())),
            Err(_) => rt::time::sleep(PAUSE).await,
        }
    }
}

/// Talks to a client while it may stay. The oldest that has shown nothing leaves for the next.
fn admit<A: Api, T: Future<Output = ()> + Send + 'static>(
    desk: &Arc<ListenerState<A>>,
    lobby: &Arc<ConnectionLimiter>,
    talk: impl FnOnce(Arc<ConnectionPermit>) -> T,
) {
    let (place, leave, is_full) = lobby.enter(desk.connections());
    if is_full {
        desk.api.count_limit(desk.part.connections());
    }
    let talk = talk(Arc::new(place));
    rt::spawn(async move {
        tokio::select! {
            () = talk => {}
            () = leave.evicted() => {}
        }
    });
}

/// The stream behind a handshake; `None` if that did not end well, or in time.
async fn shake<A: Api>(
    desk: &ListenerState<A>,
    acceptor: &TlsAcceptor,
    stream: TcpStream,
) -> Option<tokio_rustls::server::TlsStream<TcpStream>> {
    let patience = Duration::from_millis(desk.api.limits().admin_timeout);
    match timeout(patience, acceptor.accept(stream)).await {
        Ok(shaken) => {
            let counter = match &shaken {
                Ok(_) => Counter::TlsHandshakes,
                Err(_) => Counter::TlsFailures,
            };
            desk.api.count(counter);
            shaken.ok()
        }
        Err(_) => {
            desk.api.count_limit(Limit::AdminTimeout);
            None
        }
    }
}
