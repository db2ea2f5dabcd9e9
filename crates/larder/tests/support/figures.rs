//! Figures of an attack: memory and processor time of the daemon, and the delay of a clean client.

use std::future::Future;
use std::time::{Duration, Instant};

use testkit::larder::Daemon;

use super::is_full_run;

/// Far above a hit's time, far below that of waiting for slow clients.
const CLEAN_P99: Duration = Duration::from_millis(500);
/// Ticks of the kernel's clock for processes, in a second; Linux has no other number.
const TICKS: f64 = 100.0;

/// The first number in a full run, otherwise the second.
pub(crate) fn count(full: usize, otherwise: usize) -> usize {
    if is_full_run() { full } else { otherwise }
}

/// Resident memory of the daemon, in bytes.
pub(crate) fn resident(daemon: &Daemon) -> u64 {
    let file = format!("/proc/{}/smaps_rollup", daemon.pid());
    let rollup = std::fs::read_to_string(file).expect("the daemon's memory");
    let line = rollup.lines().find(|line| line.starts_with("Rss:")).expect("Rss");
    let kilobytes = line.split_whitespace().nth(1).and_then(|n| n.parse::<u64>().ok());
    kilobytes.expect("a number") * 1024
}

/// Processor time of the daemon so far, in seconds.
pub(crate) fn processor_secs(daemon: &Daemon) -> f64 {
    let file = format!("/proc/{}/stat", daemon.pid());
    let stat = std::fs::read_to_string(file).expect("the daemon's times");
    // The second field is a name in brackets; user and system time are the 14th and 15th.
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let ticks = fields.split_whitespace().skip(11).take(2).map(|n| n.parse::<f64>());
    ticks.sum::<Result<f64, _>>().expect("numbers") / TICKS
}

/// Durations of a clean client's requests.
pub(crate) struct Clean {
    took: Vec<Duration>,
}

impl Clean {
    pub(crate) fn new() -> Self {
        Self { took: Vec::new() }
    }

    /// Times one request.
    pub(crate) async fn time<T>(&mut self, request: impl Future<Output = T>) -> T {
        let started = Instant::now();
        let answer = request.await;
        self.took.push(started.elapsed());
        answer
    }

    pub(crate) fn requests(&self) -> usize {
        self.took.len()
    }

    /// Prints the median and the 99th percentile; in a full run the latter is checked.
    pub(crate) fn judge(mut self, what: &str) {
        self.took.sort_unstable();
        let (p50, p99) = (self.took[self.took.len() / 2], self.took[self.took.len() * 99 / 100]);
        println!("{what}: a clean client's p50 {p50:?}, p99 {p99:?}");
        // On a busy machine durations say little about the daemon: they are checked in full runs
        // only.
        assert!(!is_full_run() || p99 < CLEAN_P99, "{what}: p99 {p99:?}");
    }
}
