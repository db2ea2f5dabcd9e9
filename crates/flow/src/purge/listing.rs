//! Listing of stored responses for operators: those that a purge would select, without the purge.

use std::sync::Arc;
use std::time::Duration;

use cache::{Object, Tags, Test};

use crate::invalidate::{
    BanCriteria, PurgeableSites, ResponseSelector, StoredUrl, selection_tests,
};
use crate::key::is_internal;
use crate::state::invalidate::Invalidator;
use crate::state::live_configuration::LiveConfiguration;
use crate::state::site::Site;

/// Responses examined between two pauses: some hundred microseconds.
const PIECE: usize = 1024;
/// A pause, in which other threads of the processor run.
const PAUSE: Duration = Duration::from_micros(100);

/// Most names in a client's list.
const NAMES_MAX: usize = 10_000;

/// A stored response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedResponse {
    /// The URL of the response.
    pub url: String,
    /// Names of the fields that it varies by.
    pub vary: Vec<String>,
    /// Its status.
    pub status: u16,
    /// Its age, in milliseconds.
    pub age_ms: u64,
    /// The lifetime with which the response was stored, in milliseconds.
    pub lifetime_ms: u64,
    /// Milliseconds for which the response will still be fresh; 0 when it is stale.
    pub fresh_ms: u64,
    /// Milliseconds for which the response has been stale.
    pub stale_ms: u64,
    /// Milliseconds after its lifetime in which the response may answer during a background fetch.
    pub grace_ms: u64,
    /// Milliseconds after its lifetime in which the response may answer when the origin fails.
    pub stale_if_error_ms: u64,
    /// Bytes of its body, if known.
    pub length: Option<u64>,
    /// About how often it was hit.
    pub hits: u32,
    /// The number of its surrogate keys.
    pub tags: usize,
}

impl ListedResponse {
    fn of(object: &Object, under: &StoredUrl<'_>, now_ms: u64) -> Self {
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        let vary = object.vary().map(|vary| vary.spec).unwrap_or_default();
        let names = vary.split(|byte| *byte == b',').filter(|name| !name.is_empty());
        let fresh_ms = u64::try_from(object.fresh_until_ms()).unwrap_or(0).saturating_sub(now_ms);
        Self {
            url: under.text(),
            vary: names.map(|name| text(name.trim_ascii())).collect(),
            status: object.status().code(),
            age_ms: object.age_ms(now_ms),
            lifetime_ms: object.lifetime_ms(),
            fresh_ms,
            stale_ms: object.stale_ms(now_ms),
            grace_ms: object.grace_ms(),
            stale_if_error_ms: object.stale_if_error_ms(),
            length: object.length(),
            hits: object.hits(),
            tags: object.tags().len(),
        }
    }
}

/// An extract of the store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// The responses.
    pub seen: Vec<ListedResponse>,
    /// More responses match than are listed.
    pub more: bool,
}

impl Invalidator {
    /// Lists at most `most` stored responses that `what` selects, of the sites in `scope` or of
    /// all. Locks are held for microseconds only, so responses that are stored or removed meanwhile
    /// may be missing.
    pub async fn listing(
        &self,
        what: ResponseSelector,
        scope: Option<PurgeableSites>,
        now_ms: u64,
        most: usize,
    ) -> Listing {
        let (tags, matcher) = selection_tests(&what);
        let meant = BanCriteria { scope, matcher, now_ms };
        let see = move |listing: &mut Listing, object: &Object| {
            if is_internal(object) || !has_any(object, tags.as_ref()) || !meant.matches(object) {
                return true;
            }
            listing.more = listing.seen.len() == most;
            if !listing.more {
                listing.seen.push(ListedResponse::of(object, &StoredUrl::of(object), now_ms));
            }
            !listing.more
        };
        self.look_through(Listing::default(), see).await
    }

    /// Lists the stored responses of a site by Souin's names, up to some thousand.
    pub(crate) async fn names(&self, live: &Arc<LiveConfiguration>, site: &Site) -> Vec<String> {
        let scope = PurgeableSites::of(live, [site.number]);
        let see = move |names: &mut Vec<String>, object: &Object| {
            let under = StoredUrl::of(object);
            if scope.has(&under) {
                names.push(String::from_utf8_lossy(&under.souin_key()).into_owned());
            }
            names.len() < NAMES_MAX
        };
        self.look_through(Vec::new(), see).await
    }

    /// Shows each stored response to `see` until that returns false, then returns the result. One
    /// such listing runs at a time, even after its caller has left.
    pub(crate) async fn look_through<T: Send + 'static>(
        &self,
        mut seen: T,
        mut see: impl FnMut(&mut T, &Object) -> bool + Send + 'static,
    ) -> T {
        let cache = Arc::clone(&self.cache);
        let turn = Arc::clone(&self.listing).lock_owned().await;
        let look = rt::run_blocking(move || {
            let (_turn, mut looked_at) = (turn, 0);
            cache.walk(&mut |object| {
                looked_at += 1;
                if looked_at % PIECE == 0 {
                    rt::pause(PAUSE);
                }
                see(&mut seen, object)
            });
            seen
        });
        look.await
    }
}

/// Returns true if an object has one of `tags`, or if there is no condition on tags.
fn has_any(object: &Object, tags: Option<&Tags>) -> bool {
    tags.is_none_or(|tags| {
        let own = object.tags();
        tags.iter().any(|tag| own.iter().any(|other| other == tag))
    })
}
