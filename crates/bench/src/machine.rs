//! The machine: its description, and the resources that a measurement used.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};

use crate::metrics::ServerMetrics;
use crate::result::{Round, Usage};
use crate::settings::{Tls, UsageSource};
use crate::target::TargetServer;

/// Descriptors that this process needs besides those of connections.
const DESCRIPTORS_BESIDE: usize = 100;

/// The largest number of connections that this process may open.
pub fn connections_possible() -> usize {
    let most = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
    usize::try_from(most).unwrap_or(usize::MAX).saturating_sub(DESCRIPTORS_BESIDE)
}

/// Raises the limit of descriptors for `connections` connections.
pub(crate) fn raise_descriptors(connections: usize) -> Result<(), String> {
    let wanted = (connections + DESCRIPTORS_BESIDE) as u64;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_none_or(|current| current >= wanted) {
        return Ok(());
    }
    if connections > connections_possible() {
        return Err(format!(
            "{connections} connections need {wanted} descriptors, and this process may have {}: \
             raise its limit (`ulimit -n {wanted}`)",
            maximum.unwrap_or_default(),
        ));
    }
    setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum })
        .map_err(|error| format!("cannot raise the limit of descriptors to {wanted}: {error}"))
}

/// Describes the machine for a report.
pub fn describe() -> BTreeMap<String, String> {
    let mut facts = BTreeMap::new();
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let field = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.starts_with(name))?;
        line.split_once(':').map(|(_, value)| value.trim().to_owned())
    };
    let cpus = read("/proc/cpuinfo");
    if let Some(model) = field(&cpus, "model name").or_else(|| field(&cpus, "Model")) {
        facts.insert("processor".to_owned(), model);
    }
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    facts.insert("cores".to_owned(), cores.to_string());
    if let Some(kib) = field(&read("/proc/meminfo"), "MemTotal")
        && let Some(kib) = kib.split_whitespace().next().and_then(|kib| kib.parse::<u64>().ok())
    {
        facts.insert("memory".to_owned(), format!("{} MiB", kib >> 10));
    }
    let kernel = read("/proc/sys/kernel/osrelease").trim().to_owned();
    if !kernel.is_empty() {
        facts.insert("kernel".to_owned(), kernel);
    }
    facts
}

/// The machine's counters at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Meter {
    own_cpu: Duration,
    /// Processor ticks: stolen, idle, all.
    ticks: (u64, u64, u64),
    servers: BTreeMap<String, Usage>,
    metrics: Vec<ServerMetrics>,
}

impl Meter {
    /// Reads all counters. A counter that cannot be read is 0.
    pub(crate) fn read(observed: &[(String, UsageSource)]) -> Self {
        let time = clock_gettime(ClockId::ProcessCPUTime);
        let own_cpu = Duration::new(
            u64::try_from(time.tv_sec).unwrap_or_default(),
            u32::try_from(time.tv_nsec).unwrap_or_default(),
        );
        let mut meter = Self { own_cpu, ticks: ticks(), ..Self::default() };
        for (name, one) in observed {
            let usage = match one {
                UsageSource::Process(pid) => process_usage(*pid),
                UsageSource::Group(folder) => group_usage(folder),
                UsageSource::Metrics { target, path, tls, counters_only } => {
                    let metrics = metrics(target, path, tls).unwrap_or_default();
                    let usage = metrics.usage().filter(|_| !counters_only);
                    meter.metrics.push(metrics);
                    usage
                }
            };
            meter.servers.extend(usage.map(|usage| (name.clone(), usage)));
        }
        meter
    }

    /// Writes the use of resources since `before` into `round`.
    pub(crate) fn since(&self, before: &Self, round: &mut Round) {
        let own = self.own_cpu.saturating_sub(before.own_cpu);
        round.generator_cpu_us = u64::try_from(own.as_micros()).unwrap_or(u64::MAX);
        let all = self.ticks.2.saturating_sub(before.ticks.2).max(1) as f64;
        round.steal = self.ticks.0.saturating_sub(before.ticks.0) as f64 / all;
        round.idle = self.ticks.1.saturating_sub(before.ticks.1) as f64 / all;
        for (name, after) in &self.servers {
            let earlier = before.servers.get(name).map_or(0, |usage| usage.cpu_us);
            let cpu_us = after.cpu_us.saturating_sub(earlier);
            let usage = Usage { cpu_us, resident_bytes: after.resident_bytes };
            round.servers.insert(name.clone(), usage);
        }
        let of = |figure: fn(&ServerMetrics) -> Option<u64>| {
            let pairs = self.metrics.iter().zip(&before.metrics);
            let each = pairs.filter_map(|(now, then)| figure(now)?.checked_sub(figure(then)?));
            each.reduce(u64::saturating_add)
        };
        round.origin_requests = of(|metrics| metrics.origin_requests);
        // The server's own counters replace missing cache results of responses.
        if let (Some(hits), Some(requests)) =
            (of(|metrics| metrics.hits), of(|metrics| metrics.requests))
            && round.with_known_source() == 0
        {
            let requests = requests.min(round.completed);
            round.hits.insert("counters".to_owned(), hits.min(requests));
            round.source_unknown = round.completed - requests;
        }
    }
}

