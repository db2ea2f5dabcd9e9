//! A peek at a key, for operators: the state of its variants. It must not change anything: no hit
//! is counted, no queue moves, no ban removes an object. Requests use [`Cache::lookup`].

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
    /// The variants, in the order in which they were stored.
    pub variants: Vec<VariantInspection>,
    /// The index of the variant that a lookup would find.
    pub found: Option<usize>,
    /// The end of hit-for-miss, in milliseconds of the monotonic clock. It applies if no variant is
    /// found.
    pub marked_until_ms: Option<u64>,
    /// Cold entries that may be the key's, by their hash.
    pub below: usize,
    /// True if a fetch is under way whose response would answer the request, and the request would
    /// wait for it.
    pub is_fetched: bool,
}

/// One variant.
#[derive(Clone, Debug)]
pub struct VariantInspection {
    /// The stored response.
    pub object: Arc<Object>,
    /// Bans that the object matches and has not been tested against.
    pub bans: Vec<Arc<Ban>>,
    /// True if the object is banned, and will be removed by the next lookup or sweep.
    pub is_banned: bool,
    /// The end of freshness, including these bans, in milliseconds of the monotonic clock.
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

    /// Returns true if neither a purge nor a ban has ended `object`. Changes nothing.
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
