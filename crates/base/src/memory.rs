//! The memory budget: stored responses and bytes held for clients, in one account. Bytes must be
//! reserved here before they are allocated, and are returned when they are freed. It counts and
//! rejects; the store selects what is evicted.

mod cushion;
mod open_connections;

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

pub use cushion::ClientId;
use cushion::{Cushion, FLOOR};
pub use open_connections::OpenConnectionBytes;

/// The part of the unused share that one account may take: one in this many. It shrinks with the
/// square of the rest: `n` greedy accounts leave one part in `1 + n / PARTS` of the share, in any
/// order.
const PARTS: u64 = 16;
/// The part for an allocation that is needed as a whole.
const LARGE_PARTS: u64 = 2;
/// The part for requests: a body can continue with less, but a request is served or rejected.
const REQUEST_PARTS: u64 = 4;
/// The part for a body's own state, such as a decoder: each has a limit of its own.
const WHOLE_PARTS: u64 = 1;
/// The largest such state that counts for one connection. Larger ones are rare, and would use up a
/// connection's limit.
const WHOLE_MAX: u64 = 256 * 1024;
/// Accounts reserve and return multiples of this, so that small pieces touch no shared counter.
const GRAIN: u64 = 4 * 1024;
/// One part in this many of the clients' share is reserved for accounts below the floor, and at
/// most so many bytes: room for five hundred of them. One client gets half of it.
const CUSHION_PARTS: u64 = 8;
const CUSHION_MAX: u64 = 16 << 20;

/// Reserves bytes by evicting stored responses. Returns false if nothing can be evicted.
type EvictionCallback = Box<dyn Fn(u64) -> bool + Send + Sync>;

/// The bytes in use against the budget.
///
/// Stored responses may use all of the budget except a small part, the cushion, which is reserved
/// for connections that hold little: a request of theirs finds room whatever others hold. Bytes
/// held for clients (bodies in transit, heads, waiting requests) may use a share of the budget, for
/// which stored responses are evicted. One connection may hold at most a part of what is left of
/// the share. Open connections have a limit of their own, see [`OpenConnectionBytes`].
pub struct MemoryBudget {
    used: AtomicU64,
    budget: AtomicU64,
    /// The part of the used bytes that is held for clients.
    held: AtomicU64,
    held_max: AtomicU64,
    /// The part of the held bytes that small accounts take when the share is used up.
    cushion: Cushion,
    /// The part of the held bytes that open connections take.
    opened: AtomicU64,
    /// The part of those that was reserved for new connections.
    of_reserve: AtomicU64,
    /// The part of those that connections took after they were accepted.
    after_accept: AtomicU64,
    /// True if the last account that asked found no room, and nothing could be evicted.
    is_tight: AtomicBool,
    room: OnceLock<EvictionCallback>,
}

impl fmt::Debug for MemoryBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory")
            .field("used", &self.used)
            .field("budget", &self.budget)
            .field("held", &self.held)
            .field("held_max", &self.held_max)
            .finish_non_exhaustive()
    }
}

impl MemoryBudget {
    /// A budget of `bytes`, with at most `held_max` of them held for clients.
    pub fn new(bytes: u64, held_max: u64) -> Arc<Self> {
        Arc::new(Self {
            used: AtomicU64::new(0),
            budget: AtomicU64::new(bytes),
            held: AtomicU64::new(0),
            held_max: AtomicU64::new(held_max),
            cushion: Cushion::default(),
            opened: AtomicU64::new(0),
            of_reserve: AtomicU64::new(0),
            after_accept: AtomicU64::new(0),
            is_tight: AtomicBool::new(false),
            room: OnceLock::new(),
        })
    }

    /// Sets the callback that reserves bytes for clients by eviction. To be called once.
    pub fn make_room_by(&self, room: impl Fn(u64) -> bool + Send + Sync + 'static) {
        // A budget has one store.
        _ = self.room.set(Box::new(room));
    }

