//! Access lists of the syntax tree, checked and compiled to lookup tables. Host names are resolved
//! once, when the program is compiled.

#[cfg(test)]
mod tests;

use std::net::IpAddr;

use crate::acl::{Acl, Boundaries, Entry};
use crate::ast;
use crate::lower::Lowering;
use crate::source::SourceSpan;
use crate::text::address;

impl Lowering<'_> {
    pub(super) fn acl(&mut self, acl: &ast::AclDeclaration) {
        let loader = self.input.loader;
        match build(acl, &|host| loader.resolve(host)) {
            Ok((acl, warnings)) => {
                self.parts.acls.push(acl);
                for warning in warnings {
                    self.report.warning(warning.span, warning.message);
                }
            }
            Err(faults) => {
                for fault in faults {
                    let entry = self.report.error(fault.span, fault.message);
                    if let Some(other) = fault.other {
                        entry.label(other, "the other one");
                    }
                    if let Some(help) = fault.help {
                        entry.help(help);
                    }
                }
            }
        }
    }
}

/// An error or warning about a list.
#[derive(Clone, Debug, PartialEq, Eq)]
struct AclDiagnostic {
    /// Position.
    span: SourceSpan,
    /// The message.
    message: String,
    /// The entry that contradicts this one.
    other: Option<SourceSpan>,
    /// Advice.
    help: Option<String>,
}

/// The flags of a list.
#[derive(Clone, Copy, Debug)]
struct Flags {
    log: bool,
    pedantic: bool,
}

/// A network of one family: the addresses whose first `bits` bits equal those of `first`, with its
/// entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Network {
    first: u128,
    bits: u32,
    entry: usize,
}

/// Compiles a declared list. `resolve` gives the addresses of host names. The result includes
/// warnings.
///
/// # Errors
/// All errors of the list.
fn build(
    acl: &ast::AclDeclaration,
    resolve: &dyn Fn(&str) -> Result<Vec<IpAddr>, String>,
) -> Result<(Acl, Vec<AclDiagnostic>), Vec<AclDiagnostic>> {
    let mut building = AclBuilder::default();
    let flags = building.flags(acl);
    let mut entries = Vec::new();
    for (number, entry) in acl.entries.iter().enumerate() {
        let hosts = building.hosts(entry, resolve);
        let shown = match (hosts.first(), flags.pedantic) {
            (Some(host), false) => building.shown(entry, *host),
            _ => shown(entry).into(),
        };
        for host in hosts {
            building.network(number, entry, host, flags.pedantic);
        }
        entries.push(Entry { negated: entry.negated, shown });
    }
    let tables = [false, true].map(|is_v6| building.table(is_v6, acl));
    if !building.faults.is_empty() {
        return Err(building.faults);
    }
    let name = acl.name.text.clone();
    Ok((Acl::new(name, entries, tables, flags.log), building.warnings))
}

/// Access list that is being compiled.
#[derive(Default)]
struct AclBuilder {
    v4: Vec<Network>,
    v6: Vec<Network>,
    faults: Vec<AclDiagnostic>,
    warnings: Vec<AclDiagnostic>,
}

/// An address of an entry, with the bits of its mask.
#[derive(Clone, Copy)]
struct Host {
    addr: IpAddr,
    bits: u32,
}

impl AclBuilder {
    fn fault(&mut self, span: SourceSpan, message: String) -> &mut AclDiagnostic {
        self.faults.push(AclDiagnostic { span, message, other: None, help: None });
        self.faults.last_mut().expect("it was just put there")
    }

    fn flags(&mut self, acl: &ast::AclDeclaration) -> Flags {
        let mut flags = Flags { log: false, pedantic: true };
        for ast::AclFlag { is_on, name, inner } in &acl.flags {
            match &*name.text {
                "log" => flags.log = *is_on,
                "pedantic" => flags.pedantic = *is_on,
                // Varnish's memory layout of the list, and (from 7.5) joining of neighbours: no
                // effect here.
                "table" | "fold" => {}
                other => {
                    let fault = self.fault(name.span, format!("an acl has no flag `{other}`"));
                    fault.help = Some("its flags are log, pedantic, table and fold".to_string());
                }
            }
            // In Varnish, `fold(-report)` silences messages about joined entries; here there are
            // none.
            let is_known =
                |own: &ast::AclFlag| &*name.text == "fold" && &*own.name.text == "report";
            if let Some(other) = inner.iter().find(|own| !is_known(own)) {
                let message = format!("`{}` has no flag `{}`", name.text, other.name.text);
                self.fault(other.name.span, message).help =
                    Some("only fold has one: `fold(-report)`".to_string());
            }
        }
        flags
    }

