//! Memory that a connection holds for its client, charged before it is taken: the requests that
//! wait, with their heads, and the windows of the bodies that pass through.

use std::sync::Arc;

use base::memory::HoldError;
use base::{Account, ClientId, HeldBytes, Limit, Limits};
use cache::WindowLimit;
use flow::reply::HeadSource;
use flow::{BodyPart, ConnectionPeer, Reply, WaitingRequest, pages};
use message::{Request, Status};

use crate::core::{CoreCtx, READ_BYTES};

/// Bytes that a waiting request takes besides heads and bodies: its tasks, its place at the origin
/// and the messages between them. Measured with a thousand such requests, rounded up.
const WAITING_BYTES: u64 = 12 * 1024;
/// The smallest window of its answer: what is read at once, what the window holds and what the
/// connection has been handed. It is there however little memory is left.
const WINDOW_BYTES: u64 = 3 * SMALLEST_WINDOW;
/// Copies of a request's head while an origin is asked: as it came, as the fetch has it, as the
/// origin gets it, and as it is written.
const HEADS: u64 = 4;
/// Bytes that the bodies of a connection may always hold, however low the connection's limit is.
const BODIES_BYTES: u64 = 512 * 1024;
/// Bytes that the head of a browser's request takes, with long cookies.
const HEAD_BYTES: u64 = 2 * 1024;
/// Bytes that an answer takes, besides its request, while it waits for its client's flow-control
/// window.
const REPLY_BYTES: u64 = 2 * 1024;
/// Bytes by which a passing body may always be ahead of its client, however little memory there is.
pub(crate) const SMALLEST_WINDOW: u64 = 4 * 1024;
/// Bytes of a head that is not whole which a connection has room for merely by being open.
const SPARE_BYTES: u64 = 1024;
/// Bytes that a tunnel takes besides its request's head and the bytes on their way.
const TUNNEL_BYTES: u64 = 4 * 1024;

/// The account of what a client's connection holds.
pub(crate) fn open(core: &CoreCtx) -> Arc<Account> {
    Account::open(core.flow.shared.cache.memory(), u64::MAX)
}

/// Names the client that a connection's account holds bytes for from now on.
fn serve(account: &Account, client: ConnectionPeer) {
    account.serve(client.address().map(ClientId::from).unwrap_or_default());
}

/// The same for one with up to so many requests at once: however few bytes it may hold, there is
/// room for them and for a little of their bodies.
pub(crate) fn open_for(core: &CoreCtx, most: u64, requests: u64) -> Arc<Account> {
    let room = requests.saturating_mul(WAITING_BYTES + WINDOW_BYTES + HEADS * HEAD_BYTES);
    let least = room.saturating_add(BODIES_BYTES);
    Account::open_for(core.flow.shared.cache.memory(), most.max(least), room)
}

/// Holds what a request takes that waits for its answer, and what has begun of that.
pub(crate) fn hold_waiting(
    account: &Arc<Account>,
    client: ConnectionPeer,
    request: &Request,
    slow: &WaitingRequest,
) -> Result<HeldBytes, HoldError> {
    serve(account, client);
    let heads = HEADS * request.memory() as u64;
    account.hold_request(WAITING_BYTES + WINDOW_BYTES + heads + slow.memory())
}

/// Holds what a request takes whose answer is there and must wait for its client.
pub(crate) fn hold_answered(
    account: &Arc<Account>,
    client: ConnectionPeer,
    request: &Request,
) -> Result<HeldBytes, HoldError> {
    serve(account, client);
    account.hold_request(REPLY_BYTES + request.memory() as u64)
}

/// Gives back what a request waited with that has become a tunnel.
pub(crate) fn keep_for_tunnel(held: &mut HeldBytes, request: &Request) {
    held.shrink_to(TUNNEL_BYTES + request.memory() as u64);
}

/// Bytes that a connection keeps in buffers because one of its ends is slow. Up to the size of the
/// smallest window, they are counted with what they belong to.
#[derive(Debug, Default)]
pub(crate) struct BufferCharge(Option<HeldBytes>);

