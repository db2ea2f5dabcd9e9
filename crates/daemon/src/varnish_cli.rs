//! Varnish's CLI: its port, connections, authentication and limits. The commands are in `answers`.
//!
//! It runs beside the cores. A client without proof of the secret must reach nothing.

mod answers;
mod backends;
mod certificates;
mod params;
mod reply;
mod vcl;

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use admin::connection_limiter::{ConnectionLimiter, ConnectionPermit};
use base::{Counter, Counters, Limit, Limits};
use rt::time::timeout;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use varnishcli::{Call, Challenge, CliCommand, Reader, Reply, Status};

use crate::guard::Guard;
use crate::ports::Port;
use crate::state::Daemon;
use crate::{keeper, varnishd, vsm};

pub(crate) use certificates::log_missing as tell_of_no_certificate;
pub use vcl::document;

/// Bytes read at once.
const CHUNK: usize = 16 << 10;

/// Most bytes of a line before authentication: a response to the challenge takes less than a
/// hundred.
const STRANGERS_BYTES: usize = 4 << 10;

/// State that connections share.
struct CliPort {
    daemon: Arc<Daemon>,
    counters: Arc<Counters>,
    lobby: Arc<ConnectionLimiter>,
    /// The generated secret, once it is needed; `None` if it could not be written.
    own: OnceLock<Option<Arc<[u8]>>>,
    /// The lock that spaces replies to failed authentication.
    wrong: tokio::sync::Mutex<()>,
}

/// Serves the CLI on `ports`.
pub(crate) fn start(daemon: &Arc<Daemon>, config: Option<&config::VarnishCli>, ports: Vec<Port>) {
    let Some(config) = config else { return };
    let shared = CliPort::new(daemon);
    if config.secret == config::CliSecret::Own {
        // Clients must find the secret when the port opens.
        _ = shared.own_secret();
    }
    let workdir = daemon.admin_socket().parent().map(std::path::Path::to_owned);
    let secret = match &config.secret {
        config::CliSecret::None => None,
        config::CliSecret::Own => workdir.as_ref().map(|folder| folder.join(varnishd::SECRET)),
        config::CliSecret::File(file) => Some(file.path.clone()),
    };
    // Of several ports, one is published.
    let mut told = workdir.map(|workdir| (workdir, secret));
    for port in ports {
        let (shared, told) = (Arc::clone(&shared), told.take());
        let predecessor = daemon.predecessor;
        port.hold(&daemon.ports, move |socket| {
            let listener = TcpListener::from_std(socket.into())?;
            if let (Some((workdir, secret)), Ok(at)) = (told, listener.local_addr())
                && let Err(error) = vsm::publish(&workdir, at, secret.as_deref(), predecessor)
            {
                let workdir = workdir.display();
                base::tell!(Notice, "larder: `varnishadm -n {workdir}` will not find it: {error}");
            }
            rt::spawn(async move {
                let serve = || serve(&shared, &listener);
                let served = net::run_with_restarts(serve, || shared.counters.inc(Counter::Panics));
                tokio::select! {
                    () = served => {}
                    _ = shared.daemon.succession.replaced() => {}
                }
            });
            Ok(())
        });
    }
}

/// Connects to `address` again and again and serves the CLI there (varnishd's `-M`).
pub(crate) fn call_back(daemon: &Arc<Daemon>, address: &str) {
    /// The pause between two connections.
    const PAUSE: Duration = Duration::from_secs(1);
    let port = CliPort::new(daemon);
    let address = address.to_owned();
    rt::spawn(async move {
        loop {
            if let Ok(stream) = TcpStream::connect(&address).await
                && let (Ok(peer), Some(guard)) = (stream.peer_addr(), port.daemon.reverse_guard())
            {
                let (place, leave, _) = port.lobby.enter(1);
                let mut session = Session::new(&port, peer, place);
                // A closed connection is opened again.
                tokio::select! {
                    _ = session.run(stream, guard) => {}
                    () = leave.evicted() => {}
                }
            }
            rt::time::sleep(PAUSE).await;
        }
    });
}

