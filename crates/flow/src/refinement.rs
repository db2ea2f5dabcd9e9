//! Refinement: makes further forms of stored bodies in the background, for clients that prefer
//! them: gzip once a response is hit again, then stronger codings for hotter responses.
//!
//! It stays within a share of one core's time and yields to requests. It never codes for clients
//! that ask for no coding.

use std::rc::Rc;
use std::sync::Arc;

use base::{Account, Counter, HeldBytes, KeyBuf, Limit, Limits};
use cache::{BorrowedBody, NewObject, Object};
use codec::{Coding, DecodeLimits, Decoder, EncodeSettings, Encoder, FlushMode, STEP_BYTES};
use message::HeaderId;
use message::cache_control::CacheControl;

use crate::allowance::AllowanceRefusal;
use crate::form;
use crate::recode::{decode_limits, limit_of};
use crate::state::core::CoreState;
use crate::state::request_context::RequestContext;
use crate::state::tier::Lead;
use crate::stored_heads::stored_head;
use codec::Compression;

/// The effort that is spent on a form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effort {
    /// Levels that take about as long as gzip.
    Warm = 1,
    /// The smallest result.
    Hot = 2,
}

impl Effort {
    /// The effort for an object with this number of hits; `None` if it is not worth a form.
    fn of(hits: u32, settings: &Compression) -> Option<Self> {
        match hits {
            hits if hits >= settings.hot_hits => Some(Self::Hot),
            hits if hits >= settings.warm_hits => Some(Self::Warm),
            _ => None,
        }
    }

    /// Caps the effort for `coding`: gzip has one level, as its tag is strong, and identity has
    /// none.
    fn at_most(self, coding: Coding) -> Self {
        match coding {
            Coding::Identity | Coding::Gzip => Self::Warm,
            Coding::Brotli | Coding::Zstd => self,
        }
    }

    /// The encoder settings of `coding`; `None` if that is not made.
    fn settings(self, coding: Coding, gzip: EncodeSettings) -> Option<EncodeSettings> {
        let level = match (coding, self) {
            (Coding::Identity, _) => return None,
            (Coding::Gzip, _) => return Some(gzip),
            (Coding::Brotli, Self::Warm) => 5,
            (Coding::Brotli, Self::Hot) => 11,
            (Coding::Zstd, Self::Warm) => 3,
            (Coding::Zstd, Self::Hot) => 19,
        };
        EncodeSettings::new(coding, level)
    }
}

/// The permit to make a form. It ends on drop, whatever the outcome.
pub(crate) struct RefinementPermit {
    pub(crate) core: Rc<CoreState>,
    used_us: u64,
}

impl RefinementPermit {
    /// Takes the permit, if it is free and time is left.
    pub(crate) fn take(core: &Rc<CoreState>, limits: &Limits, now_ms: u64) -> Option<Self> {
        match core.shared.forms.allowance.begin(now_ms, limits.coding_time) {
            Ok(()) => return Some(Self { core: Rc::clone(core), used_us: 0 }),
            Err(AllowanceRefusal::UsedUp) => core.counters.limit(Limit::CodingTime),
            Err(AllowanceRefusal::Busy) => {}
        }
        None
    }

    /// Runs `work` on a blocking thread and charges its time. `None` if it was given up.
    pub(crate) async fn work<T: Send + 'static>(
        &mut self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let (made, used_us) = rt::in_background(work).await?;
        self.used_us += used_us;
        Some(made)
    }
}

impl Drop for RefinementPermit {
    fn drop(&mut self) {
        self.core.counters.add(Counter::CodingTime, self.used_us);
        self.core.shared.forms.allowance.end(self.used_us);
    }
}

/// A form and its effort.
#[derive(Clone, Copy, Debug)]
struct Refinement {
    coding: Coding,
    effort: Effort,
}

impl Refinement {
    /// The number of the form within the store.
    fn number(self) -> usize {
        form::number(self.coding)
    }

    /// Returns true if `object` lacks the form at this effort.
    fn is_wanted(self, object: &Object) -> bool {
        object.wants_form(self.number(), self.effort as u8)
    }
}

/// Stores a new form beside the body.
fn put(
    core: &CoreState,
    object: &Arc<Object>,
    refinement: Refinement,
    made: Result<Option<Vec<u8>>, Option<Limit>>,
) {
    match made {
        Ok(Some(data)) => {
            let hash = core.shared.seed.hash(object.key());
            let place = (refinement.number(), refinement.effort as u8);
            let is_put = match replacement(core, object, refinement.number()) {
                Some(replacement) => replacement.put(core, object, data),
                None => core.shared.cache.put_form(object, hash, place.0, place.1, data),
            };
            core.counters.add(Counter::FormsMade, u64::from(is_put));
        }
        Ok(None) => {}
        Err(limit) => limit.into_iter().for_each(|limit| core.counters.limit(limit)),
    }
}

