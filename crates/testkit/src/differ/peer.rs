//! A peer: a server with varnishd's flags (Varnish or Larder) as a child process.
//!
//! It must never touch a process that it did not start.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use tokio::net::TcpSocket;

use super::cli::Cli;
use super::client::ServerAddresses;
use super::counters::{self, Counters};
use super::origin::Origin;
use super::scenario::{Scenario, scenario_parser};

/// Most polls, every 20 ms, before a start counts as failed.
const LOOKS: usize = 1500;

const SECRET: &[u8] = b"a secret of the differ\n";

/// Parameters that both servers are started with.
const PARAMS: [(&str, &str); 2] = [
    ("http_gzip_support", "off"),
    // Counters are published after each request. With 0, idle workers would sum without end.
    ("thread_stats_rate", "1"),
];

/// The names of the origins of a scenario.
const ORIGINS: [&str; 4] = ["o1", "o2", "o3", "o4"];

/// The program that runs before a scenario's.
const BOOT: &str = "vcl 4.1;\nbackend default none;\n";

/// A server program.
#[derive(Clone, Debug)]
pub struct ServerProgram {
    /// Its name in reports.
    pub name: String,
    /// The program and its first arguments, before varnishd's.
    pub command: Vec<String>,
}

impl ServerProgram {
    /// Varnish, as the system has it.
    pub fn varnishd() -> Self {
        // An unoptimised compilation is enough, and is most of a load's time.
        let compiler = "cc_command=exec gcc -O0 -pthread -fpic -shared -Wl,-x -o %o %s";
        let command = ["varnishd", "-j", "none", "-F", "-p", compiler];
        Self { name: "varnishd".to_owned(), command: command.map(str::to_owned).to_vec() }
    }

    /// Larder, the binary at `path`.
    pub fn larder(path: &Path) -> Self {
        let command = vec![path.display().to_string(), "serve".to_owned()];
        Self { name: "larder".to_owned(), command }
    }
}

/// A running server with its origins.
#[derive(Debug)]
pub struct TestedServer {
    kind: ServerProgram,
    child: Child,
    folder: PathBuf,
    pub(super) plain: SocketAddr,
    pub(super) proxied: SocketAddr,
    pub(super) cli: Cli,
    pub(super) origins: Vec<Origin>,
    /// The port of `${dead}`.
    dead: RefusingPort,
    /// Number of crashes of the child that were reported.
    crashes: usize,
    /// The loaded programs of a scenario.
    loaded: BTreeMap<String, String>,
    generation: usize,
}

impl TestedServer {
    /// Starts a server.
    ///
    /// # Errors
    /// A program that cannot be started or does not come up, with its output.
    pub fn start(kind: &ServerProgram) -> io::Result<Self> {
        let mut fault = None;
        // Another process may take a port between its choice and its use.
        for _ in 0..3 {
            match Self::attempt(kind) {
                Ok(peer) => return Ok(peer),
                Err(error) => fault = Some(error),
            }
        }
        Err(fault.unwrap_or_else(|| io::Error::other("no attempt")))
    }

    fn attempt(kind: &ServerProgram) -> io::Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("larder-differ-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder)?;
        fs::write(folder.join("secret"), SECRET)?;
        fs::write(folder.join("boot.vcl"), BOOT)?;
        let [plain, proxied, cli] = [free_port()?, free_port()?, free_port()?];
        let said = fs::File::create(folder.join("said"))?;
        let mut child = Command::new(&kind.command[0])
            .args(&kind.command[1..])
            .args(["-a", &plain.to_string(), "-a", &format!("behind={proxied},PROXY")])
            .args(["-T", &cli.to_string(), "-s", "malloc,64m"])
            .args(
                PARAMS
                    .iter()
                    .flat_map(|(name, value)| ["-p".to_owned(), format!("{name}={value}")]),
            )
            .arg("-S")
            .arg(folder.join("secret"))
            .arg("-n")
            .arg(folder.join("work"))
            .arg("-f")
            .arg(folder.join("boot.vcl"))
            .env("STATE_DIRECTORY", &folder)
            .stdin(Stdio::null())
            .stdout(said.try_clone()?)
            .stderr(said)
            .spawn()
            .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", kind.name)))?;
        match up(&mut child, plain, cli) {
            Ok(cli) => {
                let origins: io::Result<Vec<Origin>> =
                    ORIGINS.into_iter().map(|name| Origin::start(name, &folder)).collect();
                let (loaded, generation, crashes) = (BTreeMap::new(), 0, 0);
                let (kind, origins, dead) = (kind.clone(), origins?, RefusingPort::new()?);
                Ok(Self {
                    kind,
                    child,
                    folder,
                    plain,
                    proxied,
                    cli,
                    origins,
                    dead,
                    crashes,
                    loaded,
                    generation,
                })
            }
            Err(error) => {
                let said = fs::read_to_string(folder.join("said")).unwrap_or_default();
                end(&mut child);
                // A folder that stays does no harm.
                _ = fs::remove_dir_all(&folder);
                Err(io::Error::other(format!("{}: {error}: {said}", kind.name)))
            }
        }
    }

