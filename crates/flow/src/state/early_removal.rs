//! Early removal: useless responses leave the store before they are evicted. Those of programs
//! leave after their last use. In a full store, the next responses to be evicted leave before their
//! memory is needed. It runs once a second, off the cores, over a part of the store.

use std::sync::Arc;
use std::time::Duration;

use cache::{IndexWalk, Object};
use tokio::sync::Mutex;

use crate::state::tier::Cache;

/// Index slots examined each time. A store of a hundred thousand pages takes ten seconds and a
/// thousandth of a core.
const PLACES: usize = 16 * 1024;
const EVERY_MS: u64 = 900;
/// Pieces between two pauses: a few hundred microseconds.
const PIECES: u32 = 8;
const PAUSE: Duration = Duration::from_micros(100);

/// The search for useless responses.
#[derive(Default)]
pub(crate) struct EarlyRemoval(Arc<Mutex<Rounds>>);

/// The position and time of the last search.
#[derive(Default)]
struct Rounds {
    walk: IndexWalk,
    began_ms: u64,
}

impl EarlyRemoval {
    /// Continues the search, unless another core just did.
    pub(crate) fn continue_round(&self, cache: &Arc<Cache>, now_ms: u64) {
        if cache.stats().objects == 0 {
            return;
        }
        let Ok(mut rounds) = Arc::clone(&self.0).try_lock_owned() else { return };
        if now_ms < rounds.began_ms + EVERY_MS {
            return;
        }
        rounds.began_ms = now_ms;
        let cache = Arc::clone(cache);
        rt::blocking(move || {
            let mut pieces = 0_u32;
            let mut pause = || {
                pieces += 1;
                if pieces.is_multiple_of(PIECES) {
                    rt::pause(PAUSE);
                }
            };
            let is_over = |object: &Object| is_over(object, now_ms);
            cache.drop_expired(&mut rounds.walk, PLACES, &is_over, &mut pause);
            cache.make_room_ahead(&mut pause);
        });
    }
}

/// Returns true if `object` will neither answer nor be revalidated again; programs limit that time.
/// Other objects stay until eviction, so that a miss can be explained by them.
fn is_over(object: &Object, now_ms: u64) -> bool {
    let kept_ms = object.grace_ms().saturating_add(object.stale_if_error_ms());
    !object.note().is_empty() && object.stale_ms(now_ms) > kept_ms
}

#[cfg(test)]
mod tests {
    use base::{HashSeed, KeyBuf};
    use cache::{BeginOptions, Config, FetchDecision, NewObject};
    use message::Status;

    use super::*;
    use crate::verdict::permit;

    /// Stores an object that is fresh for a second; true if it is over at `now_ms`.
    fn over_at(now_ms: u64, of: impl FnOnce(&mut NewObject)) -> bool {
        let cache = crate::state::tier::memory_only(Config {
            budget_bytes: 1 << 20,
            held_bytes_max: 1 << 19,
            max_variants: 1,
            object_bytes_max: 1 << 20,
            waiters_max: 1,
            window_bytes: 1,
            hit_for_miss_ms: 1,
            bans_max: 1,
            index_bytes: 64 << 20,
        });
        let mut key = KeyBuf::new();
        key.finish(&HashSeed::from_u64(1));
        let FetchDecision::Lead(lead) =
            cache.begin(&key, &mut |_, _| (), BeginOptions::default(), 0)
        else {
            panic!("an empty store");
        };
        let mut new = NewObject {
            status: Status::OK,
            head: Box::default(),
            etag: None,
            last_modified: None,
            date: None,
            born_ms: 0,
            lifetime_ms: 1_000,
            grace_ms: 0,
            stale_if_error_ms: 0,
            stale_if_unreachable_ms: 0,
            flags: Default::default(),
            tags: Default::default(),
            note: Box::from(&b"a program's"[..]),
            length: Some(0),
        };
        of(&mut new);
        let filling = lead.store(permit(), new, None);
        let over = is_over(filling.object(), now_ms);
        filling.finish();
        over
    }

    #[test]
    fn what_may_answer_yet_or_be_confirmed_is_not_over() {
        let kept = |new: &mut NewObject| (new.grace_ms, new.stale_if_error_ms) = (2_000, 3_000);
        assert!(!over_at(1_000, |_| ()) && over_at(1_001, |_| ()));
        assert!(!over_at(6_000, kept) && over_at(6_100, kept));
    }

    #[test]
    fn what_no_program_has_stored_stays() {
        assert!(!over_at(1 << 40, |new| new.note = Box::default()));
    }
}
