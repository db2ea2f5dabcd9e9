//! Memory that connections take merely by being open, charged before it is taken: their tasks and
//! buffers, the state of TLS and of HTTP/2.
//!
//! Where a newcomer finds no room, connections of its core make room that are over but for what is
//! read off, or wait for a request. Those that are busy never do.

use base::memory::Opened;
use base::{Counter, Limit};

use crate::core::CoreCtx;

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

/// Bytes that a new connection takes.
pub(crate) fn of_new(tls: bool) -> u64 {
    if tls { PLAIN_BYTES + TLS_BYTES } else { PLAIN_BYTES }
}

/// The memory of a connection before anything is charged.
pub(crate) fn none(core: &CoreCtx) -> Opened {
    Opened::none(core.flow.shared.cache.memory())
}

/// Holds `bytes` more for a connection, if there is so much; at once.
pub(crate) fn hold(core: &CoreCtx, opened: &mut Opened, bytes: u64) -> bool {
    opened.grow(bytes, core.flow.live().limits.connection_memory)
}

/// The same, ending idle connections where there is not so much. Counts what that does.
pub(crate) async fn make(core: &CoreCtx, opened: &mut Opened, bytes: u64) -> bool {
    let counters = &core.flow.counters;
    for _ in 0..TURNS {
        if hold(core, opened, bytes) {
            return true;
        }
        let ended = || counters.limit(Limit::ConnectionMemory);
        if !core.sweep.end_idle(core.flow.now().mono_ms, ended) {
            break;
        }
        // They leave in the turn that comes.
        rt::yield_now().await;
    }
    refuse(core);
    false
}

/// Counts a connection that is closed because there is no room for it.
pub(crate) fn refuse(core: &CoreCtx) {
    core.flow.counters.inc(Counter::ConnectionsRefused);
    core.flow.counters.limit(Limit::ConnectionMemory);
}
