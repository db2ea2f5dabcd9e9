//! Key directories of agents that sign their requests: fetched beside the cores, kept for as long
//! as their servers say, and fetched again before that.
//!
//! No request may wait for them, and none names a server that is asked: agents are in the
//! configuration. A directory that cannot be fetched changes nothing; one that lacks a key ends it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use acme::{DocumentBounds, DocumentError, DocumentSource, RemoteDocument, fetch_document};
use agents::{FetchedKeys, KeyDirectory, KeyDirectoryError};
use base::{Counter, Counters, HashSeed, Limit, Limits};
use flow::SharedCrawlers;
use message::HttpsOrigin;
use tls::Upstream;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// The place of a directory at its origin (draft-ietf-webbotauth-httpsig-protocol 5.2).
const PATH: &str = "/.well-known/http-message-signatures-directory";
/// Its media type.
const TYPE: &str = "application/http-message-signatures-directory+json";
/// The most fetches at once; others wait.
const AT_ONCE: usize = 4;
/// The longest sleep: clocks may be set, and machines may wake up.
const SLEEP_MAX_MS: u64 = 60_000;
/// The least time for which a directory is kept: a minute, however often keys change.
const KEEP_LEAST_S: u64 = 60;
/// The longest time: the draft's own examples have a day.
const KEEP_MOST_S: u64 = 24 * 3600;
/// The time if the server says nothing.
const KEEP_S: u64 = 3600;
/// The longest time between two tries.
const RETRY_MOST_MS: u64 = 3_600_000;

/// The directories to fetch.
#[derive(Clone, Debug, Default)]
pub(crate) struct DirectoryPlan {
    sources: Vec<DocumentSource>,
    bounds: Option<(DocumentBounds, u64)>,
}

impl DirectoryPlan {
    /// The plan for these agents.
    pub(crate) fn new(agents: &[(HttpsOrigin, Upstream)], limits: &Limits) -> Self {
        let source = |(origin, trust): &(HttpsOrigin, Upstream)| DocumentSource {
            origin: origin.clone(),
            path: PATH,
            accept: TYPE,
            trust: trust.clone(),
        };
        let bounds = DocumentBounds {
            exchange_ms: limits.key_directory_timeout,
            exchange_limit: Limit::KeyDirectoryTimeout,
            body_bytes: limits.key_directory_bytes,
            body_limit: Limit::KeyDirectoryBytes,
        };
        let sources = agents.iter().map(source).collect();
        Self { sources, bounds: Some((bounds, limits.key_directory_retry_wait)) }
    }
}

/// Keeps the keys for the latest plan, until its sender is dropped.
pub(crate) async fn run(
    crawlers: Arc<SharedCrawlers>,
    counters: Arc<Counters>,
    mut wanted: watch::Receiver<DirectoryPlan>,
) {
    let mut keeper = Directories {
        crawlers,
        counters,
        plan: DirectoryPlan::default(),
        states: BTreeMap::new(),
        running: JoinSet::new(),
    };
    keeper.adopt(wanted.borrow_and_update().clone());
    loop {
        let sleep = keeper.begin();
        tokio::select! {
            changed = wanted.changed() => match changed {
                Ok(()) => keeper.adopt(wanted.borrow_and_update().clone()),
                Err(_) => return,
            },
            Some(done) = keeper.running.join_next() => {
                // A task that panicked has no result; its directory is fetched again.
                match done {
                    Ok((origin, fetched)) => keeper.take(&origin, fetched),
                    Err(_) => keeper.restart(),
                }
            }
            () = rt::time::sleep(Duration::from_millis(sleep)) => {}
        }
    }
}

struct Directories {
    crawlers: Arc<SharedCrawlers>,
    counters: Arc<Counters>,
    plan: DirectoryPlan,
    states: BTreeMap<HttpsOrigin, DirectoryState>,
    running: JoinSet<(HttpsOrigin, Result<RemoteDocument, DocumentError>)>,
}

/// The state of a directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct DirectoryState {
    /// The time of the next fetch, on the monotonic clock.
    next_ms: u64,
    is_running: bool,
    /// Failed fetches in a row.
    failures: u32,
    /// The keys were reported to the operator.
    is_told: bool,
}

impl Directories {
    /// Takes over a plan. What failed before is tried at once.
    fn adopt(&mut self, plan: DirectoryPlan) {
        let before = std::mem::take(&mut self.states);
        for source in &plan.sources {
            let mut state = before.get(&source.origin).copied().unwrap_or_default();
            if state.failures > 0 {
                (state.next_ms, state.failures) = (0, 0);
            }
            self.states.insert(source.origin.clone(), state);
        }
        self.plan = plan;
        let keys = self.crawlers.keys.load();
        let kept = keys.only(|origin| self.states.contains_key(origin));
        self.crawlers.keys.store(Arc::new(kept));
    }

    /// Starts the fetches that are due. Returns the time until the next is due.
    fn begin(&mut self) -> u64 {
        let now_ms = rt::now().mono_ms;
        let mut sleep = SLEEP_MAX_MS;
        let Some((bounds, _)) = self.plan.bounds else { return sleep };
        for source in &self.plan.sources {
            let Some(state) = self.states.get_mut(&source.origin) else { continue };
            if state.is_running || self.running.len() >= AT_ONCE {
                continue;
            }
            if state.next_ms > now_ms {
                sleep = sleep.min(state.next_ms - now_ms);
                continue;
            }
            state.is_running = true;
            self.counters.inc(Counter::KeyDirectoryFetches);
            let source = source.clone();
            self.running.spawn(async move {
                let fetched = fetch_document(&source, bounds).await;
                (source.origin, fetched)
            });
        }
        sleep.max(1)
    }

