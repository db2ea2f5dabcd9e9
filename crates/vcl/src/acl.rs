//! Access lists, compiled for lookups: the entry with the longest mask decides, as in Varnish. A
//! lookup never allocates: each address family has a sorted table of the addresses at which the
//! deciding entry changes, which is searched by halving.

use std::net::IpAddr;

/// A compiled access list.
#[derive(Debug)]
pub struct Acl {
    name: Box<str>,
    entries: Vec<Entry>,
    v4: Boundaries,
    v6: Boundaries,
    log: bool,
}

/// An entry of the list.
#[derive(Debug)]
pub(crate) struct Entry {
    /// True if the entry excludes its addresses.
    pub(crate) negated: bool,
    /// The entry as `VCL_acl` logs it: `"10.0.0.0"/8`.
    pub(crate) shown: Box<str>,
}

/// Addresses at which the deciding entry changes, ascending, each with the entry that decides from
/// there to the next address.
pub(crate) type Boundaries = Vec<(u128, Option<usize>)>;

impl Acl {
    /// A list of `entries` with a table for IPv4 and one for IPv6. With `log`, each lookup writes a
    /// line to the log.
    pub(crate) fn new(
        name: Box<str>,
        entries: Vec<Entry>,
        [v4, v6]: [Boundaries; 2],
        log: bool,
    ) -> Self {
        Self { name, entries, v4, v6, log }
    }

    /// Name of the list.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns true if the list permits `addr`. An IPv4-mapped address counts as IPv6.
    pub fn matches(&self, addr: IpAddr) -> bool {
        self.deciding(addr).is_some_and(|entry| !entry.negated)
    }

    /// Returns true if the list permits `addr`. With `+log`, `log` gets the line for `VCL_acl`.
    pub fn check(&self, addr: IpAddr, log: impl FnOnce(&str)) -> bool {
        let entry = self.deciding(addr);
        if self.log {
            let text = match entry {
                None => format!("NO_MATCH {}", self.name),
                Some(Entry { negated: true, shown }) => format!("NEG_MATCH {} {shown}", self.name),
                Some(Entry { negated: false, shown }) => format!("MATCH {} {shown}", self.name),
            };
            log(&text);
        }
        entry.is_some_and(|entry| !entry.negated)
    }

    /// The entry that decides about `addr`.
    fn deciding(&self, addr: IpAddr) -> Option<&Entry> {
        let (table, number) = match addr {
            IpAddr::V4(addr) => (&self.v4, u128::from(addr.to_bits())),
            IpAddr::V6(addr) => (&self.v6, addr.to_bits()),
        };
        let after = table.partition_point(|(from, _)| *from <= number);
        let (_, entry) = table.get(after.checked_sub(1)?)?;
        entry.map(|entry| &self.entries[entry])
    }
}