/// Runs the commands of a file (varnishd's `-I`). A failure in a line that begins with `-` is
/// logged; in another line it ends the run.
///
/// # Errors
/// The command that failed, and its failure.
pub(crate) async fn carry_out(daemon: &Arc<Daemon>, file: &std::path::Path) -> Result<(), String> {
    let failed = |why: String| format!("larder: -I {}: {why}", file.display());
    let mut text = keeper::read(file).map_err(|error| failed(error.to_string()))?;
    text.push(b'\n');
    let counters = daemon.shared.counters.register();
    let mut reader = Reader::new(text.len());
    reader.feed(&text);
    let here = SocketAddr::from(([127, 0, 0, 1], 0));
    loop {
        let mut words = match reader.next(true) {
            Ok(Some(words)) => words.map_err(|error| failed(error.to_string()))?,
            Ok(None) => return Ok(()),
            Err(error) => return Err(failed(error.to_string())),
        };
        let may_fail = words.first().is_some_and(|word| word.starts_with(b"-"));
        if may_fail {
            words[0].remove(0);
        }
        // An empty command, or a comment.
        if words.first().is_none_or(|word| word.is_empty() || word.starts_with(b"#")) {
            continue;
        }
        let line = words.iter().take(2).map(|word| String::from_utf8_lossy(word).into_owned());
        let line = line.collect::<Vec<_>>().join(" ");
        let reply = match varnishcli::read(words, true) {
            Ok(call) => answers::answer(daemon, &counters, here, &call).await,
            Err(reply) => reply,
        };
        match reply.status {
            Status::Ok | Status::Truncated => {}
            _ if may_fail => base::tell!(Warn, "larder: -I: {line}: {}", reply.text.trim_end()),
            _ => return Err(failed(format!("{line}: {}", reply.text.trim_end()))),
        }
    }
}

async fn serve(port: &Arc<CliPort>, listener: &TcpListener) {
    loop {
        let Ok((stream, peer)) = listener.accept().await else {
            // Mostly a lack of descriptors.
            rt::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let (place, leave, is_full) =
            port.lobby.enter(port.daemon.shared.live().limits.varnish_cli_connections);
        if is_full {
            port.counters.limit(Limit::VarnishCliConnections);
        }
        let port = Arc::clone(port);
        rt::spawn(async move {
            let Some(guard) = port.guard_of(&stream) else { return };
            let mut session = Session::new(&port, peer, place);
            tokio::select! {
                // A closed connection needs no reply.
                _ = session.run(stream, guard) => {}
                () = leave.evicted() => {}
            }
        });
    }
}

impl CliPort {
    fn new(daemon: &Arc<Daemon>) -> Arc<Self> {
        Arc::new(Self {
            daemon: Arc::clone(daemon),
            counters: daemon.shared.counters.register(),
            lobby: ConnectionLimiter::new(),
            own: OnceLock::new(),
            wrong: tokio::sync::Mutex::default(),
        })
    }

    /// The secret that the daemon generates.
    fn own_secret(&self) -> Option<Arc<[u8]>> {
        let made = self.own.get_or_init(|| {
            let read = |path: &std::path::PathBuf| {
                std::fs::read(path).map_err(|e| format!("larder: {}: {e}", path.display()))
            };
            let made = varnishd::own_secret(self.daemon.admin_socket());
            let secret = made.and_then(|path| read(&path));
            secret
                .map_err(|why| base::tell!(Error, "{why}: the Varnish CLI admits no client"))
                .ok()
                .map(Arc::from)
        });
        made.clone()
    }

    /// The current guard of the port. `None` if no client may connect any more: a reload has
    /// removed the port, or the secret of a port that other machines can reach.
    fn guard_of(&self, stream: &TcpStream) -> Option<Guard> {
        let guard = match self.daemon.varnish_cli()? {
            Guard::Own => Guard::Secret(self.own_secret()?),
            guard => guard,
        };
        let is_here = || stream.local_addr().is_ok_and(|own| own.ip().is_loopback());
        (matches!(guard, Guard::Secret(_)) || is_here()).then_some(guard)
    }
}

/// One connection.
struct Session<'a> {
    port: &'a CliPort,
    peer: SocketAddr,
    place: ConnectionPermit,
    limits: Limits,
    begun: Instant,
    /// The pending challenge, and the secret that the client must know.
    asked: Option<(Challenge, Arc<[u8]>)>,
}

impl<'a> Session<'a> {
    fn new(port: &'a CliPort, peer: SocketAddr, place: ConnectionPermit) -> Self {
        let limits = port.daemon.shared.live().limits.clone();
        Self { port, peer, place, limits, begun: Instant::now(), asked: None }
    }

