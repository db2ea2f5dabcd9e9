//! Throttles: limits of the rate and the concurrency of a site's clients as plain data, and the key
//! by which clients are counted.

use std::sync::LazyLock;

use base::rate::{Rate, RateQuota};
use base::{ClientId, HashSeed};
use message::{Request, Status, path};

use crate::acl::{CidrSet, Net};
use crate::headers::FieldName;
use crate::pattern::PathPattern;
use crate::peer::ConnectionPeer;
use crate::scripts::ScriptNames;

/// The key of separate counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LimitKey {
    /// An IPv4 address, or the /64 of an IPv6 address. All clients of unix sockets are one.
    #[default]
    Address,
    /// One count for all clients.
    Site,
    /// The value of a field; without the field, the address.
    Field(FieldName),
}

/// The terms of a limit of either kind.
#[derive(Clone, Debug, Default)]
pub struct Terms {
    /// The key of separate counts.
    pub per: LimitKey,
    /// The paths of the limit; empty for every path.
    pub paths: Vec<PathPattern>,
    /// Clients that are not limited.
    pub exempt: Vec<Net>,
    /// The status of a refusal: 429 or 503; `None` for 429.
    pub status: Option<Status>,
    /// A rejection is counted and logged, but the request is admitted.
    pub dry_run: bool,
}

/// A limit of the rate of requests.
#[derive(Clone, Debug, PartialEq)]
pub struct RateRule {
    /// The number of requests per time.
    pub requests: RateQuota,
    /// Further requests that are admitted at once.
    pub burst: u32,
    /// Requests beyond the burst that wait.
    pub queue: u32,
    /// The terms.
    pub terms: Terms,
}

/// A limit of concurrent requests.
#[derive(Clone, Debug, PartialEq)]
pub struct ConcurrencyRule {
    /// The most concurrent requests.
    pub requests: u32,
    /// The terms.
    pub terms: Terms,
}

impl RateRule {
    /// The rate.
    pub fn rate(&self) -> Rate {
        Rate::new(self.requests, self.burst, self.queue)
    }

    /// The rate in words.
    pub fn told(&self) -> String {
        let mut told = self.requests.to_string();
        for (name, count) in [("burst", self.burst), ("queue", self.queue)] {
            if count > 0 {
                told += &format!(", {name} {count}");
            }
        }
        told
    }
}

impl PartialEq for Terms {
    fn eq(&self, other: &Self) -> bool {
        let texts = |terms: &Self| terms.paths.iter().map(ToString::to_string).collect::<Vec<_>>();
        (&self.per, &self.exempt, self.status, self.dry_run)
            == (&other.per, &other.exempt, other.status, other.dry_run)
            && texts(self) == texts(other)
    }
}

impl Terms {
    /// Clients that are not limited, for lookups.
    pub fn exempted(&self) -> CidrSet {
        CidrSet::new(&self.exempt)
    }

    /// Returns true if the limit applies to this path. Of a path with several interpretations each
    /// counts, and one without a normal form is limited, too.
    pub fn are_for(&self, path: &[u8]) -> bool {
        self.paths.is_empty() || self.name(path) || may_be_odd(path) && self.name_odd(path)
    }

    fn name(&self, path: &[u8]) -> bool {
        self.paths.iter().any(|pattern| pattern.matches(path))
    }

    #[cold]
    fn name_odd(&self, path: &[u8]) -> bool {
        let mut normal = Vec::new();
        let readings = path::normal_form(path, &mut normal)
            .and_then(|changed| Ok((changed, path::lenient_form(path)?)));
        let Ok((changed, other)) = readings else { return true };
        let normal = if changed { &normal } else { path };
        [Some(normal), other.as_deref()].into_iter().flatten().any(|reading| {
            self.name(reading) || SCRIPTS.of(reading).any(|script| self.name(script))
        })
    }
}

/// Scripts that may run with a path info on any origin.
static SCRIPTS: LazyLock<ScriptNames> = LazyLock::new(|| ScriptNames::new([], true));

/// Returns true if origins may interpret `path` in several ways.
fn may_be_odd(path: &[u8]) -> bool {
    !SCRIPTS.leave_one_reading(path)
}