/// The permit to replace a stored body by its gzip form.
struct GzipReplacement {
    lead: Lead,
    new: NewObject,
    plain: u64,
}

/// The permit to replace the body of `object` by the form of this number. It is given if the form
/// is gzip, memory is full, and no client has asked for the body without a coding.
fn replacement(core: &CoreState, object: &Arc<Object>, number: usize) -> Option<GzipReplacement> {
    let (cache, flags) = (&core.shared.cache, object.flags());
    let is_gzip = number == form::number(Coding::Gzip) && flags.coding == Coding::Identity;
    // A body that is parsed again for instructions, is a dictionary, or has trailers, stays.
    let is_alone = flags.negotiated && !flags.dictionary && object.trailers().is_none();
    if !is_gzip || !is_alone || object.is_plain_asked() || cache.has_room() {
        return None;
    }
    let (new, plain) = form::gzipped(object).zip(object.length())?;
    // The replacement counts as a fetch from memory: an invalidation meanwhile applies to both.
    let lead = cache.begin_refresh(&KeyBuf::of_bytes(object.key(), &core.shared.seed), object)?;
    Some(GzipReplacement { lead, new, plain })
}

impl GzipReplacement {
    /// Replaces the body by `data`; false if that is no longer possible.
    fn put(self, core: &CoreState, object: &Arc<Object>, data: Vec<u8>) -> bool {
        let saved = self.plain.saturating_sub(data.len() as u64);
        let is_put = self.lead.replace_form(object, &self.new, data, self.plain);
        if is_put {
            core.counters.inc(Counter::BodiesFolded);
            core.counters.add(Counter::FoldedSaved, saved);
        }
        is_put
    }
}

/// Has a form of `object` made if its hits are worth it and the same effort is not being spent:
/// first gzip, if the client lacks it (`lacks_gzip`), then `coding`, which the client prefers or
/// has got.
#[inline]
pub(crate) fn demand(
    core: &Rc<CoreState>,
    ctx: &RequestContext<'_>,
    object: &Arc<Object>,
    coding: Coding,
    lacks_gzip: bool,
) {
    let (hits, settings) = (object.hits(), &ctx.live.compression);
    let gzip = Refinement { coding: Coding::Gzip, effort: Effort::Warm };
    if lacks_gzip && hits >= settings.gzip_hits && gzip.is_wanted(object) {
        return begin(core, ctx, object, gzip);
    }
    if lacks_gzip && coding == Coding::Gzip {
        return;
    }
    // The plain body was replaced by gzip, and now a client asks for it.
    let is_back = coding == Coding::Identity && object.flags().coded_here;
    let back = (is_back && hits >= settings.gzip_hits).then_some(Effort::Warm);
    let Some(effort) = Effort::of(hits, settings).or(back) else { return };
    let form = Refinement { coding, effort: effort.at_most(coding) };
    if form.is_wanted(object) {
        begin(core, ctx, object, form);
    }
}

#[cold]
fn begin(
    core: &Rc<CoreState>,
    ctx: &RequestContext<'_>,
    object: &Arc<Object>,
    refinement: Refinement,
) {
    let (live, Refinement { coding, effort }) = (ctx.live, refinement);
    // gzip is as fast as the network: no body in one piece of memory is too long for it.
    let is_any_length = coding == Coding::Gzip && object.flags().coding == Coding::Identity;
    let is_too_long = |length| length > live.limits.form_bytes && !is_any_length;
    if object.length().is_none_or(is_too_long) {
        return;
    }
    let Some(mut permit) = RefinementPermit::take(core, &live.limits, ctx.now.mono_ms) else {
        return;
    };
    if !core.shared.cache.begin_form(object, refinement.number(), effort as u8) {
        return;
    }
    let object = Arc::clone(object);
    let bounds = Bounds::of(&live.limits);
    let settings = effort.settings(coding, live.compression.gzip);
    let account = Account::open_large(core.shared.cache.memory());
    rt::spawn_local(async move {
        let source = Arc::clone(&object);
        let made = permit.work(move || make(&source, settings, bounds, &account));
        if let Some(made) = made.await {
            put(&permit.core, &object, refinement, made);
        }
    });
}

/// Bounds of the bodies that get a form.
#[derive(Clone, Copy)]
pub(crate) struct Bounds {
    decode: DecodeLimits,
    plain_bytes: u64,
}

impl Bounds {
    /// The bounds in `limits`.
    pub(crate) fn of(limits: &Limits) -> Self {
        Self { decode: decode_limits(limits), plain_bytes: limits.form_bytes }
    }
}

