//! A client of Varnish's CLI that shares no code with the server.

use std::net::SocketAddr;
use std::process::Command;
use std::time::Instant;

use serde_json::Value;
use sha2::{Digest, Sha256};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::folder::Folder;
use super::{PATIENCE, Setup, Stage, pause};

pub(crate) const SECRET: &[u8] = b"a secret of these tests\n";

/// A daemon with the CLI's port, and the folder of its secret.
pub(crate) async fn stage(limits: &str) -> (Stage, Folder) {
    let folder = Folder::new();
    folder.file("secret", SECRET);
    let secret = folder.path().join("secret");
    let top = format!(
        "varnish_cli = {{ listen = \"127.0.0.1:0\", secret = \"{}\" }}\n",
        secret.display()
    );
    (Setup { top: &top, limits, ..Setup::default() }.start().await, folder)
}

/// Runs a command of Debian's `varnishadm`: true if it succeeded, and its output.
pub(crate) async fn varnishadm(
    address: SocketAddr,
    folder: &Folder,
    command: &[&str],
) -> (bool, String) {
    let mut process = Command::new("varnishadm");
    process.arg("-T").arg(address.to_string());
    process.arg("-S").arg(folder.path().join("secret")).args(command);
    let run = tokio::task::spawn_blocking(move || process.output());
    match timeout(PATIENCE, run).await.expect("it ends").expect("no panic") {
        Ok(output) => {
            let printed = [output.stdout, output.stderr].concat();
            (output.status.success(), String::from_utf8_lossy(&printed).into_owned())
        }
        Err(error) => {
            panic!("varnishadm: {error}; scripts/setup.sh basic installs what is missing")
        }
    }
}

/// A status and a text; 0 when the connection has ended.
pub(crate) type Answer = (u16, String);

pub(crate) struct Cli(TcpStream);

impl Cli {
    /// A connection, and its greeting.
    pub(crate) async fn connect(address: SocketAddr) -> (Self, Answer) {
        Self::over(TcpStream::connect(address).await.expect("a connection")).await
    }

    pub(crate) async fn over(stream: TcpStream) -> (Self, Answer) {
        let mut cli = Self(stream);
        let greeting = cli.answer().await;
        (cli, greeting)
    }

    /// A connection whose client has authenticated.
    pub(crate) async fn authenticated(address: SocketAddr) -> Self {
        let (mut cli, greeting) = Self::connect(address).await;
        let (status, text) = cli.ask(&auth(&greeting.1, SECRET)).await;
        assert_eq!(status, 200, "{text}");
        cli
    }

    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        // When the connection has ended there is no answer, which shows it.
        _ = timeout(PATIENCE, self.0.write_all(bytes)).await.expect("in time");
    }

    pub(crate) async fn ask(&mut self, line: &str) -> Answer {
        self.send(format!("{line}\n").as_bytes()).await;
        self.answer().await
    }

    /// Waits until counters, under Varnish's names, are `wanted`: a response may be counted when
    /// its client has it already.
    pub(crate) async fn counted(&mut self, wanted: &[(&str, u64)]) {
        let wanted: Vec<_> = wanted.iter().map(|(name, value)| (*name, Some(*value))).collect();
        let started = Instant::now();
        loop {
            let text = self.ask("stats.json").await.1;
            let all: Value = serde_json::from_str(&text).expect("JSON");
            let value = |name: &str| all["counters"][name]["value"].as_u64();
            let found: Vec<_> = wanted.iter().map(|(name, _)| (*name, value(name))).collect();
            if found == wanted || started.elapsed() > PATIENCE {
                assert_eq!(found, wanted);
                return;
            }
            pause(20).await;
        }
    }

    pub(crate) async fn answer(&mut self) -> Answer {
        let mut head = [0; 13];
        let read = timeout(PATIENCE, self.0.read_exact(&mut head)).await.expect("in time");
        if read.is_err() {
            return (0, String::new());
        }
        let head = std::str::from_utf8(&head).expect("digits");
        assert_eq!((&head[3..4], &head[12..]), (" ", "\n"), "{head:?}");
        let number = |text: &str| text.trim_end().parse::<usize>().expect("a number");
        let mut text = vec![0; number(&head[4..12]) + 1];
        timeout(PATIENCE, self.0.read_exact(&mut text)).await.expect("in time").expect("all of it");
        assert_eq!(text.pop(), Some(b'\n'));
        (number(&head[..3]) as u16, String::from_utf8_lossy(&text).into_owned())
    }

    /// Returns true if the peer ends the connection, and sends nothing more.
    pub(crate) async fn ends(&mut self) -> bool {
        let mut rest = Vec::new();
        let ended = timeout(PATIENCE, self.0.read_to_end(&mut rest)).await.is_ok();
        ended && rest.is_empty()
    }
}

/// The command that answers a challenge.
pub(crate) fn auth(greeting: &str, secret: &[u8]) -> String {
    let letters = &greeting.as_bytes()[..32];
    let text = [letters, b"\n", secret, letters, b"\n"].concat();
    let hex: String = Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("auth {hex}")
}
