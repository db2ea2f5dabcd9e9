//! Outages: one line in the log when a server fails, with the reason, and one when it answers
//! again.
//!
//! Each server is checked once a second, so that many failed requests give one line.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::state::Daemon;
use base::units::DurationMs;

/// The interval between two checks.
const LOOK: Duration = Duration::from_secs(1);

/// Failures in a row, as many as eject a server by default.
const FAILURES: u32 = 3;

/// Lines in a minute. A change beyond it is logged by a later check, if it persists.
const LINES_MAX: u32 = 20;
const MINUTE_MS: u64 = 60_000;

/// Logs servers that fail and recover, until it is dropped.
pub(crate) async fn run(daemon: Arc<Daemon>) {
    let mut outages = Outages::default();
    let mut look = rt::time::interval(LOOK);
    loop {
        look.tick().await;
        let servers = daemon.servers().into_iter().map(|(origin, status)| ServerCondition {
            origin,
            server: status.name.to_string(),
            failures: status.failures,
            is_ejected: status.ejected_ms > 0,
            why: status.last_error.map(|(_, why)| why),
        });
        for line in outages.look(rt::now().mono_ms, servers) {
            base::tell!(Warn, "larder: {line}");
        }
    }
}

/// The condition of a server.
#[derive(Clone, Debug, Default)]
struct ServerCondition {
    /// The name of its origin.
    origin: String,
    /// The name of the server.
    server: String,
    /// Failed requests since its last response.
    failures: u32,
    /// The server is ejected for them.
    is_ejected: bool,
    /// The reason of the latest failure.
    why: Option<String>,
}

impl ServerCondition {
    fn fails(&self) -> bool {
        self.failures >= FAILURES || self.failures > 0 && self.is_ejected
    }

    /// The server, as lines name it: an origin of the command line by its server.
    fn name(&self) -> String {
        let Self { origin, server, .. } = self;
        match origin.contains(server.as_str()) {
            true => format!("origin {origin}"),
            false => format!("origin {origin}, server {server}"),
        }
    }

    fn gone(&self) -> String {
        let why = self.why.as_deref().unwrap_or("no reason is known");
        // Most reasons begin with the server.
        let why = why.strip_prefix(&format!("{}: ", self.server)).unwrap_or(why);
        format!("{} fails: {}", self.name(), why.escape_debug())
    }

    fn recovery_line(&self, after_ms: u64) -> String {
        // Checks are a second apart.
        format!("{} answers again, after {}", self.name(), DurationMs(after_ms / 1000 * 1000))
    }
}

/// Servers whose failure was logged.
#[derive(Debug, Default)]
struct Outages {
    /// The servers by origin and name, with the start of the outage in milliseconds of the
    /// monotonic clock.
    logged: BTreeMap<(String, String), u64>,
    /// The start of the minute, and its lines.
    minute: (u64, u32),
}

impl Outages {
    /// Returns the lines to log.
    fn look(&mut self, now_ms: u64, servers: impl Iterator<Item = ServerCondition>) -> Vec<String> {
        if now_ms.saturating_sub(self.minute.0) >= MINUTE_MS {
            self.minute = (now_ms, 0);
        }
        let mut lines = Vec::new();
        let mut failing = BTreeMap::new();
        for server in servers {
            let key = (server.origin.clone(), server.server.clone());
            let since = self.logged.remove(&key);
            let has_room = self.minute.1 + (lines.len() as u32) < LINES_MAX;
            let since = match since {
                None if server.fails() && has_room => {
                    lines.push(server.gone());
                    Some(now_ms)
                }
                Some(since) if server.failures == 0 && has_room => {
                    lines.push(server.recovery_line(now_ms.saturating_sub(since)));
                    None
                }
                since => since,
            };
            failing.extend(since.map(|since| (key, since)));
        }
        self.minute.1 += lines.len() as u32;
        // Servers that a reload has removed are dropped.
        self.logged = failing;
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(name: &str, failures: u32) -> ServerCondition {
        let why = (failures > 0).then(|| format!("{name}: cannot connect: refused"));
        ServerCondition {
            origin: "app".to_owned(),
            server: name.to_owned(),
            failures,
            why,
            ..ServerCondition::default()
        }
    }

    fn look(outages: &mut Outages, now_ms: u64, servers: &[ServerCondition]) -> Vec<String> {
        outages.look(now_ms, servers.iter().cloned())
    }

    #[test]
    fn a_server_is_logged_once_when_it_goes_and_once_when_it_is_back() {
        let mut outages = Outages::default();
        assert_eq!(look(&mut outages, 0, &[server("a:80", 2)]), [""; 0]);
        let gone = "origin app, server a:80 fails: cannot connect: refused";
        assert_eq!(look(&mut outages, 1_000, &[server("a:80", 3)]), [gone]);
        assert_eq!(look(&mut outages, 2_000, &[server("a:80", 900)]), [""; 0]);
        // A smaller count of failures is no response.
        assert_eq!(look(&mut outages, 3_000, &[server("a:80", 1)]), [""; 0]);
        let back = "origin app, server a:80 answers again, after 12s";
        assert_eq!(look(&mut outages, 13_100, &[server("a:80", 0)]), [back]);
        assert_eq!(look(&mut outages, 14_000, &[server("a:80", 0)]), [""; 0]);
    }

    #[test]
    fn one_failure_is_enough_where_it_ejects() {
        let mut outages = Outages::default();
        let ejected = ServerCondition { is_ejected: true, ..server("a:80", 1) };
        assert_eq!(look(&mut outages, 0, &[ejected]).len(), 1);
    }

    #[test]
    fn the_origin_of_the_command_line_is_named_once_and_reasons_forge_no_line() {
        let origin = "http://a:80".to_owned();
        let why = Some("bad\nlarder: forged".to_owned());
        let own = ServerCondition { origin, why, ..server("a:80", 3) };
        let mut outages = Outages::default();
        let line = "origin http://a:80 fails: bad\\nlarder: forged";
        assert_eq!(look(&mut outages, 0, &[own]), [line]);
    }

    #[test]
    fn lines_are_bounded_and_later_ones_tell_what_still_is_so() {
        let all =
            |failures| (0..50).map(|n| server(&format!("{n}:80"), failures)).collect::<Vec<_>>();
        let mut outages = Outages::default();
        assert_eq!(look(&mut outages, 0, &all(3)).len(), LINES_MAX as usize);
        assert_eq!(look(&mut outages, 1_000, &all(3)), [""; 0]);
        assert_eq!(look(&mut outages, MINUTE_MS, &all(3)).len(), LINES_MAX as usize);
        // A server whose failure was never logged is not logged as back.
        let logged = outages.logged.len();
        assert_eq!(look(&mut outages, 2 * MINUTE_MS, &all(0)).len(), LINES_MAX as usize);
        assert_eq!(look(&mut outages, 3 * MINUTE_MS, &all(0)).len(), logged - LINES_MAX as usize);
        assert_eq!(look(&mut outages, 4 * MINUTE_MS, &all(0)), [""; 0]);
    }

    #[test]
    fn a_server_that_is_gone_from_the_configuration_is_forgotten() {
        let mut outages = Outages::default();
        look(&mut outages, 0, &[server("a:80", 3)]);
        assert_eq!(look(&mut outages, 1_000, &[]), [""; 0]);
        assert_eq!(look(&mut outages, 2_000, &[server("a:80", 0)]), [""; 0]);
    }
}
