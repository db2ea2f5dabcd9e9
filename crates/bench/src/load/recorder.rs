//! The recorder of one thread: its counts and latencies.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use rapidhash::RapidHashMap;

use super::facts::{Field, ResponseFacts};
use super::failure::LoadFailure;
use super::stream::ConnectionTimes;
use crate::latency::Latency;
use crate::result::Round;

/// Largest latency of the histograms: an hour.
const LONGEST_US: u64 = 3_600_000_000;
/// Most body lengths that have a count of their own.
const LENGTHS_KEPT: usize = 1000;
/// Most texts (reasons, codings) that have a count of their own.
const TEXTS_KEPT: usize = 50;

/// A complete response with its times.
#[derive(Clone, Debug)]
pub(crate) struct MeasuredResponse {
    pub(crate) status: u16,
    pub(crate) facts: ResponseFacts,
    /// Length of the body in bytes.
    pub(crate) body: u64,
    pub(crate) first_byte: Instant,
    pub(crate) last_byte: Instant,
}

/// Counts and latencies.
#[derive(Debug)]
pub(crate) struct Recorder {
    attempted: u64,
    completed: u64,
    errors: RapidHashMap<&'static str, (u64, String)>,
    statuses: Vec<(u16, u64)>,
    /// Hits and all responses, by the field that reported them.
    sources: [(u64, u64); Field::ALL.len()],
    reasons: Texts,
    encodings: Texts,
    body_lengths: RapidHashMap<u64, u64>,
    other_lengths: u64,
    /// By request, the length of its first response with status 200, and the number of responses
    /// with another length.
    lengths: RapidHashMap<u32, (u64, u64)>,
    pub(crate) bytes_sent: u64,
    pub(crate) bytes_received: u64,
    connections: u64,
    resumed: u64,
    /// Requests that were due while every connection was busy.
    pub(crate) queued: u64,
    pub(crate) sessions_begun: u64,
    pub(crate) sessions_completed: u64,
    connect: Histogram<u64>,
    tls: Histogram<u64>,
    first_byte: Histogram<u64>,
    last_byte: Histogram<u64>,
    lateness: Histogram<u64>,
}

/// Counts by text, for a bounded number of texts.
#[derive(Debug, Default)]
struct Texts {
    counts: Vec<(Box<str>, u64)>,
    other: u64,
}

impl Texts {
    fn count(&mut self, text: &str, times: u64) {
        if let Some((_, count)) = self.counts.iter_mut().find(|(own, _)| &**own == text) {
            *count += times;
        } else if self.counts.len() < TEXTS_KEPT {
            self.counts.push((text.into(), times));
        } else {
            self.other += times;
        }
    }

    fn add(&mut self, other: &Self) {
        for (text, count) in &other.counts {
            self.count(text, *count);
        }
        self.other += other.other;
    }

    fn map(&self) -> BTreeMap<String, u64> {
        let mut map: BTreeMap<_, _> =
            self.counts.iter().map(|(text, count)| (text.to_string(), *count)).collect();
        if self.other > 0 {
            map.insert("other".to_owned(), self.other);
        }
        map
    }
}

impl Recorder {
    /// Makes an empty recorder.
    pub(crate) fn new() -> Result<Self, String> {
        let histogram = || {
            Histogram::new_with_max(LONGEST_US, 3)
                .map_err(|error| format!("latency histogram: {error}"))
        };
        Ok(Self {
            attempted: 0,
            completed: 0,
            errors: RapidHashMap::default(),
            statuses: Vec::new(),
            sources: Default::default(),
            reasons: Texts::default(),
            encodings: Texts::default(),
            body_lengths: RapidHashMap::default(),
            other_lengths: 0,
            lengths: RapidHashMap::default(),
            bytes_sent: 0,
            bytes_received: 0,
            connections: 0,
            resumed: 0,
            queued: 0,
            sessions_begun: 0,
            sessions_completed: 0,
            connect: histogram()?,
            tls: histogram()?,
            first_byte: histogram()?,
            last_byte: histogram()?,
            lateness: histogram()?,
        })
    }

    /// Counts the response to request `number`, which was due at `due`.
    pub(crate) fn answered(&mut self, number: u32, due: Instant, answer: &MeasuredResponse) {
        self.attempted += 1;
        self.completed += 1;
        match self.statuses.iter_mut().find(|(status, _)| *status == answer.status) {
            Some((_, count)) => *count += 1,
            None => self.statuses.push((answer.status, 1)),
        }
        if let Some((field, hit)) = answer.facts.source
            && let Some((hits, all)) = self.sources.get_mut(field as usize)
        {
            *hits += u64::from(hit);
            *all += 1;
        }
        if let Some(reason) = &answer.facts.reason {
            self.reasons.count(reason, 1);
        }
        self.encodings.count(answer.facts.encoding.as_deref().unwrap_or_default(), 1);
        self.count_length(answer.body, 1);
        if answer.status == 200 {
            let (first, others) = self.lengths.entry(number).or_insert((answer.body, 0));
            *others += u64::from(*first != answer.body);
        }
        record(&mut self.first_byte, answer.first_byte.saturating_duration_since(due));
        record(&mut self.last_byte, answer.last_byte.saturating_duration_since(due));
    }

