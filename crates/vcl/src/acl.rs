//! Access lists: which entry of a list an address falls under, and whether that lets it in.
//!
//! Of all entries an address falls under, the one with the longest mask decides, as in Varnish. No
//! lookup allocates: of each family there is a table of the places where the deciding entry
//! changes, and an address is looked for by halving.

use std::net::IpAddr;

/// A list of networks, some of them excluded.
#[derive(Debug)]
pub struct Acl {
    name: Box<str>,
    entries: Vec<Entry>,
    v4: Boundaries,
    v6: Boundaries,
    log: bool,
}

/// An entry, as it is kept once the tables are made.
#[derive(Debug)]
pub(crate) struct Entry {
    /// Addresses under it are kept out.
    pub(crate) negated: bool,
    /// As the log tells it: `"10.0.0.0"/8`.
    pub(crate) shown: Box<str>,
}

/// Places where the deciding entry changes, in order: from that address on, up to the next place,
/// it is this one.
pub(crate) type Boundaries = Vec<(u128, Option<usize>)>;

impl Acl {
    /// A list of these entries, with a table of IPv4 and one of IPv6. With `log`, each look at it
    /// has a line for the log.
    pub(crate) fn new(
        name: Box<str>,
        entries: Vec<Entry>,
        [v4, v6]: [Boundaries; 2],
        log: bool,
    ) -> Self {
        Self { name, entries, v4, v6, log }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns true if the list lets `addr` in. An IPv4 address in IPv6 counts as an IPv6 address.
    pub fn matches(&self, addr: IpAddr) -> bool {
        self.deciding(addr).is_some_and(|entry| !entry.negated)
    }

    /// Returns true if the list lets `addr` in. Where the list has `+log`, `log` gets the line that
    /// says so.
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
