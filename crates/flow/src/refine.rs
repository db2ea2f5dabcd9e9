//! Further forms of stored bodies, made behind the requests that would rather have them: harder
//! the hotter a response is, within a share of one core's time.

use std::rc::Rc;
use std::sync::Arc;

use base::{Account, Counter, Held, Limit, Limits};
use cache::Object;
use codec::{Coding, DecodeLimits, Decoder, EncodeSettings, Encoder, Goal, STEP_BYTES};
use message::HeaderId;
use message::cache_control::CacheControl;
use parking_lot::Mutex;

use crate::compression::Compression;
use crate::core::Core;
use crate::form;
use crate::live::Live;
use crate::recode::{decode_limits, limit_of};
use crate::reply::stored_head;

/// Milliseconds for which the share of time can be saved up.
const SAVED_MS: u64 = 10_000;
/// Microseconds that a form costs at least, however the clock ticks.
const LEAST_US: u64 = 100;

/// The work that is put into a form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effort {
    /// The levels that take about as long as gzip does.
    Warm = 1,
    /// The smallest result that there is.
    Hot = 2,
}

impl Effort {
    /// The effort that an object of so many hits is worth.
    fn of(hits: u32, settings: &Compression) -> Option<Self> {
        match hits {
            hits if hits >= settings.hot_hits => Some(Self::Hot),
            hits if hits >= settings.warm_hits => Some(Self::Warm),
            _ => None,
        }
    }

    fn level(self, coding: Coding) -> u8 {
        match (coding, self) {
            (Coding::Brotli, Self::Warm) => 5,
            (Coding::Brotli, Self::Hot) => 11,
            (Coding::Zstd, Self::Warm) => 3,
            (Coding::Zstd, Self::Hot) => 19,
            (_, Self::Warm) => 6,
            (_, Self::Hot) => 9,
        }
    }
}

/// The share of time: an allowance that fills steadily, and that the forms made are taken from. It
/// may be overdrawn by one form.
#[derive(Debug, Default)]
pub(crate) struct Allowance(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Microseconds that are left; below zero when overdrawn.
    left_us: i64,
    filled_ms: Option<u64>,
    is_busy: bool,
}

impl Allowance {
    /// Takes the right to make one form; false if somebody makes one, or if the time is used up.
    fn begin(&self, now_ms: u64, percent: u64) -> bool {
        let mut state = self.0.lock();
        let most_us = (SAVED_MS * percent * 10) as i64;
        let since_ms = state.filled_ms.map_or(SAVED_MS, |before| now_ms.saturating_sub(before));
        let more_us = (since_ms.min(SAVED_MS) * percent * 10) as i64;
        state.left_us = state.left_us.saturating_add(more_us).min(most_us);
        state.filled_ms = Some(now_ms);
        let may = !state.is_busy && state.left_us > 0;
        state.is_busy |= may;
        may
    }

    /// Returns true if a form is being made.
    fn is_busy(&self) -> bool {
        self.0.lock().is_busy
    }

    /// Gives the right back, which was used for so long.
    fn end(&self, used_us: u64) {
        let mut state = self.0.lock();
        state.is_busy = false;
        state.left_us = state.left_us.saturating_sub(used_us.max(LEAST_US) as i64);
    }
}

/// The right to make a form. It ends with this value, whatever comes of the form.
struct Right {
    core: Rc<Core>,
    used_us: u64,
}

impl Drop for Right {
    fn drop(&mut self) {
        self.core.counters.add(Counter::CodingTime, self.used_us);
        self.core.shared.allowance.end(self.used_us);
    }
}

/// Has the form of `object` in `coding` made, where its hits are worth that and nobody has begun
/// with as much effort. `coding` is one that a client has got, or would rather have.
#[inline]
pub(crate) fn demand(core: &Rc<Core>, live: &Live, object: &Arc<Object>, coding: Coding) {
    let Some(effort) = Effort::of(object.hits(), &live.compression) else { return };
    if object.wants_form(form::number(coding), effort as u8) {
        begin(core, object, (coding, effort), &live.limits);
    }
}

