//! A blocking client of Varnish's CLI. It shares no code with the server.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use sha2::{Digest, Sha256};

/// Time limit of an answer: varnishd waits for a C compiler.
const PATIENCE: Duration = Duration::from_secs(60);

/// An authenticated connection.
#[derive(Debug)]
pub struct Cli(TcpStream);

impl Cli {
    /// Connects to `port` and authenticates with the secret.
    ///
    /// # Errors
    /// Those of the socket, and an unexpected answer.
    pub fn connect(port: SocketAddr, secret: &[u8]) -> io::Result<Self> {
        let stream = TcpStream::connect(port)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut cli = Self(stream);
        let (status, text) = cli.answer()?;
        let Some(letters) = text.as_bytes().get(..32).filter(|_| status == 107) else {
            return Err(io::Error::other(format!("{status} {text}")));
        };
        let proof = [letters, b"\n", secret, letters, b"\n"].concat();
        let hex: String = Sha256::digest(proof).iter().map(|b| format!("{b:02x}")).collect();
        match cli.ask(&format!("auth {hex}"))? {
            (200, _) => Ok(cli),
            (status, text) => Err(io::Error::other(format!("{status} {text}"))),
        }
    }

    /// Sends a command. Returns its status and text.
    ///
    /// # Errors
    /// Those of the socket.
    pub fn ask(&mut self, line: &str) -> io::Result<(u16, String)> {
        self.0.write_all(format!("{line}\n").as_bytes())?;
        self.answer()
    }

    fn answer(&mut self) -> io::Result<(u16, String)> {
        let mut head = [0; 13];
        self.0.read_exact(&mut head)?;
        let odd = || io::Error::other(format!("no head of an answer: {head:?}"));
        let text = std::str::from_utf8(&head).map_err(|_| odd())?;
        let status = text[..3].parse().map_err(|_| odd())?;
        let length: usize = text[4..12].trim_end().parse().map_err(|_| odd())?;
        let mut text = vec![0; length + 1];
        self.0.read_exact(&mut text)?;
        text.pop();
        Ok((status, String::from_utf8_lossy(&text).into_owned()))
    }
}
