//! Counters under Varnish's names, of what only a program's requests do. Each core writes its own
//! block; readers add the blocks up.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

macro_rules! counts {
    ($($variant:ident $name:literal $about:literal;)*) => {
        /// A counter.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(usize)]
        pub enum Count { $(#[doc = $about] $variant,)* }

        /// All of them: counter, name after `MAIN.`, what it counts.
        pub const TABLE: &[(Count, &str, &str)] = &[$((Count::$variant, $name, $about),)*];
    };
}

counts! {
    ClientReq "client_req" "Requests that a program was run for";
    CacheHit "cache_hit" "Requests answered from the store";
    CacheHitGrace "cache_hit_grace" "Of these, with something stale while it is fetched anew";
    CacheHitpass "cache_hitpass" "Requests that a mark sent past the store";
    CacheHitmiss "cache_hitmiss" "Requests that a mark had fetched without waiting";
    CacheMiss "cache_miss" "Requests fetched for the store";
    BerespUncacheable "beresp_uncacheable" "Responses that are for one request only";
    BerespShortlived "beresp_shortlived" "Responses kept for less than `shortlived`";
    BackendUnhealthy "backend_unhealthy" "Fetches not begun: the backend is sick";
    BackendFail "backend_fail" "Fetches not begun: no connection came about";
    BackendBusy "backend_busy" "Fetches not begun: the backend has `max_connections`";
    BackendReq "backend_req" "Requests sent to backends";
    FetchHead "fetch_head" "Responses to HEAD";
    FetchLength "fetch_length" "Responses with a Content-Length";
    FetchChunked "fetch_chunked" "Responses in chunks";
    FetchEof "fetch_eof" "Responses that the end of their connection ends";
    FetchNone "fetch_none" "Responses without a body";
    Fetch204 "fetch_204" "Responses of status 204";
    Fetch304 "fetch_304" "Responses of status 304";
    FetchFailed "fetch_failed" "Fetches that came to nothing, whatever the reason";
    EsiErrors "esi_errors" "Faults in the instructions of such pages";
    EsiWarnings "esi_warnings" "Oddities in the instructions of such pages";
    EsiReq "esi_req" "Fragments of pages that a program was run for";
    SPipe "s_pipe" "Requests piped";
    SPass "s_pass" "Requests passed";
    SFetch "s_fetch" "Fetches begun";
    SBgfetch "s_bgfetch" "Of these, behind an answer from the store";
    SSynth "s_synth" "Answers made by `vcl_synth`";
    BusySleep "busy_sleep" "Requests that waited for the fetch of another";
    BusyWakeup "busy_wakeup" "Of these, those that have gone on";
    VclFail "vcl_fail" "Requests whose program failed";
    ScVclFailure "sc_vcl_failure" "Connections ended because a program failed";
    NGzip "n_gzip" "Bodies coded in gzip";
    NGunzip "n_gunzip" "Bodies in gzip decoded, for the store or for a client";
    NTestGunzip "n_test_gunzip" "Bodies in gzip tested";
    NPurges "n_purges" "Purges made";
    NObjPurged "n_obj_purged" "Stored responses that they met";
}

/// One core's counters.
pub struct Counts([AtomicU64; TABLE.len()]);

impl Default for Counts {
    fn default() -> Self {
        Self([const { AtomicU64::new(0) }; TABLE.len()])
    }
}

impl fmt::Debug for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Counts").finish_non_exhaustive()
    }
}

impl Counts {
    /// Counts one more.
    pub fn inc(&self, count: Count) {
        self.add(count, 1);
    }

    /// Counts so many more. Only this core writes: a plain load and store is enough.
    pub fn add(&self, count: Count, n: u64) {
        let counter = &self.0[count as usize];
        counter.store(counter.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
    }
}

/// The counters of all cores.
#[derive(Debug, Default)]
pub struct Registry(Mutex<Vec<Arc<Counts>>>);

impl Registry {
    /// A block for one more core.
    pub fn register(&self) -> Arc<Counts> {
        let counts = Arc::new(Counts::default());
        self.0.lock().push(Arc::clone(&counts));
        counts
    }

    /// Returns the sum of one counter over all cores.
    pub fn sum(&self, count: Count) -> u64 {
        let blocks = self.0.lock();
        blocks.iter().map(|block| block.0[count as usize].load(Ordering::Relaxed)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_added_up() {
        let registry = Registry::default();
        let (a, b) = (registry.register(), registry.register());
        a.inc(Count::CacheHit);
        b.add(Count::CacheHit, 2);
        b.inc(Count::CacheMiss);
        assert_eq!(registry.sum(Count::CacheHit), 3);
        assert_eq!(registry.sum(Count::CacheMiss), 1);
    }
}
