//! The real binary as a child process, on ports the kernel chose.
//!
//! It must never touch a process it did not start: the child is ended by its own handle, and with
//! it when the handle is dropped.

use std::fs;
use std::io::{self, BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use crate::reply::{self, ConnectionEnd, Reply, ReplyOutcome};

#[cfg(test)]
mod tests;

/// Time that a start or a stop may take before it counts as failed. Optimised builds need
/// milliseconds; the rest is for debug builds on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// Time between two looks at a state that nothing announces.
const POLL: Duration = Duration::from_millis(10);

/// The admin socket's name in the daemon's folder.
const SOCKET: &str = "admin.sock";

/// The log ring's, there too.
const RING: &str = "ring";

/// Words before an address that the child tells on stderr: `listening on ADDR`, and for the admin
/// listener `admin listening on ADDR`.
const LISTENING: &str = "listening on ";

/// Everything that the child has written to stderr so far.
#[derive(Debug, Default)]
struct StderrCapture {
    log: Mutex<Log>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Log {
    lines: Vec<String>,
    /// The child has closed its stderr, which it does only by ending.
    ended: bool,
}

/// A running Larder.
#[derive(Debug)]
pub struct Daemon {
    child: Child,
    folder: PathBuf,
    said: Arc<StderrCapture>,
    data: Vec<SocketAddr>,
    admin: Option<SocketAddr>,
}

impl Daemon {
    /// Starts `larder serve --config` with `config`, a whole `larder.toml`. Listeners should be
    /// `127.0.0.1:0`; it returns when as many as the text names in `listen` lines are open.
    ///
    /// # Errors
    /// No binary, or a child that ends or stays silent instead of listening: with what it said.
    pub fn start(config: &str) -> io::Result<Self> {
        Self::start_binary(&binary()?, config, &[])
    }

    /// As [`Daemon::start`], with further arguments.
    ///
    /// # Errors
    /// As [`Daemon::start`].
    pub fn start_with(config: &str, arguments: &[&str]) -> io::Result<Self> {
        Self::start_binary(&binary()?, config, arguments)
    }

    /// As [`Daemon::start`], with variables added to its environment.
    ///
    /// # Errors
    /// As [`Daemon::start`].
    pub fn start_in(config: &str, environment: &[(&str, &str)]) -> io::Result<Self> {
        let mut command = Command::new(binary()?);
        command.envs(environment.iter().copied());
        Self::start_command(command, config, &[])
    }

    /// As [`Daemon::start_with`], of a named binary.
    ///
    /// # Errors
    /// As [`Daemon::start`].
    pub fn start_binary(binary: &Path, config: &str, arguments: &[&str]) -> io::Result<Self> {
        Self::start_command(Command::new(binary), config, arguments)
    }

    /// As [`Daemon::start_with`], by a command that ends with the binary.
    ///
    /// # Errors
    /// As [`Daemon::start`].
    pub fn start_command(
        mut command: Command,
        config: &str,
        arguments: &[&str],
    ) -> io::Result<Self> {
        let folder = scratch_folder()?;
        let file = folder.join("larder.toml");
        fs::write(&file, config)?;
        let mut child = command
            .arg("serve")
            .arg("--config")
            .arg(&file)
            .arg("--admin-socket")
            .arg(folder.join(SOCKET))
            .arg("--log-ring")
            .arg(folder.join(RING))
            .args(stay_root(config))
            .args(arguments)
            // As systemd does for a service with `StateDirectory=`.
            .env("STATE_DIRECTORY", &folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| {
                let program = command.get_program().display();
                io::Error::new(error.kind(), format!("{program}: {error}"))
            })?;
        let said = Arc::new(StderrCapture::default());
        if let Some(stderr) = child.stderr.take() {
            let said = Arc::clone(&said);
            std::thread::spawn(move || listen_to(BufReader::new(stderr), &said));
        }
        let mut daemon = Self { child, folder, said, data: Vec::new(), admin: None };
        daemon.await_listeners(listeners(config))?;
        Ok(daemon)
    }

    /// The first data listener.
    pub fn addr(&self) -> SocketAddr {
        self.data[0]
    }

    /// All data listeners, in the order in which they were opened.
    pub fn addrs(&self) -> &[SocketAddr] {
        &self.data
    }

    /// The admin listener, when the config has one.
    pub fn admin(&self) -> Option<SocketAddr> {
        self.admin
    }

    /// Where another port listens, by the name it is told under, such as `Varnish CLI`. It is known
    /// when the data listeners are.
    pub fn port(&self, name: &str) -> Option<SocketAddr> {
        let said = self.said.log.lock();
        let mut lines = said.lines.iter().filter_map(|line| line.split_once(LISTENING));
        let (_, address) = lines.find(|(before, _)| before.contains(name))?;
        address.parse().ok()
    }

    /// The child's process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The config file it was started with, to be rewritten before a reload.
    pub fn config_file(&self) -> PathBuf {
        self.folder.join("larder.toml")
    }

    /// Everything it has said on stderr so far.
    pub fn log(&self) -> String {
        self.said.log.lock().lines.join("\n")
    }

    /// Tells whether the daemon still runs.
    pub fn alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Waits until it ends by itself, up to the usual patience.
    ///
    /// # Errors
    /// [`io::ErrorKind::TimedOut`] when it does not.
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        let mut waited = Duration::ZERO;
        while waited < PATIENCE {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            waited += POLL;
            std::thread::sleep(POLL);
        }
        Err(io::Error::new(io::ErrorKind::TimedOut, "still running"))
    }

    /// Its admin socket, which is its own: tests run side by side.
    pub fn admin_socket(&self) -> PathBuf {
        self.folder.join(SOCKET)
    }

    /// The token of a role: `read`, `purge` or `config`.
    ///
    /// # Errors
    /// The daemon has made none, having no admin listener.
    pub fn token(&self, role: &str) -> io::Result<String> {
        let file = self.folder.join("admin").join(format!("{role}.token"));
        Ok(fs::read_to_string(file)?.trim_end().to_owned())
    }

    /// The folder of its log ring.
    pub fn log_ring(&self) -> PathBuf {
        self.folder.join(RING)
    }

    /// Asks the admin socket.
    ///
    /// # Errors
    /// No such socket, or an answer that is not whole.
    pub async fn ask_admin(&self, method: &str, target: &str) -> io::Result<Reply> {
        let mut stream = self.connect_admin().await?;
        let request =
            format!("{method} {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).await?;
        match reply::read_reply(&bytes, method, ConnectionEnd::Closed) {
            Some((ReplyOutcome::Complete(reply), _)) => Ok(reply),
            other => Err(io::Error::other(format!("admin socket: {other:?}"))),
        }
    }

    /// The text of `/metrics`.
    ///
    /// # Errors
    /// As [`Daemon::ask_admin`], and a status other than 200.
    pub async fn metrics(&self) -> io::Result<String> {
        let reply = self.ask_admin("GET", "/metrics").await?;
        if reply.status == 200 {
            Ok(reply.text())
        } else {
            Err(io::Error::other(format!("metrics: {}", reply.status)))
        }
    }

    /// Sum of the samples of metric `name` whose labels contain `label`.
    ///
    /// # Errors
    /// As [`Daemon::metrics`].
    pub async fn metric(&self, name: &str, label: &str) -> io::Result<f64> {
        Ok(sum_of(&self.metrics().await?, name, label))
    }

    /// Asserts that a metric is `wanted`, labels aside. Waits for it to get there: much is counted
    /// only when a client has its answer already.
    ///
    /// # Panics
    /// When it stays below, or is above.
    pub async fn assert_metric(&self, name: &str, wanted: u64) {
        self.assert_counted(name, "", wanted).await;
    }

    /// As [`Daemon::counted`], of how often a limit was reached.
    ///
    /// # Panics
    /// As [`Daemon::counted`].
    pub async fn assert_limit_count(&self, limit: &str, wanted: u64) {
        self.assert_counted("larder_limit_hits_total", &format!("limit=\"{limit}\""), wanted).await;
    }

    /// Asserts that it has said `words`, and returns all it has. Waits for them: a thread of the
    /// test's own reads what it says, so that answers and counters may be there first.
    ///
    /// # Panics
    /// When they do not come.
    pub async fn assert_logged(&self, words: &str) -> String {
        let mut waited = Duration::ZERO;
        loop {
            let log = self.log();
            if log.contains(words) || waited >= PATIENCE {
                assert!(log.contains(words), "{words:?} was not said:\n{log}");
                return log;
            }
            waited += POLL;
            tokio::time::sleep(POLL).await;
        }
    }

    async fn assert_counted(&self, name: &str, label: &str, wanted: u64) {
        let mut waited = Duration::ZERO;
        loop {
            let found = self.metric(name, label).await.expect("metrics") as u64;
            if found >= wanted || waited >= PATIENCE {
                assert_eq!(found, wanted, "{name} {label}");
                return;
            }
            waited += POLL;
            tokio::time::sleep(POLL).await;
        }
    }

    /// The socket may be opened a little later than the listeners for clients.
    async fn connect_admin(&self) -> io::Result<UnixStream> {
        let mut waited = Duration::ZERO;
        loop {
            match UnixStream::connect(self.admin_socket()).await {
                Err(_) if waited < PATIENCE => {
                    waited += POLL;
                    tokio::time::sleep(POLL).await;
                }
                done => return done,
            }
        }
    }

    fn await_listeners(&mut self, wanted: usize) -> io::Result<()> {
        let mut log = self.said.log.lock();
        loop {
            let found: Vec<(bool, SocketAddr)> =
                log.lines.iter().filter_map(|line| listener(line)).collect();
            if found.len() >= wanted {
                let (admin, data): (Vec<_>, Vec<_>) = found.into_iter().partition(|(is, _)| *is);
                self.data = data.into_iter().map(|(_, addr)| addr).collect();
                self.admin = admin.first().map(|(_, addr)| *addr);
                return Ok(());
            }
            if log.ended || self.said.changed.wait_for(&mut log, PATIENCE).timed_out() {
                let state = if log.ended { "it ended" } else { "it is silent" };
                let said = log.lines.join("\n");
                return Err(io::Error::other(format!("no listener, {state}:\n{said}")));
            }
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // Both fail only when the child has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The binary under test: `LARDER_BIN`, or the one Cargo built beside the running test.
///
/// # Errors
/// [`io::ErrorKind::NotFound`] when neither is there.
pub fn binary() -> io::Result<PathBuf> {
    if let Some(named) = std::env::var_os("LARDER_BIN") {
        return Ok(named.into());
    }
    let test = std::env::current_exe()?;
    test.ancestors()
        .skip(1)
        .map(|folder| folder.join("larder"))
        .find(|file| file.is_file())
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no larder beside the test binary"))
}

/// Has a daemon that root starts stay root, where `config` does not say who it is to become: on a
/// machine that has a user for it, it would become that one.
fn stay_root(config: &str) -> &'static [&'static str] {
    let is_said = config.contains("[run]") || !rustix::process::geteuid().is_root();
    if is_said { &[] } else { &["--user", "root"] }
}

/// A new folder below the system's temporary one.
fn scratch_folder() -> io::Result<PathBuf> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("larder-test-{}-{number}", std::process::id()));
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

fn listen_to(stderr: impl BufRead, said: &StderrCapture) {
    for line in stderr.lines().map_while(Result::ok) {
        said.log.lock().lines.push(line);
        said.changed.notify_all();
    }
    said.log.lock().ended = true;
    said.changed.notify_all();
}

/// The number of listeners that `config` asks for: one per quoted address of its `listen` lines.
fn listeners(config: &str) -> usize {
    let addresses = config
        .lines()
        .filter(|line| line.trim_start().starts_with("listen"))
        // Only addresses are told by the child in a form that is read here.
        .map(|line| line.matches('"').count() / 2 - line.matches("\"unix:").count())
        .sum::<usize>();
    addresses.max(1)
}

/// The listener a line tells of, and whether it is the admin one.
fn listener(line: &str) -> Option<(bool, SocketAddr)> {
    let (before, after) = line.split_once(LISTENING)?;
    if ["Varnish CLI", "HTCP", "health", "metrics"].iter().any(|port| before.contains(port)) {
        return None;
    }
    let addr = after.split_whitespace().next()?.trim_start_matches("http://").parse().ok()?;
    Some((before.contains("admin"), addr))
}

fn sum_of(metrics: &str, name: &str, label: &str) -> f64 {
    metrics
        .lines()
        .filter_map(|line| line.rsplit_once(' '))
        .filter(|(series, _)| {
            let (own, labels) = series.split_once('{').unwrap_or((series, ""));
            own == name && labels.contains(label)
        })
        .filter_map(|(_, value)| value.parse::<f64>().ok())
        .sum()
}