    async fn run(&mut self, mut stream: TcpStream, guard: Guard) -> io::Result<()> {
        let greeting = match guard {
            // The secret is made before any client is admitted.
            Guard::Own => Reply::new(Status::Close, ""),
            Guard::Open => self.welcome(),
            Guard::Secret(secret) => {
                let challenge = Challenge::new(random()?);
                let reply = challenge.reply();
                self.asked = Some((challenge, secret));
                reply
            }
        };
        self.send(&mut stream, &greeting).await?;
        if greeting.status == Status::Close {
            return stream.shutdown().await;
        }
        let bytes = self.limits.varnish_cli_bytes as usize;
        let mut reader = Reader::new(bytes.min(STRANGERS_BYTES));
        let mut chunk = [0; CHUNK];
        loop {
            if self.asked.is_none() {
                reader.set_limit(bytes);
            }
            let reply = match reader.next(self.asked.is_none()) {
                Ok(Some(Ok(words))) => self.answer(words).await,
                Ok(Some(Err(error))) => Reply::syntax(error),
                Ok(None) => {
                    let Some(len) = self.receive(&mut stream, &mut chunk).await? else {
                        return Ok(());
                    };
                    reader.feed(&chunk[..len]);
                    continue;
                }
                Err(too_long) => {
                    self.port.counters.limit(Limit::VarnishCliBytes);
                    Reply::new(Status::Close, too_long.to_string())
                }
            };
            self.send(&mut stream, &reply).await?;
            // As with varnishd, an unauthenticated client has one attempt, whatever failed.
            let is_over = self.asked.is_some() && reply.status != Status::Ok;
            if is_over || reply.status == Status::Close {
                return stream.shutdown().await;
            }
        }
    }

    /// The number of bytes received; `None` when the client has closed, or after a timeout.
    async fn receive(&self, stream: &mut TcpStream, chunk: &mut [u8]) -> io::Result<Option<usize>> {
        let (limit, wait_ms) = match self.asked {
            Some(_) => {
                let spent = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
                let left = self.limits.varnish_cli_auth_timeout.saturating_sub(spent);
                (Limit::VarnishCliAuthTimeout, left)
            }
            None => (Limit::VarnishCliIdleTimeout, self.limits.varnish_cli_idle_timeout),
        };
        match timeout(Duration::from_millis(wait_ms), stream.read(chunk)).await {
            Ok(len) => len.map(|len| (len > 0).then_some(len)),
            Err(_) => {
                self.port.counters.limit(limit);
                Ok(None)
            }
        }
    }

    async fn send(&self, stream: &mut TcpStream, reply: &Reply) -> io::Result<()> {
        let wait = Duration::from_millis(self.limits.varnish_cli_idle_timeout);
        let wire = reply.to_wire();
        timeout(wait, stream.write_all(wire.as_bytes())).await.unwrap_or_else(|_| {
            self.port.counters.limit(Limit::VarnishCliIdleTimeout);
            Err(io::ErrorKind::TimedOut.into())
        })
    }

    async fn answer(&mut self, words: Vec<Vec<u8>>) -> Reply {
        // A browser or another server was made to send this: fields and body that follow must not
        // be read as commands.
        if matches!(&words[..], [_, _, version] if version.starts_with(b"HTTP/")) {
            self.port.counters.inc(Counter::CliRefused);
            return Reply::new(Status::Close, "This is no HTTP server.\n");
        }
        match varnishcli::read(words, self.asked.is_none()) {
            Ok(call) if call.verb == CliCommand::Auth => self.authenticate(&call).await,
            Ok(call) => {
                self.port.counters.inc(Counter::CliCommands);
                answers::answer(&self.port.daemon, &self.port.counters, self.peer, &call).await
            }
            Err(reply) => reply,
        }
    }

    /// Checks the response to the challenge. As with varnishd, a client that failed or is
    /// authenticated already has to reconnect.
    async fn authenticate(&mut self, call: &Call) -> Reply {
        let answer = call.arguments.first().map_or(&b""[..], Vec::as_slice);
        match self.asked.take() {
            Some((challenge, secret)) if challenge.is_answered(&secret, answer) => self.welcome(),
            asked => {
                self.asked = asked;
                self.port.counters.inc(Counter::CliRefused);
                if self.asked.is_some() {
                    self.slow_down().await;
                    base::tell!(Warn, "larder: Varnish CLI: {}: authentication failed", self.peer);
                }
                Reply::new(Status::Close, "")
            }
        }
    }
}

impl Session<'_> {
    /// The greeting of an authenticated client, if the limit permits one more.
    fn welcome(&self) -> Reply {
        if self.place.mark_authenticated(self.limits.varnish_cli_connections) {
            return answers::banner();
        }
        self.port.counters.limit(Limit::VarnishCliConnections);
        Reply::new(Status::Close, "Too many connections\n")
    }

    /// Delays the reply to a failed authentication: clients together get few attempts a second.
    async fn slow_down(&self) {
        let wait_ms = self.limits.varnish_cli_wrong_answer;
        if wait_ms == 0 {
            return;
        }
        self.port.counters.limit(Limit::VarnishCliWrongAnswer);
        let _one = self.port.wrong.lock().await;
        rt::time::sleep(Duration::from_millis(wait_ms)).await;
    }
}

fn random() -> io::Result<[u8; 32]> {
    let mut bytes = [0; 32];
    // A request of so few bytes is never cut short.
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    Ok(bytes)
}
