//! Replay: the visits once more, through the policies of some settings and a model of memory, and
//! what comes of them.
//!
//! It counts as a daemon does: the hit ratio has what the store or an origin answered
//! ([`Outcome::is_judged`](base::tally::Outcome::is_judged)). Nothing here decides by itself what
//! is stored, for whom and for how long.

use std::collections::HashMap;

use codec::CompressionScope;
use message::HeaderId;
use message::freshness::{Freshness, State};
use message::vary::{Vary, vary_signature};
use policy::HitVerdict;

use crate::memory::{Memory, ObjectNumber};
use crate::reception::{Course, JudgedResponse, Reception, receive};
use crate::sample::{Samples, shows_response};
use crate::settings::Settings;
use crate::visit::Visit;

/// Bytes that a stored response takes besides its body: head, key and entry in the index.
const HEAD_BYTES: u64 = 700;

/// Figures of a replay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Requests that the store or an origin answered.
    pub requests: u64,
    /// Requests that the store answered, fresh or stale.
    pub hits: u64,
    /// Requests to origins, those in the background included.
    pub origin_requests: u64,
    /// Microseconds that visitors waited for origins.
    pub origin_us: u64,
    /// Bytes of bodies from origins.
    pub origin_bytes: u64,
    /// Most bytes in memory.
    pub memory_bytes: u64,
    /// Responses that left memory for want of room.
    pub evicted: u64,
}

impl Figures {
    /// The hit ratio in hundredths; 0 without requests.
    pub fn ratio(&self) -> f64 {
        if self.requests == 0 { 0.0 } else { self.hits as f64 * 100.0 / self.requests as f64 }
    }
}

/// The way in which a replayed request was served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Replayed {
    /// From the store.
    Hit,
    /// By a fetch.
    Miss,
    /// By the fetch of another request.
    Collapsed,
    /// Past the store.
    Pass,
    /// By the settings, or not at all.
    Own,
}

/// A stored response.
#[derive(Debug)]
struct Stored {
    number: ObjectNumber,
    /// Names in Vary, and the request's signature over them.
    names: Vec<u8>,
    signature: Vec<u8>,
    freshness: Freshness,
    is_shared: bool,
    /// Unix time from which it is there; requests before it wait.
    whole_at_ms: u64,
}

/// A replay under way.
struct Replay<'r> {
    samples: &'r Samples<'r>,
    settings: &'r Settings,
    store: HashMap<Vec<u8>, Vec<Stored>>,
    /// The keys of stored responses.
    keys: HashMap<ObjectNumber, Vec<u8>>,
    memory: Memory,
    numbers: ObjectNumber,
    figures: Figures,
}

/// Replays `visits` under `settings`.
pub(crate) fn replay(visits: &[&Visit], samples: &Samples<'_>, settings: &Settings) -> Figures {
    replay_with(visits, samples, settings, |_, _| {})
}

/// Replays `visits`, and reports to `each` how each was served.
pub(crate) fn replay_with<'r>(
    visits: &[&Visit],
    samples: &'r Samples<'r>,
    settings: &'r Settings,
    mut each: impl FnMut(usize, Replayed),
) -> Figures {
    let mut replay = Replay {
        samples,
        settings,
        store: HashMap::new(),
        keys: HashMap::new(),
        memory: Memory::new(settings.budget_bytes()),
        numbers: 0,
        figures: Figures::default(),
    };
    for (at, visit) in visits.iter().enumerate() {
        let served = match receive(settings, visit) {
            Some(reception) => replay.serve(visit, &reception),
            None => Replayed::Own,
        };
        replay.count(served);
        each(at, served);
    }
    replay.figures.memory_bytes = replay.memory.peak_bytes;
    replay.figures
}

impl<'r> Replay<'r> {
    fn count(&mut self, served: Replayed) {
        self.figures.requests += u64::from(served != Replayed::Own);
        self.figures.hits += u64::from(served == Replayed::Hit);
    }

    fn serve(&mut self, visit: &Visit, reception: &Reception<'_>) -> Replayed {
        match reception.course {
            Course::Own => Replayed::Own,
            Course::Purge => {
                self.purge(reception.key().bytes());
                Replayed::Own
            }
            Course::Pass => {
                self.ask(visit, self.samples.time_us(visit));
                Replayed::Pass
            }
            Course::Lookup => self.look_up(visit, reception),
        }
    }