fn metrics(target: &TargetServer, path: &str, tls: &Tls) -> Result<ServerMetrics, String> {
    let page = crate::load::fetch_from(target, path, tls)?;
    Ok(ServerMetrics::read(&String::from_utf8_lossy(&page)))
}

/// Processor ticks: stolen, idle, all (proc(5), `/proc/stat`).
fn ticks() -> (u64, u64, u64) {
    let text = fs::read_to_string("/proc/stat").unwrap_or_default();
    let line = text.lines().next().unwrap_or_default();
    let each: Vec<u64> =
        line.split_whitespace().skip(1).filter_map(|ticks| ticks.parse().ok()).collect();
    let of = |at: usize| each.get(at).copied().unwrap_or_default();
    (of(7), of(3) + of(4), each.iter().take(8).sum())
}

/// CPU time and memory of a process and its descendants.
fn process_usage(pid: u32) -> Option<Usage> {
    let ticks_a_second = rustix::param::clock_ticks_per_second();
    let page = rustix::param::page_size() as u64;
    let mut usage = Usage { cpu_us: 0, resident_bytes: 0 };
    let mut queue = vec![pid];
    let mut found = false;
    while let Some(pid) = queue.pop() {
        let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else {
            continue;
        };
        found = true;
        let fields: Vec<&str> =
            stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let of = |at: usize| fields.get(at).and_then(|field| field.parse::<u64>().ok());
        // utime, stime and those of ended children; rss
        let ticks: u64 = (11..15).filter_map(of).sum();
        usage.cpu_us += ticks * 1_000_000 / ticks_a_second.max(1);
        usage.resident_bytes += of(21).unwrap_or_default() * page;
        queue.extend(children(pid));
    }
    found.then_some(usage)
}

/// Child processes of all threads of a process.
fn children(pid: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    tasks
        .filter_map(|task| fs::read_to_string(task.path().join("children")).ok())
        .flat_map(|text| {
            text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>()
        })
        .collect()
}

/// CPU time and memory of a control group (version 2).
fn group_usage(folder: &Path) -> Option<Usage> {
    let stat = fs::read_to_string(folder.join("cpu.stat")).ok()?;
    let cpu_us =
        stat.lines().find_map(|line| line.strip_prefix("usage_usec "))?.trim().parse().ok()?;
    let memory = fs::read_to_string(folder.join("memory.current")).unwrap_or_default();
    Some(Usage { cpu_us, resident_bytes: memory.trim().parse().unwrap_or_default() })
}

/// Checks that a source of usage can be read.
pub fn check(observed: &UsageSource) -> Result<(), String> {
    match observed {
        UsageSource::Process(pid) if process_usage(*pid).is_none() => {
            Err(format!("--pid {pid}: no such process"))
        }
        UsageSource::Group(folder) if group_usage(folder).is_none() => Err(format!(
            "--cgroup {}: no control group of version 2 (there is no cpu.stat)",
            folder.display()
        )),
        UsageSource::Metrics { target, path, tls, .. } => match metrics(target, path, tls) {
            Err(error) => Err(format!("metrics of {target}: {error}")),
            Ok(metrics) if metrics == ServerMetrics::default() => {
                Err(format!("metrics of {target}: {path} has no known metric"))
            }
            Ok(_) => Ok(()),
        },
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_of_this_process_is_seen() {
        let own = vec![("self".to_owned(), UsageSource::Process(std::process::id()))];
        let before = Meter::read(&own);
        let mut sum = 0_u64;
        while clock_gettime(ClockId::ProcessCPUTime).tv_nsec as u128
            + clock_gettime(ClockId::ProcessCPUTime).tv_sec as u128 * 1_000_000_000
            < before.own_cpu.as_nanos() + 50_000_000
        {
            sum = sum.wrapping_add(std::hint::black_box(1));
        }
        let mut round = Round::default();
        Meter::read(&own).since(&before, &mut round);
        assert!(round.generator_cpu_us >= 50_000, "{round:?} {sum}");
        assert!(round.servers.get("self").is_some_and(|usage| usage.resident_bytes > 1 << 20));
        assert!(check(&UsageSource::Process(0)).is_err());
        assert!(check(&UsageSource::Group("/nowhere".into())).is_err());
    }
}
