//! The listeners: a unix socket, and addresses of this machine's own.

use std::future::pending;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base::Limit;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};

use crate::api::{Api, Peer};
use crate::audit::Audit;
use crate::connection::converse;
use crate::guard::Names;
use crate::http1::Desk;
use crate::lobby::Lobby;
use crate::routes::Part;
use crate::tokens::Tokens;

/// Pause after a connection could not be accepted, as when no descriptor is left.
pub(crate) const PAUSE: Duration = Duration::from_millis(100);

/// Where the unix socket is.
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
    /// Names under which it may be asked besides this machine's own.
    pub hosts: Vec<String>,
    /// True if `/metrics` needs no token.
    pub open_metrics: bool,
    /// Where changes are written.
    pub audit: Audit,
}

/// Listeners that are open and answer nobody yet.
#[derive(Debug)]
pub struct Listeners {
    socket: Option<UnixListener>,
    addresses: Vec<(TcpListener, SocketAddr)>,
    tokens: Option<Tokens>,
}

impl Listeners {
    /// Opens what can be opened, and says of the rest why it cannot. Addresses are only this
    /// machine's own, and need tokens in `folder`. Call within a runtime.
    pub async fn bind(
        socket: &Socket,
        addresses: &[SocketAddr],
        folder: &Path,
    ) -> (Self, Vec<String>) {
        let mut problems = Vec::new();
        let unix = bind_socket(socket)
            .map_err(|e| {
                problems.push(format!("no admin socket at {}: {e}", socket.path.display()));
            })
            .ok();
        let mut listeners = Self { socket: unix, addresses: Vec::new(), tokens: None };
        if addresses.is_empty() {
            return (listeners, problems);
        }
        listeners.tokens = Tokens::open(folder)
            .map_err(|e| {
                problems.push(format!(
                    "no admin listener on {}: its tokens: {e}; `[admin] tokens` names their folder",
                    addresses[0]
                ));
            })
            .ok();
        if listeners.tokens.is_none() {
            return (listeners, problems);
        }
        for address in addresses {
            match bind_address(*address).await {
                Ok(bound) => listeners.addresses.push(bound),
                Err(e) => problems.push(format!("no admin listener on {address}: {e}")),
            }
        }
        (listeners, problems)
    }

    /// The addresses that are listened on.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.addresses.iter().map(|(_, address)| *address).collect()
    }

    /// Tells whether the unix socket is open.
    pub fn has_socket(&self) -> bool {
        self.socket.is_some()
    }

    /// Answers whoever asks, until the runtime ends.
    pub fn serve<A: Api>(self, api: Arc<A>, settings: Settings) {
        let Settings { hosts, open_metrics, audit } = settings;
        let own = self.addresses.iter().map(|(_, address)| match address {
            SocketAddr::V4(address) => address.ip().to_string(),
            SocketAddr::V6(address) => format!("[{}]", address.ip()),
        });
        let names = Names::new(hosts.into_iter().chain(own.collect::<Vec<_>>()));
        let (tokens, part) = (self.tokens.map(Arc::new), Part::Whole);
        let desk = Arc::new(Desk { api, names, tokens, audit, open_metrics, part });
        if let Some(listener) = self.socket {
            rt::spawn(serve_socket(Arc::clone(&desk), listener, Lobby::new()));
        }
        for (listener, _) in self.addresses {
            rt::spawn(serve_address(Arc::clone(&desk), listener, Lobby::new()));
        }
    }
}

async fn bind_address(address: SocketAddr) -> io::Result<(TcpListener, SocketAddr)> {
    if !address.ip().is_loopback() {
        let why = "only addresses of this machine's own (127.0.0.1, [::1]) are listened on";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    let listener = TcpListener::bind(address).await?;
    let bound = listener.local_addr()?;
    Ok((listener, bound))
}

fn bind_socket(socket: &Socket) -> io::Result<UnixListener> {
    let Socket { path, mode } = socket;
    if let Some(dir) = path.parent()
        && !dir.exists()
    {
        // Who may open the socket has to come by its folder.
        let folder_mode = if mode & 0o070 == 0 { 0o700 } else { 0o750 };
        std::fs::DirBuilder::new().recursive(true).mode(folder_mode).create(dir)?;
    }
    if let Ok(found) = std::fs::symlink_metadata(path) {
        if !found.file_type().is_socket() {
            let why = "what lies there is no socket, and stays";
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, why));
        }
        // A socket that nobody answers on was left behind by a daemon that did not end well.
        if UnixStream::connect(path).is_ok() {
            return Err(io::Error::new(io::ErrorKind::AddrInUse, "another daemon answers there"));
        }
        std::fs::remove_file(path)?;
    }
    let listener = UnixListener::bind(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(*mode))?;
    Ok(listener)
}

async fn serve_socket<A: Api>(desk: Arc<Desk<A>>, listener: UnixListener, lobby: Arc<Lobby>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                // Without a name there is nothing to write into the log of changes.
                let Ok(peer) = stream.peer_cred() else { continue };
                let peer = Peer::Local { uid: peer.uid(), pid: peer.pid() };
                admit(&desk, &lobby, stream, peer);
            }
            Err(_) => rt::time::sleep(PAUSE).await,
        }
    }
}

async fn serve_address<A: Api>(desk: Arc<Desk<A>>, listener: TcpListener, lobby: Arc<Lobby>) {
    loop {
        match listener.accept().await {
            Ok((stream, from)) => {
                admit(&desk, &lobby, stream, Peer::Address(from.ip().to_canonical()));
            }
            Err(_) => rt::time::sleep(PAUSE).await,
        }
    }
}

/// Answers a connection's requests, if there is a place left for it.
fn admit<A: Api>(
    desk: &Arc<Desk<A>>,
    lobby: &Arc<Lobby>,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    peer: Peer,
) {
    let most = desk.connections();
    let (place, leave, is_full) = lobby.enter(most);
    // Who may open the socket is known by that.
    let is_local = matches!(peer, Peer::Local { .. });
    let refused = is_local && !place.make_known(most);
    if is_full || refused {
        desk.api.count_limit(Limit::AdminConnections);
    }
    if refused {
        return;
    }
    let talk = converse(Arc::clone(desk), stream, peer, Arc::new(place), pending());
    rt::spawn(async move {
        tokio::select! {
            () = talk => {}
            () = leave.asked() => {}
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