    fn look_up(&mut self, visit: &Visit, reception: &Reception<'_>) -> Replayed {
        let key = reception.key();
        let now_ms = visit.at_ms;
        let found = self.find(key.bytes(), visit, reception).map(|stored| {
            let state = stored.freshness.state(now_ms);
            let is_barred = reception.notes.personal && !stored.is_shared;
            let verdict = reception.hit(&stored.freshness, now_ms);
            (stored.number, state, is_barred, verdict, stored.whole_at_ms)
        });
        let time_us = self.samples.time_us(visit);
        if let Some((number, state, false, verdict, whole_at_ms)) = found {
            let is_usable = verdict != HitVerdict::Miss && verdict != HitVerdict::Pass;
            if is_usable && now_ms < whole_at_ms {
                self.figures.origin_us += (whole_at_ms - now_ms) * 1000;
                return Replayed::Collapsed;
            }
            match state {
                State::Fresh | State::Grace if is_usable => {
                    self.memory.touch(number);
                    if state == State::Grace {
                        self.ask(visit, 0);
                        self.store(visit, reception, key.bytes());
                    }
                    return Replayed::Hit;
                }
                _ => {}
            }
        }
        self.ask(visit, time_us);
        self.store(visit, reception, key.bytes());
        Replayed::Miss
    }

    fn ask(&mut self, visit: &Visit, waited_us: u64) {
        self.figures.origin_requests += 1;
        self.figures.origin_us += waited_us;
        self.figures.origin_bytes += self.samples.find(visit).body_bytes;
    }

    /// The stored response that the request selects.
    fn find(&self, key: &[u8], visit: &Visit, reception: &Reception<'_>) -> Option<&Stored> {
        let headers = &reception.request.headers;
        let mut signature = Vec::new();
        self.store.get(key)?.iter().rev().find(|stored| {
            signature.clear();
            vary_signature(&stored.names, headers, &mut signature);
            let mut names = stored.names.split(|byte| *byte == b',');
            // Of requests without a fetch, sources know few fields.
            let are_unknown = !shows_response(visit)
                && names.all(|name| headers.values_named(name).next().is_none());
            stored.names.is_empty() || stored.signature == signature || are_unknown
        })
    }

    /// Stores the origin's response to a request, if its policy permits that.
    fn store(&mut self, visit: &Visit, reception: &Reception<'_>, key: &[u8]) {
        let sample = self.samples.find(visit);
        let JudgedResponse { plan, headers } = reception.judge(&sample);
        if plan.verdict().is_err() || self.is_too_large(sample.body_bytes) {
            return;
        }
        let names = match Vary::of(&headers) {
            Vary::None => None,
            // One object answers clients of all codings, and with all dictionaries.
            Vary::Names(names) if self.codes(reception.site) => names
                .without(HeaderId::AcceptEncoding)
                .and_then(|names| names.without(HeaderId::AvailableDictionary)),
            Vary::Names(names) => Some(names),
            Vary::Never => return,
        };
        let names = names.map_or_else(Vec::new, |names| names.as_bytes().to_vec());
        let mut signature = Vec::new();
        vary_signature(&names, &reception.request.headers, &mut signature);
        let arrived_ms = visit.at_ms + self.samples.time_us(visit) / 1000;
        let bytes = sample.body_bytes + HEAD_BYTES;
        let variants = self.store.entry(key.to_vec()).or_default();
        let same = |stored: &Stored| stored.names == names && stored.signature == signature;
        let earlier = variants.iter().position(same).map(|at| variants.swap_remove(at));
        let number = earlier.as_ref().map_or_else(
            || {
                self.numbers += 1;
                self.numbers
            },
            |earlier| earlier.number,
        );
        // A renewal in the background lets no request wait.
        let is_there = |earlier: &Stored| earlier.freshness.state(visit.at_ms) != State::Stale;
        let is_renewal = earlier.as_ref().is_some_and(is_there);
        variants.push(Stored {
            number,
            names,
            signature,
            freshness: Freshness::new(&plan, arrived_ms),
            is_shared: plan.shared,
            whole_at_ms: if is_renewal { visit.at_ms } else { arrived_ms },
        });
        self.keys.insert(number, key.to_vec());
        for gone in self.memory.insert(number, bytes) {
            self.figures.evicted += 1;
            self.remove(gone);
        }
    }

    /// Returns true if a site's bodies are coded and decoded as clients take them.
    fn codes(&self, site: usize) -> bool {
        self.settings.config.sites[site].compress != CompressionScope::Off
    }

    /// Returns true for bodies that are neither stored whole nor in slices.
    fn is_too_large(&self, bytes: u64) -> bool {
        let limits = &self.settings.config.limits;
        let from = limits.slices_from;
        bytes > limits.object_bytes && (from == 0 || bytes < from)
    }

    fn remove(&mut self, number: ObjectNumber) {
        let Some(key) = self.keys.remove(&number) else { return };
        if let Some(variants) = self.store.get_mut(&key) {
            variants.retain(|stored| stored.number != number);
        }
    }

    fn purge(&mut self, key: &[u8]) {
        for stored in self.store.remove(key).unwrap_or_default() {
            self.memory.remove(stored.number);
            self.keys.remove(&stored.number);
        }
    }
}
