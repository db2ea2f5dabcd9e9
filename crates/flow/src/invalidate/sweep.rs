//! Sweep of the store: everything stored is tested against the bans in force, off the cores.

use std::sync::Arc;
use std::time::Duration;

use cache::{Object, SweepHooks};

use super::hot_pages::HotPages;
use crate::state::invalidate::Invalidator;

/// Longest pause between two pieces of a sweep, in which other threads of the processor run.
const PAUSE: Duration = Duration::from_micros(100);
/// Pieces between two pauses: a few hundred microseconds.
const PIECES: u32 = 8;

impl Invalidator {
    /// Tests everything stored against the bans up to `until`. One sweep serves all waiting
    /// callers, and continues if they leave.
    pub(crate) async fn sweep(self: &Arc<Self>, until: u32, now_ms: u64) {
        let turn = Arc::clone(&self.sweeping).lock_owned().await;
        let cache = Arc::clone(&self.cache);
        let mut lost = HotPages::of(self, now_ms);
        let sweep = rt::run_blocking(move || {
            let _turn = turn;
            let mut pieces = 0;
            let mut pause = || {
                pieces += 1;
                if pieces % PIECES == 0 {
                    rt::pause(PAUSE);
                }
            };
            let mut ended = |object: &Object| {
                if let Some(lost) = &mut lost {
                    lost.note(object);
                }
            };
            let hooks = SweepHooks { pause: &mut pause, ended: &mut ended };
            cache.sweep_with(until, now_ms, hooks);
            lost.into_iter().for_each(HotPages::rewarm);
        });
        sweep.await;
    }

    /// Starts a sweep without waiting.
    pub(super) fn sweep_beside(self: &Arc<Self>, until: u32, now_ms: u64) {
        // Outside a runtime, when a program starts, the next sweep suffices.
        if tokio::runtime::Handle::try_current().is_ok() {
            let invalidator = Arc::clone(self);
            rt::spawn(async move { invalidator.sweep(until, now_ms).await });
        }
    }

    /// Once a second: tests unrequested responses against bans, and forgets old bans.
    pub(crate) fn sweep_bans(self: &Arc<Self>, now_ms: u64) {
        if self.cache.has_bans() && self.sweeping.try_lock().is_ok() {
            let invalidator = Arc::clone(self);
            rt::spawn_local(async move { invalidator.sweep(u32::MAX, now_ms).await });
        }
    }
}