    /// Changes the budget and its limit for clients.
    pub fn set_budget(&self, bytes: u64, held_max: u64) {
        self.budget.store(bytes, Ordering::Relaxed);
        self.held_max.store(held_max, Ordering::Relaxed);
    }

    /// The limit of bytes in use.
    pub fn budget(&self) -> u64 {
        self.budget.load(Ordering::Relaxed)
    }

    /// Bytes in use, including those held for clients.
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Bytes held for clients.
    pub fn held(&self) -> u64 {
        self.held.load(Ordering::Relaxed)
    }

    /// The limit of bytes held for clients.
    pub fn held_max(&self) -> u64 {
        self.held_max.load(Ordering::Relaxed)
    }

    /// Returns true if the limit is exceeded.
    pub fn is_over(&self) -> bool {
        self.used() > self.budget()
    }

    /// Reserves `bytes` for the store, if the budget permits it.
    pub fn try_store(&self, bytes: u64) -> bool {
        self.try_use(bytes, self.common())
    }

    /// Bytes that [`MemoryBudget::try_store`] would reserve now.
    pub fn left_to_store(&self) -> u64 {
        self.common().saturating_sub(self.used())
    }

    /// The budget without the bytes reserved for small accounts and new connections.
    fn common(&self) -> u64 {
        self.budget().saturating_sub(self.cushion_max() + self.reserve_max())
    }

    fn cushion_max(&self) -> u64 {
        (self.held_max() / CUSHION_PARTS).min(CUSHION_MAX)
    }

    fn try_use(&self, bytes: u64, most: u64) -> bool {
        let more = |used: u64| used.checked_add(bytes).filter(|next| *next <= most);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    /// Returns bytes of [`MemoryBudget::try_store`].
    pub fn release(&self, bytes: u64) {
        let before = self.used.fetch_sub(bytes, Ordering::Relaxed);
        debug_assert!(before >= bytes, "more given back than was reserved");
    }

    /// Reserves `bytes` of the clients' share for an account that holds `mine` already.
    fn hold(&self, mine: u64, bytes: u64, parts: u64) -> bool {
        let most = self.held_max();
        let more = |held: u64| {
            let next = held.checked_add(bytes).filter(|next| *next <= most)?;
            (mine.saturating_add(bytes) <= fair(most, held, parts).max(FLOOR)).then_some(next)
        };
        if self.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_err() {
            return false;
        }
        let has_room =
            self.try_store(bytes) || self.room.get().is_some_and(|make_room| make_room(bytes));
        if self.is_tight.load(Ordering::Relaxed) == has_room {
            self.is_tight.store(!has_room, Ordering::Relaxed);
        }
        if !has_room {
            self.held.fetch_sub(bytes, Ordering::Relaxed);
        }
        has_room
    }

    /// Reserves `bytes` of the cushion for an account of `client`.
    fn hold_of_cushion(&self, client: ClientId, bytes: u64) -> bool {
        let is_there = self.cushion.take(client, bytes, self.cushion_max());
        if is_there {
            self.hold_anyway(bytes);
        }
        is_there
    }

    /// Counts `bytes` that have been allocated already.
    fn hold_anyway(&self, bytes: u64) {
        self.held.fetch_add(bytes, Ordering::Relaxed);
        self.used.fetch_add(bytes, Ordering::Relaxed);
    }

    fn let_go(&self, bytes: u64) {
        self.held.fetch_sub(bytes, Ordering::Relaxed);
        self.release(bytes);
    }
}

/// The most bytes that one account may hold of a share of `most` bytes with `held` in use.
fn fair(most: u64, held: u64, parts: u64) -> u64 {
    let left = u128::from(most.saturating_sub(held));
    let fair = left * left / u128::from(most.max(1)) / u128::from(parts);
    u64::try_from(fair).unwrap_or(u64::MAX)
}

/// The bytes of the cushion that an account has, and their client.
#[derive(Debug, Default)]
struct CushionBytes {
    client: ClientId,
    bytes: u64,
}

/// The account of the bytes held for one connection. It is used on one thread, but held bytes may
/// be dropped on another.
#[derive(Debug)]
pub struct Account {
    memory: Arc<MemoryBudget>,
    parts: u64,
    /// The limit of the account, in bytes.
    most: u64,
    /// The part of the limit that bodies leave to requests, and the part in use by requests.
    room: u64,
    requests: AtomicU64,
    /// Bytes held.
    used: AtomicU64,
    /// Bytes reserved in the budget.
    taken: AtomicU64,
    /// The client of the account.
    client: AtomicU64,
    /// The bytes reserved in the cushion; none in most accounts.
    from_cushion: Mutex<CushionBytes>,
    has_cushion_bytes: AtomicBool,
}

/// The reason why an account gets no more bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HoldError {
    /// The connection has reached its own limit.
    Own,
    /// The share of all clients is used up, or this connection has its part of the rest.
    Share,
}

