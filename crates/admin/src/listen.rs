//! Listeners: the unix socket, and addresses of this machine.

use std::fmt;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base::Limit;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};

use crate::api::{AdminPeer, Api};
use crate::audit::Audit;
use crate::connection::converse;
use crate::connection_limiter::ConnectionLimiter;
use crate::cross_site_checks::HostAllowlist;
use crate::http1::ListenerState;
use crate::routes::RouteSet;
use crate::tokens::Tokens;

/// The pause after a failure to accept, mostly for want of descriptors.
pub(crate) const PAUSE: Duration = Duration::from_millis(100);

/// The path and permissions of the unix socket.
#[derive(Clone, Debug)]
pub struct Socket {
    /// Its path.
    pub path: PathBuf,
    /// The permissions of its file.
    pub mode: u32,
}

/// Settings for the treatment of requests.
#[derive(Debug, Default)]
pub struct Settings {
    /// Hosts that are accepted besides the machine's own names.
    pub hosts: Vec<String>,
    /// True if `/metrics` needs no token.
    pub open_metrics: bool,
    /// The audit log.
    pub audit: Audit,
}

/// The open socket and the tokens; no request is served yet.
#[derive(Debug)]
pub struct Listeners {
    socket: Option<UnixListener>,
    tokens: Option<Tokens>,
}

impl Listeners {
    /// Opens the socket, or takes over the one that a former process had at its path, and reads the
    /// `tokens` that addresses need, if there are any. The second value has the reasons for
    /// failures. Call within a runtime.
    pub fn bind(
        socket: &Socket,
        taken: Option<OwnedFd>,
        tokens: Option<&Path>,
    ) -> (Self, Vec<String>) {
        let mut problems = Vec::new();
        let unix = taken
            .map_or_else(|| bind_socket(socket), take_socket)
            .map_err(|e| {
                problems.push(format!("no admin socket at {}: {e}", socket.path.display()));
            })
            .ok();
        let tokens = tokens.and_then(|folder| {
            let opened = Tokens::open(folder);
            let why = "`[admin] tokens` names their folder";
            opened
                .map_err(|e| problems.push(format!("no admin listener: its tokens: {e}; {why}")))
                .ok()
        });
        (Self { socket: unix, tokens }, problems)
    }

    /// A duplicate of the unix socket, for a later process; `None` if it is not open.
    pub fn duplicate_socket(&self) -> Option<OwnedFd> {
        self.socket.as_ref().and_then(|socket| socket.as_fd().try_clone_to_owned().ok())
    }

    /// Returns true if the unix socket is open.
    pub fn has_socket(&self) -> bool {
        self.socket.is_some()
    }

    /// Returns true if there are tokens for clients on addresses.
    pub fn has_tokens(&self) -> bool {
        self.tokens.is_some()
    }

    /// Serves the socket until the runtime ends. The result serves `addresses`; `None` without
    /// tokens.
    pub fn serve<A: Api>(
        self,
        api: Arc<A>,
        settings: Settings,
        addresses: &[SocketAddr],
    ) -> Option<Console<A>> {
        let Settings { hosts, open_metrics, audit } = settings;
        let own = addresses.iter().map(|address| match address {
            SocketAddr::V4(address) => address.ip().to_string(),
            SocketAddr::V6(address) => format!("[{}]", address.ip()),
        });
        let names = HostAllowlist::new(hosts.into_iter().chain(own));
        let (tokens, part) = (self.tokens.map(Arc::new), RouteSet::Whole);
        let has_tokens = tokens.is_some();
        let state = Arc::new(ListenerState { api, names, tokens, audit, open_metrics, part });
        if let Some(listener) = self.socket {
            rt::spawn(serve_socket(Arc::clone(&state), listener, ConnectionLimiter::new()));
        }
        has_tokens.then_some(Console { state })
    }
}

/// Serves addresses of this machine.
pub struct Console<A> {
    state: Arc<ListenerState<A>>,
}

impl<A> Clone for Console<A> {
    fn clone(&self) -> Self {
        Self { state: Arc::clone(&self.state) }
    }
}

impl<A> fmt::Debug for Console<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Console").finish_non_exhaustive()
    }
}

