//! Exchange slots of one server, shared by all cores, with the queue for them.
//!
//! The most slots of one client shrink with the square of the free ones, so that it takes a few
//! dozen greedy clients to use up all slots; with a fixed share, two would do. No client may wait
//! behind all requests of another: freed slots go to waiting clients in turn.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU32, Ordering};

use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::client_ends::ClientEnds;

/// A holder of slots: the unit that counts as one client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Holder {
    /// An IPv4 address.
    V4(Ipv4Addr),
    /// An IPv6 /64.
    V6(u64),
    /// A connection from this machine, by its peer: proxies are on loopback, and tests.
    Connection(SocketAddr),
}

impl Holder {
    /// The holder for a request of `client` over a connection with these ends; `None` if unknown.
    pub(crate) fn of(client: Option<IpAddr>, ends: Option<ClientEnds>) -> Option<Self> {
        let peer = ends.map(|ends| ends.client);
        match client.or_else(|| peer.map(|peer| peer.ip()))?.to_canonical() {
            ip if ip.is_loopback() => peer.map(Self::Connection),
            IpAddr::V4(ip) => Some(Self::V4(ip)),
            IpAddr::V6(ip) => Some(Self::V6((u128::from(ip) >> 64) as u64)),
        }
    }
}

/// All slots of a server.
#[derive(Debug)]
pub(crate) struct ExchangeSlots {
    all: u32,
    /// The share of all slots for a client without competition, in percent.
    share: u32,
    /// A copy of the number in `state`, for readers without the lock.
    free: AtomicU32,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    free: u32,
    held: HashMap<Holder, u32>,
    /// Holders that wait, each once, in the order of service.
    turns: VecDeque<Option<Holder>>,
    waiting: HashMap<Option<Holder>, VecDeque<SlotWaiter>>,
    number: u64,
}

#[derive(Debug)]
struct SlotWaiter {
    number: u64,
    grant: oneshot::Sender<()>,
}

impl ExchangeSlots {
    /// `all` slots, all of them free.
    pub(crate) fn new(all: u32, share: u32) -> Self {
        let state = State { free: all, ..State::default() };
        Self { all, share, free: AtomicU32::new(all), state: Mutex::new(state) }
    }

    /// Returns true if a slot is free.
    pub(crate) fn has_room(&self) -> bool {
        self.free.load(Ordering::Relaxed) > 0
    }

    /// Takes a slot, or starts to wait for one.
    pub(crate) fn take(&self, holder: Option<Holder>) -> Result<(), SlotWait<'_>> {
        let mut state = self.state.lock();
        if state.may_take(holder, self) {
            state.take(holder);
            self.publish(&state);
            return Ok(());
        }
        state.number += 1;
        let number = state.number;
        let (grant, granted) = oneshot::channel();
        let queue = state.waiting.entry(holder).or_default();
        let is_first = queue.is_empty();
        queue.push_back(SlotWaiter { number, grant });
        if is_first {
            state.turns.push_back(holder);
        }
        let by_share = state.free > 0;
        Err(SlotWait { slots: self, holder, number, granted: Some(granted), by_share })
    }

    /// Releases a slot, for the first waiter that may have it.
    pub(crate) fn give_back(&self, holder: Option<Holder>) {
        let mut state = self.state.lock();
        state.free += 1;
        state.drop_held(holder);
        state.serve(self);
        self.publish(&state);
    }

    fn publish(&self, state: &State) {
        self.free.store(state.free, Ordering::Relaxed);
    }
}

impl State {
    /// Returns true if `holder` may take one more slot. With `s` for the share of a client without
    /// competition, it may hold less than `s / (1 - s)^2 * free^2 / all`.
    fn may_take(&self, holder: Option<Holder>, of: &ExchangeSlots) -> bool {
        let held = holder.and_then(|holder| self.held.get(&holder)).copied().unwrap_or(0);
        if self.free == 0 || held == 0 || of.share >= 100 {
            return self.free > 0;
        }
        let [held, free, all, share] = [held, self.free, of.all, of.share].map(u128::from);
        held * all * (100 - share).pow(2) < 100 * share * free * free
    }

    fn take(&mut self, holder: Option<Holder>) {
        self.free -= 1;
        if let Some(holder) = holder {
            *self.held.entry(holder).or_default() += 1;
        }
    }

    fn drop_held(&mut self, holder: Option<Holder>) {
        let Some(holder) = holder else { return };
        if let Some(held) = self.held.get_mut(&holder) {
            *held -= 1;
            if *held == 0 {
                self.held.remove(&holder);
            }
        }
    }

    /// Grants slots while a waiter may have one.
    fn serve(&mut self, of: &ExchangeSlots) {
        while self.free > 0
            && let Some(at) = self.turns.iter().position(|holder| self.may_take(*holder, of))
            && let Some(holder) = self.turns.remove(at)
        {
            let Some(queue) = self.waiting.get_mut(&holder) else { continue };
            let next = queue.pop_front();
            if queue.is_empty() {
                self.waiting.remove(&holder);
            } else {
                self.turns.push_back(holder);
            }
            // The receiver of a waiter that has just given up is gone.
            if next.is_some_and(|waiter| waiter.grant.send(()).is_ok()) {
                self.take(holder);
            }
        }
    }

    /// Removes a waiter that has given up.
    fn leave(&mut self, holder: Option<Holder>, number: u64) {
        let Some(queue) = self.waiting.get_mut(&holder) else { return };
        queue.retain(|waiter| waiter.number != number);
        if queue.is_empty() {
            self.waiting.remove(&holder);
            self.turns.retain(|waiting| *waiting != holder);
        }
    }
}

