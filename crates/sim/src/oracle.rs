//! The oracle: every response of an origin, every purge, and the promises that every answer to a
//! client must keep. It must share no code with the product.
//!
//! Times are ticks: a count of events, which puts all of them in one order.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::plan::Resource;

/// Rounding tolerance of times, in milliseconds.
const SLACK_MS: u64 = 3;

/// Milliseconds after which a cut must have been noticed.
const CUT_MS: u64 = 5;

/// Generates the bytes of a content in a range.
pub(crate) fn bytes(content: u64, from: u64, until: u64) -> Vec<u8> {
    let mut out = Vec::with_capacity((until - from) as usize + 32);
    let mut text = String::new();
    for cell in from / 16..=until / 16 {
        text.clear();
        // Writing to a String cannot fail.
        _ = writeln!(text, "{content:07x}.{cell:07x}");
        out.extend_from_slice(text.as_bytes());
    }
    let skip = (from % 16) as usize;
    out[skip..skip + (until - from) as usize].to_vec()
}

/// A response of an origin.
#[derive(Clone, Debug)]
pub(crate) struct Serial {
    pub(crate) resource: usize,
    pub(crate) variant: u64,
    pub(crate) content: u64,
    pub(crate) length: u64,
    pub(crate) born_tick: u64,
    pub(crate) born_ms: u64,
    /// Time at which the head was sent.
    pub(crate) head_ms: u64,
    /// Time at which the body was cut off.
    pub(crate) cut_ms: u64,
}

/// The responses that a purge selects.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PurgeScope {
    All,
    Resource(usize),
    /// Responses of the declared site with this tag.
    Tag(u64),
}

impl PurgeScope {
    fn has(self, number: usize, resource: &Resource) -> bool {
        match self {
            Self::All => true,
            Self::Resource(of) => of == number,
            Self::Tag(tag) => resource.tag == tag && resource.site == 0,
        }
    }
}

#[derive(Debug)]
struct Purge {
    scope: PurgeScope,
    from_tick: u64,
    until_tick: u64,
}

/// A client's request.
#[derive(Clone, Debug)]
pub(crate) struct ClientRequest {
    pub(crate) resource: usize,
    pub(crate) variant: u64,
    pub(crate) tick: u64,
    pub(crate) ms: u64,
}

/// An answer as its client saw it.
#[derive(Debug)]
pub(crate) struct ObservedAnswer {
    pub(crate) status: u16,
    pub(crate) serial: Option<u64>,
    pub(crate) word: String,
    /// The first byte, the end and the total length of a 206.
    pub(crate) range: Option<(u64, u64, u64)>,
    /// True if it waited for another request's fetch.
    pub(crate) waited: bool,
}

/// Counts of a schedule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScheduleTally {
    /// Hash of all events in order.
    pub digest: u64,
    /// Events.
    pub events: u64,
    /// Answers to clients.
    pub answers: u64,
    /// Answers from the cache without a fetch.
    pub hits: u64,
}

/// The oracle of one schedule.
#[derive(Debug, Default)]
pub(crate) struct Oracle {
    traced: bool,
    tally: Cell<ScheduleTally>,
    events: RefCell<Vec<String>>,
    broken: RefCell<Vec<String>>,
    serials: RefCell<Vec<Serial>>,
    /// Time of the last confirmation of a content, by resource, variant and content.
    confirmed: RefCell<BTreeMap<(usize, u64, u64), u64>>,
    purges: RefCell<Vec<Purge>>,
    /// Fetches in flight, by resource and variant.
    fetching: RefCell<BTreeMap<(usize, u64), u32>>,
    /// Time of the first head of each private resource.
    refused: RefCell<BTreeMap<usize, u64>>,
    /// Private responses that a client has received.
    given: RefCell<BTreeSet<u64>>,
}

impl Oracle {
    pub(crate) fn new(traced: bool) -> Self {
        Self { traced, ..Self::default() }
    }

