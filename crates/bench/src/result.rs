//! The result of a run, as JSON.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::latency::Latency;

/// The version of the JSON form of [`RunResult`]. A reader rejects newer ones.
pub const VERSION: u32 = 1;

/// Largest value of an axis that a reader accepts.
const X_MAX: f64 = 1e12;

/// One run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// The version of this form.
    pub version: u32,
    /// Settings by name, as the command line gave them.
    pub settings: BTreeMap<String, String>,
    /// The machine: processor, cores, memory, kernel.
    pub machine: BTreeMap<String, String>,
    /// Versions by program.
    pub versions: BTreeMap<String, String>,
    /// The command line.
    #[serde(default)]
    pub command: String,
    /// The beginning of the run, in seconds since 1970.
    #[serde(default)]
    pub began_s: u64,
    /// Series of points.
    pub series: Vec<Series>,
    /// Remarks of the tool on the run.
    #[serde(default)]
    pub verdicts: Vec<RunRemark>,
}

/// A remark of the tool on a run: a reason for which its figures mislead.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunRemark {
    /// The name of the remark's kind, such as `generator-limit`.
    pub name: String,
    /// A sentence for people.
    pub text: String,
}

/// Serialises a run.
pub fn to_json(run: &RunResult) -> Result<String, String> {
    serde_json::to_string_pretty(run).map_err(|error| format!("cannot write the result: {error}"))
}

/// Parses a run.
pub fn from_json(text: &str) -> Result<RunResult, String> {
    let version = serde_json::from_str::<serde_json::Value>(text)
        .map_err(|error| format!("this is no result of `larder bench`: {error}"))?
        .get("version")
        .and_then(serde_json::Value::as_u64)
        .ok_or("this is no result of `larder bench`: it has no version")?;
    if version > u64::from(VERSION) {
        return Err(format!(
            "a result of version {version}: this program reads versions up to {VERSION}"
        ));
    }
    let run: RunResult = serde_json::from_str(text)
        .map_err(|error| format!("this is no result of `larder bench`: {error}"))?;
    let points = || run.series.iter().flat_map(|series| &series.points);
    match points().find(|point| !(0.0..=X_MAX).contains(&point.x)) {
        Some(point) => Err(format!(
            "this is no result of `larder bench`: x is {}, where it is 0 to {X_MAX:e}",
            point.x
        )),
        None => Ok(run),
    }
}

/// Points over one axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// The name in a legend.
    pub name: String,
    /// The setting on the x axis.
    pub axis: Axis,
    /// The points, by ascending `x`.
    pub points: Vec<Point>,
}

/// A setting that a run varies, never an outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Axis {
    /// Connections of a closed loop.
    Connections,
    /// Requests per second of an open loop.
    Rate,
    /// Sessions per second.
    Sessions,
    /// The speed of a replay, as a multiple of the log's own.
    Speed,
}

/// Rounds at one value of the axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Connections, or requests per second.
    pub x: f64,
    /// The rounds, in the order in which they ran.
    pub rounds: Vec<Round>,
}

/// One measurement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Round {
    /// The time measured, in microseconds.
    pub elapsed_us: u64,
    /// Requests sent.
    pub attempted: u64,
    /// Responses read to their end.
    pub completed: u64,
    /// Errors by kind.
    pub errors: BTreeMap<String, u64>,
    /// The text of the first error of each kind.
    pub error_texts: BTreeMap<String, String>,
    /// Requests without a response at the end of the measurement.
    pub unfinished: u64,
    /// Responses by status.
    pub statuses: BTreeMap<u16, u64>,
    /// Hits by the field that reported the cache result: `cache-status`, `x-cache`, `x-varnish`,
    /// `age`. A field that reported only misses has 0.
    pub hits: BTreeMap<String, u64>,
    /// Responses without a cache result.
    pub source_unknown: u64,
    /// Responses that were no hits, by the reason in Cache-Status.
    pub miss_reasons: BTreeMap<String, u64>,
    /// Responses by content coding; an empty name for none.
    pub encodings: BTreeMap<String, u64>,
    /// Responses by the length of the body.
    pub body_lengths: BTreeMap<u64, u64>,
    /// Responses whose length is not among the first thousand different ones.
    pub other_lengths: u64,
    /// Responses with status 200 whose length differs from that of the first one to the same
    /// request.
    pub lengths_differ: u64,
    /// Bytes sent.
    pub bytes_sent: u64,
    /// Bytes received.
    pub bytes_received: u64,
    /// Connections opened.
    pub connections: u64,
    /// Connections that resumed a TLS session.
    pub resumed: u64,
    /// Requests of an open loop that were due while every connection was busy.
    pub queued: u64,
    /// Sessions.
    pub sessions: Option<Sessions>,
    /// Background connections that were open at the end.
    pub background: u64,
    /// Time of the TCP connect.
    pub connect: Option<Latency>,
    /// Time of the TLS handshake.
    pub tls: Option<Latency>,
    /// Time to first byte.
    pub first_byte: Option<Latency>,
    /// Time to last byte.
    pub last_byte: Option<Latency>,
    /// Time from a request's due time to its sending, in an open loop.
    pub lateness: Option<Latency>,
    /// CPU time of the generator, in microseconds.
    pub generator_cpu_us: u64,
    /// Threads of the generator.
    pub generator_threads: u64,
    /// Share of the machine's time that its host gave to others, from 0 to 1.
    pub steal: f64,
    /// Share of the machine's time that was idle, from 0 to 1.
    pub idle: f64,
    /// Requests that the server sent to its origin, if it exports them.
    pub origin_requests: Option<u64>,
    /// Resources that the servers used, by process or control group.
    pub servers: BTreeMap<String, Usage>,
}