/// Makes a form of the complete body of `object`: encoded by `settings`, or the identity. `None` if
/// it may not be made, or if it is encoded and no shorter than the stored body.
///
/// # Errors
/// The limit that was reached, if one was.
fn make(
    object: &Object,
    settings: Option<EncodeSettings>,
    bounds: Bounds,
    account: &Arc<Account>,
) -> Result<Option<Vec<u8>>, Option<Limit>> {
    let Some(head) = stored_head(object) else { return Ok(None) };
    let control = CacheControl::parse(head.headers.values(HeaderId::CacheControl));
    if control.no_transform {
        return Ok(None);
    }
    let no_memory = |_| Some(Limit::ClientMemory);
    let mut held = account.hold(STEP_BYTES as u64).map_err(no_memory)?;
    let (Some(whole), Some(stored)) = (object.whole(), object.length()) else { return Ok(None) };
    let mut plain = Vec::new();
    let is_coded = object.flags().coding != Coding::Identity;
    if is_coded {
        plain = decode(whole, object.flags().coding, bounds, &mut held)?;
    }
    let Some(settings) = settings else {
        // The form is longer than the stored one, but saves all further decoding.
        return Ok(is_coded.then_some(plain));
    };
    let length = if is_coded { plain.len() as u64 } else { stored };
    let settings = settings.for_length(length);
    held.grow(settings.most_memory() as u64 + stored).map_err(no_memory)?;
    match is_coded {
        true => encode([&plain[..]].into_iter(), &settings, stored),
        false => encode(whole.pieces(), &settings, stored),
    }
}

/// Decodes the stored body.
///
/// # Errors
/// The limit that was reached, if one was.
pub(crate) fn decode(
    whole: BorrowedBody<'_>,
    coding: Coding,
    bounds: Bounds,
    held: &mut HeldBytes,
) -> Result<Vec<u8>, Option<Limit>> {
    let limits = DecodeLimits { size_bytes: bounds.plain_bytes, ..bounds.decode };
    let mut decoder = Decoder::new(coding, limits).map_err(limit_of)?;
    let mut output = vec![0; STEP_BYTES];
    let mut plain = Vec::new();
    for piece in whole.pieces() {
        let mut at = 0;
        loop {
            let step = decoder.step(&piece[at..], &mut output).map_err(limit_of)?;
            at += step.taken;
            if plain.capacity() - plain.len() < step.made {
                let more = plain.len().max(4 * STEP_BYTES);
                held.grow(more as u64).map_err(|_| Some(Limit::ClientMemory))?;
                plain.reserve_exact(more);
            }
            plain.extend_from_slice(&output[..step.made]);
            if step.done {
                break;
            }
        }
    }
    decoder.finish().map_err(limit_of)?;
    Ok(plain)
}

/// Encodes the pieces of `plain`. `None` if the result is not shorter than `most`.
///
/// # Errors
/// The limit that was reached, if one was.
pub(crate) fn encode<T: AsRef<[u8]>>(
    plain: impl Iterator<Item = T>,
    settings: &EncodeSettings,
    most: u64,
) -> Result<Option<Vec<u8>>, Option<Limit>> {
    let mut encoder = Encoder::new(settings).map_err(limit_of)?;
    let mut output = vec![0; STEP_BYTES];
    let mut coded = Vec::new();
    let pieces = plain.map(|piece| (Some(piece), FlushMode::Gather));
    for (piece, goal) in pieces.chain([(None, FlushMode::Finish)]) {
        let mut piece = piece.as_ref().map_or(&[][..], AsRef::as_ref);
        loop {
            let step = encoder.step(piece, &mut output, goal).map_err(limit_of)?;
            piece = &piece[step.taken..];
            coded.extend_from_slice(&output[..step.made]);
            if coded.len() as u64 >= most {
                return Ok(None);
            }
            if step.done {
                break;
            }
        }
    }
    Ok(Some(coded))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn effort_grows_with_hits() {
        let settings = Compression { warm_hits: 2, hot_hits: 5, ..Compression::default() };
        let of = |hits| Effort::of(hits, &settings);
        assert_eq!([0, 1, 2, 4, 5, 9].map(of), {
            use Effort::{Hot, Warm};
            [None, None, Some(Warm), Some(Warm), Some(Hot), Some(Hot)]
        });
        for coding in Coding::CODED {
            for effort in [Effort::Warm, Effort::Hot] {
                let gzip = Compression::default().gzip;
                let made = effort.settings(coding, gzip).map(|settings| settings.coding());
                assert_eq!(made, Some(coding));
            }
        }
    }
}
