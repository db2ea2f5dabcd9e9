//! `listen`, and the words behind the address.

use super::state::State;
use crate::document::{Settings, TomlValue, quote};
use crate::syntax::Directive;

/// A server's listeners.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Listeners {
    /// One of them speaks TLS.
    pub(crate) tls: bool,
    /// One of them does not.
    pub(crate) plain: bool,
    /// It answers for hosts that no server has.
    pub(crate) is_default: bool,
    /// All of them are for clients on this machine.
    pub(crate) is_local: bool,
}

/// Opens the listeners of a server.
pub(crate) fn listeners(state: &mut State<'_>, server: &[Directive]) -> Listeners {
    let mut found = Listeners::default();
    let old_tls = server.iter().find(|own| own.name == "ssl" && own.arg(0) == "on");
    if let Some(own) = old_tls {
        state.ledger.carried(own.id, "");
    }
    let has_http2 = server.iter().any(|own| own.name == "http2" && own.arg(0) == "on");
    let all: Vec<_> = server.iter().filter(|own| own.name == "listen").collect();
    found.plain = all.is_empty();
    found.is_local = !all.is_empty() && all.iter().all(|own| is_local(own.arg(0)));
    for directive in all {
        let words = &directive.args[directive.args.len().min(1)..];
        let has = |name: &str| words.iter().any(|word| word == name);
        let is_tls = has("ssl") || old_tls.is_some();
        found.is_default |= has("default_server") || has("default");
        if has("quic") || has("http3") {
            state.ledger.left(directive.id, "HTTP/3 is not there", "clients use HTTP/2");
            continue;
        }
        if has("proxy_protocol") && !state.document.top.has("trusted_proxies") {
            let instead = "`trusted_proxies` with the balancers, and ` proxy` behind the address";
            let why = "no balancer is trusted (`set_real_ip_from`), so none may name its clients";
            state.ledger.left(directive.id, why, instead);
            found.tls |= is_tls;
            found.plain |= !is_tls;
            continue;
        }
        if is_tls {
            found.tls = true;
        } else {
            found.plain = true;
        }
        let mut text = address(directive.arg(0));
        for (word, own) in [(is_tls, " tls"), (has("proxy_protocol"), " proxy")] {
            text.push_str(if word { own } else { "" });
        }
        let has_h2c = (has_http2 || has("http2")) && !is_tls;
        open(&mut state.document.top, &text, has_h2c, directive.id);
    }
    found
}

/// Adds a listener. HTTP/2 without TLS is there for all servers of an address or for none.
fn open(top: &mut Settings, text: &str, has_h2c: bool, id: usize) {
    let with_h2c = format!("{text} h2c");
    let mut is_h2c = has_h2c;
    if let Some(TomlValue::List(known)) = top.get_mut("listen").map(|own| &mut own.value) {
        is_h2c |= known.contains(&quote(&with_h2c));
        if is_h2c {
            known.retain(|own| *own != quote(text));
        }
    }
    top.add("listen", [if is_h2c { with_h2c.as_str() } else { text }], &[id]);
}

fn is_local(address: &str) -> bool {
    ["127.", "[::1]", "localhost", "unix:"].iter().any(|start| address.starts_with(start))
}

/// An address as Larder writes it. All addresses are those of both families.
fn address(text: &str) -> String {
    if text.starts_with("unix:") {
        return text.to_owned();
    }
    let is_port = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if is_port {
        return format!(":{text}");
    }
    for any in ["*:", "[::]:", "0.0.0.0:"] {
        if let Some(port) = text.strip_prefix(any) {
            return format!(":{port}");
        }
    }
    let has_port = match text.strip_prefix('[') {
        Some(rest) => rest.contains("]:"),
        None => text.contains(':'),
    };
    if has_port { text.to_owned() } else { format!("{text}:80") }
}
