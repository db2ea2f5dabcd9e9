//! Settings of a run: requests, load, duration, protocol.

use std::path::PathBuf;
use std::time::Duration;

use crate::target::TargetServer;
use crate::urls::{List, RequestOrder};

/// The settings of a run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Servers to which paths of the list are sent.
    pub targets: Vec<TargetServer>,
    /// The list of requests.
    pub list: List,
    /// The order of the requests.
    pub order: RequestOrder,
    /// Header fields of every request.
    pub headers: Vec<(String, String)>,
    /// Protocol.
    pub protocol: Protocol,
    /// True if requests have preconditions with the validators of earlier responses.
    pub conditional: bool,
    /// TLS.
    pub tls: Tls,
    /// Load.
    pub load: Load,
    /// The end of a measurement.
    pub until: MeasurementEnd,
    /// Time for which the load runs before it is measured.
    pub warm_up: Duration,
    /// Time limit of a response, from the sending of its request.
    pub timeout: Duration,
    /// Threads.
    pub threads: usize,
    /// Background connections.
    pub background: Background,
}

impl Settings {
    /// The URL of the list's first request.
    pub fn first_url(&self) -> String {
        let url = self.list.asks().first().map_or("", |ask| ask.url.as_str());
        match self.targets.first() {
            Some(target) if url.starts_with('/') => {
                format!("{}://{}{url}", target.scheme(), target.authority())
            }
            _ => url.to_owned(),
        }
    }
}

/// The protocol of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.0 or HTTP/1.1.
    Http1 {
        /// True for HTTP/1.0.
        old: bool,
        /// True if connections are reused.
        keep_alive: bool,
        /// Requests that are sent before the first response is read.
        pipeline: usize,
    },
    /// HTTP/2, with several streams per connection.
    Http2 {
        /// Concurrent streams.
        streams: usize,
    },
}

/// TLS settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// Trusted authorities as PEM; `None` to accept every certificate.
    pub authorities: Option<Vec<u8>>,
    /// True if TLS sessions are resumed.
    pub resume: bool,
}

/// The course of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Visit {
    /// Bursts per session.
    pub bursts: usize,
    /// Requests per burst, one after another.
    pub calls: usize,
    /// Time between bursts.
    pub think: Duration,
}

/// The load model.
#[derive(Clone, Debug, PartialEq)]
pub enum Load {
    /// A closed loop: each connection sends its next request after the response to the last one.
    Closed {
        /// Connections.
        connections: usize,
    },
    /// An open loop: requests are sent at a fixed rate, regardless of responses.
    Open {
        /// Requests per second.
        rate: f64,
        /// True for exponentially distributed intervals, as of independent users.
        random: bool,
        /// Most connections.
        connections: usize,
    },
    /// A growing number of connections.
    Ramp {
        /// Connections at the beginning.
        from: usize,
        /// Connections at the end.
        to: usize,
    },
    /// Sessions, each over a connection of its own.
    Sessions {
        /// Sessions that begin per second.
        rate: f64,
        /// The course of each.
        visit: Visit,
        /// Most sessions at once.
        connections: usize,
    },
    /// A replay of a log, at its own times.
    Replay {
        /// Factor by which the replay is faster.
        speed: f64,
        /// Most connections.
        connections: usize,
    },
}

impl Load {
    /// Most connections at once.
    pub fn connections(&self) -> usize {
        match *self {
            Self::Closed { connections }
            | Self::Open { connections, .. }
            | Self::Sessions { connections, .. }
            | Self::Replay { connections, .. } => connections,
            Self::Ramp { to, .. } => to,
        }
    }

    /// Returns true if requests have due times.
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Open { .. } | Self::Sessions { .. } | Self::Replay { .. })
    }
}

/// The end of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeasurementEnd {
    /// After a time.
    Time(Duration),
    /// After a number of requests or sessions.
    Count(u64),
}

/// Connections that are open besides the load.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Background {
    /// Connections that send no request.
    pub idle: usize,
    /// Connections that read their response slowly.
    pub slow: usize,
    /// Bytes per second that each of the slow connections reads.
    pub slow_rate: usize,
}

impl Background {
    /// All background connections.
    pub fn all(&self) -> usize {
        self.idle + self.slow
    }
}

/// A source from which the use of resources is read: a process, a control group, or the server's
/// metrics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UsageSource {
    /// A process and its descendants.
    Process(u32),
    /// A control group of version 2, by its folder.
    Group(PathBuf),
    /// A page of metrics in Prometheus' text format.
    Metrics {
        /// The server.
        target: TargetServer,
        /// The path.
        path: String,
        /// The TLS settings.
        tls: Tls,
        /// True if the use of resources comes from another source.
        counters_only: bool,
    },
}
