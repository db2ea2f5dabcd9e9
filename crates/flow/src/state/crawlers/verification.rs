//! Verification of clients by DNS: those that are to be looked up, and what is known of others.
//!
//! A request never waits for it: its client is unknown meanwhile.

use std::collections::VecDeque;
use std::net::IpAddr;

use agents::{AddressProofs, DnsVerdict};
use base::HashSeed;
use parking_lot::Mutex;
use tokio::sync::Notify;

/// An address that claims to be a crawler's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimedAddress {
    /// The crawler's name.
    pub name: Box<str>,
    /// The address.
    pub address: IpAddr,
    /// The domains below which its name must be.
    pub domains: Box<[Box<str>]>,
}

/// A claim to be a crawler, before it is looked up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CrawlerClaim<'a> {
    /// The crawler's name.
    pub(crate) name: &'a str,
    /// The client's address.
    pub(crate) address: IpAddr,
    /// The domains below which its name must be.
    pub(crate) domains: &'a [Box<str>],
}

/// The clients that are verified by DNS.
#[derive(Debug)]
pub struct CrawlerVerification {
    /// The verdicts so far.
    pub(crate) proofs: AddressProofs,
    waiting: Mutex<VecDeque<ClaimedAddress>>,
    arrived: Notify,
}

impl CrawlerVerification {
    pub(crate) fn new(seed: HashSeed) -> Self {
        let (waiting, arrived) = (Mutex::default(), Notify::new());
        Self { proofs: AddressProofs::new(seed), waiting, arrived }
    }

    /// Has a claim looked up, unless it is being looked up; false if `most` claims wait already.
    pub(crate) fn order(&self, claim: CrawlerClaim<'_>, most: u64, now_ms: u64) -> bool {
        let CrawlerClaim { name, address, domains } = claim;
        if !self.proofs.begin(name, address, now_ms) {
            return true;
        }
        let mut waiting = self.waiting.lock();
        if waiting.len() as u64 >= most {
            self.proofs.forget(name, address);
            return false;
        }
        waiting.push_back(ClaimedAddress { name: name.into(), address, domains: domains.into() });
        drop(waiting);
        self.arrived.notify_one();
        true
    }

    /// Waits for the next claim to look up.
    pub async fn next(&self) -> ClaimedAddress {
        loop {
            let next = self.waiting.lock().pop_front();
            match next {
                Some(claim) => return claim,
                None => self.arrived.notified().await,
            }
        }
    }

    /// Notes what DNS says of a claim; `None` if it has said nothing.
    pub fn note(&self, claim: &ClaimedAddress, is_confirmed: Option<bool>, now_ms: u64) {
        let verdict = match is_confirmed {
            Some(true) => DnsVerdict::Confirmed,
            Some(false) => DnsVerdict::Refuted,
            None => DnsVerdict::Pending,
        };
        self.proofs.note(&claim.name, claim.address, verdict, now_ms);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(last: u8) -> ClaimedAddress {
        let (name, address) = ("Googlebot".into(), IpAddr::from([192, 0, 2, last]));
        ClaimedAddress { name, address, domains: Box::default() }
    }

    #[tokio::test]
    async fn a_claim_is_looked_up_once() {
        let checks = CrawlerVerification::new(HashSeed::from_u64(1));
        let order = |last: u8| {
            let address = IpAddr::from([192, 0, 2, last]);
            checks.order(CrawlerClaim { name: "Googlebot", address, domains: &[] }, 1, 0)
        };
        assert!(order(1) && order(1));
        assert!(!order(2), "one waits");
        assert_eq!(checks.next().await, claim(1));
        assert!(checks.waiting.lock().is_empty());
        assert!(order(2), "it comes again");
        checks.note(&claim(1), Some(true), 0);
        assert_eq!(checks.proofs.of("Googlebot", claim(1).address, 0), Some(DnsVerdict::Confirmed));
        checks.note(&claim(1), None, 0);
        assert_eq!(checks.proofs.of("Googlebot", claim(1).address, 0), Some(DnsVerdict::Pending));
    }
}
