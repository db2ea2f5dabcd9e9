//! From the flags of varnishd to `larder.toml`. The VCL stays as it is.

use super::state::State;
use super::units;
use crate::document::{Block, Settings, SiteBlock};
use crate::syntax::Directive;

const FLAGS: &str = "`larder serve` takes varnishd's flags as they are, this one among them";

/// Makes the one site, which is for all hosts.
pub(crate) fn make(state: &mut State<'_>, flags: &[Directive]) {
    let has_http2 =
        flags.iter().any(|own| own.name == "-p" && own.arg(0).starts_with("feature=+http2"));
    let has_cli = flags.iter().any(|own| own.name == "-T");
    let mut site = Settings::default();
    site.text("host", "*", &[]);
    for own in flags {
        flag(state, own, &mut site, Facts { has_http2, has_cli });
    }
    // As varnishd has it: each peer of such a listener names its clients.
    let proxied: Vec<usize> = flags
        .iter()
        .filter(|own| own.name == "-a" && own.arg(0).contains(",PROXY"))
        .map(|own| own.id)
        .collect();
    if !proxied.is_empty() {
        state.document.top.add("trusted_proxies", ["0.0.0.0/0", "::/0"], &proxied);
        let remark = "every peer may name its clients: write the balancers into `trusted_proxies`";
        proxied.iter().for_each(|id| state.ledger.carried(*id, remark));
    }
    if !site.has("vcl") && !site.has("origin") {
        return;
    }
    let site = Block { settings: site, from: Vec::new() };
    state.document.sites.push(SiteBlock { site, routes: Vec::new() });
}

/// Facts of the whole command line.
#[derive(Clone, Copy)]
struct Facts {
    has_http2: bool,
    has_cli: bool,
}

fn flag(state: &mut State<'_>, own: &Directive, site: &mut Settings, facts: Facts) {
    let (id, value) = (own.id, own.arg(0));
    match own.name.as_str() {
        "-a" => match endpoint(value, facts.has_http2) {
            Some(text) => state.document.top.add("listen", [text.as_str()], &[id]),
            None => {
                let instead = "`listen = \":443 tls\"`, with `tls` in the site";
                state.ledger.left(
                    id,
                    "the certificates of this listener are in another file",
                    instead,
                );
            }
        },
        "-f" if value.starts_with('/') => site.text("vcl", value, &[id]),
        "-f" => {
            state.ledger.left(id, "the path of the program is not absolute", "write it in full");
        }
        "-b" => {
            let server = if value.contains(':') { value.to_owned() } else { format!("{value}:80") };
            site.text("origin", &format!("http://{server}"), &[id]);
            state
                .ledger
                .carried(id, "pages are cached as Larder's settings say, not as the built-in VCL");
        }
        "-T" if value != "none" => {
            let text = value.replacen("localhost", "127.0.0.1", 1);
            state.table("varnish_cli").text("listen", &text, &[id]);
        }
        "-T" => state.ledger.default(id, "there is no CLI unless one is named"),
        "-S" if facts.has_cli => state.table("varnish_cli").text("secret", value, &[id]),
        "-S" => state.ledger.not_needed(id, "there is no CLI"),
        "-s" => storage(state, own),
        "-p" if value.starts_with("feature=+http2") => {
            state.ledger.carried(id, "");
        }
        "-p" | "-t" | "-r" | "-i" | "-I" | "-M" | "-A" => {
            state.ledger.left(id, "no setting has it beside a program", FLAGS);
        }
        "-j" => {
            let user = value.split(',').find_map(|word| word.strip_prefix("user="));
            let run = state.table("run");
            run.text("user", user.unwrap_or("vcache"), &[id]);
        }
        "-n" | "-P" | "-F" | "-d" | "-l" | "-W" | "-D" => {
            state.ledger.not_needed(id, "the service manager has one process, in the foreground");
        }
        name if name.starts_with('-') => {
            state.ledger.left(id, "this flag is not known here", FLAGS);
        }
        _ => state.ledger.not_needed(id, "Larder's package brings a service of its own"),
    }
}

/// An address as Larder writes it; `None` for one whose certificates are elsewhere.
fn endpoint(text: &str, has_http2: bool) -> Option<String> {
    let mut words = text.split(',');
    let address = words.next().unwrap_or_default();
    let address = match address.split_once('=') {
        Some((name, rest)) if !name.contains(['/', ':']) => rest,
        _ => address,
    };
    let mut own = match address {
        path if path.starts_with('/') => format!("unix:{path}"),
        port if port.bytes().all(|b| b.is_ascii_digit()) && !port.is_empty() => format!(":{port}"),
        any if any.starts_with("0.0.0.0:") => any["0.0.0.0".len()..].to_owned(),
        any if any.starts_with("[::]:") => any["[::]".len()..].to_owned(),
        named if named.contains(':') => named.replacen("localhost", "127.0.0.1", 1),
        bare => format!("{bare}:80"),
    };
    for word in words {
        match word.to_ascii_lowercase().as_str() {
            "proxy" => own.push_str(" proxy"),
            "https" => return None,
            _ => {}
        }
    }
    own.push_str(if has_http2 { " h2c" } else { "" });
    Some(own)
}

fn storage(state: &mut State<'_>, own: &Directive) {
    let text = own.arg(0);
    let spec = match text.split_once('=') {
        Some((name, rest)) if !name.contains(',') => rest,
        _ => text,
    };
    let mut words = spec.split(',');
    let (kind, size) = (words.next().unwrap_or_default(), words.next());
    let bytes = size.and_then(units::size_bytes);
    match (kind, bytes) {
        ("malloc" | "default" | "umem", Some(bytes)) => {
            state.table("memory").put("size", units::size(bytes), &[own.id]);
        }
        ("malloc" | "default" | "umem", None) => {
            state.ledger.default(own.id, "Larder chooses a size that suits the machine");
        }
        _ => {
            let instead = "`[disk]` keeps responses over restarts";
            state.ledger.left(own.id, "the file of varnishd cannot be read", instead);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_written_as_larder_has_them() {
        for (text, expected) in [
            (":6081", Some(":6081")),
            ("http=0.0.0.0:80,HTTP", Some(":80")),
            ("localhost:8443,PROXY", Some("127.0.0.1:8443 proxy")),
            ("/run/v.sock,PROXY,mode=660", Some("unix:/run/v.sock proxy")),
            ("10.0.0.1", Some("10.0.0.1:80")),
            (":443,https", None),
        ] {
            assert_eq!(endpoint(text, false).as_deref(), expected, "{text}");
        }
        assert_eq!(endpoint(":80", true).as_deref(), Some(":80 h2c"));
    }
}
