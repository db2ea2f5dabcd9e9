//! The verbs that talk to a running daemon.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// `larder reload`.
pub(crate) fn reload(socket: &Path) -> Result<(), String> {
    match ask(socket, "POST", "/reload")? {
        (200, body) => {
            print!("{body}");
            Ok(())
        }
        (_, body) => Err(body),
    }
}

/// Asks the daemon's admin socket: status and body.
pub(crate) fn ask(socket: &Path, method: &str, path: &str) -> Result<(u16, String), String> {
    let failed = |e: std::io::Error| {
        format!("larder: no running daemon answers at {}: {e}", socket.display())
    };
    let mut stream = UnixStream::connect(socket).map_err(failed)?;
    stream.set_read_timeout(Some(Duration::from_secs(10))).map_err(failed)?;
    write!(stream, "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .map_err(failed)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).map_err(failed)?;
    let status = answer.get(9..12).and_then(|code| code.parse().ok());
    let body = answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned());
    status.zip(body).ok_or_else(|| "larder: the daemon's answer cannot be read".to_owned())
}