impl<A: Api> Console<A> {
    /// Serves clients of `listener` until the runtime ends.
    ///
    /// # Errors
    /// Other machines can reach the listener.
    pub fn serve(&self, listener: TcpListener) -> io::Result<()> {
        if !listener.local_addr()?.ip().is_loopback() {
            let why = "only loopback addresses (127.0.0.1, [::1]) are permitted";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        rt::spawn(serve_address(Arc::clone(&self.state), listener, ConnectionLimiter::new()));
        Ok(())
    }
}

/// Takes over an open socket.
fn take_socket(socket: OwnedFd) -> io::Result<UnixListener> {
    let socket = std::os::unix::net::UnixListener::from(socket);
    socket.set_nonblocking(true)?;
    UnixListener::from_std(socket)
}

fn bind_socket(socket: &Socket) -> io::Result<UnixListener> {
    let Socket { path, mode } = socket;
    if let Some(dir) = path.parent()
        && !dir.exists()
    {
        // Users of the socket must be able to enter its folder.
        let folder_mode = if mode & 0o070 == 0 { 0o700 } else { 0o750 };
        std::fs::DirBuilder::new().recursive(true).mode(folder_mode).create(dir)?;
    }
    if let Ok(found) = std::fs::symlink_metadata(path) {
        if !found.file_type().is_socket() {
            let why = "the file there is no socket, and is kept";
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, why));
        }
        // A socket without a listener is a leftover of a daemon that was killed.
        if UnixStream::connect(path).is_ok() {
            return Err(io::Error::new(io::ErrorKind::AddrInUse, "another daemon answers there"));
        }
        std::fs::remove_file(path)?;
    }
    let listener = UnixListener::bind(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(*mode))?;
    Ok(listener)
}

async fn serve_socket<A: Api>(
    state: Arc<ListenerState<A>>,
    listener: UnixListener,
    limiter: Arc<ConnectionLimiter>,
) {
    while let Some(accepted) = or_handed_over(&*state.api, listener.accept()).await {
        match accepted {
            Ok((stream, _)) => {
                // Without the peer's user the audit log would lack the caller.
                let Ok(peer) = stream.peer_cred() else { continue };
                let peer = AdminPeer::Local { uid: peer.uid(), pid: peer.pid() };
                admit(&state, &limiter, stream, peer);
            }
            Err(_) => rt::time::sleep(PAUSE).await,
        }
    }
}

async fn serve_address<A: Api>(
    state: Arc<ListenerState<A>>,
    listener: TcpListener,
    limiter: Arc<ConnectionLimiter>,
) {
    while let Some(accepted) = or_handed_over(&*state.api, listener.accept()).await {
        match accepted {
            Ok((stream, from)) => {
                admit(&state, &limiter, stream, AdminPeer::Address(from.ip().to_canonical()));
            }
            Err(_) => rt::time::sleep(PAUSE).await,
        }
    }
}

/// The outcome of `work`, unless another process takes the daemon's place before.
pub(crate) async fn or_handed_over<T>(api: &impl Api, work: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        done = work => Some(done),
        () = api.handed_over() => None,
    }
}

/// Serves a connection's requests, if the limiter admits it.
fn admit<A: Api>(
    state: &Arc<ListenerState<A>>,
    limiter: &Arc<ConnectionLimiter>,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    peer: AdminPeer,
) {
    let most = state.connections();
    let (permit, eviction, is_full) = limiter.enter(most);
    // Access to the socket is the authentication.
    let is_local = matches!(peer, AdminPeer::Local { .. });
    let refused = is_local && !permit.mark_authenticated(most);
    if is_full || refused {
        state.api.count_limit(Limit::AdminConnections);
    }
    if refused {
        return;
    }
    let (state, permit) = (Arc::clone(state), Arc::new(permit));
    rt::spawn(async move {
        let api = Arc::clone(&state.api);
        let talk = converse(state, stream, peer, permit, api.handed_over());
        tokio::select! {
            () = talk => {}
            () = eviction.evicted() => {}
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_socket_is_never_removed() {
        let folder = std::env::temp_dir().join(format!("larder-listen-{}", std::process::id()));
        std::fs::create_dir(&folder).expect("a folder");
        let file = folder.join("file");
        std::fs::write(&file, b"somebody's").expect("written");
        let link = folder.join("link");
        std::os::unix::fs::symlink(&file, &link).expect("a link");
        for path in [&file, &link, &folder] {
            let error = bind_socket(&Socket { path: path.clone(), mode: 0o600 }).map(|_| ());
            assert_eq!(error.map_err(|e| e.kind()), Err(io::ErrorKind::AlreadyExists));
        }
        assert_eq!(std::fs::read(&file).expect("still there"), b"somebody's");
        std::fs::remove_dir_all(&folder).expect("removed");
    }
}
