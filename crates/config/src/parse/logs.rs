//! The access log, and the log of what the daemon says of itself.

use std::net::SocketAddr;
use std::path::PathBuf;

use base::say::Priority;
use observe::Pattern;

use crate::keys;
use crate::model::{AccessLog, ErrorLog, LogFormat, LogTarget};
use crate::reader::{Item, Reader, Table};
use crate::suggest;

/// Reads where requests are logged; `None` if nowhere.
pub(super) fn access_log(r: &mut Reader, top: &Table<'_>) -> Option<AccessLog> {
    let item = &top.item("access_log")?;
    if item.value.is_table() {
        let table = r.table(item, &keys::ACCESS_LOG)?;
        let json = table
            .item("escape")
            .and_then(|item| r.word(&item, &[("default", false), ("json", true)]));
        let format = table.item("format").map(|item| log_format(r, &item, json == Some(true)));
        let secrets = table.item("secrets").and_then(|item| r.boolean(&item)).unwrap_or(false);
        let target = match table.item("path") {
            Some(item) => log_target(r, &item)?,
            None => LogTarget::Stdout,
        };
        let format = format.unwrap_or_else(|| Some(LogFormat::default()))?;
        return Some(AccessLog { target, format, secrets });
    }
    if item.value.as_str() == Some("off") {
        return None;
    }
    Some(AccessLog { target: log_target(r, item)?, format: LogFormat::default(), secrets: false })
}

fn log_format(r: &mut Reader, item: &Item<'_>, json: bool) -> Option<LogFormat> {
    let text = r.text(item)?;
    match text {
        "combined" => return Some(LogFormat::Combined),
        "json" => return Some(LogFormat::Json),
        _ if !text.contains(['%', '$']) => {
            let close = suggest::closest(text, ["combined", "json"]);
            let message = "`format` takes \"combined\", \"json\" or a format such as '%h $status'";
            r.error(item.span.clone(), message).help =
                close.map(|word| format!("did you mean \"{word}\"?"));
            return None;
        }
        _ => {}
    }
    match Pattern::parse(text, json) {
        Ok(_) => Some(LogFormat::Custom { text: text.to_owned(), json }),
        Err(mistake) => {
            let span = r.place_within(item, text, &mistake.span);
            r.error(span, mistake.message).help = mistake.help;
            None
        }
    }
}

fn log_target(r: &mut Reader, item: &Item<'_>) -> Option<LogTarget> {
    match r.text(item)? {
        "stdout" => Some(LogTarget::Stdout),
        text => file_or_syslog(r, item, (text, ["stdout", "off"])),
    }
}

/// Reads a place that every log can go to; `words` are further ones that the key takes.
fn file_or_syslog(
    r: &mut Reader,
    item: &Item<'_>,
    (text, words): (&str, [&str; 2]),
) -> Option<LogTarget> {
    match text {
        "syslog" => Some(LogTarget::SyslogPath(PathBuf::from("/dev/log"))),
        other if other.starts_with("syslog:") => syslog(r, item, &other["syslog:".len()..]),
        // A relative path would depend on where the daemon was started from, and is mostly a slip.
        path if path.starts_with('/') && !path.contains('\0') => {
            Some(LogTarget::File(PathBuf::from(path)))
        }
        other => {
            let close = suggest::closest(other, words.into_iter().chain(["syslog"]));
            let (name, word) = (item.name, words[0]);
            let message = format!("`{name}` takes \"{word}\", \"syslog\" or an absolute path");
            r.error(item.span.clone(), message).help =
                close.map(|word| format!("did you mean \"{word}\"?"));
            None
        }
    }
}

/// A syslog daemon's socket or address.
fn syslog(r: &mut Reader, item: &Item<'_>, at: &str) -> Option<LogTarget> {
    if at.starts_with('/') && !at.contains('\0') {
        return Some(LogTarget::SyslogPath(PathBuf::from(at)));
    }
    // 514 is syslog's port (RFC 5426 3.3).
    let address = at.parse().or_else(|_| at.parse().map(|ip| SocketAddr::new(ip, 514)));
    if let Ok(address) = address {
        return Some(LogTarget::SyslogAddress(address));
    }
    r.error(item.span.clone(), format!("`{}`: `{at}` is no place of a syslog daemon", item.name))
        .help = Some(
        "such as \"syslog\", \"syslog:/run/syslog.sock\" or \"syslog:192.0.2.1:514\"".to_owned(),
    );
    None
}

/// Reads where the daemon says what happens to it.
pub(super) fn error_log(r: &mut Reader, top: &Table<'_>) -> ErrorLog {
    top.item("error_log").and_then(|item| own_log(r, &item)).unwrap_or_default()
}

fn own_log(r: &mut Reader, item: &Item<'_>) -> Option<ErrorLog> {
    if !item.value.is_table() {
        return Some(ErrorLog { target: error_target(r, item)?, ..ErrorLog::default() });
    }
    let table = r.table(item, &keys::ERROR_LOG)?;
    let level = table.item("level").and_then(|item| {
        let words: Vec<_> = Priority::ALL.iter().map(|level| (level.word(), *level)).collect();
        r.word(&item, &words)
    });
    let target = match table.item("path") {
        Some(item) => error_target(r, &item)?,
        None => None,
    };
    Some(ErrorLog { target, level: level.unwrap_or_default() })
}

/// Reads where it goes; the inner `None` is standard error.
fn error_target(r: &mut Reader, item: &Item<'_>) -> Option<Option<LogTarget>> {
    match r.text(item)? {
        "stderr" => Some(None),
        text => file_or_syslog(r, item, (text, ["stderr", "stderr"])).map(Some),
    }
}