    fn restart(&mut self) {
        let next_ms = rt::now().mono_ms.saturating_add(SLEEP_MAX_MS);
        for state in self.states.values_mut().filter(|state| state.is_running) {
            (state.is_running, state.next_ms) = (false, next_ms);
        }
    }

    /// Takes over the result of a fetch.
    fn take(&mut self, origin: &HttpsOrigin, fetched: Result<RemoteDocument, DocumentError>) {
        let Some(state) = self.states.get_mut(origin) else { return };
        state.is_running = false;
        let now_ms = rt::now().mono_ms;
        match fetched.and_then(|document| read(&document)) {
            Ok(FetchedDirectory { keys, keep_ms }) => {
                let is_told = std::mem::replace(&mut state.is_told, keys.is_some());
                (state.failures, state.next_ms) = (0, now_ms.saturating_add(spread(keep_ms)));
                if keys.is_none() {
                    base::tell!(Warn, "larder: {origin}: no key of its directory may be used");
                } else if !is_told {
                    base::tell!(Notice, "larder: {origin}: the keys of its agent are here");
                }
                self.put(origin, keys);
            }
            Err(DocumentError { why, limit }) => {
                state.is_told = false;
                state.failures = state.failures.saturating_add(1);
                let retry_ms = self.plan.bounds.map_or(SLEEP_MAX_MS, |(_, retry_ms)| retry_ms);
                let wait_ms = spread(retry_after_ms(retry_ms, state.failures));
                state.next_ms = now_ms.saturating_add(wait_ms);
                self.counters.inc(Counter::KeyDirectoryFailures);
                limit.iter().for_each(|limit| self.counters.limit(*limit));
                base::tell!(
                    Warn,
                    "larder: {origin}: the key directory cannot be fetched: {why}; the keys stay as \
                     they were"
                );
            }
        }
    }

    fn put(&self, origin: &HttpsOrigin, keys: Option<KeyDirectory>) {
        let all = self.crawlers.keys.load();
        if all.of(origin) != keys.as_ref() {
            self.crawlers.keys.store(Arc::new(with(&all, origin, keys)));
        }
    }
}

/// The keys with those of `origin` replaced, or removed.
fn with(all: &FetchedKeys, origin: &HttpsOrigin, keys: Option<KeyDirectory>) -> FetchedKeys {
    match keys {
        Some(keys) => all.with(origin, keys),
        None => all.only(|own| own != origin),
    }
}

/// A directory that was fetched.
#[derive(Debug)]
struct FetchedDirectory {
    /// Its keys; `None` if it says that no key counts any more.
    keys: Option<KeyDirectory>,
    /// The time after which it is fetched again.
    keep_ms: u64,
}

fn read(document: &RemoteDocument) -> Result<FetchedDirectory, DocumentError> {
    let keys = match KeyDirectory::parse(&document.body) {
        Ok(keys) => Some(keys),
        Err(KeyDirectoryError::NoUsableKey) => None,
        Err(error) => return Err(DocumentError { why: error.to_string(), limit: None }),
    };
    Ok(FetchedDirectory { keys, keep_ms: keep_ms(document.fresh_s) })
}

/// The time after which a directory is fetched again: a little before it is stale.
fn keep_ms(fresh_s: Option<u64>) -> u64 {
    fresh_s.unwrap_or(KEEP_S).clamp(KEEP_LEAST_S, KEEP_MOST_S) * 1000
}

/// The time after a number of failures in a row.
fn retry_after_ms(retry_ms: u64, failures: u32) -> u64 {
    let doubled = retry_ms.saturating_mul(1 << failures.saturating_sub(1).min(16));
    doubled.min(RETRY_MOST_MS.max(retry_ms))
}

/// A time of about `ms`, and not above, so that the fetches of many caches are spread.
fn spread(ms: u64) -> u64 {
    ms - HashSeed::random().hash(b"wait") % (ms / 8).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_kept_within_bounds_and_fetched_before_they_end() {
        for (fresh_s, kept_s) in
            [(None, 3600), (Some(0), 60), (Some(600), 600), (Some(1_000_000), 86_400)]
        {
            assert_eq!(keep_ms(fresh_s), kept_s * 1000, "{fresh_s:?}");
        }
        for _ in 0..100 {
            assert!((876..=1000).contains(&spread(1000)));
        }
        assert_eq!(spread(1), 1);
    }

    #[test]
    fn a_directory_without_a_key_ends_the_keys_and_a_broken_one_does_not() {
        let origin = HttpsOrigin::parse(b"https://agent.test").expect("an origin");
        let document = |body: &str| RemoteDocument { body: body.into(), fresh_s: None };
        let key = r#"{"kty":"OKP","crv":"Ed25519",
            "x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#;
        let fetched = read(&document(&format!("{{\"keys\":[{key}]}}"))).expect("a directory");
        let all = with(&FetchedKeys::default(), &origin, fetched.keys);
        assert!(all.of(&origin).is_some());
        let ended = read(&document("{\"keys\":[]}")).expect("a directory");
        assert!(with(&all, &origin, ended.keys).of(&origin).is_none());
        assert!(read(&document("<html>")).is_err());
    }

    #[test]
    fn tries_become_rarer() {
        let waits: Vec<_> = (1..=8).map(|failures| retry_after_ms(60_000, failures)).collect();
        let minutes = [1, 2, 4, 8, 16, 32, 60, 60];
        assert_eq!(waits, minutes.map(|minutes| minutes * 60_000));
        assert_eq!(retry_after_ms(60_000, u32::MAX), RETRY_MOST_MS);
        assert_eq!(retry_after_ms(2 * RETRY_MOST_MS, 3), 2 * RETRY_MOST_MS);
    }
}