    /// Its name in reports.
    pub fn name(&self) -> &str {
        &self.kind.name
    }

    /// Output of the peer so far.
    pub fn said(&self) -> String {
        fs::read_to_string(self.folder.join("said")).unwrap_or_default()
    }

    /// Returns true if the serving process has crashed since the last call. After a crash, the call
    /// waits for the new child that Varnish starts.
    pub(super) fn has_crashed(&mut self) -> bool {
        let crashes = self.said().matches("Panic at").count();
        let is_new = crashes > std::mem::replace(&mut self.crashes, crashes);
        for _ in 0..LOOKS {
            if !is_new || TcpStream::connect(self.plain).is_ok() {
                break;
            }
            thread::sleep(Duration::from_millis(20));
        }
        is_new
    }

    pub(super) fn target(&self, scenario: &Scenario) -> ServerAddresses {
        ServerAddresses { plain: self.plain, proxied: self.proxied, host: scenario.host() }
    }

    /// The values of placeholders.
    pub(super) fn values(&self) -> BTreeMap<String, String> {
        let ports = self.origins.iter().map(|o| (o.name().to_owned(), o.port().to_string()));
        let mut values: BTreeMap<String, String> = ports.collect();
        values.insert("dead".to_owned(), self.dead.port.to_string());
        values.insert("tmp".to_owned(), self.folder.display().to_string());
        values
    }

    /// Prepares a scenario: origins, files, parameters, an empty cache, programs. Programs that the
    /// last scenario had, too, stay loaded.
    pub(super) fn prepare(&mut self, scenario: &Scenario) -> Result<(), String> {
        for origin in &self.origins {
            origin.reset(scenario.origins.get(origin.name()).map_or(&[], Vec::as_slice));
        }
        // Varnish remembers per address that it has just refused, whatever the program.
        self.dead = RefusingPort::new().map_err(|why| why.to_string())?;
        let values = self.values();
        for (name, text) in &scenario.files {
            let path = self.folder.join(name);
            fs::write(path, scenario_parser::filled(text, &values))
                .map_err(|why| why.to_string())?;
        }
        for (name, value) in &scenario.params {
            self.command(&format!("param.set {name} {value}"))?;
        }
        let all = scenario.labels.iter().map(|(label, text)| (label.as_str(), text));
        let wanted: BTreeMap<String, String> = all
            .chain([("", &scenario.vcl)])
            .map(|(label, text)| (label.to_owned(), scenario_parser::program(text, &values)))
            .collect();
        if wanted == self.loaded {
            // The server must notice that its origin connections are closed: a POST is not retried.
            thread::sleep(Duration::from_millis(20));
        } else {
            self.unload();
            self.load(wanted)?;
        }
        self.command("ban obj.status != 0").map(drop)
    }

    fn load(&mut self, wanted: BTreeMap<String, String>) -> Result<(), String> {
        self.generation += 1;
        // Labels come first: the main program, whose label is empty, may name them.
        let (main, labels): (Vec<_>, Vec<_>) =
            wanted.iter().partition(|(label, _)| label.is_empty());
        for (label, text) in labels.into_iter().chain(main) {
            let name = self.program(label);
            self.command(&format!("vcl.inline {name} << END_OF_VCL\n{text}\nEND_OF_VCL"))?;
            let line = match label.as_str() {
                "" => format!("vcl.use {name}"),
                label => format!("vcl.label {label} {name}"),
            };
            self.loaded.insert(label.clone(), text.clone());
            self.command(&line)?;
        }
        Ok(())
    }

    /// The name of the loaded program of a label.
    pub(super) fn program(&self, label: &str) -> String {
        format!("v{}{label}", self.generation)
    }

