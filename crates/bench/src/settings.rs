//! Settings of a run: what is asked, how hard, for how long, and in which protocol.

use std::path::PathBuf;
use std::time::Duration;

use crate::target::TargetServer;
use crate::urls::{List, RequestOrder};

/// The settings of a run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Servers for the list's paths.
    pub targets: Vec<TargetServer>,
    /// Requests.
    pub list: List,
    /// The order in which they are asked.
    pub order: RequestOrder,
    /// Header fields that every request has.
    pub headers: Vec<(String, String)>,
    /// Protocol.
    pub protocol: Protocol,
    /// True if requests ask only for what is newer than what was received before.
    pub conditional: bool,
    /// TLS.
    pub tls: Tls,
    /// Load.
    pub load: Load,
    /// End of a measurement.
    pub until: MeasurementEnd,
    /// Time before a measurement in which the load is there already.
    pub warm_up: Duration,
    /// Time for one response, from the moment at which its request is begun.
    pub timeout: Duration,
    /// Threads.
    pub threads: usize,
    /// Connections that are there besides.
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
        /// True if a connection is kept for the next request.
        keep_alive: bool,
        /// Requests that are sent before the response to the first is read.
        pipeline: usize,
    },
    /// HTTP/2, with so many streams at once on each connection.
    Http2 {
        /// Streams.
        streams: usize,
    },
}

/// TLS settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// PEM of the authorities that are trusted; `None` if every certificate is taken.
    pub authorities: Option<Vec<u8>>,
    /// True if sessions are resumed.
    pub resume: bool,
}

/// The course of a visit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Visit {
    /// Bursts in it.
    pub bursts: usize,
    /// Requests in a burst, one after another.
    pub calls: usize,
    /// Time between bursts.
    pub think: Duration,
}

/// The way in which requests come.
#[derive(Clone, Debug, PartialEq)]
pub enum Load {
    /// So many connections; each asks again when it has its answer.
    Closed {
        /// Connections.
        connections: usize,
    },
    /// So many requests a second, whatever the server does.
    Open {
        /// Requests a second.
        rate: f64,
        /// True for exponential times between requests, as those of people who know nothing of each
        /// other.
        random: bool,
        /// Most connections.
        connections: usize,
    },
    /// More and more connections.
    Ramp {
        /// Connections at the beginning.
        from: usize,
        /// Connections at the end.
        to: usize,
    },
    /// Visits, each over a connection of its own.
    Sessions {
        /// Sessions that begin in a second.
        rate: f64,
        /// The course of each.
        visit: Visit,
        /// Most sessions at once.
        connections: usize,
    },
    /// A log again, at its own times.
    Replay {
        /// So many times as fast.
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

    /// True if requests are due at times of their own.
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Open { .. } | Self::Sessions { .. } | Self::Replay { .. })
    }
}

/// The end of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeasurementEnd {
    /// After so much time.
    Time(Duration),
    /// After so many requests, or sessions.
    Count(u64),
}

/// Connections that are there besides the load.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Background {
    /// Connections that ask nothing.
    pub idle: usize,
    /// Connections that read their response slowly.
    pub slow: usize,
    /// Bytes that each of those reads in a second.
    pub slow_rate: usize,
}

impl Background {
    /// All of them.
    pub fn all(&self) -> usize {
        self.idle + self.slow
    }
}

/// A process, a control group or a server's own figures, from which the use of the machine is
/// known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UsageSource {
    /// A process and its descendants.
    Process(u32),
    /// The folder of a control group of version 2.
    Group(PathBuf),
    /// A page of metrics in Prometheus' text format.
    Metrics {
        /// The server.
        target: TargetServer,
        /// The path.
        path: String,
        /// The TLS settings.
        tls: Tls,
        /// True if the use of the machine is known from elsewhere.
        counters_only: bool,
    },
}
