//! `[varnish_cli]` and `[htcp]`: ports for purges by other tools.

use std::net::SocketAddr;

use policy::acl::{CidrSet, parse_net};

use super::{listen::one_listen, lists};
use crate::keys::TEXTS;
use crate::model::{CliSecret, Config, Htcp, ListenSpec, VarnishCli};
use crate::reader::{Reader, SettingValue};
use crate::rows::{self, put, section};

/// The default of `allow`.
const HERE: [&str; 2] = ["127.0.0.0/8", "::1"];

section! {
    pub(crate) VARNISH_CLI, VARNISH_CLI_ROWS: VarnishCli; "[varnish_cli]",
    "A port that speaks Varnish's CLI, for `varnishadm` and plugins. Its bans apply to all sites. \
     Larder reads `listen` at the start. A reload reads the secret again, or closes the port if \
     the table is gone.";
    @needed("[varnish_cli] needs `listen`", "")
    @restart("[varnish_cli] listen", |own, next| {
        // A reload that removes the table closes the port; a later one may open it again.
        let listen = |config: &Config| config.varnish_cli.as_ref().map(|cli| cli.listen.clone());
        listen(next).is_some() && listen(own) != listen(next)
    })
    "listen", "a string", "required", "Address of the port, written as `listen` at the top of the file. Varnish's usual port is 6082.",
        |r, item, to| put(&mut to.listen, address(r, item, "127.0.0.1:6082"));
    "secret", "an absolute path, or `\"none\"`", "made by the daemon", "File with the secret, as varnishd's `-S`. Clients must prove that they know every byte of it. Without this setting, the daemon creates a secret at the start, in `_.secret` beside the admin socket, for its own user only. `none`: no secret, for ports that only this machine can reach. All users of the machine may then ban, load programs, and with them read files as the daemon.",
        |r, item, to| put(&mut to.secret, secret(r, item));
}

section! {
    pub(crate) HTCP, HTCP_ROWS: Htcp; "[htcp]",
    "A UDP port for HTCP (RFC 2756). CLR purges one URL of the site that its host names; TST asks \
     whether a response is stored. Larder verifies no signatures, and a datagram's source address \
     can be forged. Use this port only in networks that strangers cannot reach. Larder reads this \
     table at the start.";
    @needed("[htcp] needs `listen`", "")
    "listen", "a string", "required", "Address of the port, written as `listen` at the top of the file. HTCP's usual port is 4827. If it is a multicast address, Larder joins the group.",
        |r, item, to| put(&mut to.listen, address(r, item, "127.0.0.1:4827"));
    "allow", TEXTS, "[\"127.0.0.0/8\", \"::1\"]", "Addresses or networks whose datagrams are accepted. All other datagrams get no answer.",
        |r, item, to| to.allow = CidrSet::new(&lists::nets(r, item));
    "interface", string interface, "as the routes say", "Network interface, such as `eth1`, on which Larder joins the multicast group of `listen`.";
}

/// Reads the Varnish CLI port.
pub(super) fn varnish_cli(r: &mut Reader, whole: &SettingValue<'_>) -> Option<VarnishCli> {
    let mut cli = VarnishCli { listen: ListenSpec::default(), secret: CliSecret::Own };
    if !rows::read_table(r, whole, &VARNISH_CLI, VARNISH_CLI_ROWS, &mut cli) {
        return None;
    }
    if cli.secret == CliSecret::None {
        let is_here = |address: &SocketAddr| address.ip().is_loopback();
        if cli.listen.addresses.iter().all(is_here) {
            let text = "everybody on this machine may ban and load programs: there is no `secret`";
            r.warning(whole.span.clone(), text);
        } else {
            let text = "without a `secret` it listens on loopback addresses only";
            r.error(whole.span.clone(), text).help =
                Some("secret = \"/etc/varnish/secret\", or listen = \"127.0.0.1:6082\"".into());
        }
    }
    Some(cli)
}

fn secret(r: &mut Reader, item: &SettingValue<'_>) -> Option<CliSecret> {
    match item.value.as_str() {
        Some("none") => Some(CliSecret::None),
        _ => r.path(item).map(CliSecret::File),
    }
}

/// Reads the HTCP port.
pub(super) fn htcp(r: &mut Reader, whole: &SettingValue<'_>) -> Option<Htcp> {
    let here: Vec<_> = HERE.iter().filter_map(|text| parse_net(text).ok()).collect();
    let (listen, allow) = (ListenSpec::default(), CidrSet::new(&here));
    let mut htcp = Htcp { listen, allow, interface: None };
    rows::read_table(r, whole, &HTCP, HTCP_ROWS, &mut htcp).then_some(htcp)
}

/// Reads an address, or a form that stands for several. `example` is one.
pub(super) fn address(
    r: &mut Reader,
    item: &SettingValue<'_>,
    example: &str,
) -> Option<ListenSpec> {
    let spec = r.text(item).and_then(|text| one_listen(r, text, item))?;
    if spec.addresses.is_empty() || spec.tls || spec.proxy || spec.h2c {
        r.error(item.span.clone(), "an address and nothing else belongs here").help =
            Some(format!("such as \"{example}\""));
        return None;
    }
    Some(spec)
}