    /// Returns to the boot program. A program that cannot be discarded stays; it does no harm.
    fn unload(&mut self) {
        let mut lines = vec!["vcl.use boot".to_owned()];
        lines.push(format!("vcl.discard {}", self.program("")));
        for label in self.loaded.keys().filter(|label| !label.is_empty()) {
            lines.push(format!("vcl.discard {label}"));
            lines.push(format!("vcl.discard {}", self.program(label)));
        }
        if !self.loaded.is_empty() {
            for line in lines {
                _ = self.cli.ask(&line);
            }
        }
        self.loaded.clear();
    }

    /// Restores what a scenario has changed.
    pub(super) fn restore(&mut self, scenario: &Scenario) -> Result<(), String> {
        for (name, value) in &scenario.params {
            match PARAMS.iter().find(|(own, _)| own == name) {
                Some((_, usual)) => self.command(&format!("param.set {name} {usual}"))?,
                // Varnish 7.1 cannot reset such a parameter.
                None if name == "feature" => {
                    let back = value.replace('+', "-");
                    self.command(&format!("param.set feature {back}"))?
                }
                None => self.command(&format!("param.reset {name}"))?,
            };
        }
        Ok(())
    }

    /// Reads all counters.
    pub(super) fn counters(&mut self) -> Result<Counters, String> {
        match self.cli.ask("stats.json") {
            Ok((200, text)) => counters::read(&text),
            Ok(_) => counters::of_varnish(&self.folder.join("work")),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Sends a command that must succeed. Returns its answer.
    pub(super) fn command(&mut self, line: &str) -> Result<String, String> {
        let answer = self.cli.ask(line);
        let line = line.lines().next().unwrap_or_default();
        match answer {
            Ok((200, text)) => Ok(text),
            Ok((status, text)) => Err(format!("{line}: {status} {text}")),
            Err(error) => Err(format!("{line}: {error}: {}", self.said())),
        }
    }
}

/// A port that refuses connections: bound, but not listening.
#[derive(Debug)]
struct RefusingPort {
    port: u16,
    _taken: TcpSocket,
}

impl RefusingPort {
    fn new() -> io::Result<Self> {
        let taken = TcpSocket::new_v4()?;
        taken.bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
        Ok(Self { port: taken.local_addr()?.port(), _taken: taken })
    }
}

impl Drop for TestedServer {
    fn drop(&mut self) {
        end(&mut self.child);
        // A folder that stays does no harm.
        _ = fs::remove_dir_all(&self.folder);
    }
}

/// Ends a child with the signal of service managers; varnishd then ends its own child.
fn end(child: &mut Child) {
    if let Ok(id) = i32::try_from(child.id())
        && let Some(pid) = rustix::process::Pid::from_raw(id)
    {
        _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    }
    for _ in 0..250 {
        if !matches!(child.try_wait(), Ok(None)) {
            return;
        }
        thread::sleep(Duration::from_millis(20));
    }
    // Both fail only if it has ended.
    _ = child.kill();
    _ = child.wait();
}

/// Waits until a child accepts commands and connections.
fn up(child: &mut Child, plain: SocketAddr, cli: SocketAddr) -> io::Result<Cli> {
    for _ in 0..LOOKS {
        if let Some(status) = child.try_wait()? {
            return Err(io::Error::other(format!("it ended: {status}")));
        }
        thread::sleep(Duration::from_millis(20));
        let Ok(mut cli) = Cli::connect(cli, SECRET) else { continue };
        if cli.ask("status")?.1.ends_with("running") && TcpStream::connect(plain).is_ok() {
            return Ok(cli);
        }
    }
    Err(io::Error::new(io::ErrorKind::TimedOut, "it does not come up"))
}

/// A free port below the kernel's ephemeral ports.
fn free_port() -> io::Result<SocketAddr> {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    for _ in 0..1000 {
        let step = NEXT.fetch_add(1, Ordering::Relaxed);
        let begin = (std::process::id() % 900) as u16 * 13;
        let port = 20_000 + (begin + step) % 12_000;
        let addr = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        if TcpListener::bind(addr).is_ok() {
            return Ok(addr);
        }
    }
    Err(io::Error::other("no free port"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dead_port_refuses_connections_and_cannot_be_bound() {
        let (one, other) =
            (RefusingPort::new().expect("a port"), RefusingPort::new().expect("a port"));
        assert_ne!(one.port, other.port);
        let addr = SocketAddr::from((Ipv4Addr::LOCALHOST, one.port));
        let refusal = TcpStream::connect(addr).expect_err("nobody listens");
        assert_eq!(refusal.kind(), io::ErrorKind::ConnectionRefused);
        let taken = TcpListener::bind(addr).expect_err("it is taken");
        assert_eq!(taken.kind(), io::ErrorKind::AddrInUse);
    }
}
