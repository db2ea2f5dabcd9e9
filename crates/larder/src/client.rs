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

/// `larder stat`.
pub(crate) fn stat(socket: &Path, json: bool) -> Result<(), String> {
    let (_, body) = ask(socket, "GET", "/stats")?;
    if json {
        print!("{body}");
        return Ok(());
    }
    let value: serde_json::Value =
        serde_json::from_str(&body).map_err(|e| format!("larder: unexpected answer: {e}"))?;
    print_figures(&value, "");
    Ok(())
}

fn print_figures(value: &serde_json::Value, prefix: &str) {
    for (name, value) in value.as_object().into_iter().flatten() {
        if value.is_object() {
            print_figures(value, &format!("{name}."));
        } else {
            println!("{:<44} {value:>16}", format!("{prefix}{name}"));
        }
    }
}

fn ask(socket: &Path, method: &str, path: &str) -> Result<(u16, String), String> {
    let failed = |e: std::io::Error| {
        format!("larder: no running daemon answers at {}: {e}", socket.display())
    };
    let mut stream = UnixStream::connect(socket).map_err(failed)?;
    stream.set_read_timeout(Some(Duration::from_secs(10))).map_err(failed)?;
    write!(stream, "{method} {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").map_err(failed)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).map_err(failed)?;
    let status = answer.get(9..12).and_then(|code| code.parse().ok());
    let body = answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned());
    status.zip(body).ok_or_else(|| "larder: the daemon's answer cannot be read".to_owned())
}
