//! `[varnish_cli]` and `[htcp]`: ports on which others' tools purge.

use std::net::SocketAddr;

use policy::acl::{CidrSet, parse_net};

use super::tls::path;
use super::{listen::one_listen, lists};
use crate::keys::{Fixed, Section, TEXTS, keys};
use crate::model::{CliSecret, Config, Htcp, ListenSpec, VarnishCli};
use crate::reader::{Item, Reader, Table};

/// Whose datagrams count where nothing is said.
const HERE: [&str; 2] = ["127.0.0.0/8", "::1"];

pub(crate) const VARNISH_CLI: Section = Section {
    title: "[varnish_cli]",
    about: "A port that speaks Varnish's CLI, for `varnishadm` and plugins. What is banned there is \
            banned for all sites. Where it listens is read when the daemon starts; a reload reads \
            the secret again, and without the table closes the port.",
    keys: || {
        keys! {
            "listen", "a string", "required", "Where it listens, as in `listen`: Varnish's usual port is 6082.";
            "secret", "an absolute path, or `\"none\"`", "made by the daemon", "File with the secret, as varnishd's `-S`: clients show that they know it, every byte of it. Without the key the daemon makes one at its start and writes it to `_.secret` beside the admin socket, for its own user only. `none` is for ports that only this machine can connect to: all of its users may then ban, load programs and with them read files as the daemon.";
        }
    },
    fixed: &[Fixed { name: "[varnish_cli] listen", differs: cli_differs }],
    ..Section::EMPTY
};

/// A port that a reload closes, since its table is left out, may come back by another.
fn cli_differs(own: &Config, next: &Config) -> bool {
    let listen = |config: &Config| config.varnish_cli.as_ref().map(|cli| cli.listen.clone());
    listen(next).is_some() && listen(own) != listen(next)
}

pub(crate) const HTCP: Section = Section {
    title: "[htcp]",
    about: "A UDP port that takes HTCP (RFC 2756): CLR, a purge of one URL of whichever site its host \
            names, in one datagram, and TST, the question whether something is stored. Signatures \
            are not verified and a datagram's source can be forged: for networks that keep \
            strangers' out. Read when the daemon starts.",
    keys: || {
        keys! {
            "listen", "a string", "required", "Where it listens, as in `listen`: HTCP's usual port is 4827. A multicast group's address is joined.";
            "allow", TEXTS, "[\"127.0.0.0/8\", \"::1\"]", "Addresses or networks whose datagrams count; to others nothing is said.";
            "interface", "a string", "as the routes say", "The network interface, such as `eth1`, through which a multicast group that `listen` names is joined.";
        }
    },
    fixed: &[Fixed { name: "[htcp]", differs: |own, next| own.htcp != next.htcp }],
    ..Section::EMPTY
};

/// The port that speaks Varnish's CLI.
pub(super) fn varnish_cli(r: &mut Reader, whole: &Item<'_>) -> Option<VarnishCli> {
    let table = r.table(whole, &VARNISH_CLI)?;
    let listen = listen(r, whole, &table, &VARNISH_CLI, "6082");
    let secret = match table.item("secret") {
        Some(item) if item.value.as_str() == Some("none") => CliSecret::None,
        Some(item) => path(r, &item).map(|(path, place)| CliSecret::File(path, place))?,
        None => CliSecret::Own,
    };
    let listen = listen?;
    if secret == CliSecret::None {
        let is_here = |address: &SocketAddr| address.ip().is_loopback();
        if listen.addresses.iter().all(is_here) {
            let text = "everybody on this machine may ban and load programs: there is no `secret`";
            r.warning(whole.span.clone(), text);
        } else {
            let text = "without a `secret` it listens on loopback addresses only";
            r.error(whole.span.clone(), text).help =
                Some("secret = \"/etc/varnish/secret\", or listen = \"127.0.0.1:6082\"".into());
        }
    }
    Some(VarnishCli { listen, secret })
}

/// The port that takes HTCP.
pub(super) fn htcp(r: &mut Reader, whole: &Item<'_>) -> Option<Htcp> {
    let table = r.table(whole, &HTCP)?;
    let listen = listen(r, whole, &table, &HTCP, "4827");
    let nets = match table.item("allow") {
        Some(item) => lists::nets(r, &item),
        None => HERE.iter().filter_map(|text| parse_net(text).ok()).collect(),
    };
    let interface = table.item("interface").and_then(|item| Some(r.text(&item)?.to_owned()));
    Some(Htcp { listen: listen?, allow: CidrSet::new(&nets), interface })
}

/// Addresses without TLS or anything else.
fn listen(
    r: &mut Reader,
    whole: &Item<'_>,
    table: &Table<'_>,
    section: &Section,
    port: &str,
) -> Option<ListenSpec> {
    let Some(item) = table.item("listen") else {
        r.error(whole.span.clone(), format!("{} needs `listen`", section.title));
        return None;
    };
    address(r, &item, &format!("127.0.0.1:{port}"))
}

/// An address, or what stands for several. `example` is one.
pub(super) fn address(r: &mut Reader, item: &Item<'_>, example: &str) -> Option<ListenSpec> {
    let spec = r.text(item).and_then(|text| one_listen(r, text, item))?;
    if spec.addresses.is_empty() || spec.tls || spec.proxy || spec.h2c {
        r.error(item.span.clone(), "an address and nothing else belongs here").help =
            Some(format!("such as \"{example}\""));
        return None;
    }
    Some(spec)
}
