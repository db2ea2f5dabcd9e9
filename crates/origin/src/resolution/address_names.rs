//! Names of addresses: looks up the name that DNS gives an address, and the addresses of that name.
//! Only both together prove anything: the holder of an address may give it any name.

use std::net::IpAddr;
use std::time::Duration;

use super::dns::{self, Resolver};

/// Most names of an address that are looked up.
const NAMES_MAX: usize = 4;

/// Timeout of all lookups for one address.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Looks up names of addresses, with one resolver for all.
#[derive(Default)]
pub struct AddressNames {
    resolver: Option<Resolver>,
}

impl AddressNames {
    /// Returns true if `address` has a name below one of `domains` that leads back to it.
    ///
    /// # Errors
    /// DNS has not answered, in words: nothing is known then.
    pub async fn is_below(
        &mut self,
        address: IpAddr,
        domains: &[Box<str>],
    ) -> Result<bool, String> {
        if self.resolver.is_none() {
            self.resolver = dns::system_resolver();
        }
        let Some(resolver) = &self.resolver else { return Err("there is no resolver".to_owned()) };
        let checked = rt::time::timeout(TIMEOUT, is_below(resolver, address, domains)).await;
        let checked = checked.unwrap_or_else(|_| Err("timed out".to_owned()));
        if checked.is_err() {
            // Created again, so that a change of the system's settings has effect.
            self.resolver = None;
        }
        checked
    }
}

/// [`AddressNames::is_below`] by this resolver.
pub(super) async fn is_below(
    resolver: &Resolver,
    address: IpAddr,
    domains: &[Box<str>],
) -> Result<bool, String> {
    let address = address.to_canonical();
    let names = dns::names_of(resolver, address).await?;
    let below = names.iter().filter(|name| domains.iter().any(|domain| lies_below(name, domain)));
    for name in below.take(NAMES_MAX) {
        if dns::ask_fully(resolver, name).await?.contains(&address) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns true if `name` is below `domain`, in any case and with or without the last dot.
fn lies_below(name: &str, domain: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    let Some(at) = name.len().checked_sub(domain.len()) else { return false };
    let (before, end) = (name.as_bytes()[..at].last(), &name.as_bytes()[at..]);
    end.eq_ignore_ascii_case(domain.as_bytes()) && before == Some(&b'.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_below_a_domain_by_whole_labels() {
        assert!(lies_below("crawl-1.googlebot.com.", "googlebot.com"));
        assert!(lies_below("a.b.GoogleBot.com", "googlebot.com"));
        for name in ["evilgooglebot.com", "googlebot.com", "googlebot.com.evil.example", "", "."] {
            assert!(!lies_below(name, "googlebot.com"), "{name}");
        }
    }
}