    /// Records an event and returns its tick.
    pub(crate) fn note(&self, text: std::fmt::Arguments<'_>) -> u64 {
        let mut tally = self.tally.get();
        tally.events += 1;
        let line = format!("{:>6} {:>8} {text}", tally.events, rt::now().mono_ms % 100_000_000);
        for byte in line.bytes() {
            tally.digest = (tally.digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        self.tally.set(tally);
        if self.traced {
            self.events.borrow_mut().push(line);
        }
        tally.events
    }

    pub(crate) fn fail(&self, text: impl FnOnce() -> String) {
        let text = text();
        self.note(format_args!("BROKEN {text}"));
        self.broken.borrow_mut().push(text);
    }

    pub(crate) fn take_broken(&self) -> Vec<String> {
        std::mem::take(&mut self.broken.borrow_mut())
    }

    pub(crate) fn take_events(&self) -> Vec<String> {
        std::mem::take(&mut self.events.borrow_mut())
    }

    pub(crate) fn tally(&self) -> ScheduleTally {
        self.tally.get()
    }

    /// Records a response whose request came at `born_tick`.
    pub(crate) fn enter(&self, serial: Serial) -> u64 {
        let mut serials = self.serials.borrow_mut();
        serials.push(serial);
        serials.len() as u64 - 1
    }

    /// Records that a response's head was sent.
    pub(crate) fn head_sent(&self, serial: u64) {
        self.serials.borrow_mut()[serial as usize].head_ms = rt::now().mono_ms;
    }

    /// Records that a response was cut off.
    pub(crate) fn cut(&self, serial: u64) {
        self.serials.borrow_mut()[serial as usize].cut_ms = rt::now().mono_ms;
    }

    pub(crate) fn serial(&self, number: u64) -> Option<Serial> {
        self.serials.borrow().get(number as usize).cloned()
    }

    /// Records a 304.
    pub(crate) fn confirm(&self, resource: usize, variant: u64, content: u64) {
        self.confirmed.borrow_mut().insert((resource, variant, content), rt::now().mono_ms);
    }

    /// Records the beginning of a fetch, and returns the number of fetches in flight.
    pub(crate) fn fetch_began(&self, resource: usize, variant: u64) -> u32 {
        let mut fetching = self.fetching.borrow_mut();
        let count = fetching.entry((resource, variant)).or_default();
        *count += 1;
        *count
    }

    pub(crate) fn fetch_ended(&self, resource: usize, variant: u64) {
        if let Some(count) = self.fetching.borrow_mut().get_mut(&(resource, variant)) {
            *count -= 1;
        }
    }

    /// Records a purge that is about to be made, and returns its number.
    pub(crate) fn purge_began(&self, scope: PurgeScope) -> usize {
        let from_tick = self.note(format_args!("purge {scope:?}"));
        let mut purges = self.purges.borrow_mut();
        purges.push(Purge { scope, from_tick, until_tick: u64::MAX });
        purges.len() - 1
    }

    pub(crate) fn purge_answered(&self, number: usize) {
        let tick = self.note(format_args!("purge {number} answered"));
        self.purges.borrow_mut()[number].until_tick = tick;
    }

    /// Checks the head of an answer.
    pub(crate) fn judge_head(
        &self,
        asked: &ClientRequest,
        seen: &ObservedAnswer,
        resources: &[Resource],
        calm: bool,
    ) {
        let mut tally = self.tally.get();
        tally.answers += 1;
        tally.hits += u64::from(seen.word == "HIT");
        self.tally.set(tally);
        let resource = &resources[asked.resource];
        let Some(number) = seen.serial else {
            if calm && seen.status != 304 {
                self.fail(|| format!("nothing failed, and yet: {asked:?} {seen:?}"));
            }
            return;
        };
        let Some(serial) = self.serial(number) else {
            return self.fail(|| format!("a response that no origin gave: {seen:?}"));
        };
        if serial.resource != asked.resource {
            self.fail(|| format!("a response of another resource: {asked:?} {serial:?}"));
        }
        if resource.varies && serial.variant != asked.variant {
            self.fail(|| format!("a response of another variant: {asked:?} {serial:?}"));
        }
        if asked.ms > serial.cut_ms.saturating_add(CUT_MS) {
            self.fail(|| format!("a cut response was kept: {asked:?} {serial:?}"));
        }
        self.judge_purges(asked, number, &serial, resource);
        if resource.private {
            if !self.given.borrow_mut().insert(number) || serial.born_tick < asked.tick {
                self.fail(|| format!("a private response for two: {asked:?} {serial:?}"));
            }
            let mut refused = self.refused.borrow_mut();
            let first = *refused.entry(asked.resource).or_insert_with(|| self.tally.get().events);
            drop(refused);
            if calm && seen.waited && first < asked.tick {
                self.fail(|| format!("it waited in spite of a hit-for-miss mark: {asked:?}"));
            }
        } else {
            self.judge_age(asked, seen, &serial, resource);
        }
    }

    fn judge_purges(
        &self,
        asked: &ClientRequest,
        number: u64,
        serial: &Serial,
        resource: &Resource,
    ) {
        let missed = |purge: &&Purge| {
            purge.until_tick < asked.tick
                && purge.from_tick > serial.born_tick
                && purge.scope.has(serial.resource, resource)
        };
        if let Some(purge) = self.purges.borrow().iter().find(missed) {
            self.fail(|| format!("response {number} outlived {purge:?}: {asked:?} {serial:?}"));
        }
    }

    fn judge_age(
        &self,
        asked: &ClientRequest,
        seen: &ObservedAnswer,
        serial: &Serial,
        resource: &Resource,
    ) {
        let key = (serial.resource, serial.variant, serial.content);
        let confirmed = self.confirmed.borrow().get(&key).copied().unwrap_or_default();
        // A program's lifetimes begin with the response's head, as in Varnish; others begin with
        // the request (RFC 9111). A response that was fetched for this request or one it waited for
        // may be stale at once.
        let is_stored = matches!(&*seen.word, "HIT" | "STALE" | "STALE-ERROR");
        let born_ms =
            if resource.site == 1 || !is_stored { serial.head_ms } else { serial.born_ms };
        let age_ms = asked.ms.saturating_sub(confirmed.max(born_ms));
        let more_s = match &*seen.word {
            "STALE-ERROR" => resource.error_s.max(resource.grace_s),
            "STALE" => resource.grace_s,
            // A program calls hits within the grace hits.
            _ if resource.site == 1 => resource.grace_s,
            _ => 0,
        };
        if age_ms > (resource.ttl_s + more_s) * 1_000 + SLACK_MS {
            self.fail(|| format!("{age_ms} ms old: {asked:?} {seen:?} {serial:?} {resource:?}"));
        }
    }

    /// Checks a body that ended in order.
    pub(crate) fn judge_body(&self, asked: &ClientRequest, seen: &ObservedAnswer, body: &[u8]) {
        let Some(serial) = seen.serial.and_then(|number| self.serial(number)) else { return };
        let (from, until, of) = match (seen.status, seen.range) {
            (200, _) => (0, serial.length, serial.length),
            (206, Some(range)) => range,
            _ => return,
        };
        if of != serial.length || until > of || from > until {
            return self.fail(|| format!("a wrong range: {asked:?} {seen:?} {serial:?}"));
        }
        if bytes(serial.content, from, until) != body {
            self.fail(|| {
                format!("{} bytes are not the body's: {asked:?} {seen:?} {serial:?}", body.len())
            });
        }
    }
}
