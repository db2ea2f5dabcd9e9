//! The result of a run, as it is written to JSON.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::latency::Latency;

/// The version of the form that [`Run`] describes. A reader refuses a newer one.
pub const VERSION: u32 = 1;

/// One run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
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
    /// The moment of the run's beginning, in seconds since 1970.
    #[serde(default)]
    pub began_s: u64,
    /// Series of points.
    pub series: Vec<Series>,
    /// Remarks of the tool on the run itself.
    #[serde(default)]
    pub verdicts: Vec<Verdict>,
}

/// A remark of the tool on a run: something that makes its figures mean less than they seem to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// The name, the same for all remarks of a kind, such as `generator-limit`.
    pub name: String,
    /// A sentence for people.
    pub text: String,
}

/// The text of a run.
pub fn to_json(run: &Run) -> Result<String, String> {
    serde_json::to_string_pretty(run).map_err(|error| format!("cannot write the result: {error}"))
}

/// Reads a run's text.
pub fn from_json(text: &str) -> Result<Run, String> {
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
    serde_json::from_str(text)
        .map_err(|error| format!("this is no result of `larder bench`: {error}"))
}

/// Points over one axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// The name in a legend.
    pub name: String,
    /// The quantity that was set.
    pub axis: Axis,
    /// The points, by rising `x`.
    pub points: Vec<Point>,
}

/// The quantity that a run sets, never an outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Axis {
    /// Connections of a closed loop.
    Connections,
    /// Requests a second of an open loop.
    Rate,
    /// Sessions a second.
    Sessions,
    /// The speed of a replay, as a multiple of the log's own.
    Speed,
}

/// Rounds at one value of the axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Connections or requests a second.
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
    /// Requests begun.
    pub attempted: u64,
    /// Responses read to their end.
    pub completed: u64,
    /// Errors by kind.
    pub errors: BTreeMap<String, u64>,
    /// The text of the first error of each kind.
    pub error_texts: BTreeMap<String, String>,
    /// Requests that had no response yet when the measurement ended.
    pub unfinished: u64,
    /// Responses by status.
    pub statuses: BTreeMap<u16, u64>,
    /// Hits by the field that told of the cache: `cache-status`, `x-cache`, `x-varnish`, `age`. A
    /// field that told of misses alone has 0.
    pub hits: BTreeMap<String, u64>,
    /// Responses that told nothing of a cache.
    pub source_unknown: u64,
    /// Responses that were no hits, by the reason in Cache-Status.
    pub miss_reasons: BTreeMap<String, u64>,
    /// Responses by content encoding; an empty name for none.
    pub encodings: BTreeMap<String, u64>,
    /// Responses by the length of the body.
    pub body_lengths: BTreeMap<u64, u64>,
    /// Responses of lengths beyond the first thousand different ones.
    pub other_lengths: u64,
    /// Responses of status 200 whose length was another than that of the first one to the same
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
    /// Requests of an open loop that were due when every connection was busy.
    pub queued: u64,
    /// Sessions.
    pub sessions: Option<Sessions>,
    /// Connections besides the load that were there at the end.
    pub background: u64,
    /// Time to connect.
    pub connect: Option<Latency>,
    /// Time of the TLS handshake.
    pub tls: Option<Latency>,
    /// Time to the first byte of a response.
    pub first_byte: Option<Latency>,
    /// Time to the last byte of a response.
    pub last_byte: Option<Latency>,
    /// Time between a request's due time and its sending, in an open loop.
    pub lateness: Option<Latency>,
    /// CPU time of the generator, in microseconds.
    pub generator_cpu_us: u64,
    /// Threads of the generator.
    pub generator_threads: u64,
    /// Share of the machine's time that its host gave to others, of 1.
    pub steal: f64,
    /// Share of the machine's time that it had nothing to do, of 1.
    pub idle: f64,
    /// Requests that the server sent to its origin, where it tells.
    pub origin_requests: Option<u64>,
    /// The server's use of the machine, by process or control group.
    pub servers: BTreeMap<String, Usage>,
}

impl Round {
    /// The counts of several rounds together; their latencies are left out.
    pub fn together<'a>(rounds: impl Iterator<Item = &'a Self>) -> Self {
        let mut all = Self::default();
        for round in rounds {
            all.elapsed_us += round.elapsed_us;
            all.attempted += round.attempted;
            all.completed += round.completed;
            all.unfinished += round.unfinished;
            all.source_unknown += round.source_unknown;
            all.other_lengths += round.other_lengths;
            all.lengths_differ += round.lengths_differ;
            all.bytes_sent += round.bytes_sent;
            all.bytes_received += round.bytes_received;
            all.connections += round.connections;
            all.resumed += round.resumed;
            all.queued += round.queued;
            all.generator_cpu_us += round.generator_cpu_us;
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
                let none = Usage { cpu_us: 0, resident_bytes: 0 };
                let sum = all.servers.entry(name.clone()).or_insert(none);
                sum.cpu_us += usage.cpu_us;
                sum.resident_bytes = sum.resident_bytes.max(usage.resident_bytes);
            }
        }
        all
    }
}

fn add<K: Ord + Clone>(sums: &mut BTreeMap<K, u64>, more: &BTreeMap<K, u64>) {
    for (key, count) in more {
        *sums.entry(key.clone()).or_default() += count;
    }
}

/// The use of the machine by a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// CPU time, in microseconds.
    pub cpu_us: u64,
    /// Resident memory at the end, in bytes.
    pub resident_bytes: u64,
}

/// Visits of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sessions {
    /// Sessions begun.
    pub begun: u64,
    /// Sessions that got all their responses.
    pub completed: u64,
}