impl BufferCharge {
    /// Holds `bytes` instead of what was held before; `account` is asked for where nothing was held
    /// yet.
    ///
    /// # Errors
    /// When there is no room for more; nothing has changed then.
    pub(crate) fn set(
        &mut self,
        bytes: u64,
        account: impl FnOnce() -> Arc<Account>,
    ) -> Result<(), HoldError> {
        match &mut self.0 {
            Some(held) if bytes > held.bytes() => held.grow(bytes - held.bytes())?,
            Some(held) => held.shrink_to(bytes),
            None if bytes <= SMALLEST_WINDOW => {}
            None => self.0 = Some(account().hold_request(bytes)?),
        }
        Ok(())
    }

    /// The same for what has begun and may never end: who would keep much of it leaves the last
    /// of the memory to others. It belongs to nothing that is counted, so a little of it counts,
    /// too.
    ///
    /// # Errors
    /// As [`Buffered::set`].
    pub(crate) fn set_begun(&mut self, bytes: u64, core: &CoreCtx) -> Result<(), HoldError> {
        match &mut self.0 {
            Some(held) if bytes <= held.bytes() => held.shrink_to(bytes),
            Some(held) if bytes <= SMALLEST_WINDOW => held.grow_anyway(bytes - held.bytes()),
            None if bytes <= SPARE_BYTES => {}
            None if bytes <= SMALLEST_WINDOW => {
                self.0 = Some(open(core).hold_anyway(bytes));
            }
            _ => {
                let account = open(core);
                if bytes > account.left() {
                    return Err(HoldError::Share);
                }
                return self.set(bytes, || account);
            }
        }
        Ok(())
    }

    /// The same for what is there already, whether there is room or not.
    pub(crate) fn set_anyway(&mut self, bytes: u64, account: &Arc<Account>) {
        match &mut self.0 {
            Some(held) if bytes > held.bytes() => held.grow_anyway(bytes - held.bytes()),
            Some(held) => held.shrink_to(bytes),
            None if bytes <= SMALLEST_WINDOW => {}
            None => self.0 = Some(account.hold_anyway(bytes)),
        }
    }
}

/// The number of bytes that may be received at once if they must be kept: as many as a read takes
/// at most, fewer where memory is scarce.
pub(crate) fn reads(account: &Account) -> usize {
    let most = READ_BYTES as u64;
    account.left().clamp(SMALLEST_WINDOW, most) as usize
}

/// Bytes of a waiting reply that are not counted with its request.
fn beside(reply: &Reply) -> u64 {
    let body = match reply.body.part() {
        Some(BodyPart::Bytes(bytes)) => bytes.len(),
        _ => 0,
    };
    let head = match &reply.head {
        HeadSource::Owned(response) => response.headers.memory(),
        _ => 0,
    };
    ((head + body) as u64).saturating_sub(REPLY_BYTES)
}

/// Holds what a reply of our own takes that has a stream to itself, so far as it is longer than
/// most.
pub(crate) fn hold_reply(
    account: &Arc<Account>,
    reply: &Reply,
) -> Result<Option<HeldBytes>, HoldError> {
    match beside(reply) {
        0..=SMALLEST_WINDOW => Ok(None),
        bytes => account.hold_request(bytes).map(Some),
    }
}

/// The answer to a request for which there is no memory.
pub(crate) fn no_memory(core: &CoreCtx) -> Reply {
    core.flow.counters.limit(Limit::ClientMemory);
    no_room()
}

/// The same where that is counted already.
pub(crate) fn no_room() -> Reply {
    let reason = "No memory is left for what is on its way to clients (limit: client_memory).";
    pages::refused(Status::SERVICE_UNAVAILABLE, reason).because_of(Some(Limit::ClientMemory))
}

/// Bytes by which a passing body may be ahead of this client now: the limit `window_bytes`, or less
/// where memory is scarce.
pub(crate) fn window(account: &Account, limits: &Limits) -> u64 {
    (account.left() / 4).clamp(SMALLEST_WINDOW, limits.window_bytes)
}

/// The bounds of a body that passes through: its window now, and the account that is charged.
pub(crate) fn passage(account: &Arc<Account>, limits: &Limits) -> WindowLimit {
    WindowLimit { bytes: window(account, limits), account: Arc::clone(account) }
}

/// The window of `passage` where it is narrower than the limit, else 0: an origin is read in small
/// pieces only where memory is scarce, since that costs time.
pub(crate) fn narrowed(passage: &WindowLimit, limits: &Limits) -> u64 {
    if passage.bytes == limits.window_bytes { 0 } else { passage.bytes }
}
