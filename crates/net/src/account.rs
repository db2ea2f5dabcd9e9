//! Account of the memory that a connection holds for its client: waiting requests with their heads,
//! and the windows of bodies in transit.
//!
//! Memory is charged here before it is allocated; no connection may hold bytes for its client past
//! its account.

use std::sync::Arc;

use base::memory::HoldError;
use base::{Account, ClientId, HeldBytes, Limit, Limits};
use cache::WindowLimit;
use flow::reply::HeadSource;
use flow::{BodyPart, ConnectionPeer, Reply, WaitingRequest, pages};
use message::{Request, Status};

use crate::core::{CoreCtx, READ_BYTES};

/// Bytes that a waiting request takes besides heads and bodies: its tasks, its slot at the origin
/// and the messages between them. Measured with a thousand such requests, rounded up.
const WAITING_BYTES: u64 = 12 * 1024;
/// The smallest window of a reply: one read, the window's content and the bytes handed to the
/// connection. It is granted even when memory is scarce.
const WINDOW_BYTES: u64 = 3 * SMALLEST_WINDOW;
/// Copies of a request's head during a fetch: as received, as the fetch keeps it, as the origin
/// gets it, and as it is encoded.
const HEADS: u64 = 4;
/// Bytes that the bodies of a connection may always hold, even if the connection's limit is lower.
const BODIES_BYTES: u64 = 512 * 1024;
/// Size of the head of a browser's request with long cookies.
const HEAD_BYTES: u64 = 2 * 1024;
/// Bytes that a reply takes, besides its request, while it waits for its client's flow-control
/// window.
const REPLY_BYTES: u64 = 2 * 1024;
/// The least number of bytes by which a body in transit may be ahead of its client.
pub(crate) const SMALLEST_WINDOW: u64 = 4 * 1024;
/// Bytes of a partial head that are part of an open connection's own charge.
const SPARE_BYTES: u64 = 1024;
/// Bytes that a tunnel takes besides its request's head and the bytes in transit.
const TUNNEL_BYTES: u64 = 4 * 1024;

/// The account of a client's HTTP/1 connection.
pub(crate) fn open(core: &CoreCtx) -> Arc<Account> {
    Account::open(core.flow.shared.cache.memory(), u64::MAX)
}

/// Sets the client that a connection's account is charged for from now on.
fn serve(account: &Account, client: ConnectionPeer) {
    account.serve(client.address().map(ClientId::from).unwrap_or_default());
}

/// The account of a connection with up to `requests` concurrent requests. Its limit is at least
/// what these requests and a small part of their bodies take.
pub(crate) fn open_for(core: &CoreCtx, most: u64, requests: u64) -> Arc<Account> {
    let room = requests.saturating_mul(WAITING_BYTES + WINDOW_BYTES + HEADS * HEAD_BYTES);
    let least = room.saturating_add(BODIES_BYTES);
    Account::open_for(core.flow.shared.cache.memory(), most.max(least), room)
}

/// Reserves memory for a request that waits for its reply, and for what the fetch has started.
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

/// Reserves memory for a request whose reply waits for its client.
pub(crate) fn hold_answered(
    account: &Arc<Account>,
    client: ConnectionPeer,
    request: &Request,
) -> Result<HeldBytes, HoldError> {
    serve(account, client);
    account.hold_request(REPLY_BYTES + request.memory() as u64)
}

/// Releases the reservation of a request that has become a tunnel.
pub(crate) fn keep_for_tunnel(held: &mut HeldBytes, request: &Request) {
    held.shrink_to(TUNNEL_BYTES + request.memory() as u64);
}

/// The charge for bytes that a connection buffers because one of its peers is slow. Up to the size
/// of the smallest window, these bytes are part of the request's charge.
#[derive(Debug, Default)]
pub(crate) struct BufferCharge(Option<HeldBytes>);

impl BufferCharge {
    /// Replaces the present charge by `bytes`. `account` is called only if nothing was charged
    /// before.
    ///
    /// # Errors
    /// If there is no memory for more; the charge is unchanged then.
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

    /// Replaces the present charge by `bytes` of a request or frame that is not complete and may
    /// never be. A small part of it is charged, too, since it belongs to no request; and the last
    /// memory is left to others.
    ///
    /// # Errors
    /// As [`BufferCharge::set`].
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

    /// Replaces the present charge by `bytes` that are allocated already, even if the budget is
    /// exceeded.
    pub(crate) fn set_anyway(&mut self, bytes: u64, account: &Arc<Account>) {
        match &mut self.0 {
            Some(held) if bytes > held.bytes() => held.grow_anyway(bytes - held.bytes()),
            Some(held) => held.shrink_to(bytes),
            None if bytes <= SMALLEST_WINDOW => {}
            None => self.0 = Some(account.hold_anyway(bytes)),
        }
    }
}

/// The number of bytes to receive at once if they must be kept: the size of one read, or less if
/// memory is scarce.
pub(crate) fn reads(account: &Account) -> usize {
    let most = READ_BYTES as u64;
    account.left().clamp(SMALLEST_WINDOW, most) as usize
}

/// Bytes of a waiting reply that are not charged with its request.
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

/// Reserves memory for a generated reply on its own stream, as far as it is longer than most.
pub(crate) fn hold_reply(
    account: &Arc<Account>,
    reply: &Reply,
) -> Result<Option<HeldBytes>, HoldError> {
    match beside(reply) {
        0..=SMALLEST_WINDOW => Ok(None),
        bytes => account.hold_request(bytes).map(Some),
    }
}

/// The reply to a request for which there is no memory; counts the refusal.
pub(crate) fn no_memory(core: &CoreCtx) -> Reply {
    core.flow.counters.limit(Limit::ClientMemory);
    no_room()
}

/// The reply to a request for which there is no memory; the caller has counted the refusal.
pub(crate) fn no_room() -> Reply {
    let reason = "No memory is left for requests and bodies in transit (limit: client_memory).";
    pages::refused(Status::SERVICE_UNAVAILABLE, reason).because_of(Some(Limit::ClientMemory))
}

/// Bytes by which a body in transit may be ahead of this client now: the limit `window_bytes`, or
/// less if memory is scarce.
pub(crate) fn window(account: &Account, limits: &Limits) -> u64 {
    (account.left() / 4).clamp(SMALLEST_WINDOW, limits.window_bytes)
}

/// The bounds of a body in transit: its present window, and the account that is charged.
pub(crate) fn passage(account: &Arc<Account>, limits: &Limits) -> WindowLimit {
    WindowLimit { bytes: window(account, limits), account: Arc::clone(account) }
}

/// The window of `passage` if it is narrower than the limit, otherwise 0. An origin is read in
/// small pieces only if memory is scarce, since that costs time.
pub(crate) fn narrowed(passage: &WindowLimit, limits: &Limits) -> u64 {
    if passage.bytes == limits.window_bytes { 0 } else { passage.bytes }
}