impl Round {
    /// The time measured, in seconds; never zero.
    pub fn seconds(&self) -> f64 {
        self.elapsed_us.max(1) as f64 / 1e6
    }

    /// Responses per second.
    pub fn rate(&self) -> f64 {
        self.completed as f64 / self.seconds()
    }

    /// Requests without a response.
    pub fn failed(&self) -> u64 {
        self.attempted.saturating_sub(self.completed)
    }

    /// Responses with a cache result.
    pub fn with_known_source(&self) -> u64 {
        self.completed.saturating_sub(self.source_unknown)
    }

    /// Hits.
    pub fn all_hits(&self) -> u64 {
        sum(self.hits.values())
    }

    /// Share of hits among the responses with a cache result; `None` without such responses.
    pub fn hit_share(&self) -> Option<f64> {
        (self.with_known_source() > 0)
            .then(|| self.all_hits() as f64 / self.with_known_source() as f64)
    }

    /// Responses whose status is from `from` to `to`, inclusive.
    pub fn with_status(&self, from: u16, to: u16) -> u64 {
        sum(self.statuses.range(from..=to).map(|(_, count)| count))
    }

    /// The resources that all servers used.
    pub fn usage(&self) -> Usage {
        let mut all = Usage::default();
        for usage in self.servers.values() {
            all.cpu_us = all.cpu_us.saturating_add(usage.cpu_us);
            all.resident_bytes = all.resident_bytes.saturating_add(usage.resident_bytes);
        }
        all
    }

    /// The sum of several rounds, without latencies.
    pub fn merged<'a>(rounds: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut all = Self::default();
        for round in rounds {
            for (sum, more) in [
                (&mut all.elapsed_us, round.elapsed_us),
                (&mut all.attempted, round.attempted),
                (&mut all.completed, round.completed),
                (&mut all.unfinished, round.unfinished),
                (&mut all.source_unknown, round.source_unknown),
                (&mut all.other_lengths, round.other_lengths),
                (&mut all.lengths_differ, round.lengths_differ),
                (&mut all.bytes_sent, round.bytes_sent),
                (&mut all.bytes_received, round.bytes_received),
                (&mut all.connections, round.connections),
                (&mut all.resumed, round.resumed),
                (&mut all.queued, round.queued),
                (&mut all.generator_cpu_us, round.generator_cpu_us),
            ] {
                *sum = sum.saturating_add(more);
            }
            if let Some(more) = round.origin_requests {
                let before = all.origin_requests.unwrap_or_default();
                all.origin_requests = Some(before.saturating_add(more));
            }
            add(&mut all.errors, &round.errors);
            add(&mut all.statuses, &round.statuses);
            add(&mut all.hits, &round.hits);
            add(&mut all.miss_reasons, &round.miss_reasons);
            add(&mut all.encodings, &round.encodings);
            add(&mut all.body_lengths, &round.body_lengths);
            for (kind, text) in &round.error_texts {
                all.error_texts.entry(kind.clone()).or_insert_with(|| text.clone());
            }
            for (name, usage) in &round.servers {
                let sum = all.servers.entry(name.clone()).or_default();
                sum.cpu_us = sum.cpu_us.saturating_add(usage.cpu_us);
                sum.resident_bytes = sum.resident_bytes.max(usage.resident_bytes);
            }
        }
        all
    }
}

/// A saturating sum: counts may come from files.
fn sum<'a>(counts: impl Iterator<Item = &'a u64>) -> u64 {
    counts.fold(0, |sum: u64, count| sum.saturating_add(*count))
}

fn add<K: Ord + Clone>(sums: &mut BTreeMap<K, u64>, more: &BTreeMap<K, u64>) {
    for (key, count) in more {
        let sum = sums.entry(key.clone()).or_default();
        *sum = sum.saturating_add(*count);
    }
}

/// Resources that a server used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// CPU time, in microseconds.
    pub cpu_us: u64,
    /// Resident memory at the end, in bytes.
    pub resident_bytes: u64,
}

/// Sessions of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sessions {
    /// Sessions begun.
    pub begun: u64,
    /// Sessions that got all their responses.
    pub completed: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_result_is_read_or_rejected() {
        let run = |x: &str, round: &str| {
            let points = format!("[{{\"x\":{x},\"rounds\":[{round}]}}]");
            let series = format!("[{{\"name\":\"a\",\"axis\":\"rate\",\"points\":{points}}}]");
            let facts = "\"settings\":{},\"machine\":{},\"versions\":{}";
            from_json(&format!("{{\"version\":1,{facts},\"series\":{series}}}"))
        };
        assert!(run("1", "{}").is_ok());
        assert!(run("-1", "{}").is_err());
        assert!(run("1e300", "{}").is_err());
        let most = u64::MAX;
        let round = format!(
            "{{\"completed\":{most},\"source_unknown\":1,\"hits\":{{\"age\":{most},\"x-cache\":1}},\
             \"servers\":{{\"a\":{{\"cpu_us\":{most},\"resident_bytes\":{most}}}}}}}"
        );
        let run = run("1", &format!("{round},{round}")).expect("a result");
        let points = run.series.iter().flat_map(|series| &series.points);
        let all = Round::merged(points.flat_map(|point| &point.rounds));
        assert_eq!((all.completed, all.failed(), all.all_hits()), (most, 0, most));
        assert_eq!(all.usage().cpu_us, most);
    }
}