#[cold]
fn begin(
    core: &Rc<Core>,
    object: &Arc<Object>,
    (coding, effort): (Coding, Effort),
    limits: &Limits,
) {
    let allowance = &core.shared.allowance;
    if object.length().is_none_or(|length| length > limits.form_bytes) {
        return;
    }
    if !allowance.begin(core.now().mono_ms, limits.coding_time) {
        if !allowance.is_busy() {
            core.counters.limit(Limit::CodingTime);
        }
        return;
    }
    let mut right = Right { core: Rc::clone(core), used_us: 0 };
    let number = form::number(coding);
    if !core.shared.cache.begin_form(object, number, effort as u8) {
        return;
    }
    let object = Arc::clone(object);
    let bounds = Bounds { decode: decode_limits(limits), plain_bytes: limits.form_bytes };
    let account = Account::open_large(core.shared.cache.memory());
    rt::spawn_local(async move {
        let source = Arc::clone(&object);
        let made = rt::blocking(move || {
            let began_us = rt::micros();
            let made = make(&source, coding, effort, (bounds, &account));
            (made, rt::micros().saturating_sub(began_us))
        });
        let Ok((made, used_us)) = made.await else { return };
        right.used_us = used_us;
        let core = &right.core;
        match made {
            Ok(Some(data)) => {
                let hash = core.shared.seed.hash(object.key());
                let place = (number, effort as u8);
                if core.shared.cache.put_form((&object, hash), place, data) {
                    core.counters.inc(Counter::FormsMade);
                }
            }
            Ok(None) => {}
            Err(limit) => limit.into_iter().for_each(|limit| core.counters.limit(limit)),
        }
    });
}

/// Bounds of what is taken for a form.
#[derive(Clone, Copy)]
struct Bounds {
    decode: DecodeLimits,
    plain_bytes: u64,
}

/// Makes a form of the complete body of `object`. `None` if it may not be made, or is no shorter
/// than the stored body.
///
/// # Errors
/// With the limit that was reached, if one was.
fn make(
    object: &Object,
    coding: Coding,
    effort: Effort,
    (bounds, account): (Bounds, &Arc<Account>),
) -> Result<Option<Vec<u8>>, Option<Limit>> {
    let Some(head) = stored_head(object) else { return Ok(None) };
    let control = CacheControl::parse(head.headers.values(HeaderId::CacheControl));
    if control.no_transform {
        return Ok(None);
    }
    let no_memory = |_| Some(Limit::ClientMemory);
    let mut held = account.hold(STEP_BYTES as u64).map_err(no_memory)?;
    let plain = decode(object, bounds, &mut held)?;
    let Some(settings) = EncodeSettings::new(coding, effort.level(coding)) else { return Ok(None) };
    let settings = settings.for_length(plain.len() as u64);
    let Some(stored) = object.length() else { return Ok(None) };
    held.grow(settings.most_memory() as u64 + stored).map_err(no_memory)?;
    encode(&plain, &settings, stored)
}

/// The content of `object` without its coding.
fn decode(object: &Object, bounds: Bounds, held: &mut Held) -> Result<Vec<u8>, Option<Limit>> {
    let Some(whole) = object.whole() else { return Err(None) };
    let limits = DecodeLimits { size_bytes: bounds.plain_bytes, ..bounds.decode };
    let mut decoder = Decoder::new(object.flags().coding, limits).map_err(limit_of)?;
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

/// Codes `plain`; `None` if what comes out is not shorter than `most`.
fn encode(
    plain: &[u8],
    settings: &EncodeSettings,
    most: u64,
) -> Result<Option<Vec<u8>>, Option<Limit>> {
    let mut encoder = Encoder::new(settings).map_err(limit_of)?;
    let mut output = vec![0; STEP_BYTES];
    let (mut coded, mut at) = (Vec::new(), 0);
    loop {
        let step = encoder.step(&plain[at..], &mut output, Goal::Finish).map_err(limit_of)?;
        at += step.taken;
        coded.extend_from_slice(&output[..step.made]);
        if coded.len() as u64 >= most {
            return Ok(None);
        }
        if step.done {
            return Ok(Some(coded));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_allowance_fills_with_time_and_is_used_by_one_at_a_time() {
        let allowance = Allowance::default();
        assert!(!allowance.begin(0, 0), "no share is no time");
        let allowance = Allowance::default();
        assert!(allowance.begin(1000, 10));
        assert!(!allowance.begin(1000, 10), "one at a time");
        // Ten seconds' share of a tenth is one second; twice as much is used.
        allowance.end(2_000_000);
        assert!(!allowance.begin(1000, 10));
        assert!(!allowance.is_busy());
        assert!(!allowance.begin(10_000, 10));
        assert!(allowance.begin(12_000, 10));
    }

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
                assert!(EncodeSettings::new(coding, effort.level(coding)).is_some());
            }
        }
    }
}