impl Account {
    /// An empty account with a limit of `most` bytes.
    pub fn open(memory: &Arc<MemoryBudget>, most: u64) -> Arc<Self> {
        Self::of(memory, most, 0, PARTS)
    }

    /// An account for a connection with many requests: bodies leave `room` of its `most` bytes to
    /// the requests.
    pub fn open_for(memory: &Arc<MemoryBudget>, most: u64, room: u64) -> Arc<Self> {
        Self::of(memory, most, room, PARTS)
    }

    /// An account for an allocation that is needed as a whole. It gets a larger part of the rest.
    pub fn open_large(memory: &Arc<MemoryBudget>) -> Arc<Self> {
        Self::of(memory, u64::MAX, 0, LARGE_PARTS)
    }

    fn of(memory: &Arc<MemoryBudget>, most: u64, room: u64, parts: u64) -> Arc<Self> {
        Arc::new(Self {
            memory: Arc::clone(memory),
            parts,
            most,
            room,
            requests: AtomicU64::new(0),
            used: AtomicU64::new(0),
            taken: AtomicU64::new(0),
            client: AtomicU64::new(0),
            from_cushion: Mutex::default(),
            has_cushion_bytes: AtomicBool::new(false),
        })
    }

    /// Sets the client of the account. All accounts without one count as one client.
    pub fn serve(&self, client: ClientId) {
        self.client.store(client.number(), Ordering::Relaxed);
    }

    /// Holds `bytes`.
    ///
    /// # Errors
    /// The account gets no more.
    pub fn hold(self: &Arc<Self>, bytes: u64) -> Result<HeldBytes, HoldError> {
        self.take(bytes, self.for_bodies(), self.parts)?;
        Ok(HeldBytes { account: Arc::clone(self), bytes, of_request: 0 })
    }

    /// Holds `bytes` for a request that is to be served.
    ///
    /// # Errors
    /// As [`Account::hold`], but later.
    pub fn hold_request(self: &Arc<Self>, bytes: u64) -> Result<HeldBytes, HoldError> {
        self.take(bytes, self.most, self.parts.min(REQUEST_PARTS))?;
        self.requests.fetch_add(bytes, Ordering::Relaxed);
        Ok(HeldBytes { account: Arc::clone(self), bytes, of_request: bytes })
    }

    /// Holds `bytes` for a body's own state, such as a decoder, which gets all that is left while
    /// little is in use. A large one, or one beyond the account's limit, is held outside the
    /// account.
    ///
    /// # Errors
    /// As [`Account::hold`], but later.
    pub fn hold_whole(self: &Arc<Self>, bytes: u64) -> Result<HeldBytes, HoldError> {
        if bytes > WHOLE_MAX.min(self.most - self.room.min(self.most)) {
            return Self::of(&self.memory, u64::MAX, 0, WHOLE_PARTS).hold(bytes);
        }
        self.take(bytes, self.for_bodies(), WHOLE_PARTS)?;
        Ok(HeldBytes { account: Arc::clone(self), bytes, of_request: 0 })
    }

    /// The limit of the account for bodies.
    fn for_bodies(&self) -> u64 {
        self.most - self.room.saturating_sub(self.requests.load(Ordering::Relaxed)).min(self.most)
    }

