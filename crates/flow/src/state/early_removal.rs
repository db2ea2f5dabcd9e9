//! Early removal of stored responses. A response that a program has stored leaves once it is of no
//! more use, before eviction comes for it. In a full store, the responses that would be evicted
//! next leave before their room is needed. The removal runs once a second, beside the cores, over a
//! part of the store at a time.

use std::sync::Arc;
use std::time::Duration;

use cache::{IndexWalk, Object};
use tokio::sync::Mutex;

use crate::state::tier::Cache;

/// Places of the index looked at each time. A store of a hundred thousand pages is gone through in
/// some ten seconds, which costs a thousandth of a core.
const PLACES: usize = 16 * 1024;
const EVERY_MS: u64 = 900;
/// Pieces of work between two pauses: a few hundred microseconds.
const PIECES: u32 = 8;
const PAUSE: Duration = Duration::from_micros(100);

/// Looks for what is of no more use.
#[derive(Default)]
pub(crate) struct EarlyRemoval(Arc<Mutex<Rounds>>);

/// The place that the last look has come to, and its time.
#[derive(Default)]
struct Rounds {
    walk: IndexWalk,
    began_ms: u64,
}

impl EarlyRemoval {
    /// Goes on looking, unless another core has done so.
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

/// Returns true if `object` will never answer again, nor be confirmed by its origin: programs say
/// how long that may be. An object that no program has stored stays as long as there is room, so
/// that it can still be told, for a miss, what was stored before.
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

    /// Something stored that is fresh for a second, and whether it is over at `now_ms`.
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