impl LimitKey {
    /// The key under which `request` of `client` is counted: an even and secret hash.
    pub fn mark(&self, seed: &HashSeed, request: &Request, client: ConnectionPeer) -> u64 {
        match self {
            Self::Address => mark_of(seed, client),
            Self::Site => 1,
            Self::Field(name) => match name.values(&request.headers).next() {
                // Addresses have the hashes themselves; values of fields have the inverted ones.
                Some(value) => !seed.hash(value),
                None => mark_of(seed, client),
            },
        }
    }

    /// The key in words.
    pub fn told(&self) -> String {
        match self {
            Self::Address => "address".to_owned(),
            Self::Site => "site".to_owned(),
            Self::Field(name) => format!("field {name}"),
        }
    }
}

fn mark_of(seed: &HashSeed, client: ConnectionPeer) -> u64 {
    match client.address() {
        Some(address) => seed.hash(&ClientId::from(address).number().to_le_bytes()),
        None => seed.hash(b"unix:"),
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    fn mark(per: &LimitKey, client: &str) -> u64 {
        let address: IpAddr = client.parse().expect("an address");
        per.mark(&HashSeed::from_u64(3), &Request::new(), ConnectionPeer::Host(address))
    }

    #[test]
    fn a_client_is_an_address_or_a_network_of_ipv6() {
        let per = LimitKey::Address;
        assert_ne!(mark(&per, "192.0.2.1"), mark(&per, "192.0.2.2"));
        assert_eq!(mark(&per, "192.0.2.1"), mark(&per, "::ffff:192.0.2.1"));
        assert_eq!(mark(&per, "2001:db8::1"), mark(&per, "2001:db8::2:3"));
        assert_ne!(mark(&per, "2001:db8::1"), mark(&per, "2001:db8:0:1::1"));
        assert_eq!(mark(&LimitKey::Site, "192.0.2.1"), mark(&LimitKey::Site, "2001:db8::1"));
    }

    #[test]
    fn a_field_counts_where_it_is_and_the_address_elsewhere() {
        let seed = HashSeed::from_u64(3);
        let per = LimitKey::Field(FieldName::parse("X-Api-Key").expect("a name"));
        let mut request = Request::new();
        assert_eq!(
            per.mark(&seed, &request, ConnectionPeer::Local),
            mark_of(&seed, ConnectionPeer::Local)
        );
        request.headers.push_named(b"x-api-key", b"one");
        let one = per.mark(&seed, &request, ConnectionPeer::Local);
        assert_eq!(one, per.mark(&seed, &request, ConnectionPeer::Unnamed(None)));
        request.headers.remove_named(b"x-api-key");
        request.headers.push_named(b"x-api-key", b"two");
        assert_ne!(one, per.mark(&seed, &request, ConnectionPeer::Local));
    }

    /// A client counted as another one would use up that client's share.
    #[test]
    fn no_value_of_a_field_counts_as_an_address() {
        let (seed, name) = (HashSeed::from_u64(3), FieldName::parse("X-Api-Key").expect("a name"));
        let per = LimitKey::Field(name);
        let address: IpAddr = "192.168.200.33".parse().expect("an address");
        let number = ClientId::from(address).number();
        for (peer, value) in [
            (ConnectionPeer::Host(address), &number.to_le_bytes()[..]),
            (ConnectionPeer::Host(address), &number.to_be_bytes()),
            (ConnectionPeer::Local, b"unix:"),
        ] {
            let mut request = Request::new();
            let own = per.mark(&seed, &request, peer);
            request.headers.push_named(b"X-Api-Key", value);
            assert_ne!(per.mark(&seed, &request, peer), own, "{peer}");
        }
    }

    #[test]
    fn no_spelling_of_a_path_slips_past() {
        let paths = ["/login", "/admin/*"].map(|text| PathPattern::parse(text).expect("a pattern"));
        let terms = Terms { paths: paths.into(), ..Terms::default() };
        let limited =
            ["/login", "//login", "/x/../login", "/%6cogin", "/login;a", "/admin/x", "/%zz"];
        assert!(limited.iter().all(|path| terms.are_for(path.as_bytes())));
        assert!(["/", "/logins", "/x/login"].iter().all(|path| !terms.are_for(path.as_bytes())));
        assert!(Terms::default().are_for(b"/"));
    }

    #[test]
    fn a_rate_is_told_as_it_is_set() {
        let requests = RateQuota { count: 10, per_ms: 1000 };
        let rule = RateRule { requests, burst: 20, queue: 0, terms: Terms::default() };
        assert_eq!(rule.told(), "10/s, burst 20");
    }
}