    /// Holds `bytes` that have been allocated already, even beyond the limit.
    pub fn hold_anyway(self: &Arc<Self>, bytes: u64) -> HeldBytes {
        self.count(bytes);
        HeldBytes { account: Arc::clone(self), bytes, of_request: 0 }
    }

    fn count(&self, bytes: u64) {
        let used = self.used.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let missing = used.saturating_sub(self.taken.load(Ordering::Relaxed));
        self.memory.hold_anyway(missing);
        self.taken.fetch_add(missing, Ordering::Relaxed);
    }

    /// Bytes held.
    pub fn held(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Bytes that the account could hold in addition now, at least.
    pub fn left(&self) -> u64 {
        if self.memory.is_tight.load(Ordering::Relaxed) {
            return 0;
        }
        let (most, taken) = (self.memory.held_max(), self.taken.load(Ordering::Relaxed));
        let fair = fair(most, self.memory.held(), self.parts).saturating_sub(taken);
        fair.min(self.for_bodies().saturating_sub(self.held()))
    }

    fn take(&self, bytes: u64, most: u64, parts: u64) -> Result<(), HoldError> {
        if bytes > most {
            return Err(HoldError::Own);
        }
        if bytes > self.memory.held_max() {
            return Err(HoldError::Share);
        }
        let used = self.used.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let taken = self.taken.load(Ordering::Relaxed);
        let missing = used.saturating_sub(taken).next_multiple_of(GRAIN);
        let from = if used > most {
            Err(HoldError::Own)
        } else if missing == 0 {
            return Ok(());
        } else {
            self.reserve(taken, missing, parts)
        };
        if let Err(full) = from {
            self.used.fetch_sub(bytes, Ordering::Relaxed);
            return Err(full);
        }
        self.taken.fetch_add(missing, Ordering::Relaxed);
        Ok(())
    }

    /// Reserves `bytes` more in the share, or in the cushion if the account holds little.
    fn reserve(&self, taken: u64, bytes: u64, parts: u64) -> Result<(), HoldError> {
        if self.memory.hold(taken, bytes, parts) {
            return Ok(());
        }
        if taken.saturating_add(bytes) > FLOOR {
            return Err(HoldError::Share);
        }
        let mut from_cushion = self.from_cushion.lock();
        if from_cushion.bytes == 0 {
            from_cushion.client = ClientId::from_number(self.client.load(Ordering::Relaxed));
        }
        if !self.memory.hold_of_cushion(from_cushion.client, bytes) {
            return Err(HoldError::Share);
        }
        from_cushion.bytes += bytes;
        self.has_cushion_bytes.store(true, Ordering::Relaxed);
        Ok(())
    }

    fn give(&self, bytes: u64) {
        let used = self.used.fetch_sub(bytes, Ordering::Relaxed) - bytes;
        let taken = self.taken.load(Ordering::Relaxed);
        let spare = taken.saturating_sub(used.next_multiple_of(GRAIN));
        // If another thread has changed it meanwhile, that thread or the account's end returns the
        // bytes.
        if spare > 0
            && self
                .taken
                .compare_exchange(taken, taken - spare, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
        {
            self.let_go(spare);
        }
    }

    /// Returns reserved bytes, those of the cushion first.
    fn let_go(&self, bytes: u64) {
        if self.has_cushion_bytes.load(Ordering::Relaxed) {
            let mut from_cushion = self.from_cushion.lock();
            let back = from_cushion.bytes.min(bytes);
            from_cushion.bytes -= back;
            self.has_cushion_bytes.store(from_cushion.bytes > 0, Ordering::Relaxed);
            self.memory.cushion.give(from_cushion.client, back);
        }
        self.memory.let_go(bytes);
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.let_go(self.taken.load(Ordering::Relaxed));
    }
}

/// Bytes held for a client, returned when dropped.
#[derive(Debug)]
pub struct HeldBytes {
    account: Arc<Account>,
    bytes: u64,
    /// The part of `bytes` that counts for a request.
    of_request: u64,
}

impl HeldBytes {
    /// Bytes of it.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Holds `bytes` more.
    ///
    /// # Errors
    /// As [`Account::hold`].
    pub fn grow(&mut self, bytes: u64) -> Result<(), HoldError> {
        self.account.take(bytes, self.account.for_bodies(), self.account.parts)?;
        self.bytes += bytes;
        Ok(())
    }

    /// Holds `bytes` more that have been allocated already, even beyond the limit.
    pub fn grow_anyway(&mut self, bytes: u64) {
        self.account.count(bytes);
        self.bytes += bytes;
    }

    /// Returns the bytes beyond `bytes`.
    pub fn shrink_to(&mut self, bytes: u64) {
        let more = self.bytes.saturating_sub(bytes);
        if more > 0 {
            self.bytes -= more;
            let of_request = self.of_request.min(self.bytes);
            self.account.requests.fetch_sub(self.of_request - of_request, Ordering::Relaxed);
            self.of_request = of_request;
            self.account.give(more);
        }
    }
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        self.account.requests.fetch_sub(self.of_request, Ordering::Relaxed);
        if self.bytes > 0 {
            self.account.give(self.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn what_is_held_is_counted_and_given_back() {
        let memory = MemoryBudget::new(16 * MIB, 8 * MIB);
        let account = Account::open(&memory, MIB);
        let mut held = account.hold(10_000).expect("there is room");
        assert_eq!((account.held(), memory.held(), memory.used()), (10_000, 12_288, 12_288));
        held.grow(2_000).expect("there is room");
        assert_eq!((account.held(), memory.held()), (12_000, 12_288));
        let more = account.hold_anyway(5_000);
        held.shrink_to(1_000);
        assert_eq!((account.held(), memory.held()), (6_000, 8_192));
        held.grow_anyway(20 * MIB);
        assert_eq!(account.held(), 20 * MIB + 6_000);
        held.shrink_to(1_000);
        drop((held, more));
        assert_eq!((account.held(), memory.held(), memory.used()), (0, 0, 0));
    }

    #[test]
    fn one_account_leaves_most_of_the_share_to_others() {
        let memory = MemoryBudget::new(16 * MIB, 8 * MIB);
        let greedy: Vec<_> = (0..64).map(|_| Account::open(&memory, u64::MAX)).collect();
        let mut all = Vec::new();
        for account in &greedy {
            while let Ok(held) = account.hold(GRAIN) {
                all.push(held);
            }
        }
        assert!(greedy[0].held() <= MIB / 2, "a sixteenth of it all: {}", greedy[0].held());
        assert!(memory.held() < 7 * MIB, "{}", memory.held());
        let late = Account::open(&memory, u64::MAX);
        assert!(late.hold(FLOOR).is_ok());
        drop(all);
        assert_eq!(memory.used(), 0);
    }

    #[test]
    fn an_account_has_a_bound_of_its_own() {
        let memory = MemoryBudget::new(16 * MIB, 8 * MIB);
        let account = Account::open(&memory, 8_192);
        let held = account.hold(8_192).expect("there is room");
        assert_eq!(account.hold(1).err(), Some(HoldError::Own));
        assert_eq!(account.left(), 0);
        drop(held);
        assert_eq!(account.left(), 8_192);
        assert_eq!(account.hold(u64::from(u32::MAX)).err(), Some(HoldError::Own));
        assert_eq!(memory.used(), 0);
    }

    #[test]
    fn bodies_leave_requests_their_part() {
        let memory = MemoryBudget::new(64 * MIB, 32 * MIB);
        let account = Account::open_for(&memory, 2 * MIB, MIB);
        let request = account.hold_request(MIB / 2).expect("there is room");
        let bodies = account.hold(MIB / 2).expect("there is room");
        assert_eq!(account.left(), MIB / 2);
        let others = account.hold(MIB / 2).expect("there is room");
        assert_eq!((account.hold(1).err(), account.left()), (Some(HoldError::Own), 0));
        let mut more = account.hold_request(MIB / 2).expect("kept for it");
        assert_eq!(account.hold_request(1).err(), Some(HoldError::Own));
        more.shrink_to(0);
        assert_eq!(account.hold(1).err(), Some(HoldError::Own), "it is a request's again");
        assert!(account.hold_request(MIB / 2).is_ok());
        drop((request, bodies, others, more));
        let many = Account::open_for(&memory, u64::MAX, 0);
        let bodies: Vec<_> = std::iter::from_fn(|| many.hold(GRAIN).ok()).collect();
        assert!(many.held() < 2 * MIB, "a sixteenth, less by what it holds: {}", many.held());
        let requests: Vec<_> = std::iter::from_fn(|| many.hold_request(GRAIN).ok()).collect();
        assert!(many.held() > 5 * MIB, "{}", many.held());
        drop((bodies, requests));
        assert_eq!(memory.used(), 0);
    }

    #[test]
    fn what_must_be_whole_gets_more_and_may_be_more_than_a_connection_holds() {
        let memory = MemoryBudget::new(64 * MIB, 32 * MIB);
        let account = Account::open_for(&memory, 4 * MIB, MIB);
        let large = account.hold_whole(8 * MIB).expect("there is room");
        assert_eq!((account.held(), memory.held()), (0, 8 * MIB));
        let small: Vec<_> = std::iter::from_fn(|| account.hold_whole(60_000).ok()).collect();
        assert_eq!(small.len() as u64, 3 * MIB / 60_000);
        assert_eq!(account.hold_whole(60_000).err(), Some(HoldError::Own));
        assert_eq!(
            account.hold_whole(24 * MIB).err(),
            Some(HoldError::Share),
            "some is for others"
        );
        drop((large, small));
        assert_eq!(memory.used(), 0);
    }

    #[test]
    fn the_store_leaves_a_reserve_for_clients_and_evicts_for_more() {
        let memory = MemoryBudget::new(16 * MIB, 8 * MIB);
        assert!(!memory.try_store(16 * MIB));
        assert!(memory.try_store(14 * MIB - MIB / 2));
        assert_eq!(memory.left_to_store(), MIB);
        assert!(memory.try_store(MIB));
        assert!(!memory.try_store(1) && memory.left_to_store() == 0);
        let account = Account::open(&memory, u64::MAX);
        let held = account.hold(FLOOR).expect("kept back for that");
        assert_eq!(account.hold(GRAIN).err(), Some(HoldError::Share), "nothing can be evicted");
        assert_eq!(account.left(), 0);
        let client = |n: u64| {
            let account = Account::open(&memory, u64::MAX);
            account.serve(ClientId::from_number(n));
            account.hold(FLOOR)
        };
        let mut others: Vec<_> = std::iter::from_fn(|| client(0).ok()).collect();
        assert_eq!(others.len(), 15, "a client has half of it, 16 times the floor");
        others.extend(std::iter::from_fn(|| client(1).ok()));
        assert_eq!(others.len(), 15 + 8, "the next has half of the rest");
        drop(others);
        let weak = Arc::downgrade(&memory);
        memory.make_room_by(move |bytes| {
            weak.upgrade().is_some_and(|memory| {
                memory.release(bytes + FLOOR);
                memory.try_store(bytes)
            })
        });
        let more = account.hold(GRAIN).expect("something leaves");
        let stored = 15 * MIB - MIB / 2;
        assert_eq!((memory.used(), memory.held()), (stored, FLOOR + GRAIN));
        drop((held, more));
        assert_eq!((memory.used(), memory.held()), (stored - FLOOR - GRAIN, 0));
    }

    #[test]
    fn without_a_share_nothing_is_held_and_all_is_for_the_store() {
        let memory = MemoryBudget::new(100, 0);
        assert_eq!(Account::open(&memory, u64::MAX).hold(1).err(), Some(HoldError::Share));
        assert!(memory.try_store(100) && memory.used() == memory.budget());
        memory.set_budget(50, 0);
        assert!(memory.is_over());
        memory.release(100);
    }
}
