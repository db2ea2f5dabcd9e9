//! `[varnish_cli]` and `[htcp]`: ports on which others' tools purge.

use std::net::SocketAddr;

use policy::acl::{CidrSet, parse_net};

use super::tls::path;
use super::{listen::one_listen, lists};
use crate::keys::{self, Section};
use crate::model::{CliSecret, Htcp, ListenSpec, VarnishCli};
use crate::reader::{Item, Reader, Table};

/// Whose datagrams count where nothing is said.
const HERE: [&str; 2] = ["127.0.0.0/8", "::1"];

/// The port that speaks Varnish's CLI.
pub(super) fn varnish_cli(r: &mut Reader, top: &Table<'_>) -> Option<VarnishCli> {
    let item = top.item("varnish_cli")?;
    let table = r.table(&item, &keys::VARNISH_CLI)?;
    let listen = listen(r, &item, &table, &keys::VARNISH_CLI, "6082");
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
            r.warning(item.span, text);
        } else {
            r.error(item.span, "without a `secret` it listens on loopback addresses only").help =
                Some("secret = \"/etc/varnish/secret\", or listen = \"127.0.0.1:6082\"".into());
        }
    }
    Some(VarnishCli { listen, secret })
}

/// The port that takes HTCP.
pub(super) fn htcp(r: &mut Reader, top: &Table<'_>) -> Option<Htcp> {
    let item = top.item("htcp")?;
    let table = r.table(&item, &keys::HTCP)?;
    let listen = listen(r, &item, &table, &keys::HTCP, "4827");
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
