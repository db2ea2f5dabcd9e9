//! What a connection holds for its client, charged before it is taken: the requests that wait, with
//! their heads, and the windows of what passes through.

use std::sync::Arc;

use base::memory::Full;
use base::{Account, Held, Limit, Limits};
use cache::Passage;
use flow::{Reply, pages};
use message::{Request, Status};

use crate::core::CoreCtx;

/// What a request that waits takes beside heads and bodies: its tasks, its place at the origin and
/// the messages between them. Measured with a thousand of them, rounded up.
const WAITING_BYTES: u64 = 12 * 1024;
/// The smallest window of its answer: what is read at once, what the window holds and what the
/// connection has been handed. It is there however little memory is left.
const WINDOW_BYTES: u64 = 3 * SMALLEST_WINDOW;
/// How often a request's head is there while an origin is asked: as it came, as the fetch has it,
/// as the origin gets it, and as it is written.
const HEADS: u64 = 4;
/// What the bodies of a connection may hold however little it may hold in all.
const BODIES_BYTES: u64 = 512 * 1024;
/// What the head of a browser's request takes, with long cookies.
const HEAD_BYTES: u64 = 2 * 1024;
/// What an answer takes that waits for its client's window, beside the request that it is for.
const REPLY_BYTES: u64 = 2 * 1024;
/// What a passing body may be ahead of its client, however little memory there is.
pub(crate) const SMALLEST_WINDOW: u64 = 4 * 1024;

/// The account of a new connection, which may hold at most `most` bytes.
pub(crate) fn open(core: &CoreCtx, most: u64) -> Arc<Account> {
    Account::open(core.flow.shared.cache.memory(), most)
}

/// The same for one with up to so many requests at once: however few bytes it may hold, there is
/// room for them and for a little of their bodies.
pub(crate) fn open_for(core: &CoreCtx, most: u64, requests: u64) -> Arc<Account> {
    let room = requests.saturating_mul(WAITING_BYTES + WINDOW_BYTES + HEADS * HEAD_BYTES);
    let least = room.saturating_add(BODIES_BYTES);
    Account::open_for(core.flow.shared.cache.memory(), most.max(least), room)
}

/// Holds what a request takes that waits for its answer.
pub(crate) fn hold_waiting(account: &Arc<Account>, request: &Request) -> Result<Held, Full> {
    account.hold_request(WAITING_BYTES + WINDOW_BYTES + HEADS * request.memory() as u64)
}

/// Holds what a request takes whose answer is there and must wait for its client.
pub(crate) fn hold_answered(account: &Arc<Account>, request: &Request) -> Result<Held, Full> {
    account.hold_request(REPLY_BYTES + request.memory() as u64)
}

/// The answer to a request for which there is no memory.
pub(crate) fn no_memory(core: &CoreCtx) -> Reply {
    core.flow.counters.limit(Limit::ClientMemory);
    let reason = "No memory is left for what is on its way to clients (limit: client_memory).";
    pages::refused(Status::SERVICE_UNAVAILABLE, reason).because_of(Some(Limit::ClientMemory))
}

/// What a body may be ahead of this client now, when it passes through: the limit `window_bytes`,
/// and less where memory is scarce.
pub(crate) fn window(account: &Account, limits: &Limits) -> u64 {
    (account.left() / 4).clamp(SMALLEST_WINDOW, limits.window_bytes)
}

/// What a body that passes through may hold now.
pub(crate) fn passage(account: &Arc<Account>, limits: &Limits) -> Passage {
    Passage { bytes: window(account, limits), account: Some(Arc::clone(account)) }
}

/// The window of `passage` where it is narrower than the limit, else 0: an origin is read in small
/// pieces only where memory is scarce, since that costs time.
pub(crate) fn narrowed(passage: &Passage, limits: &Limits) -> u64 {
    if passage.bytes == limits.window_bytes { 0 } else { passage.bytes }
}
