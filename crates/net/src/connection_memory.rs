//! Connection memory: the bytes of an open connection for its task, buffers, TLS and HTTP/2 state,
//! charged before they are allocated.
//!
//! A new connection without memory makes its core evict idle connections, or else waits for other
//! cores. Busy connections are never evicted, nor is a new one for one that grows.

use std::sync::atomic::Ordering;
use std::time::Duration;

use base::memory::OpenConnectionBytes;
use base::{Counter, Limit};

use crate::core::CoreCtx;
use crate::guard::EvictableConnections;

/// Bytes of a plain connection: its task, its socket in the runtime, its entry in the sweep, and a
/// partial head. Measured, as those below, with two thousand of them in a debug build, rounded up.
const PLAIN_BYTES: u64 = 4 * 1024;
/// Additional bytes of TLS.
const TLS_BYTES: u64 = 8 * 1024;
/// Additional bytes of HTTP/2: streams, field tables, and buffers left over from many concurrent
/// requests.
pub(crate) const H2_BYTES: u64 = 12 * 1024;

/// Event-loop turns for which a new connection waits while evicted connections close.
const TURNS: u32 = 16;

/// The number of new connections of one core that wait for other cores. Nothing is charged for them
/// meanwhile.
const WAITING_MAX: u32 = 64;
/// The interval between two attempts of a waiting connection, and the number of attempts. Each core
/// handles reclaim requests every 50 ms.
const LOOK: Duration = Duration::from_millis(25);
const LOOKS: u32 = 40;

/// Evicts idle connections if a reclaim request is pending, and counts them.
pub(crate) fn handle_reclaims(core: &CoreCtx) {
    if core.reclaims.newcomers.load(Ordering::Relaxed) > 0 {
        end_idle(core, EvictableConnections::Any);
    } else if core.reclaims.others.load(Ordering::Relaxed) > 0 {
        end_idle(core, EvictableConnections::Settled);
    }
}

fn end_idle(core: &CoreCtx, who: EvictableConnections) -> bool {
    let ended = || core.flow.counters.limit(Limit::ConnectionMemory);
    core.sweep.end_idle(core.flow.now().mono_ms, who, ended)
}

/// The connections that may be evicted for the one that has `opened`.
fn leaving_for(opened: &OpenConnectionBytes) -> EvictableConnections {
    if opened.is_none() { EvictableConnections::Any } else { EvictableConnections::Settled }
}

/// Bytes that a new connection takes.
pub(crate) fn of_new(tls: bool) -> u64 {
    if tls { PLAIN_BYTES + TLS_BYTES } else { PLAIN_BYTES }
}

/// The charge of a connection before anything is reserved.
pub(crate) fn none(core: &CoreCtx) -> OpenConnectionBytes {
    OpenConnectionBytes::none(core.flow.shared.cache.memory())
}

/// Reserves `bytes` more for a connection; false if there is no memory.
pub(crate) fn hold(core: &CoreCtx, opened: &mut OpenConnectionBytes, bytes: u64) -> bool {
    opened.grow(bytes, core.flow.live().limits.connection_memory)
}

/// Reserves `bytes` more for a connection, evicting idle connections of this core if needed.
pub(crate) async fn hold_with_eviction(
    core: &CoreCtx,
    opened: &mut OpenConnectionBytes,
    bytes: u64,
) -> bool {
    let who = leaving_for(opened);
    for _ in 0..TURNS {
        if hold(core, opened, bytes) {
            return true;
        }
        if !end_idle(core, who) {
            break;
        }
        // Evicted connections close in the next turn.
        rt::yield_now().await;
    }
    false
}

/// Reserves `bytes` more for a connection, waiting for evictions by other cores if needed; counts a
/// refusal.
pub(crate) async fn make_or_wait(
    core: &CoreCtx,
    opened: &mut OpenConnectionBytes,
    bytes: u64,
) -> bool {
    if hold_with_eviction(core, opened, bytes).await || wait(core, opened, bytes).await {
        return true;
    }
    refuse(core);
    false
}

/// Makes a reclaim request to the other cores, and waits for memory.
async fn wait(core: &CoreCtx, opened: &mut OpenConnectionBytes, bytes: u64) -> bool {
    if core.waiting.get() == WAITING_MAX {
        return false;
    }
    core.waiting.set(core.waiting.get() + 1);
    let mut found = false;
    let call = core.reclaims.call(leaving_for(opened));
    for _ in 0..LOOKS {
        rt::time::sleep(LOOK).await;
        found = hold_with_eviction(core, opened, bytes).await;
        if found {
            break;
        }
    }
    drop(call);
    core.waiting.set(core.waiting.get() - 1);
    found
}

/// Counts a connection that is closed for lack of memory.
pub(crate) fn refuse(core: &CoreCtx) {
    core.flow.counters.inc(Counter::ConnectionsRefused);
    core.flow.counters.limit(Limit::ConnectionMemory);
}
