//! The service manager: reports the daemon's state to it (systemd's `sd_notify` protocol), by
//! datagrams of assignments to the socket that `NOTIFY_SOCKET` names.
//!
//! A report must never fail or delay anything: a manager that is missing or does not read is
//! ignored. The crate `sd-notify` uses a blocking socket and has no watchdog over several threads,
//! which is most of this module.

use std::ffi::OsStr;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::{Duration, Instant};

use net::Heartbeats;
use rustix::time::{ClockId, clock_gettime};

/// The time that a core may seem to stall. Cores beat once a second.
const STILL: Duration = Duration::from_secs(3);

/// The service manager, if there is one.
#[derive(Debug, Default)]
pub(crate) struct ServiceManager {
    manager: Option<(UnixDatagram, SocketAddr)>,
}

impl ServiceManager {
    /// The manager that started this process.
    pub(crate) fn of_environment() -> Self {
        let manager = std::env::var_os("NOTIFY_SOCKET").and_then(|name| {
            let address = address(&name)?;
            let socket = UnixDatagram::unbound().ok()?;
            socket.set_nonblocking(true).ok()?;
            Some((socket, address))
        });
        Self { manager }
    }

    /// Reports that the daemon serves; `status` is for people.
    pub(crate) fn ready(&self, status: &str) {
        self.say(&format!("READY=1\nSTATUS={}", line(status)));
    }

    /// Reports a reload (`Type=notify-reload` wants the time of its beginning).
    pub(crate) fn reloading(&self) {
        let now = clock_gettime(ClockId::Monotonic);
        let usec = now.tv_sec.saturating_mul(1_000_000).saturating_add(now.tv_nsec / 1_000);
        self.say(&format!("RELOADING=1\nMONOTONIC_USEC={usec}\nSTATUS=reading the configuration"));
    }

    /// Reports that process `pid`, which serves now, is the service's main one.
    pub(crate) fn replaced_by(&self, pid: u32) {
        self.say(&format!("MAINPID={pid}\nSTATUS=serving"));
    }

    /// Reports the end.
    pub(crate) fn stopping(&self) {
        self.say("STOPPING=1\nSTATUS=finishing requests under way");
    }

    fn alive(&self) {
        self.say("WATCHDOG=1");
    }

    fn say(&self, text: &str) {
        if let Some((socket, address)) = &self.manager {
            _ = socket.send_to_addr(text.as_bytes(), address);
        }
    }
}

/// The address of a socket by its name: a path, or `@` and a name in the abstract namespace.
fn address(name: &OsStr) -> Option<SocketAddr> {
    match name.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name).ok(),
        [b'/', ..] => SocketAddr::from_pathname(name).ok(),
        _ => None,
    }
}

/// The first line of `text`: a second one would be another assignment.
fn line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// Watches the cores for the manager: it reports life while all of them beat. When one stalls, the
/// manager acts as configured (`WatchdogSec=`).
pub(crate) struct Watchdog {
    every: Duration,
    pulse: Heartbeats,
    seen: Vec<(u64, Instant)>,
}

impl Watchdog {
    /// A watchdog, if the manager wants one of this process.
    pub(crate) fn of_environment(pulse: Heartbeats) -> Option<Self> {
        let number = |name| std::env::var(name).ok()?.parse::<u64>().ok();
        let of_another = std::env::var_os("WATCHDOG_PID").is_some()
            && number("WATCHDOG_PID") != Some(std::process::id().into());
        let usec = number("WATCHDOG_USEC").filter(|usec| *usec > 0 && !of_another)?;
        Some(Self { every: Duration::from_micros(usec / 2), pulse, seen: Vec::new() })
    }

    /// Watches until it is dropped.
    pub(crate) async fn run(mut self, notify: &ServiceManager) {
        let mut tick = rt::time::interval(self.every.max(Duration::from_millis(1)));
        loop {
            tick.tick().await;
            if self.all_beat(Instant::now()) {
                notify.alive();
            }
        }
    }

    fn all_beat(&mut self, now: Instant) -> bool {
        let beats = self.pulse.beats();
        self.seen.resize(beats.len(), (0, now));
        for (seen, beat) in self.seen.iter_mut().zip(beats) {
            if seen.0 != beat {
                *seen = (beat, now);
            }
        }
        self.seen.iter().all(|(_, last)| now.duration_since(*last) <= STILL)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_paths_or_abstract() {
        let is = |name: &str| address(OsStr::new(name));
        assert!(is("/run/notify").is_some_and(|a| a.as_pathname().is_some()));
        assert!(is("@name").is_some_and(|a| a.as_abstract_name() == Some(b"name")));
        assert!(is("vsock:2:1").is_none() && is("").is_none());
    }

    #[test]
    fn a_status_is_one_line() {
        assert_eq!(line("a\nREADY=1"), "a");
        assert_eq!(line(""), "");
    }

    #[test]
    fn one_core_that_stands_still_is_enough() {
        let pulse = Heartbeats::new(2);
        let mut dog = Watchdog { every: STILL, pulse: pulse.clone(), seen: Vec::new() };
        let start = Instant::now();
        assert!(dog.all_beat(start));
        pulse.beat(0);
        pulse.beat(1);
        assert!(dog.all_beat(start + STILL));
        pulse.beat(0);
        assert!(dog.all_beat(start + STILL * 2));
        pulse.beat(0);
        assert!(!dog.all_beat(start + STILL * 3));
        pulse.beat(1);
        assert!(dog.all_beat(start + STILL * 3));
    }
}
