//! Access lists: which entry of a list an address falls under, and whether that lets it in.
//!
//! Asked of every request of some programs: no lookup allocates.

use std::net::IpAddr;

use crate::ast;
use crate::source::Span;

/// A list of networks, some of them excluded.
#[derive(Debug)]
pub struct Acl {
    name: Box<str>,
    entries: Vec<Network>,
    log: bool,
}

/// An entry: addresses whose first `bits` bits are those of `addr`.
#[derive(Clone, Debug)]
struct Network {
    addr: IpAddr,
    bits: u8,
    negated: bool,
}

/// What is wrong with a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where.
    pub span: Span,
    /// What.
    pub message: String,
}

impl Acl {
    /// Makes one of its declaration. `resolve` knows the addresses of host names.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn build(
        acl: &ast::Acl,
        resolve: &dyn Fn(&str) -> Result<Vec<IpAddr>, String>,
    ) -> Result<Self, Vec<Fault>> {
        let mut faults = Vec::new();
        let mut entries = Vec::new();
        for entry in &acl.entries {
            match resolve(&entry.host.0) {
                Ok(addrs) => entries.extend(addrs.into_iter().map(|addr| Network {
                    addr,
                    bits: entry.mask.map_or(width(addr), |(bits, _)| bits as u8),
                    negated: entry.negated,
                })),
                Err(message) => faults.push(Fault { span: entry.host.1, message }),
            }
        }
        let log = acl.flags.iter().any(|(on, flag)| *on && &*flag.text == "log");
        if faults.is_empty() {
            Ok(Self { name: acl.name.text.clone(), entries, log })
        } else {
            Err(faults)
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether its matches are to be logged.
    pub fn logs(&self) -> bool {
        self.log
    }

    /// Whether it lets `addr` in.
    pub fn matches(&self, addr: IpAddr) -> bool {
        let mut under = self.entries.iter().filter(|entry| entry.has(addr));
        under.next().is_some_and(|entry| !entry.negated)
    }
}

impl Network {
    fn has(&self, addr: IpAddr) -> bool {
        let top = |addr: IpAddr| match addr {
            IpAddr::V4(addr) => u128::from(addr.to_bits()) << 96,
            IpAddr::V6(addr) => addr.to_bits(),
        };
        let differing = top(self.addr) ^ top(addr);
        self.addr.is_ipv4() == addr.is_ipv4() && differing.leading_zeros() >= u32::from(self.bits)
    }
}

fn width(addr: IpAddr) -> u8 {
    if addr.is_ipv4() { 32 } else { 128 }
}
