//! Proofs by DNS: what is known of addresses that claim to be a crawler's.
//!
//! A table of fixed size without locks. A claim that finds no room replaces an older one, which is
//! looked up again when it comes next: nothing grows with the number of clients.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};

use base::HashSeed;

use crate::list::NAME_MAX;

/// Places of the table, each of 8 bytes.
const PLACES: usize = 1 << 14;
/// Places that a claim may have.
const WAYS: usize = 4;
/// The unit of the times in the table, in milliseconds: 24 bits of it are eight years.
const TICK_MS: u64 = 16_000;
/// Bits of the time, and of the verdict below it. The rest is the claim's mark.
const TIME_BITS: u32 = 24;
const VERDICT_BITS: u32 = 2;
const MARK_SHIFT: u32 = TIME_BITS + VERDICT_BITS;

/// The time for which a confirmed address counts as such.
const CONFIRMED_MS: u64 = 24 * 3_600_000;
/// The time for which a refuted one does.
const REFUTED_MS: u64 = 3_600_000;
/// The time after which a lookup that failed, or has not ended, may be tried again.
const FAILED_MS: u64 = 5 * 60_000;

/// The verdict of DNS on an address that claims to be a crawler's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DnsVerdict {
    /// Its name is below one of the crawler's domains, and leads back to it.
    Confirmed,
    /// It is not.
    Refuted,
    /// The lookup is under way, or has failed a short while ago.
    Pending,
}

/// Verdicts on addresses.
#[derive(Debug)]
pub struct AddressProofs {
    seed: HashSeed,
    places: Box<[AtomicU64]>,
}

impl AddressProofs {
    /// An empty table, whose places depend on `seed`.
    pub fn new(seed: HashSeed) -> Self {
        let places = std::iter::repeat_with(AtomicU64::default).take(PLACES).collect();
        Self { seed, places }
    }

    /// The verdict on the claim of `address` to be the crawler `name`; `None` before the first.
    pub fn of(&self, name: &str, address: IpAddr, now_ms: u64) -> Option<DnsVerdict> {
        let claim = self.claim(name, address);
        self.ways(claim).find_map(|place| {
            let place = place.load(Ordering::Relaxed);
            (is_of(place, claim) && tick(now_ms) < time_of(place)).then(|| verdict_of(place))?
        })
    }

    /// Notes that the claim is looked up from now on; false if it is being looked up, or known.
    pub fn begin(&self, name: &str, address: IpAddr, now_ms: u64) -> bool {
        let is_new = self.of(name, address, now_ms).is_none();
        if is_new {
            self.note(name, address, DnsVerdict::Pending, now_ms);
        }
        is_new
    }

    /// Notes the verdict on a claim.
    pub fn note(&self, name: &str, address: IpAddr, verdict: DnsVerdict, now_ms: u64) {
        let claim = self.claim(name, address);
        let (number, for_ms) = match verdict {
            DnsVerdict::Confirmed => (1, CONFIRMED_MS),
            DnsVerdict::Refuted => (2, REFUTED_MS),
            DnsVerdict::Pending => (3, FAILED_MS),
        };
        let until = tick(now_ms.saturating_add(for_ms)) & ((1 << TIME_BITS) - 1);
        let value = mark(claim) << MARK_SHIFT | number << TIME_BITS | until;
        let own = self.ways(claim).find(|place| is_of(place.load(Ordering::Relaxed), claim));
        // Otherwise the one whose time ends first gives way.
        let place = own.or_else(|| {
            self.ways(claim).min_by_key(|place| match place.load(Ordering::Relaxed) {
                0 => 0,
                taken => time_of(taken),
            })
        });
        if let Some(place) = place {
            place.store(value, Ordering::Relaxed);
        }
    }

    /// Forgets a claim, so that it is looked up when it comes next.
    pub fn forget(&self, name: &str, address: IpAddr) {
        let claim = self.claim(name, address);
        for place in self.ways(claim) {
            if is_of(place.load(Ordering::Relaxed), claim) {
                place.store(0, Ordering::Relaxed);
            }
        }
    }

