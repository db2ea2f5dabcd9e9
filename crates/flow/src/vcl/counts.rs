//! Counters under Varnish's names, for what only a VCL's steps know. Each core writes its own
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
    ClientReq "client_req" "Good client requests received";
    CacheHit "cache_hit" "Cache hits";
    CacheHitGrace "cache_hit_grace" "Cache grace hits";
    CacheHitpass "cache_hitpass" "Cache hits for pass.";
    CacheHitmiss "cache_hitmiss" "Cache hits for miss.";
    CacheMiss "cache_miss" "Cache misses";
    BerespUncacheable "beresp_uncacheable" "Uncacheable backend responses";
    BerespShortlived "beresp_shortlived" "Shortlived objects";
    BackendUnhealthy "backend_unhealthy" "Backend conn. not attempted";
    BackendFail "backend_fail" "Backend conn. failures";
    BackendReq "backend_req" "Backend requests made";
    BackendConn "backend_conn" "Backend conn. success";
    BackendReuse "backend_reuse" "Backend conn. reuses";
    FetchHead "fetch_head" "Fetch no body (HEAD)";
    FetchLength "fetch_length" "Fetch with Length";
    FetchChunked "fetch_chunked" "Fetch chunked";
    FetchEof "fetch_eof" "Fetch EOF";
    FetchNone "fetch_none" "Fetch no body";
    Fetch1xx "fetch_1xx" "Fetch no body (1xx)";
    Fetch204 "fetch_204" "Fetch no body (204)";
    Fetch304 "fetch_304" "Fetch no body (304)";
    FetchFailed "fetch_failed" "Fetch failed (all causes)";
    SReq "s_req" "Total requests seen";
    SPipe "s_pipe" "Total pipe sessions seen";
    SPass "s_pass" "Total pass-ed requests seen";
    SFetch "s_fetch" "Total backend fetches initiated";
    SBgfetch "s_bgfetch" "Total backend background fetches initiated";
    SSynth "s_synth" "Total synthetic responses made";
    BusySleep "busy_sleep" "Number of requests sent to sleep on busy objhdr";
    BusyWakeup "busy_wakeup" "Number of requests woken after sleep on busy objhdr";
    BusyKilled "busy_killed" "Number of requests killed after sleep on busy objhdr";
    ScVclFailure "sc_vcl_failure" "Session Err VCL_FAILURE";
    ClientReq417 "client_req_417" "Client requests received, subject to 417 errors";
    ClientResp500 "client_resp_500" "Delivery failed due to insufficient workspace.";
    NPurges "n_purges" "Number of purge operations executed";
    NObjPurged "n_obj_purged" "Number of purged objects";
    NExpired "n_expired" "Number of expired objects";
    ReqDropped "req_dropped" "Requests dropped";
    Losthdr "losthdr" "HTTP header overflows";
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

    /// What all cores have counted.
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
