//! The verbs that look into a running daemon by its log ring and its figures, and those that ask it
//! over its admin socket.
//!
//! They are processes of their own: whatever they do, the daemon does not wait for them.

// Some helpers are for screens only.
#![cfg_attr(not(feature = "screens"), allow(dead_code, reason = "there are no screens"))]

mod client;
mod cluster;
mod dashboard;
mod feed;
#[cfg(feature = "screens")]
mod hist;
#[cfg(feature = "screens")]
mod live;
mod log;
mod logstat;
mod nearby;
mod parts;
mod rollout;
#[cfg(feature = "screens")]
mod screen;
mod stat;
mod status;
mod tags;
#[cfg(feature = "screens")]
mod top;
mod why;

use std::io::{self, IsTerminal, Write};

pub use client::{AdminArgs, PurgeArgs, default_socket, purge, purge_all, reload};
pub use cluster::{ClusterOrderArgs, ClusterStatusArgs, ClusterVerb, cluster};
pub use dashboard::DashboardArgs;
#[cfg(feature = "screens")]
pub use hist::HistArgs;
#[cfg(feature = "screens")]
pub use live::{LiveView, Moment};
pub use log::LogArgs;
pub use logstat::LogstatArgs;
pub use parts::{
    Key, PartArgs, Program, Section, Settings, Verb, become_part, described, describes,
};
pub use rollout::{ClusterRollBackArgs, ClusterRollOutArgs, Gather};
pub use stat::StatArgs;
pub use status::StatusArgs;
#[cfg(feature = "screens")]
pub use top::TopArgs;
pub use why::{ExplainArgs, reasons};

pub use dashboard::run as dashboard;
#[cfg(feature = "screens")]
pub use hist::run as hist;
pub use log::run as log;
pub use logstat::run as logstat;
pub use stat::run as stat;
#[cfg(feature = "screens")]
pub use stat::run_moving as stat_moving;
pub use status::run as status;
#[cfg(feature = "screens")]
pub use top::run as top;
pub use why::run as explain;

/// Tells whether standard output is a terminal.
fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Writes to standard output; false when it is no longer read, as behind `| head`.
///
/// # Errors
/// That it cannot be written.
pub fn print(bytes: &[u8]) -> Result<bool, String> {
    let mut out = io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(format!("larder: cannot write: {error}")),
    }
}

/// A count with its thousands set apart.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Bytes in a unit that keeps them short.
fn bytes(number: f64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = number;
    let mut unit = 0;
    while value >= 1000.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    let decimals = usize::from(unit > 0 && value < 100.0);
    format!("{value:.decimals$} {}", units[unit])
}

/// A time in microseconds, in a unit that keeps it short.
fn time(us: f64) -> String {
    match us {
        us if us < 1000.0 => format!("{us:.0} us"),
        us if us < 1e6 => format!("{:.1} ms", us / 1e3),
        us => format!("{:.2} s", us / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_readable() {
        assert_eq!([grouped(0), grouped(999), grouped(1_234_567)], ["0", "999", "1,234,567"]);
        assert_eq!([bytes(5.0), bytes(1536.0), bytes(2e9)], ["5 B", "1.5 KiB", "1.9 GiB"]);
        assert_eq!([time(7.0), time(1500.0), time(2.5e6)], ["7 us", "1.5 ms", "2.50 s"]);
    }
}
