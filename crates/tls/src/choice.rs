//! Choice of a certificate by SNI (RFC 6066 3): one for the exact name, then a wildcard, then the
//! default.
//!
//! A certificate must never be selected for a name that it does not cover, except as the default.

use std::collections::HashMap;
use std::sync::Arc;

use crate::pair::CertificateKeyPair;
use crate::server::{Domain, DomainFinder};

/// The certificates in the form of [`ServerContext::new`](crate::ServerContext::new).
pub struct Choice {
    /// Domains: certificates for the same names. A client gets the first that it supports.
    pub domains: Vec<Domain>,
    /// The default; `None` without one.
    pub default: Option<Domain>,
    /// The domain of a name.
    pub find: DomainFinder,
}

impl Choice {
    /// A choice among `pairs`; if several have a name and a kind of key in common, the last.
    /// `default` is the index of the pair for clients without SNI, or with an unknown name.
    pub fn among(pairs: &[Arc<CertificateKeyPair>], default: Option<usize>) -> Self {
        let mut by_name: HashMap<&str, Vec<usize>> = HashMap::new();
        for (at, pair) in pairs.iter().enumerate().rev() {
            for name in pair.names() {
                let own = by_name.entry(name).or_default();
                if !own.contains(&at) {
                    own.push(at);
                }
            }
        }
        // Many names share their certificates, and each domain has a configuration.
        let mut known: HashMap<Vec<usize>, usize> = HashMap::new();
        let mut domains = Vec::new();
        let (mut exact, mut below) = (HashMap::new(), HashMap::new());
        for (name, own) in by_name {
            let domain = *known.entry(own).or_insert_with_key(|own| {
                domains.push(domain(own.iter().map(|at| &pairs[*at])));
                domains.len() - 1
            });
            match name.strip_prefix("*.") {
                Some(parent) => below.insert(Box::from(parent.as_bytes()), domain),
                None => exact.insert(Box::from(name.as_bytes()), domain),
            };
        }
        Self {
            domains,
            default: default.and_then(|at| Some(default_domain(pairs, pairs.get(at)?))),
            find: Box::new(move |name| find(&exact, &below, name)),
        }
    }
}

type NameIndex = HashMap<Box<[u8]>, usize>;

fn find(exact: &NameIndex, below: &NameIndex, name: &[u8]) -> Option<usize> {
    // RFC 6125 6.4.3: a wildcard matches one label.
    let parent = || name.iter().position(|byte| *byte == b'.').map(|dot| &name[dot + 1..]);
    exact.get(name).or_else(|| below.get(parent()?)).copied()
}

fn domain<'a>(pairs: impl Iterator<Item = &'a Arc<CertificateKeyPair>>) -> Domain {
    Domain { pairs: pairs.cloned().collect(), auth: None }
}

/// The default, and behind it pairs for the same names: one with another kind of key is for clients
/// that do not support the first.
fn default_domain(pairs: &[Arc<CertificateKeyPair>], default: &Arc<CertificateKeyPair>) -> Domain {
    let is_twin =
        |pair: &&Arc<CertificateKeyPair>| !Arc::ptr_eq(pair, default) && pair.has_names_of(default);
    domain(std::iter::once(default).chain(pairs.iter().rev().filter(is_twin)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::server::tests::made;

    fn pair(names: &[&str]) -> Arc<CertificateKeyPair> {
        let (cert, key) = made(names);
        Arc::new(CertificateKeyPair::parse(cert.as_bytes(), key.as_bytes()).expect("a pair"))
    }

    /// The index of the pair for `name`; `None` for the default.
    fn shown(choice: &Choice, pairs: &[Arc<CertificateKeyPair>], name: &str) -> Option<usize> {
        let first = &choice.domains[(choice.find)(name.as_bytes())?].pairs[0];
        pairs.iter().position(|pair| Arc::ptr_eq(pair, first))
    }

    #[test]
    fn the_very_name_goes_before_a_wildcard_and_both_before_the_default() {
        let pairs = [
            pair(&["example.com", "www.example.com"]),
            pair(&["*.example.com"]),
            pair(&["example.org"]),
        ];
        let choice = Choice::among(&pairs, Some(2));
        for (name, expected) in [
            ("example.com", Some(0)),
            ("www.example.com", Some(0)),
            ("shop.example.com", Some(1)),
            ("example.org", Some(2)),
            ("a.shop.example.com", None),
            ("*.example.com", Some(1)),
            ("com", None),
            ("", None),
        ] {
            assert_eq!(shown(&choice, &pairs, name), expected, "{name}");
        }
        let default = choice.default.expect("a default");
        assert!(default.pairs.len() == 1 && default.pairs[0].covers("example.org"));
        assert_eq!(choice.domains.len(), 3, "names of the same certificates share a domain");
        let nothing = Choice::among(&[], None);
        assert!(nothing.default.is_none() && (nothing.find)(b"example.com").is_none());
    }

    #[test]
    fn the_last_of_a_name_is_shown_and_the_default_goes_before_its_twins() {
        let pairs = [pair(&["a.test"]), pair(&["a.test"]), pair(&["a.test", "b.test"])];
        let choice = Choice::among(&pairs, Some(0));
        assert_eq!(shown(&choice, &pairs, "a.test"), Some(2));
        assert_eq!(shown(&choice, &pairs, "b.test"), Some(2));
        let default = choice.default.expect("a default");
        assert_eq!(default.pairs.len(), 2);
        assert!(Arc::ptr_eq(&default.pairs[0], &pairs[0]));
    }

    proptest! {
        #[test]
        fn what_is_shown_covers_the_name(name in "[ab]{0,2}(\\.[ab]{0,2}){0,3}") {
            thread_local! {
                static PAIRS: Vec<Arc<CertificateKeyPair>> =
                    vec![pair(&["a", "a.b", "*.b", "b.a.b"]), pair(&["*.a.b", "a.b"])];
            }
            PAIRS.with(|pairs| {
                let choice = Choice::among(pairs, None);
                let covering = pairs.iter().rposition(|pair| pair.covers(&name));
                match shown(&choice, pairs, &name) {
                    Some(at) => prop_assert!(pairs[at].covers(&name), "{name}"),
                    None => prop_assert_eq!(covering, None, "{}", name),
                }
                Ok(())
            })?;
        }
    }
}
