//! Settings that are those of the whole daemon here, wherever they stand there.

use super::state::{Scope, State};
use super::units;
use super::variables::{TextPiece, pieces};
use crate::document::quote;
use crate::syntax::Directive;

/// Decides about a directive of the whole daemon. Returns false for any other.
/// these.
pub(crate) fn settle(state: &mut State<'_>, own: &Directive) -> bool {
    let first = own.arg(0);
    let id = own.id;
    match own.name.as_str() {
        "user" => {
            let run = state.table("run");
            run.text("user", first, &[id]);
            if own.args.len() > 1 {
                run.text("group", own.arg(1), &[id]);
            }
        }
        "worker_processes" if first == "auto" => {
            state.ledger.default(id, "one thread for each core");
        }
        "worker_processes" => state.document.top.put("workers", first, &[id]),
        "http2" if first == "on" => {
            state.ledger.default(id, "HTTP/2 is offered, without TLS by `h2c` behind the address");
        }
        "http2" => state.document.top.put("http2", "false", &[id]),
        "access_log" => access_log(state, own),
        "error_log" => error_log(state, own),
        "client_max_body_size" => largest(state, own),
        "keepalive_timeout" => limit_time(state, own, "idle_timeout"),
        "client_header_timeout" => limit_time(state, own, "header_timeout"),
        "client_body_timeout" => limit_time(state, own, "body_timeout"),
        "send_timeout" => limit_time(state, own, "send_timeout"),
        "keepalive_requests" => state.table("limits").put("keepalive_requests", first, &[id]),
        "large_client_header_buffers" => match units::size_bytes(own.arg(1)) {
            Some(bytes) if bytes > 8 << 10 => {
                let limits = state.table("limits");
                limits.put("header_field_bytes", units::size(bytes), &[id]);
                limits.put("target_bytes", units::size(bytes), &[id]);
                let number = first.parse().unwrap_or(4_u64);
                let all = bytes.saturating_mul(number).max(32 << 10);
                limits.put("header_bytes", units::size(all), &[id]);
            }
            _ => state.ledger.default(id, "heads of requests may have 32 KiB, fields 8 KiB"),
        },
        "gzip_comp_level" => state.table("compression").put("level", first, &[id]),
        "gzip_min_length" => {
            let bytes = units::size_bytes(first).unwrap_or(0);
            state.table("compression").put("min_bytes", units::size(bytes), &[id]);
        }
        "gzip_types" => gzip_types(state, own),
        "set_real_ip_from" => state.document.top.add("trusted_proxies", [first], &[id]),
        "real_ip_header" => match first {
            "proxy_protocol" => state.ledger.default(id, "the PROXY header names the client"),
            "X-Forwarded-For" => state.ledger.default(id, "the same field is the default"),
            other => state.document.top.text("client_field", other, &[id]),
        },
        "proxy_cache_path" | "fastcgi_cache_path" => state.ledger.default(
            id,
            "responses are kept in memory, in a size that suits the machine; `[memory] size` sets \
             it, and `[disk]` adds a disk",
        ),
        "ssl_protocols" => {
            let old =
                |word: &String| matches!(word.as_str(), "SSLv2" | "SSLv3" | "TLSv1" | "TLSv1.1");
            if own.args.iter().any(old) {
                let why = "TLS 1.2 and 1.3 are spoken; older versions have been broken for years";
                state.ledger.not_needed(id, why);
            } else {
                state.ledger.default(id, "TLS 1.2 and 1.3 are spoken");
            }
        }
        _ => return false,
    }
    true
}

/// Leaves the requests of a site or route out of the access log.
pub(crate) fn logged(scope: &mut Scope<'_, '_>) {
    let all = scope.chain.every("access_log");
    let is_off = |own: &&&Directive| own.arg(0) == "off";
    let (Some(last), Some(off)) = (all.last(), all.iter().find(is_off)) else { return };
    let id = last.id;
    match (is_off(&last), scope.is_site) {
        _ if !scope.state.world.logs => {}
        (true, _) => scope.out.put("access_log", "false", &[id]),
        (false, false) => scope.out.put("access_log", "true", &[id, off.id]),
        (false, true) => scope.default(off, "the inner access_log counts"),
    }
}

fn access_log(state: &mut State<'_>, own: &Directive) {
    let path = own.arg(0);
    let is_outer = !own.args.iter().any(|arg| arg.starts_with("if="));
    if path == "off" {
        if !state.world.logs {
            state.ledger.default(own.id, "there is no access log unless one is named");
        }
        // Where there is one, sites and routes are left out of it.
        return;
    }
    let taken = state.document.tables.get("access_log").and_then(|table| table.get("path"));
    let text = match path.strip_prefix("syslog:server=") {
        Some(server) => format!("syslog:{}", server.split(',').next().unwrap_or(server)),
        None if path == "/dev/stdout" => "stdout".to_owned(),
        None => log_file(path),
    };
    let same = crate::document::TomlValue::Plain(quote(&text));
    if taken.is_some_and(|taken| taken.value != same) {
        let instead = "a format with $host tells the sites apart";
        return state.ledger.left(own.id, "there is one access log for all sites", instead);
    }
    let format = own.args.get(1).filter(|arg| !arg.contains('=')).map(String::as_str);
    let named = format.and_then(|name| state.world.log_formats.get(name).copied());
    let table = state.table("access_log");
    table.text("path", &text, &[own.id]);
    if let Some(named) = named {
        let words: Vec<_> = named.args.iter().skip(1).collect();
        let is_json = words.first().is_some_and(|word| *word == "escape=json");
        let text: String =
            words.iter().filter(|word| !word.starts_with("escape=")).map(|w| w.as_str()).collect();
        let (text, unknown) = known_variables(&text);
        table.text("format", &text, &[named.id]);
        if is_json {
            table.text("escape", "json", &[named.id]);
        }
        if !unknown.is_empty() {
            let remark = format!("there is no {}, so a `-` stands there", unknown.join(", "));
            state.ledger.carried(named.id, &remark);
        }
    }
    if !is_outer {
        let instead = "`larder log -q` filters what is read";
        state.ledger.left(own.id, "all requests are written", instead);
    }
}