    fn count_length(&mut self, length: u64, times: u64) {
        if let Some(count) = self.body_lengths.get_mut(&length) {
            *count += times;
        } else if self.body_lengths.len() < LENGTHS_KEPT {
            self.body_lengths.insert(length, times);
        } else {
            self.other_lengths += times;
        }
    }

    /// Counts a request that got no response.
    pub(crate) fn failed(&mut self, failure: &LoadFailure) {
        self.attempted += 1;
        let (count, _) =
            self.errors.entry(failure.kind()).or_insert_with(|| (0, failure.text().to_owned()));
        *count += 1;
    }

    /// Counts an opened connection.
    pub(crate) fn opened(&mut self, opened: &ConnectionTimes) {
        self.connections += 1;
        self.resumed += u64::from(opened.resumed);
        record(&mut self.connect, opened.connect);
        if let Some(tls) = opened.tls {
            record(&mut self.tls, tls);
        }
    }

    /// Counts the lateness of a request that was sent late although a connection was free.
    pub(crate) fn late(&mut self, lateness: Duration) {
        record(&mut self.lateness, lateness);
    }

    /// Adds the counts of another thread.
    pub(crate) fn add(&mut self, other: &Self) -> Result<(), String> {
        self.attempted += other.attempted;
        self.completed += other.completed;
        for (kind, (count, text)) in &other.errors {
            self.errors.entry(kind).or_insert_with(|| (0, text.clone())).0 += count;
        }
        for (status, count) in &other.statuses {
            match self.statuses.iter_mut().find(|(own, _)| own == status) {
                Some((_, own)) => *own += count,
                None => self.statuses.push((*status, *count)),
            }
        }
        for ((hits, all), (more, known)) in self.sources.iter_mut().zip(&other.sources) {
            *hits += more;
            *all += known;
        }
        self.reasons.add(&other.reasons);
        self.encodings.add(&other.encodings);
        for (length, count) in &other.body_lengths {
            self.count_length(*length, *count);
        }
        self.other_lengths += other.other_lengths;
        for (number, (first, others)) in &other.lengths {
            let own = self.lengths.entry(*number).or_insert((*first, 0));
            own.1 += others + u64::from(own.0 != *first);
        }
        self.bytes_sent += other.bytes_sent;
        self.bytes_received += other.bytes_received;
        self.connections += other.connections;
        self.resumed += other.resumed;
        self.queued += other.queued;
        self.sessions_begun += other.sessions_begun;
        self.sessions_completed += other.sessions_completed;
        for (own, more) in [
            (&mut self.connect, &other.connect),
            (&mut self.tls, &other.tls),
            (&mut self.first_byte, &other.first_byte),
            (&mut self.last_byte, &other.last_byte),
            (&mut self.lateness, &other.lateness),
        ] {
            own.add(more).map_err(|error| format!("latency histogram: {error}"))?;
        }
        Ok(())
    }

    /// Returns the counts as a round.
    pub(crate) fn round(&self, elapsed: Duration) -> Result<Round, String> {
        let known: u64 = self.sources.iter().map(|(_, all)| all).sum();
        let hits = Field::ALL.iter().zip(&self.sources).filter(|(_, (_, all))| *all > 0);
        let latency = |histogram: &Histogram<u64>| {
            (!histogram.is_empty()).then(|| Latency::of(histogram)).transpose()
        };
        Ok(Round {
            elapsed_us: micros(elapsed),
            attempted: self.attempted,
            completed: self.completed,
            errors: self
                .errors
                .iter()
                .map(|(kind, (count, _))| ((*kind).to_owned(), *count))
                .collect(),
            error_texts: self
                .errors
                .iter()
                .map(|(kind, (_, text))| ((*kind).to_owned(), text.clone()))
                .collect(),
            statuses: self.statuses.iter().copied().collect(),
            hits: hits.map(|(field, (hits, _))| (field.name().to_owned(), *hits)).collect(),
            source_unknown: self.completed - known,
            miss_reasons: self.reasons.map(),
            encodings: self.encodings.map(),
            body_lengths: self
                .body_lengths
                .iter()
                .map(|(length, count)| (*length, *count))
                .collect(),
            other_lengths: self.other_lengths,
            lengths_differ: self.lengths.values().map(|(_, others)| others).sum(),
            bytes_sent: self.bytes_sent,
            bytes_received: self.bytes_received,
            connections: self.connections,
            resumed: self.resumed,
            queued: self.queued,
            sessions: (self.sessions_begun > 0).then_some(crate::result::Sessions {
                begun: self.sessions_begun,
                completed: self.sessions_completed,
            }),
            connect: latency(&self.connect)?,
            tls: latency(&self.tls)?,
            first_byte: latency(&self.first_byte)?,
            last_byte: latency(&self.last_byte)?,
            lateness: latency(&self.lateness)?,
            ..Round::default()
        })
    }
}

/// A duration in microseconds.
pub(crate) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

fn record(histogram: &mut Histogram<u64>, duration: Duration) {
    // Values below a microsecond count as one: the histogram has no zero.
    histogram.saturating_record(micros(duration).max(1));
}
