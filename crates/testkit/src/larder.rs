//! Larder's binary as a child process, on ports that the kernel chooses.
//!
//! The module must never touch a process that it did not start: the child is ended by its own
//! handle, at the latest when that is dropped.

use std::fs;
use std::io::{self, BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use crate::reply::{self, ConnectionEnd, Reply, ReplyOutcome};

#[cfg(test)]
mod tests;

/// Time limit of a start or stop. Optimised builds need milliseconds; the rest is for debug builds
/// on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// Interval at which a state is polled.
const POLL: Duration = Duration::from_millis(10);

/// The admin socket's name in the daemon's folder.
const SOCKET: &str = "admin.sock";

/// The log ring's name, in that folder.
const RING: &str = "ring";

/// Text before an address in the child's log: `listening on ADDR`, and for the admin listener
/// `admin listening on ADDR`.
const LISTENING: &str = "listening on ";

/// The child's stderr so far.
#[derive(Debug, Default)]
struct StderrCapture {
    log: Mutex<Log>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Log {
    lines: Vec<String>,
    /// True after the child has closed its stderr, which it does only by ending.
    ended: bool,
}

/// A running Larder.
#[derive(Debug)]
pub struct Daemon {
    child: Child,
    /// Processes that have taken its place, in order.
    successors: Vec<u32>,
    folder: PathBuf,
    said: Arc<StderrCapture>,
    data: Vec<SocketAddr>,
    admin: Option<SocketAddr>,
}

impl Daemon {
    /// Starts `larder serve --config` with `config`, a whole `larder.toml`. Listeners should be
    /// `127.0.0.1:0`. Returns once as many listeners are open as `listen` lines name.
    ///
    /// # Errors
    /// No binary, or a child that ends or does not listen in time, with its log.
    pub fn start(config: &str) -> io::Result<Self> {
        Self::start_binary(&binary()?, config, &[])
    }

    /// Starts it as [`Daemon::start`] does, with further arguments.
    ///
    /// # Errors
    /// Those of [`Daemon::start`].
    pub fn start_with(config: &str, arguments: &[&str]) -> io::Result<Self> {
        Self::start_binary(&binary()?, config, arguments)
    }

    /// Starts it as [`Daemon::start`] does, with further environment variables.
    ///
    /// # Errors
    /// Those of [`Daemon::start`].
    pub fn start_in(config: &str, environment: &[(&str, &str)]) -> io::Result<Self> {
        let mut command = Command::new(binary()?);
        command.envs(environment.iter().copied());
        Self::start_command(command, config, &[])
    }

    /// Starts a given binary as [`Daemon::start_with`] does.
    ///
    /// # Errors
    /// Those of [`Daemon::start`].
    pub fn start_binary(binary: &Path, config: &str, arguments: &[&str]) -> io::Result<Self> {
        Self::start_command(Command::new(binary), config, arguments)
    }

    /// Starts it by a command that ends with the binary, as [`Daemon::start_with`] does.
    ///
    /// # Errors
    /// Those of [`Daemon::start`].
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
        let (successors, data) = (Vec::new(), Vec::new());
        let mut daemon = Self { child, successors, folder, said, data, admin: None };
        daemon.await_listeners(listeners(config))?;
        Ok(daemon)
    }

    /// The address of the first data listener.
    pub fn addr(&self) -> SocketAddr {
        self.data[0]
    }

    /// The addresses of all data listeners, in the order in which they were opened.
    pub fn addrs(&self) -> &[SocketAddr] {
        &self.data
    }

    /// The address of the admin listener, if there is one.
    pub fn admin(&self) -> Option<SocketAddr> {
        self.admin
    }

    /// The address of another listener by its name in the log, such as `Varnish CLI`. It is known
    /// once the data listeners are.
    pub fn port(&self, name: &str) -> Option<SocketAddr> {
        let said = self.said.log.lock();
        let mut lines = said.lines.iter().filter_map(|line| line.split_once(LISTENING));
        let (_, address) = lines.find(|(before, _)| before.contains(name))?;
        address.parse().ok()
    }

    /// The id of the process that serves: the child, or the last one that took its place.
    pub fn pid(&self) -> u32 {
        self.successors.last().copied().unwrap_or_else(|| self.child.id())
    }

    /// Has a new process take the daemon's place: the program `binary`, by default the one of the
    /// daemon. Returns the daemon's response.
    ///
    /// # Errors
    /// No socket, or an incomplete response.
    pub async fn upgrade(&mut self, binary: Option<&Path>) -> io::Result<Reply> {
        let body =
            binary.map_or_else(|| "{}".to_owned(), |path| json!({ "binary": path }).to_string());
        let length = body.len();
        let fields = format!("Content-Type: application/json\r\nContent-Length: {length}\r\n");
        let reply = self.exchange_admin("POST", "/api/v1/upgrade", &fields, &body).await?;
        let done: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
        let pid = done["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok());
        self.successors.extend(pid.filter(|_| reply.status == 200));
        Ok(reply)
    }

    /// Counts a process that is about to take the daemon's place as its successor, as it ends with
    /// this value then; returns its id. `None` while there is no such process.
    pub fn adopt(&mut self) -> Option<u32> {
        let all = fs::read_dir("/proc").ok()?.flatten();
        let mut all = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let known = |pid: &u32| *pid == self.child.id() || self.successors.contains(pid);
        let pid = all.find(|pid| !known(pid) && self.is_running(*pid))?;
        self.successors.push(pid);
        Some(pid)
    }

    /// Returns true if a process that has served runs: it has this daemon's folder among its
    /// arguments.
    pub fn is_running(&self, pid: u32) -> bool {
        let arguments = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&arguments).contains(&*self.folder.to_string_lossy())
    }

    /// The configuration file, which a test may rewrite before a reload.
    pub fn config_file(&self) -> PathBuf {
        self.folder.join("larder.toml")
    }

    /// The log so far.
    pub fn log(&self) -> String {
        self.said.log.lock().lines.join("\n")
    }

    /// Returns true if the daemon runs.
    pub fn alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Waits for its end, up to the usual time limit.
    ///
    /// # Errors
    /// [`io::ErrorKind::TimedOut`] if it does not end.
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

    /// The path of its admin socket.
    pub fn admin_socket(&self) -> PathBuf {
        self.folder.join(SOCKET)
    }

    /// The token of a role: `read`, `purge` or `config`.
    ///
    /// # Errors
    /// A daemon without an admin listener has no tokens.
    pub fn token(&self, role: &str) -> io::Result<String> {
        let file = self.folder.join("admin").join(format!("{role}.token"));
        Ok(fs::read_to_string(file)?.trim_end().to_owned())
    }

    /// The folder of its log ring.
    pub fn log_ring(&self) -> PathBuf {
        self.folder.join(RING)
    }

    /// Sends a request to the admin socket.
    ///
    /// # Errors
    /// No socket, or an incomplete response.
    pub async fn ask_admin(&self, method: &str, target: &str) -> io::Result<Reply> {
        self.exchange_admin(method, target, "", "").await
    }

    async fn exchange_admin(
        &self,
        method: &str,
        target: &str,
        fields: &str,
        body: &str,
    ) -> io::Result<Reply> {
        let mut stream = self.connect_admin().await?;
        let request = format!(
            "{method} {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{fields}\r\n{body}"
        );
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
    /// Those of [`Daemon::ask_admin`], and a status other than 200.
    pub async fn metrics(&self) -> io::Result<String> {
        let reply = self.ask_admin("GET", "/metrics").await?;
        if reply.status == 200 {
            Ok(reply.text())
        } else {
            Err(io::Error::other(format!("metrics: {}", reply.status)))
        }
    }

    /// The sum of the samples of metric `name` whose labels contain `label`.
    ///
    /// # Errors
    /// Those of [`Daemon::metrics`].
    pub async fn metric(&self, name: &str, label: &str) -> io::Result<f64> {
        Ok(sum_of(&self.metrics().await?, name, label))
    }

    /// Asserts that a metric is `wanted`, over all labels. It polls, because much is counted after
    /// the client has its response.
    ///
    /// # Panics
    /// If it stays below, or is above.
    pub async fn assert_metric(&self, name: &str, wanted: u64) {
        self.assert_counted(name, "", wanted).await;
    }

    /// Asserts how often a limit was reached, as [`Daemon::assert_metric`] does.
    ///
    /// # Panics
    /// Those of [`Daemon::assert_metric`].
    pub async fn assert_limit_count(&self, limit: &str, wanted: u64) {
        self.assert_counted("larder_limit_hits_total", &format!("limit=\"{limit}\""), wanted).await;
    }

    /// Asserts that the log contains `words`, and returns the log. It polls, because responses and
    /// counters may be there before the log.
    ///
    /// # Panics
    /// If they do not appear in time.
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

    /// The admin socket may be opened after the listeners for clients.
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
        // Both fail only if the child has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
        for pid in self.successors.iter().copied().filter(|pid| self.is_running(*pid)) {
            let named = Pid::from_raw(pid.cast_signed());
            named.into_iter().for_each(|pid| _ = kill_process(pid, Signal::KILL));
            let mut waited = Duration::ZERO;
            while self.is_running(pid) && waited < PATIENCE {
                waited += POLL;
                std::thread::sleep(POLL);
            }
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The binary under test: `LARDER_BIN`, or the one that Cargo built beside the running test.
///
/// # Errors
/// [`io::ErrorKind::NotFound`] if neither exists.
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

/// The setting that keeps a daemon root if the tests run as root and `config` names no user. On a
/// machine with a user for Larder, the daemon would become that user.
fn stay_root(config: &str) -> &'static [&'static str] {
    let is_said = config.contains("[run]") || !rustix::process::geteuid().is_root();
    if is_said { &[] } else { &["--user", "root"] }
}

/// Makes a new folder below the system's temporary folder.
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

/// The number of listeners in `config`: quoted addresses of its `listen` lines.
fn listeners(config: &str) -> usize {
    let addresses = config
        .lines()
        .filter(|line| line.trim_start().starts_with("listen"))
        // The log has addresses of unix sockets in another form.
        .map(|line| line.matches('"').count() / 2 - line.matches("\"unix:").count())
        .sum::<usize>();
    addresses.max(1)
}

/// The listener in a log line, and true if it is the admin listener.
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