/// The file of a log: a relative one stands where Debian's nginx has its logs.
fn log_file(path: &str) -> String {
    match path.rsplit('/').next() {
        Some(name) if !path.starts_with('/') && !path.contains(':') => {
            format!("/var/log/nginx/{name}")
        }
        _ => path.to_owned(),
    }
}

/// A format with `-` in the place of variables that Larder does not know, and these.
fn known_variables(format: &str) -> (String, Vec<String>) {
    let is_known = |name: &str| {
        let text = format!(
            "[[site]]\nhost = \"a.test\"\norigin = \"http://127.0.0.1:1\"\n[access_log]\npath = \
             \"/x\"\nformat = {}\n",
            quote(&format!("${{{name}}}"))
        );
        config::load_str(&text, "larder.toml").is_ok()
    };
    let (mut all, mut unknown) = (String::new(), Vec::new());
    for piece in pieces(format) {
        match piece {
            TextPiece::Plain(text) => all.push_str(text),
            TextPiece::Variable(name) if is_known(name) => {
                all.push_str(&if format.contains(&format!("${{{name}}}")) {
                    format!("${{{name}}}")
                } else {
                    format!("${name}")
                });
            }
            TextPiece::Variable(name) => {
                all.push('-');
                unknown.push(format!("`${name}`"));
            }
        }
    }
    (all, unknown)
}

fn error_log(state: &mut State<'_>, own: &Directive) {
    let path = own.arg(0);
    let is_taken = state.document.tables.get("error_log").is_some_and(|table| table.has("path"));
    if is_taken {
        return state.ledger.not_needed(own.id, "one log has the errors of all sites");
    }
    let text = match path {
        "stderr" | "/dev/stderr" => "stderr".to_owned(),
        "/dev/null" => {
            return state.ledger.left(own.id, "errors are always written", "`level = \"emerg\"`");
        }
        other => match other.strip_prefix("syslog:server=") {
            Some(server) => format!("syslog:{}", server.split(',').next().unwrap_or(server)),
            None => log_file(other),
        },
    };
    // nginx writes what is at least an error, unless a level says otherwise.
    let level = own.args.get(1).map_or("error", String::as_str);
    let table = state.table("error_log");
    table.text("path", &text, &[own.id]);
    table.text("level", level, &[own.id]);
}

/// The largest of all sites counts.
fn largest(state: &mut State<'_>, own: &Directive) {
    let Some(bytes) = units::size_bytes(own.arg(0)) else {
        return state.ledger.left(own.id, "this is not a size", "");
    };
    // Without a limit there: as much as a number of bytes may say.
    let bytes = if bytes == 0 { 1 << 50 } else { bytes };
    let limits = state.table("limits");
    let before = limits.get("request_body_bytes").cloned();
    let text = units::size(bytes);
    let is_other = before
        .as_ref()
        .is_some_and(|before| before.value != crate::document::TomlValue::Plain(text.clone()));
    let known = before.as_ref().and_then(|before| known_bytes(&before.value)).unwrap_or(0);
    let value = units::size(bytes.max(known));
    limits.put("request_body_bytes", value, &[own.id]);
    if is_other {
        state.ledger.carried(own.id, "there is one limit for all sites: the largest");
    }
}

fn known_bytes(value: &crate::document::TomlValue) -> Option<u64> {
    let text = crate::document::written(value);
    let text = text.trim_matches('"');
    let unit = text.find(|c: char| !c.is_ascii_digit())?;
    let letter = match &text[unit..] {
        "GiB" => "g",
        "MiB" => "m",
        "KiB" => "k",
        _ => "",
    };
    units::size_bytes(&format!("{}{letter}", &text[..unit]))
}

fn limit_time(state: &mut State<'_>, own: &Directive, key: &str) {
    match units::time(own.arg(0)) {
        Some(time) => {
            let limits = state.table("limits");
            let is_other = limits.get(key).is_some_and(|before| {
                before.value != crate::document::TomlValue::Plain(time.clone())
            });
            if is_other {
                let why = "this time is the same for all sites";
                return state.ledger.left(own.id, why, "choose one for `[limits]`");
            }
            limits.put(key, time, &[own.id]);
        }
        None => state.ledger.left(own.id, "this is not a time", ""),
    }
}

/// Types that are compressed by default: texts and what is made of text.
fn gzip_types(state: &mut State<'_>, own: &Directive) {
    let is_text = |kind: &String| {
        let words = ["text/", "json", "xml", "javascript", "font", "svg", "manifest", "wasm", "*"];
        words.iter().any(|word| kind.contains(word))
            || matches!(kind.as_str(), "application/rss" | "image/bmp" | "image/x-icon")
    };
    if own.args.iter().all(is_text) {
        state.ledger.default(own.id, "texts, JSON, XML, scripts and fonts are compressed");
    } else {
        let html = std::iter::once("text/html");
        let types = html.chain(own.args.iter().map(String::as_str));
        state.table("compression").add("types", types, &[own.id]);
    }
}