/// A wait for a slot; dropping it gives up.
#[derive(Debug)]
pub(crate) struct SlotWait<'a> {
    slots: &'a ExchangeSlots,
    holder: Option<Holder>,
    number: u64,
    granted: Option<oneshot::Receiver<()>>,
    /// Slots are free, but this client's share is used up.
    pub(crate) by_share: bool,
}

impl SlotWait<'_> {
    /// Waits until a slot was granted.
    pub(crate) async fn granted(mut self) {
        if let Some(granted) = &mut self.granted {
            // Waiters are dropped unserved only with the slots themselves.
            _ = granted.await;
            self.granted = None;
        }
    }
}

impl Drop for SlotWait<'_> {
    fn drop(&mut self) {
        let Some(mut granted) = self.granted.take() else { return };
        granted.close();
        if granted.try_recv().is_ok() {
            self.slots.give_back(self.holder);
        } else {
            self.slots.state.lock().leave(self.holder, self.number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(last: u8) -> Option<Holder> {
        Some(Holder::V4(Ipv4Addr::new(192, 0, 2, last)))
    }

    fn take_all(slots: &ExchangeSlots, holder: Option<Holder>) -> usize {
        (0..1_000).take_while(|_| slots.take(holder).is_ok()).count()
    }

    fn is_granted(wait: &mut SlotWait<'_>) -> bool {
        wait.granted.as_mut().is_some_and(|granted| granted.try_recv().is_ok())
    }

    #[test]
    fn clients_are_told_apart_by_address_and_on_loopback_by_connection() {
        let ends = |text: &str| {
            let peer: SocketAddr = text.parse().expect("an address");
            Some(ClientEnds { client: peer, own: peer })
        };
        let ip = |text: &str| Some(text.parse::<IpAddr>().expect("an address"));
        let of = |client, peer| Holder::of(client, ends(peer));
        let near = "127.0.0.1:9";
        assert_eq!(of(ip("192.0.2.1"), near), of(ip("::ffff:192.0.2.1"), "127.0.0.1:8"));
        assert_eq!(of(ip("2001:db8::1"), near), of(ip("2001:db8::2"), near));
        assert_ne!(of(ip("2001:db8::1"), near), of(ip("2001:db8:0:1::1"), near));
        assert_ne!(of(ip("127.0.0.1"), near), of(ip("127.0.0.1"), "127.0.0.1:8"));
        assert_eq!(of(None, "192.0.2.1:7"), client(1));
        assert_eq!(Holder::of(ip("127.0.0.1"), None), None);
    }

    #[test]
    fn hoarders_leave_places_to_others_until_they_are_many() {
        let slots = ExchangeSlots::new(1_000, 75);
        let taken: Vec<_> = (0..12).map(|hoarder| take_all(&slots, client(hoarder))).collect();
        assert_eq!(taken, [750, 142, 47, 21, 11, 7, 4, 3, 3, 2, 1, 1]);
        assert!(slots.has_room() && slots.take(client(99)).is_ok());
    }

    #[test]
    fn few_places_are_shared_out_to_the_last() {
        for (all, alone) in [(1, 1), (2, 2), (3, 3), (4, 3), (5, 4), (10, 8)] {
            assert_eq!(take_all(&ExchangeSlots::new(all, 75), client(1)), alone);
        }
    }

    #[test]
    fn who_is_counted_on_nobodys_account_takes_all() {
        assert_eq!(take_all(&ExchangeSlots::new(9, 75), None), 9);
        assert_eq!(take_all(&ExchangeSlots::new(9, 100), client(1)), 9);
        assert_eq!(take_all(&ExchangeSlots::new(1, 1), client(1)), 1);
    }

    #[test]
    fn clients_that_wait_are_served_in_turn() {
        let slots = ExchangeSlots::new(3, 100);
        assert_eq!(take_all(&slots, None), 3);
        let mut many: Vec<_> =
            (0..3).map(|_| slots.take(client(1)).expect_err("it is full")).collect();
        let mut few = slots.take(client(2)).expect_err("it is full");
        for _ in 0..2 {
            slots.give_back(None);
        }
        let served: Vec<_> = many.iter_mut().map(is_granted).collect();
        assert_eq!((&served[..], is_granted(&mut few)), (&[true, false, false][..], true));
    }

    #[test]
    fn a_client_beyond_its_share_waits_until_more_is_free() {
        let slots = ExchangeSlots::new(4, 50);
        assert_eq!(take_all(&slots, client(1)), 2);
        let mut wait = slots.take(client(1)).expect_err("half of them are held");
        assert!(wait.by_share);
        assert!(slots.take(client(2)).is_ok());
        slots.give_back(client(2));
        assert!(!is_granted(&mut wait));
        slots.give_back(client(1));
        assert!(is_granted(&mut wait));
    }

    #[test]
    fn who_gives_up_leaves_nothing_behind() {
        let slots = ExchangeSlots::new(1, 75);
        assert!(slots.take(client(1)).is_ok());
        let waits = (2..5).map(|n| slots.take(client(n)).expect_err("it is full"));
        let mut waits: VecDeque<_> = waits.collect();
        drop(waits.pop_front());
        slots.give_back(client(1));
        // The second gets its slot and leaves at once: the third gets it.
        drop(waits.pop_front());
        assert!(waits.pop_front().is_some_and(|mut wait| is_granted(&mut wait)));
        drop(waits);
        slots.give_back(client(4));
        let state = slots.state.lock();
        assert!(state.waiting.is_empty() && state.turns.is_empty() && state.held.is_empty());
        assert_eq!(state.free, 1);
    }
}
