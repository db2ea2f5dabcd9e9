//! Logs: the access log, and the error log of the daemon.

use std::net::SocketAddr;
use std::path::PathBuf;

use base::logging::Priority;
use observe::Pattern;

use crate::model::{AccessLog, ErrorLog, LogFormat, LogTarget};
use crate::reader::{Reader, SettingValue};
use crate::rows::{self, put, section};
use crate::suggestions;

section! {
    pub(crate) ACCESS_LOG, ACCESS_LOG_ROWS: AccessLog; "[access_log]",
    "The access log, as a table; a string instead of a table sets `path`.";
    "path", "a path, \"stdout\" or \"syslog\"", "\"stdout\"", "Destination of the log: a file, to which Larder appends, or standard output. `syslog` is the syslog daemon at `/dev/log`. `syslog:/path` is another socket, `syslog:192.0.2.1:514` a server over UDP.",
        |r, item, to| put(&mut to.target, log_target(r, item));
    "format", "\"combined\", \"json\" or a format", "\"combined\"", "Format of a line: NCSA combined, a JSON object, or a format of your own. Your own may contain formatters of varnishncsa and Apache (`%h`, `%{X-Id}i`) and variables of nginx (`$remote_addr`, `$http_x_id`).",
        |r, item, to| put(&mut to.format, log_format(r, item));
    "escape", "\"default\" or \"json\"", "\"default\"", "Escaping of values in a format of your own. `default`: as varnishncsa or nginx do. `json`: for JSON strings.",
        |r, item, _| _ = r.word(item, &ESCAPES);
    "secrets", boolean secrets, "false", "Whether a format of your own logs credentials in clear text; otherwise they are masked. These are Authorization, Proxy-Authorization, Cookie, Set-Cookie, X-Api-Key, X-Auth-Token, X-CSRF-Token, X-XSRF-Token and X-Amz-Security-Token.";
}

/// The keywords of `escape`.
const ESCAPES: [(&str, bool); 2] = [("default", false), ("json", true)];

/// Reads the access log; `None` if it is off.
pub(super) fn access_log(r: &mut Reader, item: &SettingValue<'_>) -> Option<AccessLog> {
    let (target, format) = (LogTarget::Stdout, LogFormat::default());
    let mut log = AccessLog { target, format, secrets: false };
    if item.value.is_table() {
        return rows::read_table(r, item, &ACCESS_LOG, ACCESS_LOG_ROWS, &mut log).then_some(log);
    }
    if item.value.as_str() == Some("off") {
        return None;
    }
    Some(AccessLog { target: log_target(r, item)?, ..log })
}

fn log_format(r: &mut Reader, item: &SettingValue<'_>) -> Option<LogFormat> {
    let escape = item.table.item("escape");
    let json = escape.is_some_and(|item| item.value.as_str() == Some("json"));
    let text = r.text(item)?;
    match text {
        "combined" => return Some(LogFormat::Combined),
        "json" => return Some(LogFormat::Json),
        _ if !text.contains(['%', '$']) => {
            let close = suggestions::closest(text, ["combined", "json"]);
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

fn log_target(r: &mut Reader, item: &SettingValue<'_>) -> Option<LogTarget> {
    match r.text(item)? {
        "stdout" => Some(LogTarget::Stdout),
        _ => file_or_syslog(r, item, ["stdout", "off"]),
    }
}

/// Reads a log's destination; `words` are further keywords that the key takes.
fn file_or_syslog(r: &mut Reader, item: &SettingValue<'_>, words: [&str; 2]) -> Option<LogTarget> {
    match r.text(item)? {
        "syslog" => Some(LogTarget::SyslogPath(PathBuf::from("/dev/log"))),
        other if other.starts_with("syslog:") => syslog(r, item, &other["syslog:".len()..]),
        // A relative path would depend on the daemon's working directory, and is mostly a slip.
        path if path.starts_with('/') && !path.contains('\0') => {
            Some(LogTarget::File(PathBuf::from(path)))
        }
        other => {
            let close = suggestions::closest(other, words.into_iter().chain(["syslog"]));
            let (name, word) = (item.name, words[0]);
            let message = format!("`{name}` takes \"{word}\", \"syslog\" or an absolute path");
            r.error(item.span.clone(), message).help =
                close.map(|word| format!("did you mean \"{word}\"?"));
            None
        }
    }
}

/// A syslog daemon's socket or address.
fn syslog(r: &mut Reader, item: &SettingValue<'_>, at: &str) -> Option<LogTarget> {
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

section! {
    pub(crate) ERROR_LOG, ERROR_LOG_ROWS: ErrorLog; "[error_log]",
    "The daemon's own log, with messages of origins and programs. A reload changes the level, but \
     not the path.";
    "path", "a path, \"stderr\" or \"syslog\"", "\"stderr\"", "Destination of the log: a file, to which Larder appends and which owner and group can read, or standard error. `syslog` is as in `[access_log]`. Under systemd, lines on standard error carry their level for the journal.",
        |r, item, to| put(&mut to.target, error_target(r, item));
    "level", "\"error\", \"warn\", \"notice\", \"info\", \"debug\"; \"emerg\", \"alert\" or \"crit\"", "\"debug\"", "Lowest level that is written. `debug` covers what a VCL logs at this level.",
        |r, item, to| put(&mut to.level, level(r, item));
}

/// Reads the error log.
pub(super) fn error_log(r: &mut Reader, item: &SettingValue<'_>) -> Option<ErrorLog> {
    if !item.value.is_table() {
        return Some(ErrorLog { target: error_target(r, item)?, ..ErrorLog::default() });
    }
    let table = r.table(item, &ERROR_LOG)?;
    let mut log = ErrorLog::default();
    rows::read(r, &table, ERROR_LOG_ROWS, &mut log);
    Some(log)
}

fn level(r: &mut Reader, item: &SettingValue<'_>) -> Option<Priority> {
    let words: Vec<_> = Priority::ALL.iter().map(|level| (level.word(), *level)).collect();
    r.word(item, &words)
}

/// Reads its destination; the inner `None` is standard error.
fn error_target(r: &mut Reader, item: &SettingValue<'_>) -> Option<Option<LogTarget>> {
    match r.text(item)? {
        "stderr" => Some(None),
        _ => file_or_syslog(r, item, ["stderr", "stderr"]).map(Some),
    }
}