    /// Addresses of an entry; `None` after an error, or if an optional entry has no address.
    fn hosts(
        &mut self,
        entry: &ast::AclEntry,
        resolve: &dyn Fn(&str) -> Result<Vec<IpAddr>, String>,
    ) -> Vec<Host> {
        let (text, span) = &entry.host;
        // The mask may be part of the string.
        let inner = text.split_once('/').and_then(|(host, bits)| Some((host, bits.parse().ok()?)));
        let (host, mask) = match (inner, entry.mask) {
            (Some((host, bits)), None) => (host, Some((bits, *span))),
            (_, mask) => (&**text, mask),
        };
        let found = match address::numeric(host) {
            Some(addr) => Ok(vec![addr]),
            None => resolve(host),
        };
        let addrs = match found {
            Ok(addrs) if !addrs.is_empty() => addrs,
            none => {
                let why = none.err().unwrap_or_else(|| "it has no address".to_string());
                if entry.optional {
                    let message = format!("`{host}` is left out: {why}");
                    self.warnings.push(AclDiagnostic {
                        span: *span,
                        message,
                        other: None,
                        help: None,
                    });
                } else {
                    self.fault(*span, format!("`{host}` cannot be found: {why}")).help =
                        Some(format!("in parentheses it may be missing: (\"{host}\")"));
                }
                return Vec::new();
            }
        };
        let mut hosts = Vec::new();
        for addr in addrs {
            let bits = mask.map_or_else(|| width(addr), |(bits, _)| bits);
            if bits > width(addr) {
                let span = mask.map_or(*span, |(_, span)| span);
                let family = if addr.is_ipv4() { "IPv4" } else { "IPv6" };
                self.fault(span, format!("a mask of {bits} bits is too wide for {family}"));
                continue;
            }
            hosts.push(Host { addr, bits });
        }
        hosts
    }

    fn network(&mut self, number: usize, entry: &ast::AclEntry, host: Host, pedantic: bool) {
        let Host { addr, bits } = host;
        let first = masked(addr, bits);
        if pedantic && first != number_of(addr) {
            let fault =
                self.fault(entry.host.1, "the address has bits behind its mask".to_string());
            fault.help = Some(format!("perhaps \"{}\"/{bits} is meant", address_of(addr, first)));
        }
        let family = if addr.is_ipv4() { &mut self.v4 } else { &mut self.v6 };
        family.push(Network { first, bits, entry: number });
    }

    /// The entry as the log shows it; where the mask cuts bits off, with the resulting network.
    fn shown(&self, entry: &ast::AclEntry, host: Host) -> Box<str> {
        let first = masked(host.addr, host.bits);
        if first == number_of(host.addr) {
            return shown(entry).into();
        }
        let network = address_of(host.addr, first);
        format!("{} fixed: {network}/{}", shown(entry), host.bits).into()
    }

    /// Lookup table of one family. Reports entries that contradict each other for one network.
    fn table(&mut self, is_v6: bool, acl: &ast::AclDeclaration) -> Boundaries {
        let mut networks = std::mem::take(if is_v6 { &mut self.v6 } else { &mut self.v4 });
        networks.sort_unstable();
        for pair in networks.windows(2) {
            let [a, b] = [pair[0], pair[1]].map(|network| &acl.entries[network.entry]);
            let is_same = (pair[0].first, pair[0].bits) == (pair[1].first, pair[1].bits);
            if is_same && a.negated != b.negated {
                let fault = self.fault(b.span, "this entry contradicts another one".to_string());
                fault.other = Some(a.span);
            }
        }
        networks.dedup_by_key(|network| (network.first, network.bits));
        changes(&networks, if is_v6 { 128 } else { 32 })
    }
}

/// Boundaries of the deciding network. `networks` are sorted, and each pair is disjoint or nested.
fn changes(networks: &[Network], width: u32) -> Boundaries {
    let mut table: Boundaries = Vec::new();
    // Networks that contain the current address, from the outermost to the innermost.
    let mut open: Vec<(u128, usize)> = Vec::new();
    let close = |open: &mut Vec<(u128, usize)>, table: &mut Boundaries| {
        let Some((last, _)) = open.pop() else { return };
        let outer = open.last();
        // An outer network that ends here too is closed next.
        if let Some(from) = last.checked_add(1)
            && outer.is_none_or(|(outer_last, _)| *outer_last != last)
        {
            table.push((from, outer.map(|(_, entry)| *entry)));
        }
    };
    for network in networks {
        while open.last().is_some_and(|(last, _)| *last < network.first) {
            close(&mut open, &mut table);
        }
        let size = u128::MAX.checked_shr(128 - width + network.bits).unwrap_or(0);
        open.push((network.first | size, network.entry));
        if table.last().is_some_and(|(from, _)| *from == network.first) {
            table.pop();
        }
        table.push((network.first, Some(network.entry)));
    }
    while !open.is_empty() {
        close(&mut open, &mut table);
    }
    table
}

fn shown(entry: &ast::AclEntry) -> String {
    let host = &entry.host.0;
    match entry.mask {
        Some((bits, _)) => format!("\"{host}\"/{bits}"),
        None => format!("\"{host}\""),
    }
}

fn width(addr: IpAddr) -> u32 {
    if addr.is_ipv4() { 32 } else { 128 }
}

fn number_of(addr: IpAddr) -> u128 {
    match addr {
        IpAddr::V4(addr) => addr.to_bits().into(),
        IpAddr::V6(addr) => addr.to_bits(),
    }
}

/// The address with this number, of the family of `like`.
fn address_of(like: IpAddr, number: u128) -> IpAddr {
    match like {
        IpAddr::V4(_) => IpAddr::V4((number as u32).into()),
        IpAddr::V6(_) => IpAddr::V6(number.into()),
    }
}

/// The number of `addr`, with all bits after the first `bits` cleared.
fn masked(addr: IpAddr, bits: u32) -> u128 {
    let off = width(addr) - bits;
    number_of(addr).checked_shr(off).unwrap_or(0).checked_shl(off).unwrap_or(0)
}
