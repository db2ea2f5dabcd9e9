//! Address lists that crawlers' operators publish: Google's JSON, which others have taken over, or
//! one address or network in each line.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

use ipnet::IpNet;
use serde_json::Value;

/// Most networks of a list.
const NETWORKS_MAX: usize = 65_536;

/// A set of networks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddressList {
    /// Ranges of addresses, in order and apart. IPv4 addresses are mapped.
    ranges: Vec<(u128, u128)>,
}

/// An address list that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AddressListError {
    /// It is neither JSON nor text.
    Json(String),
    /// It is JSON without `prefixes`.
    NoPrefixes,
    /// The entry of this number, from 1, is no network.
    Network(usize),
    /// It has no network, so it would verify no one.
    Empty,
    /// It has more networks than 65536.
    TooMany,
}

impl fmt::Display for AddressListError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Json(why) => write!(f, "it is no JSON: {why}"),
            Self::NoPrefixes => f.write_str("it is JSON without a list called `prefixes`"),
            Self::Network(at) => write!(f, "entry {at} is no address and no network"),
            Self::Empty => f.write_str("it has no address, so it would verify no one"),
            Self::TooMany => f.write_str("it has more than 65536 networks"),
        }
    }
}

impl AddressList {
    /// Reads a list: an object with `prefixes`, whose entries have `ipv4Prefix` or `ipv6Prefix`; or
    /// lines of networks, where `#` begins a comment.
    ///
    /// # Errors
    /// See [`AddressListError`].
    pub fn parse(text: &str) -> Result<Self, AddressListError> {
        let nets = match text.trim_start().starts_with(['{', '[']) {
            true => of_json(text)?,
            false => of_lines(text)?,
        };
        match nets.len() {
            0 => Err(AddressListError::Empty),
            n if n > NETWORKS_MAX => Err(AddressListError::TooMany),
            _ => Ok(Self { ranges: merged(nets) }),
        }
    }

    /// Returns true if `address` is in one of the networks.
    pub fn contains(&self, address: IpAddr) -> bool {
        let number = number_of(address);
        let after = self.ranges.partition_point(|(first, _)| *first <= number);
        after.checked_sub(1).is_some_and(|at| number <= self.ranges[at].1)
    }
}

fn of_json(text: &str) -> Result<Vec<(u128, u128)>, AddressListError> {
    let read: Value =
        serde_json::from_str(text).map_err(|error| AddressListError::Json(error.to_string()))?;
    let prefixes = read.get("prefixes").and_then(Value::as_array);
    let prefixes = prefixes.ok_or(AddressListError::NoPrefixes)?;
    if prefixes.len() > NETWORKS_MAX {
        return Err(AddressListError::TooMany);
    }
    let range = |(at, entry): (usize, &Value)| {
        let of = |key| entry.get(key).and_then(Value::as_str);
        let net = of("ipv4Prefix").or_else(|| of("ipv6Prefix")).and_then(network);
        net.ok_or(AddressListError::Network(at + 1))
    };
    prefixes.iter().enumerate().map(range).collect()
}

fn of_lines(text: &str) -> Result<Vec<(u128, u128)>, AddressListError> {
    let mut nets = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if !line.is_empty() {
            nets.push(network(line).ok_or(AddressListError::Network(at + 1))?);
        }
        if nets.len() > NETWORKS_MAX {
            return Err(AddressListError::TooMany);
        }
    }
    Ok(nets)
}

/// The first and the last address of a network.
fn network(text: &str) -> Option<(u128, u128)> {
    let net = text.parse::<IpNet>().or_else(|_| text.parse::<IpAddr>().map(IpNet::from)).ok()?;
    Some((number_of(net.network()), number_of(net.broadcast())))
}

/// The number of an address; that of IPv4 is mapped.
fn number_of(address: IpAddr) -> u128 {
    let address: Ipv6Addr = match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    };
    u128::from(address)
}

/// The ranges in order, each that overlaps another joined with it.
fn merged(mut ranges: Vec<(u128, u128)>) -> Vec<(u128, u128)> {
    ranges.sort_unstable();
    let mut apart: Vec<(u128, u128)> = Vec::with_capacity(ranges.len());
    for (first, last) in ranges {
        match apart.last_mut() {
            Some(before) if first <= before.1 => before.1 = before.1.max(last),
            _ => apart.push((first, last)),
        }
    }
    apart
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn googles_form_is_read() {
        let text = r#"{"creationTime": "2026-01-01T00:00:00", "prefixes": [
            {"ipv6Prefix": "2001:db8:4801:10::/64"}, {"ipv4Prefix": "192.0.2.0/27"}]}"#;
        let list = AddressList::parse(text).expect("a list");
        for inside in ["192.0.2.31", "::ffff:192.0.2.1", "2001:db8:4801:10::1"] {
            assert!(list.contains(ip(inside)), "{inside}");
        }
        for outside in ["192.0.2.32", "192.0.1.255", "2001:db8:4801:11::", "::c000:201"] {
            assert!(!list.contains(ip(outside)), "{outside}");
        }
    }

    #[test]
    fn lines_are_read() {
        let list = AddressList::parse("# ours\n192.0.2.0/24 # all\n\n2001:db8::1\n").expect("one");
        assert!(list.contains(ip("192.0.2.9")) && list.contains(ip("2001:db8::1")));
        assert!(!list.contains(ip("2001:db8::2")));
    }

    #[test]
    fn a_list_that_would_verify_no_one_or_is_damaged_is_refused() {
        let error = |text| AddressList::parse(text).expect_err("no list");
        assert_eq!(error(""), AddressListError::Empty);
        assert_eq!(error("# nothing\n"), AddressListError::Empty);
        assert_eq!(error(r#"{"prefixes": []}"#), AddressListError::Empty);
        assert_eq!(error(r#"{"networks": []}"#), AddressListError::NoPrefixes);
        assert_eq!(error("192.0.2.0/24\n<html>"), AddressListError::Network(2));
        assert_eq!(error(r#"{"prefixes": [{"x": "192.0.2.0/24"}]}"#), AddressListError::Network(1));
        assert!(matches!(error("{"), AddressListError::Json(_)));
    }

    proptest! {
        #[test]
        fn an_address_is_in_the_list_if_it_is_in_one_of_its_networks(
            nets in prop::collection::vec((any::<[u8; 4]>(), 0u8..=32), 1..20),
            asked in any::<[u8; 4]>(),
        ) {
            let nets: Vec<IpNet> = nets
                .into_iter()
                .map(|(octets, bits)| IpNet::new(octets.into(), bits).expect("at most 32"))
                .collect();
            let text: String = nets.iter().map(|net| format!("{net}\n")).collect();
            let list = AddressList::parse(&text).expect("a list");
            let asked = IpAddr::from(asked);
            prop_assert_eq!(list.contains(asked), nets.iter().any(|net| net.contains(&asked)));
        }
    }
}
