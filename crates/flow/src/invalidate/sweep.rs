//! Sweeps: everything stored is tested against the bans in force, beside the cores.

use std::sync::Arc;
use std::time::Duration;

use crate::state::invalidate::Invalidator;

/// Longest pause of a sweep between two short pieces of work, so that the thread it shares a
/// processor with answers meanwhile.
const PAUSE: Duration = Duration::from_micros(100);
/// Pieces of work between two pauses: a few hundred microseconds.
const PIECES: u32 = 8;

impl Invalidator {
    /// Has everything stored tested against the bans up to `until`, beside the cores. One sweep
    /// serves all who wait, and goes on when they do not.
    pub(crate) async fn sweep(self: &Arc<Self>, until: u32, now_ms: u64) {
        let turn = Arc::clone(&self.sweeping).lock_owned().await;
        let cache = Arc::clone(&self.cache);
        let sweep = rt::run_blocking(move || {
            let _turn = turn;
            let mut pieces = 0;
            cache.sweep(until, now_ms, &mut || {
                pieces += 1;
                if pieces % PIECES == 0 {
                    rt::pause(PAUSE);
                }
            });
        });
        sweep.await;
    }

    /// The same without waiting for it.
    pub(super) fn sweep_beside(self: &Arc<Self>, until: u32, now_ms: u64) {
        // Outside of a runtime (a program's start) the next sweep will do.
        if tokio::runtime::Handle::try_current().is_ok() {
            let door = Arc::clone(self);
            rt::spawn(async move { door.sweep(until, now_ms).await });
        }
    }

    /// Tests what nobody asked for against bans that were made, and forgets old ones. Once a
    /// second.
    pub(crate) fn sweep_bans(self: &Arc<Self>, now_ms: u64) {
        if self.cache.has_bans() && self.sweeping.try_lock().is_ok() {
            let door = Arc::clone(self);
            rt::spawn_local(async move { door.sweep(u32::MAX, now_ms).await });
        }
    }
}
