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
    /// Series of points.
    pub series: Vec<Series>,
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Round {
    /// The time measured, in microseconds.
    pub elapsed_us: u64,
    /// Requests begun.
    pub attempted: u64,
    /// Responses read to their end.
    pub completed: u64,
    /// Errors by kind.
    pub errors: BTreeMap<String, u64>,
    /// Responses by status.
    pub statuses: BTreeMap<u16, u64>,
    /// Hits by the field that told of them: `cache-status`, `x-cache`, `age`.
    pub hits: BTreeMap<String, u64>,
    /// Responses that told nothing of a cache.
    pub source_unknown: u64,
    /// Responses by content encoding; an empty name for none.
    pub encodings: BTreeMap<String, u64>,
    /// Responses by the length of the body.
    pub body_lengths: BTreeMap<u64, u64>,
    /// Bytes sent.
    pub bytes_sent: u64,
    /// Bytes received.
    pub bytes_received: u64,
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
    /// The server's use of the machine, by process or control group.
    pub servers: BTreeMap<String, Usage>,
}

/// The use of the machine by a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// CPU time, in microseconds.
    pub cpu_us: u64,
    /// Resident memory at the end, in bytes.
    pub resident_bytes: u64,
}