    /// The hash of a claim.
    fn claim(&self, name: &str, address: IpAddr) -> u64 {
        let mut bytes = [0; 16 + NAME_MAX];
        let address = match address.to_canonical() {
            IpAddr::V4(v4) => v4.to_ipv6_mapped(),
            IpAddr::V6(v6) => v6,
        };
        bytes[..16].copy_from_slice(&address.octets());
        let name = &name.as_bytes()[..name.len().min(NAME_MAX)];
        bytes[16..16 + name.len()].copy_from_slice(name);
        self.seed.hash(&bytes[..16 + name.len()])
    }

    fn ways(&self, claim: u64) -> impl Iterator<Item = &AtomicU64> {
        let first = claim as usize % (PLACES / WAYS) * WAYS;
        self.places[first..first + WAYS].iter()
    }
}

/// The part of a claim's hash that a place has: other bits than those that select the place.
fn mark(claim: u64) -> u64 {
    // Never 0: an empty place belongs to no claim.
    claim >> MARK_SHIFT | 1
}

fn is_of(place: u64, claim: u64) -> bool {
    place >> MARK_SHIFT == mark(claim)
}

fn time_of(place: u64) -> u64 {
    place & ((1 << TIME_BITS) - 1)
}

fn verdict_of(place: u64) -> Option<DnsVerdict> {
    match place >> TIME_BITS & ((1 << VERDICT_BITS) - 1) {
        1 => Some(DnsVerdict::Confirmed),
        2 => Some(DnsVerdict::Refuted),
        3 => Some(DnsVerdict::Pending),
        _ => None,
    }
}

fn tick(ms: u64) -> u64 {
    ms / TICK_MS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(n: u32) -> IpAddr {
        IpAddr::V4(n.into())
    }

    #[test]
    fn a_verdict_is_kept_for_its_time() {
        let proofs = AddressProofs::new(HashSeed::from_u64(7));
        assert_eq!(proofs.of("a", ip(1), 0), None);
        assert!(proofs.begin("a", ip(1), 0));
        assert!(!proofs.begin("a", ip(1), 1_000), "it is being looked up");
        assert_eq!(proofs.of("a", ip(1), 1_000), Some(DnsVerdict::Pending));
        proofs.note("a", ip(1), DnsVerdict::Confirmed, 2_000);
        assert_eq!(proofs.of("a", ip(1), CONFIRMED_MS - TICK_MS), Some(DnsVerdict::Confirmed));
        assert_eq!(proofs.of("a", ip(1), CONFIRMED_MS + TICK_MS), None);
        proofs.note("a", ip(1), DnsVerdict::Refuted, 0);
        assert_eq!(proofs.of("a", ip(1), 0), Some(DnsVerdict::Refuted), "the later verdict counts");
        assert_eq!(proofs.of("a", ip(1), REFUTED_MS + TICK_MS), None);
        assert!(proofs.begin("a", ip(1), REFUTED_MS + TICK_MS));
        proofs.forget("a", ip(1));
        assert_eq!(proofs.of("a", ip(1), REFUTED_MS + TICK_MS), None);
    }

    #[test]
    fn a_verdict_is_for_one_name_and_address() {
        let proofs = AddressProofs::new(HashSeed::from_u64(7));
        proofs.note("a", ip(1), DnsVerdict::Confirmed, 0);
        assert_eq!(proofs.of("b", ip(1), 0), None);
        assert_eq!(proofs.of("a", ip(2), 0), None);
        let mapped = "::ffff:0.0.0.1".parse().expect("an address");
        assert_eq!(proofs.of("a", mapped, 0), Some(DnsVerdict::Confirmed));
    }

    #[test]
    fn many_claims_take_no_more_room_and_confirm_no_one() {
        let proofs = AddressProofs::new(HashSeed::from_u64(7));
        proofs.note("a", ip(0), DnsVerdict::Confirmed, 0);
        for n in 1..100_000 {
            proofs.note("a", ip(n), DnsVerdict::Refuted, 0);
        }
        let confirmed = |n: &u32| proofs.of("a", ip(*n), 0) == Some(DnsVerdict::Confirmed);
        assert_eq!((1..200_000).filter(confirmed).count(), 0);
        // A verdict that holds for longer gives way last.
        assert_eq!(proofs.of("a", ip(0), 0), Some(DnsVerdict::Confirmed));
    }
}
