//! A slot of the index: the variants of one key, its fetches under way and its hit-for-miss marker.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::busy::Busy;
use crate::ledger::Charge;
use crate::object::Object;
use crate::size;
use crate::variant::{self, SignatureFunction, Variant, VarySpec};

/// An entry of two machine words: the 32 bits of the hash that its position does not imply, and its
/// contents. Most keys have one response and nothing else.
#[derive(Debug)]
pub(crate) enum IndexSlot {
    One(u32, Arc<Object>),
    Many(u32, Box<KeyEntries>),
}

/// A fingerprint of three bytes by which a response is recognised as a copy among others of its
/// hash: the time of age zero, the Vary signature, the length. A collision, one pair in sixteen
/// million, costs one fetch: one of the two counts as being in both tiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ResponseFingerprint([u8; 3]);

impl ResponseFingerprint {
    /// The fingerprint of a response that is not known to be in memory.
    pub(crate) const NONE: Self = Self([0; 3]);

    pub(crate) fn of(object: &Object) -> Self {
        let vary = object.vary();
        let varies = vary.map_or(&[][..], |vary| vary.signature);
        let numbers = [object.born_ms() as u64, object.length().unwrap_or(0), varies.len() as u64];
        let signature = varies.chunks(8).map(|chunk| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            u64::from_le_bytes(word)
        });
        let mixed = numbers.into_iter().chain(signature).fold(0_u64, |mixed, word| {
            let mixed = (mixed ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            mixed ^ mixed >> 32
        });
        let [.., a, b, c] = mixed.to_be_bytes();
        // Never equal to [`ResponseFingerprint::NONE`].
        Self([a | 1, b, c])
    }
}

/// The entries of a key that has not exactly one response.
#[derive(Debug)]
pub(crate) struct KeyEntries {
    pub(crate) key: Arc<[u8]>,
    /// Ordered by the time of storing.
    pub(crate) variants: SmallVec<[Arc<Object>; 2]>,
    /// Fetches under way. An invalidation empties the list, and a fetch that is not in it at its
    /// end does not become visible.
    pub(crate) leads: SmallVec<[Arc<Busy>; 2]>,
    pub(crate) marker: Option<Marker>,
    /// The charge for this value, its key and its spilled lists.
    charge: Charge,
}

/// A hit-for-miss marker: the key's last response could not be stored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Marker {
    pub(crate) until_ms: u64,
    /// The newest ban that it is known to outlive: no later one can match its key.
    pub(crate) passed: u32,
    /// The marker's token in the small queue.
    pub(crate) id: u32,
}

impl KeyEntries {
    /// Bytes to reserve for a key of `key_len` bytes.
    pub(crate) fn cost(key_len: usize) -> u64 {
        size::class(size_of::<Self>()) + size::class(size::ARC_BYTES + key_len)
    }

    pub(crate) fn new(key: Arc<[u8]>, charge: Charge) -> Self {
        Self { key, variants: SmallVec::new(), leads: SmallVec::new(), marker: None, charge }
    }

    /// Makes room for one more variant. Returns false if the budget has none.
    pub(crate) fn variant_room(&mut self) -> bool {
        room(&mut self.variants, &mut self.charge)
    }

    /// Makes room for one more fetch. Returns false if the budget has none.
    pub(crate) fn lead_room(&mut self) -> bool {
        room(&mut self.leads, &mut self.charge)
    }
}

fn room<T>(list: &mut SmallVec<[T; 2]>, charge: &mut Charge) -> bool
where
    [T; 2]: smallvec::Array<Item = T>,
{
    if list.len() < list.capacity() {
        return true;
    }
    let bytes = |places: usize| size::class(places * size_of::<T>());
    let before = if list.spilled() { bytes(list.capacity()) } else { 0 };
    let places = list.capacity() * 2;
    if !charge.grow(bytes(places)) {
        return false;
    }
    list.grow(places);
    charge.shrink_to(charge.bytes() - before);
    true
}

impl IndexSlot {
    pub(crate) fn h32(&self) -> u32 {
        match self {
            Self::One(h32, _) | Self::Many(h32, _) => *h32,
        }
    }

    /// Returns true if this is the slot of the key.
    pub(crate) fn is_of(&self, h32: u32, key: &[u8]) -> bool {
        // The hash first: it has the same offset in every entry.
        self.h32() == h32
            && match self {
                Self::One(_, object) => object.key() == key,
                Self::Many(_, more) => *more.key == *key,
            }
    }

    pub(crate) fn variants(&self) -> &[Arc<Object>] {
        match self {
            Self::One(_, object) => std::slice::from_ref(object),
            Self::Many(_, more) => &more.variants,
        }
    }

    /// Returns true if a fetch is under way for the slot.
    pub(crate) fn is_fetched(&self) -> bool {
        matches!(self, Self::Many(_, more) if !more.leads.is_empty())
    }

    /// The hit-for-miss marker, which may have ended by a ban or its time.
    pub(crate) fn marker(&self) -> Option<&Marker> {
        match self {
            Self::One(..) => None,
            Self::Many(_, more) => more.marker.as_ref(),
        }
    }

    /// Returns true if a hit-for-miss marker is in force at `now_ms`, and is known to outlive the
    /// bans up to `newest`.
    pub(crate) fn is_hit_for_miss(&self, now_ms: u64, newest: u32) -> bool {
        let holds = |marker: &Marker| now_ms < marker.until_ms && marker.passed >= newest;
        self.marker().is_some_and(holds)
    }

    /// Returns true if the queue token `id` belongs to an object or marker of this slot.
    pub(crate) fn has_token(&self, id: u32) -> bool {
        self.variants().iter().any(|object| object.index_state.id == id) || self.has_marker(id)
    }

    pub(crate) fn has_marker(&self, id: u32) -> bool {
        match self {
            Self::One(..) => false,
            Self::Many(_, more) => more.marker.is_some_and(|marker| marker.id == id),
        }
    }
}

/// Returns true if both objects answer the same requests of their key.
pub(crate) fn is_same_variant(a: &Object, b: &Object) -> bool {
    a.vary() == b.vary()
}

/// The index in `variants` of the response that answers the request: the one with the latest Date,
/// or the one stored last (RFC 9111 4.1). `note` is called with every distinct list of names and
/// the request's signature for it.
pub(crate) fn choose(
    variants: &[Arc<Object>],
    select: &mut SignatureFunction<'_>,
    mut note: impl FnMut(&VarySpec, &[u8]),
) -> Option<usize> {
    if let [object] = variants
        && object.vary().is_none()
    {
        return Some(0);
    }
    let mut scratch = variant::scratch();
    let mut best: Option<(u64, usize)> = None;
    for (first, object) in variants.iter().enumerate() {
        let Some(vary) = object.vary() else {
            best = best.max(Some((object.date().unwrap_or(0), first)));
            continue;
        };
        let is_spec = |other: &Arc<Object>| other.vary().is_some_and(|v| v.spec == vary.spec);
        if variants[..first].iter().any(is_spec) {
            continue;
        }
        scratch.clear();
        select(vary.spec, &mut scratch);
        note(vary.spec, &scratch);
        let wanted = Some(Variant { spec: vary.spec, signature: &scratch });
        for (at, other) in variants.iter().enumerate().skip(first) {
            if other.vary() == wanted {
                best = best.max(Some((other.date().unwrap_or(0), at)));
            }
        }
    }
    variant::keep(scratch);
    best.map(|(_, at)| at)
}
