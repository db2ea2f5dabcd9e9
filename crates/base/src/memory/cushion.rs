//! The cushion: the part of the clients' share that is reserved for accounts that hold little, with
//! a fair division. However many connections a client opens, other clients must find some of it.

use std::collections::HashMap;
use std::net::IpAddr;

use parking_lot::Mutex;

/// Bytes that an account may take from the share however little is left: a request with its head
/// and the smallest windows.
pub(super) const FLOOR: u64 = 32 * 1024;

/// A client as limits count it: an IPv4 address, or the /64 of an IPv6 address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ClientId(u64);

impl ClientId {
    /// The id as a number.
    pub fn number(self) -> u64 {
        self.0
    }

    pub(super) fn from_number(number: u64) -> Self {
        Self(number)
    }
}

impl From<IpAddr> for ClientId {
    /// IPv4 addresses use a multicast prefix, from which no client comes.
    fn from(ip: IpAddr) -> Self {
        Self(match ip.to_canonical() {
            IpAddr::V4(v4) => u64::from(u32::MAX) << 32 | u64::from(v4.to_bits()),
            IpAddr::V6(v6) => (v6.to_bits() >> 64) as u64,
        })
    }
}

/// Bytes taken of the cushion, by client. It is used only when the share is full, so its lock costs
/// nothing in normal operation.
#[derive(Debug, Default)]
pub(super) struct Cushion(Mutex<CushionUse>);

#[derive(Debug, Default)]
struct CushionUse {
    all: u64,
    by_client: HashMap<ClientId, u64>,
}

impl Cushion {
    /// Takes `bytes` of a cushion of `most` bytes, if `client` then has at most half of what the
    /// others have left. The bytes of one connection are always permitted while they are there.
    pub(super) fn take(&self, client: ClientId, bytes: u64, most: u64) -> bool {
        let mut taken = self.0.lock();
        let mine = taken.by_client.get(&client).copied().unwrap_or(0);
        let left = most.saturating_sub(taken.all - mine);
        let fits = mine.checked_add(bytes).filter(|next| *next <= (left / 2).max(FLOOR).min(left));
        let Some(next) = fits else { return false };
        taken.all += bytes;
        taken.by_client.insert(client, next);
        true
    }

    /// Returns bytes that `client` took.
    pub(super) fn give(&self, client: ClientId, bytes: u64) {
        if bytes == 0 {
            return;
        }
        let mut taken = self.0.lock();
        taken.all -= bytes;
        if let Some(mine) = taken.by_client.get_mut(&client) {
            *mine -= bytes;
            if *mine == 0 {
                taken.by_client.remove(&client);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(text: &str) -> ClientId {
        text.parse::<IpAddr>().expect("an address").into()
    }

    #[test]
    fn an_address_or_a_64_is_one_client() {
        assert_eq!(client("192.0.2.1"), client("::ffff:192.0.2.1"));
        assert_ne!(client("192.0.2.1"), client("192.0.2.2"));
        assert_eq!(client("2001:db8::1"), client("2001:db8::ffff:1"));
        assert_ne!(client("2001:db8::1"), client("2001:db8:0:1::1"));
    }

    #[test]
    fn a_client_takes_half_of_what_others_have_left() {
        let (cushion, most) = (Cushion::default(), 64 * FLOOR);
        let takes = |client| (0..100).filter(|_| cushion.take(client, FLOOR, most)).count();
        let clients = ["192.0.2.1", "192.0.2.2", "2001:db8::1", "2001:db8:0:1::1"].map(client);
        assert_eq!(clients.map(takes), [32, 16, 8, 4]);
        cushion.give(clients[0], 32 * FLOOR);
        assert_eq!(takes(clients[3]), 16, "half of what two leave, of 64 - 16 - 8, less its own 4");
    }

    #[test]
    fn one_connection_finds_room_as_long_as_there_is_any() {
        let (cushion, most) = (Cushion::default(), 3 * FLOOR);
        for n in 0..3 {
            assert!(cushion.take(ClientId(n), FLOOR, most), "{n}");
        }
        assert!(!cushion.take(ClientId(3), 1, most), "nothing is left");
        cushion.give(ClientId(1), FLOOR);
        assert!(!cushion.take(ClientId(0), FLOOR, most), "it has its part");
        assert!(cushion.take(ClientId(3), FLOOR, most));
        for n in [0, 2, 3] {
            cushion.give(ClientId(n), FLOOR);
        }
        let taken = cushion.0.lock();
        assert!(taken.all == 0 && taken.by_client.is_empty());
    }
}
