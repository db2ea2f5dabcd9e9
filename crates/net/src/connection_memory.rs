//! Memory that connections take merely by being open, charged before it is taken: their tasks and
//! buffers, the state of TLS and of HTTP/2.
//!
//! Where a newcomer finds no room, connections of its core make room that are over but for what is
//! read off, or wait for a request. Those that are busy never do: if all of its core are, the
//! newcomer calls the other cores, and waits a while for what they can do. Connections that are in
//! already and would take more end none that has just come in: its request is on its way.

use std::sync::atomic::Ordering;
use std::time::Duration;

use base::memory::OpenConnectionBytes;
use base::{Counter, Limit};

use crate::core::CoreCtx;
use crate::guard::EvictableConnections;

/// Bytes that a connection takes whatever it speaks: its task, its socket in the runtime, its place
/// in the sweep, and the beginning of a head. Like those below, measured with two thousand of them
/// in a debug build, rounded up.
const PLAIN_BYTES: u64 = 4 * 1024;
/// Bytes that TLS takes besides.
const TLS_BYTES: u64 = 8 * 1024;
/// Bytes that the state of HTTP/2 takes besides: streams, tables of fields, and what many requests
/// at once have left.
pub(crate) const H2_BYTES: u64 = 12 * 1024;

/// Turns for which a newcomer waits while those that were ended leave.
const TURNS: u32 = 16;

/// Newcomers of one core that wait for other cores at once. Nothing is charged for them meanwhile.
const WAITING_MAX: u32 = 64;
/// The time between two looks of one that waits, and the number of its looks. Each core answers
/// calls every 50 ms.
const LOOK: Duration = Duration::from_millis(25);
const LOOKS: u32 = 40;

/// Ends idle connections if somebody calls. Counts what that does.
pub(crate) fn answer_calls(core: &CoreCtx) {
    if core.calls.newcomers.load(Ordering::Relaxed) > 0 {
        end_idle(core, EvictableConnections::Any);
    } else if core.calls.others.load(Ordering::Relaxed) > 0 {
        end_idle(core, EvictableConnections::Settled);
    }
}

fn end_idle(core: &CoreCtx, who: EvictableConnections) -> bool {
    let ended = || core.flow.counters.limit(Limit::ConnectionMemory);
    core.sweep.end_idle(core.flow.now().mono_ms, who, ended)
}

/// Connections that make room for the one that has `opened`.
fn leaving_for(opened: &OpenConnectionBytes) -> EvictableConnections {
    if opened.is_none() { EvictableConnections::Any } else { EvictableConnections::Settled }
}

/// Bytes that a new connection takes.
pub(crate) fn of_new(tls: bool) -> u64 {
    if tls { PLAIN_BYTES + TLS_BYTES } else { PLAIN_BYTES }
}

/// The memory of a connection before anything is charged.
pub(crate) fn none(core: &CoreCtx) -> OpenConnectionBytes {
    OpenConnectionBytes::none(core.flow.shared.cache.memory())
}

/// Holds `bytes` more for a connection, if there is so much; at once.
pub(crate) fn hold(core: &CoreCtx, opened: &mut OpenConnectionBytes, bytes: u64) -> bool {
    opened.grow(bytes, core.flow.live().limits.connection_memory)
}

/// The same, ending idle connections of this core where there is not so much.
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
        // They leave in the turn that comes.
        rt::yield_now().await;
    }
    false
}

/// The same with the help of other cores, for which it may wait; counts a refusal.
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

/// Calls the other cores, and waits for room.
async fn wait(core: &CoreCtx, opened: &mut OpenConnectionBytes, bytes: u64) -> bool {
    if core.waiting.get() == WAITING_MAX {
        return false;
    }
    core.waiting.set(core.waiting.get() + 1);
    let mut found = false;
    let call = core.calls.call(leaving_for(opened));
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

/// Counts a connection that is closed because there is no room for it.
pub(crate) fn refuse(core: &CoreCtx) {
    core.flow.counters.inc(Counter::ConnectionsRefused);
    core.flow.counters.limit(Limit::ConnectionMemory);
}
