//! Hosts: the table of sites by host name.
//!
//! Searched once per request by the canonical host ([`message::Request::host`]: lower case, no
//! port, no trailing dot); must never allocate.

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher, Hasher};

use base::HashSeed;

/// Names and their values: exact names, `*.example.com` for every name below `example.com`, and `*`
/// for every other host. An exact name precedes a wildcard, a longer wildcard a shorter one (as in
/// nginx's `server_name`).
#[derive(Debug)]
pub struct HostTable<T> {
    exact: Map<T>,
    /// By the part behind `*.`.
    below: Map<T>,
    any: Option<T>,
}

type Map<T> = HashMap<Box<[u8]>, T, SeededState>;

/// The reason why a name was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostError {
    /// Not a host name, address, `*.name` or `*`.
    Syntax,
    /// The name was added before.
    Duplicate,
}

impl fmt::Display for HostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Syntax => "not a host name, an address, `*.name` or `*`",
            Self::Duplicate => "the host is configured already",
        })
    }
}

impl std::error::Error for HostError {}

impl<T> HostTable<T> {
    /// An empty table, its hashes keyed by `seed`: clients choose the names that are looked up.
    pub fn new(seed: HashSeed) -> Self {
        let map = || HashMap::with_hasher(SeededState(seed));
        Self { exact: map(), below: map(), any: None }
    }

    /// Adds `pattern`, in any case, with or without a trailing dot.
    ///
    /// # Errors
    /// If `pattern` is malformed or was added before.
    pub fn insert(&mut self, pattern: &str, value: T) -> Result<(), HostError> {
        let pattern = canonical(pattern).ok_or(HostError::Syntax)?;
        if pattern == "*" {
            if self.any.is_some() {
                return Err(HostError::Duplicate);
            }
            self.any = Some(value);
            return Ok(());
        }
        let (map, name) = match pattern.strip_prefix("*.") {
            Some(name) => (&mut self.below, name),
            None => (&mut self.exact, pattern.as_str()),
        };
        let name: Box<[u8]> = name.as_bytes().into();
        if map.contains_key(&name) {
            return Err(HostError::Duplicate);
        }
        map.insert(name, value);
        Ok(())
    }

    /// The value for `host`, in canonical form.
    pub fn find(&self, host: &[u8]) -> Option<&T> {
        self.named(host).or(self.any.as_ref())
    }

    /// The value for `host` by its name, ignoring `*`.
    pub fn named(&self, host: &[u8]) -> Option<&T> {
        if let Some(value) = self.exact.get(host) {
            return Some(value);
        }
        if !self.below.is_empty() {
            let dots = host.iter().enumerate().filter(|(_, b)| **b == b'.');
            for (dot, _) in dots {
                // `*.example.com` needs a label before its dot.
                if dot > 0
                    && let Some(value) = self.below.get(&host[dot + 1..])
                {
                    return Some(value);
                }
            }
        }
        None
    }
}

impl<T> HostTable<T> {
    /// The name by which [`HostTable::find`] finds the value for `host`.
    pub fn pattern(&self, host: &[u8]) -> Option<String> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if self.exact.contains_key(host) {
            return Some(text(host));
        }
        let mut dots = host.iter().enumerate().filter(|(at, b)| **b == b'.' && *at > 0);
        if let Some((dot, _)) = dots.find(|(dot, _)| self.below.contains_key(&host[dot + 1..])) {
            return Some(format!("*{}", text(&host[dot..])));
        }
        self.any.as_ref().map(|_| "*".to_owned())
    }
}

