//! Counters of VCL's own events, under Varnish's names. Each core writes only its own block;
//! readers add the blocks up.

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

        /// All counters: name after `MAIN.`, and description.
        pub const TABLE: &[(Count, &str, &str)] = &[$((Count::$variant, $name, $about),)*];
    };
}

counts! {
    ClientReq "client_req" "Requests that a program handled";
    CacheHit "cache_hit" "Requests answered from the cache";
    CacheHitGrace "cache_hit_grace" "Of these, with a stale object during a background fetch";
    CacheHitpass "cache_hitpass" "Requests that a hit-for-pass object made pass";
    CacheHitmiss "cache_hitmiss" "Requests that a hit-for-miss object let fetch without waiting";
    CacheMiss "cache_miss" "Requests that missed and were fetched for the cache";
    BerespUncacheable "beresp_uncacheable" "Uncacheable responses, for one request only";
    BerespShortlived "beresp_shortlived" "Responses kept for less than `shortlived`";
    BackendUnhealthy "backend_unhealthy" "Fetches not begun: the backend is sick";
    BackendFail "backend_fail" "Fetches not begun: no connection to the backend";
    BackendBusy "backend_busy" "Fetches not begun: the backend has `max_connections`";
    BackendReq "backend_req" "Requests sent to backends";
    FetchHead "fetch_head" "Responses to HEAD";
    FetchLength "fetch_length" "Responses with a Content-Length";
    FetchChunked "fetch_chunked" "Responses in chunks";
    FetchEof "fetch_eof" "Responses that the end of the connection delimits";
    FetchNone "fetch_none" "Responses without a body";
    Fetch204 "fetch_204" "Responses of status 204";
    Fetch304 "fetch_304" "Responses of status 304";
    FetchFailed "fetch_failed" "Fetches that failed, for any reason";
    EsiErrors "esi_errors" "Errors in ESI instructions of pages";
    EsiWarnings "esi_warnings" "Warnings about ESI instructions of pages";
    EsiReq "esi_req" "Fragments of pages that a program handled";
    SPipe "s_pipe" "Requests piped";
    SPass "s_pass" "Requests passed";
    SFetch "s_fetch" "Fetches begun";
    SBgfetch "s_bgfetch" "Of these, in the background of a hit";
    SSynth "s_synth" "Responses made by `vcl_synth`";
    BusySleep "busy_sleep" "Requests that waited for another request's fetch";
    BusyWakeup "busy_wakeup" "Of these, requests that have continued";
    VclFail "vcl_fail" "Requests whose program failed";
    ScVclFailure "sc_vcl_failure" "Connections ended because a program failed";
    NGzip "n_gzip" "Bodies coded in gzip";
    NGunzip "n_gunzip" "Bodies in gzip decoded, for the cache or for a client";
    NTestGunzip "n_test_gunzip" "Bodies in gzip checked";
    NPurges "n_purges" "Purges made";
    NObjPurged "n_obj_purged" "Objects that purges removed or made stale";
}

/// Counters of one core.
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
    /// Adds one to a counter.
    pub fn inc(&self, count: Count) {
        self.add(count, 1);
    }

    /// Adds `n` to a counter. Only one core writes the block, so a plain load and store suffice.
    pub fn add(&self, count: Count, n: u64) {
        let counter = &self.0[count as usize];
        counter.store(counter.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
    }
}

/// Counter blocks of all cores.
#[derive(Debug, Default)]
pub struct Registry(Mutex<Vec<Arc<Counts>>>);

impl Registry {
    /// Adds the block of one more core.
    pub fn register(&self) -> Arc<Counts> {
        let counts = Arc::new(Counts::default());
        self.0.lock().push(Arc::clone(&counts));
        counts
    }

    /// Sum of one counter over all cores.
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
