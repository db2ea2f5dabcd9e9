//! Readiness, as kubelets and balancers ask for it, and the check for sites that cannot be served.

use std::sync::Arc;
use std::time::{Duration, Instant};

use flow::Readiness;

use crate::state::Daemon;
use crate::volumes;

/// The shortest interval between two checks.
const LOOK: Duration = Duration::from_secs(1);

/// The divisor of the time that checks may take: each goes through all stored objects.
const SHARE: u32 = 20;

/// Sites that are named; the rest are counted.
const NAMED_MAX: usize = 20;

/// The reasons why the daemon is not ready, one in a line; empty if it is.
pub(crate) fn reasons(daemon: &Daemon) -> String {
    let mut text = String::new();
    for reason in daemon.shared.invalidator.trust.reasons(rt::now().mono_ms) {
        let unserved = daemon.unserved.lock();
        match reason {
            Readiness::Unserved if !unserved.is_empty() => text.push_str(&of_sites(&unserved)),
            other => text.push_str(other.why()),
        }
    }
    text
}

/// Volumes of the disk cache that are out of use, and missing ports, one in a line: the daemon is
/// ready without them.
pub(crate) fn without(daemon: &Daemon) -> String {
    let volumes = volumes::all(daemon);
    let out = volumes.iter().filter(|volume| !volume.is_in());
    let out = out
        .map(|volume| format!("without the disk cache in {}: {}\n", volume.path, volume.state()));
    let missing = daemon.ports.reasons();
    out.chain(missing.iter().map(|lack| format!("{lack}\n"))).collect()
}

/// Checks for sites that cannot be served, if configured, until it is dropped.
pub(crate) async fn run(daemon: Arc<Daemon>) {
    loop {
        let began = Instant::now();
        let unserved = match daemon.with_config(|config| config.health.tells_of_origins) {
            true => flow::unserved_sites(&daemon.shared.invalidator, rt::now().mono_ms).await,
            false => Vec::new(),
        };
        let is_unserved = !unserved.is_empty();
        let before = std::mem::replace(&mut *daemon.unserved.lock(), unserved.clone());
        daemon.shared.invalidator.trust.set_unserved(is_unserved);
        match (before.is_empty(), is_unserved) {
            (true, true) => base::tell!(Warn, "larder: not ready: {}", sites(&unserved)),
            (false, false) => {
                base::tell!(Notice, "larder: ready: every site can be served");
            }
            _ => {}
        }
        rt::time::sleep(LOOK.max(began.elapsed() * SHARE)).await;
    }
}

/// One line for each of these sites.
fn of_sites(names: &[String]) -> String {
    let line = |name| format!("origins down, nothing stored: {name}\n");
    let mut lines: String = names.iter().take(NAMED_MAX).map(line).collect();
    if names.len() > NAMED_MAX {
        lines.push_str(&line(&format!("{} more", names.len() - NAMED_MAX)));
    }
    lines
}

/// These sites in one line.
fn sites(names: &[String]) -> String {
    of_sites(names).lines().collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sites_are_named_one_in_a_line_and_many_of_them_counted() {
        let names = |count: usize| (0..count).map(|n| format!("{n}.test")).collect::<Vec<_>>();
        let two = "origins down, nothing stored: 0.test\norigins down, nothing stored: 1.test\n";
        assert_eq!(of_sites(&names(2)), two);
        let many = of_sites(&names(NAMED_MAX + 7));
        assert_eq!(many.lines().count(), NAMED_MAX + 1);
        assert!(many.ends_with("stored: 7 more\n"), "{many}");
        assert_eq!(sites(&names(2)), two.trim_end().replace('\n', "; "));
    }
}