/// The canonical form of `pattern`: lower case without a trailing dot; `None` if it is malformed.
///
/// All spellings of one host have one canonical form.
pub fn canonical(pattern: &str) -> Option<String> {
    let pattern = pattern.strip_suffix('.').unwrap_or(pattern).to_ascii_lowercase();
    if pattern == "*" {
        return Some(pattern);
    }
    if let Some(literal) = pattern.strip_prefix('[') {
        let address = literal.strip_suffix(']')?.parse::<std::net::Ipv6Addr>().ok()?;
        return Some(format!("[{address}]"));
    }
    let name = pattern.strip_prefix("*.").unwrap_or(&pattern);
    // DNS limits: 253 octets in all, 63 per label (RFC 1035 2.3.4).
    let fits = !name.is_empty() && name.len() <= 253;
    let label = |l: &str| {
        !l.is_empty()
            && l.len() <= 63
            && l.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
    };
    (fits && name.split('.').all(label)).then_some(pattern)
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct SeededState(pub(crate) HashSeed);

impl BuildHasher for SeededState {
    type Hasher = SeededHasher;

    fn build_hasher(&self) -> SeededHasher {
        SeededHasher { seed: self.0, state: 0 }
    }
}

#[derive(Debug)]
pub(crate) struct SeededHasher {
    seed: HashSeed,
    state: u64,
}

impl Hasher for SeededHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.state = self.state.rotate_left(23) ^ self.seed.hash(bytes);
    }

    fn write_usize(&mut self, n: usize) {
        // A slice hashes its length first; the seeded hash of its bytes covers that.
        self.state = self.state.rotate_left(23) ^ n as u64;
    }

    fn finish(&self) -> u64 {
        self.state
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn table(patterns: &[&'static str]) -> HostTable<&'static str> {
        let mut table = HostTable::new(HashSeed::from_u64(7));
        for pattern in patterns {
            table.insert(pattern, *pattern).expect("a fresh pattern");
        }
        table
    }

    fn find(table: &HostTable<&'static str>, host: &str) -> Option<&'static str> {
        table.find(host.as_bytes()).copied()
    }

    #[test]
    fn exact_wins_over_the_longest_wildcard_and_that_over_any() {
        let table =
            table(&["example.com", "*.example.com", "*.a.example.com", "b.a.example.com", "*"]);
        assert_eq!(find(&table, "example.com"), Some("example.com"));
        assert_eq!(find(&table, "www.example.com"), Some("*.example.com"));
        assert_eq!(find(&table, "x.y.example.com"), Some("*.example.com"));
        assert_eq!(find(&table, "c.a.example.com"), Some("*.a.example.com"));
        assert_eq!(find(&table, "b.a.example.com"), Some("b.a.example.com"));
        assert_eq!(find(&table, "notexample.com"), Some("*"));
        assert_eq!(find(&table, ".example.com"), Some("*"));
        assert_eq!(find(&table, ""), Some("*"));
        for host in ["example.com", "www.example.com", "x.y.example.com", "c.a.example.com"] {
            assert_eq!(table.pattern(host.as_bytes()).as_deref(), find(&table, host), "{host}");
        }
        for host in ["b.a.example.com", "notexample.com", ".example.com", ""] {
            assert_eq!(table.pattern(host.as_bytes()).as_deref(), find(&table, host), "{host}");
        }
    }

    #[test]
    fn without_a_catch_all_strangers_find_nothing() {
        let table = table(&["example.com", "[2001:db8::1]", "192.0.2.1"]);
        assert_eq!(find(&table, "example.org"), None);
        assert_eq!(find(&table, "[2001:db8::1]"), Some("[2001:db8::1]"));
        assert_eq!(find(&table, "192.0.2.1"), Some("192.0.2.1"));
    }

    #[test]
    fn one_host_is_entered_once() {
        let mut table = table(&["example.com", "*"]);
        for again in ["EXAMPLE.com", "example.com.", "*"] {
            assert_eq!(table.insert(again, "again"), Err(HostError::Duplicate), "{again}");
        }
    }

    #[test]
    fn what_is_no_host_is_refused() {
        for bad in
            ["", ".", "a..b", "a b", "exam*ple.com", "*.*.com", "a/b", "a:80", "[::1", "é.fr"]
        {
            assert_eq!(canonical(bad), None, "{bad}");
        }
        assert_eq!(canonical("[2001:DB8:0::1]").as_deref(), Some("[2001:db8::1]"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]
        #[test]
        fn every_host_is_found_whatever_the_case_it_was_written_in(
            count in prop::sample::select(vec![1usize, 100, 101, 10_000]),
            upper in any::<u64>(),
            seed in any::<u64>(),
        ) {
            let mut table = HostTable::new(HashSeed::from_u64(seed));
            let name = |n: usize| format!("host{n}.example-{}.com", n % 7);
            for n in 0..count {
                let shout = |(at, c): (usize, char)| {
                    if upper >> (at % 64) & 1 == 1 { c.to_ascii_uppercase() } else { c }
                };
                let written: String = name(n).chars().enumerate().map(shout).collect();
                prop_assert_eq!(table.insert(&written, n), Ok(()));
            }
            for n in 0..count {
                prop_assert_eq!(table.find(name(n).as_bytes()), Some(&n));
            }
            prop_assert_eq!(table.find(name(count).as_bytes()), None);
        }
    }
}
