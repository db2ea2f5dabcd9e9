//! A look at a key that changes nothing: no hit is counted, nothing moves in a queue, no ban takes
//! anything out. For operators; the way of a request is [`Cache::lookup`].

use std::sync::Arc;

use base::KeyBuf;

use crate::bans::Ban;
use crate::busy::VaryHashes;
use crate::cache::Cache;
use crate::cache::collapsing::fetch_for;
use crate::lower::Lower;
use crate::object::Object;
use crate::slot::choose;
use crate::variant::SignatureFunction;

/// The state of a key.
#[derive(Clone, Debug, Default)]
pub struct KeyInspection {
    /// Its variants, in the order in which they were stored.
    pub variants: Vec<VariantInspection>,
    /// The one of them that a lookup would find.
    pub found: Option<usize>,
    /// Until when requests for the key do not wait for each other, in milliseconds of the monotonic
    /// clock: a former answer was uncacheable. It counts where nothing is found.
    pub marked_until_ms: Option<u64>,
    /// Responses in the lower tier that are not in memory and may be the key's: its hash is theirs.
    pub below: usize,
    /// True if a fetch is under way whose response would answer the request, and the request would
    /// wait for it.
    pub is_fetched: bool,
}

/// One variant.
#[derive(Clone, Debug)]
pub struct VariantInspection {
    /// The response.
    pub object: Arc<Object>,
    /// Bans that it meets and has not been tested against yet.
    pub bans: Vec<Arc<Ban>>,
    /// It has been banned, and leaves when it is next looked at.
    pub is_banned: bool,
    /// Until when it is fresh, these bans heeded: milliseconds of the monotonic clock.
    pub fresh_until_ms: i64,
}

impl<L: Lower> Cache<L> {
    /// Returns the state of `key`, and the variant that a lookup would find. `variant` as for
    /// [`Cache::lookup`].
    pub fn peek(&self, key: &KeyBuf, variant: &mut SignatureFunction<'_>) -> KeyInspection {
        let place = self.place(key.hash());
        let mut shape = VaryHashes::default();
        let (variants, mut peek) = {
            let shard = self.shared_shard(place.shard);
            let below = shard.cold(place.h32).len();
            let Some(slot) = shard.find(place.h32, key.bytes()) else {
                return KeyInspection { below, ..KeyInspection::default() };
            };
            choose(slot.variants(), variant, |spec, signature| shape.note(spec, signature));
            let peek = KeyInspection {
                below,
                marked_until_ms: slot
                    .marker()
                    .filter(|marker| self.bans.exempts_key(key.bytes(), marker.passed))
                    .map(|marker| marker.until_ms),
                is_fetched: fetch_for(slot, &shape).is_some(),
                ..KeyInspection::default()
            };
            (slot.variants().to_vec(), peek)
        };
        peek.variants = variants.into_iter().map(|object| self.foresee(object)).collect();
        let left: Vec<usize> =
            (0..peek.variants.len()).filter(|at| !peek.variants[*at].is_banned).collect();
        let objects: Vec<_> =
            left.iter().map(|at| Arc::clone(&peek.variants[*at].object)).collect();
        peek.found = choose(&objects, variant, |_, _| {}).map(|at| left[at]);
        peek
    }

    /// Returns true if neither a purge nor a ban has ended `object`. Nothing is changed.
    pub fn is_valid(&self, object: &Object) -> bool {
        let met = self.bans.foresee(object);
        object.is_live() && met.is_some_and(|bans| bans.iter().all(|ban| ban.is_soft()))
    }

    fn foresee(&self, object: Arc<Object>) -> VariantInspection {
        let met = self.bans.foresee(&object);
        let is_banned = met.as_ref().is_none_or(|bans| bans.iter().any(|ban| !ban.is_soft()));
        let bans = met.unwrap_or_default();
        let stale = bans.iter().filter_map(|ban| ban.stale_since_ms()).min();
        let fresh_until_ms = object.fresh_until_ms().min(stale.unwrap_or(i64::MAX));
        VariantInspection { object, bans, is_banned, fresh_until_ms }
    }
}
