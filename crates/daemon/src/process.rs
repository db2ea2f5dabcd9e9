//! The process, as the kernel accounts for it, under the names of Prometheus' own libraries.

use std::fs;

use rustix::param::{clock_ticks_per_second, page_size};
use rustix::process::{Resource, getrlimit};
use rustix::time::{ClockId, clock_gettime};

/// A figure: name, kind, description and value.
pub(crate) type ProcessFigure = (&'static str, &'static str, &'static str, String);

/// Every available figure.
pub(crate) fn figures() -> Vec<ProcessFigure> {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let cpu_us = time.tv_sec.unsigned_abs() * 1_000_000 + time.tv_nsec.unsigned_abs() / 1000;
    let about = "CPU time, user and system.";
    let mut all = vec![("process_cpu_seconds_total", "counter", about, decimal(cpu_us, 6))];
    let mut gauge = |name, about, value: Option<String>| {
        all.extend(value.map(|value| (name, "gauge", about, value)));
    };
    let stat = fs::read_to_string("/proc/self/stat").ok();
    let stat = stat.as_deref().and_then(Stat::of);
    let boot_secs = fs::read_to_string("/proc/stat").ok().and_then(|text| boot_secs(&text));
    let start = stat.as_ref().zip(boot_secs);
    let start = start.map(|(stat, boot)| stat.start(boot, clock_ticks_per_second()));
    gauge("process_start_time_seconds", "The start, in seconds since 1970.", start);
    let bytes = |pages: u64| (pages * page_size() as u64).to_string();
    let about = "Resident memory.";
    gauge("process_resident_memory_bytes", about, stat.as_ref().map(|own| bytes(own.pages)));
    let about = "Memory that is addressed, whether it is there or not.";
    gauge("process_virtual_memory_bytes", about, stat.as_ref().map(|own| own.bytes.to_string()));
    gauge("process_threads", "Threads.", stat.as_ref().map(|own| own.threads.to_string()));
    let open = open_descriptors().map(|open| open.to_string());
    gauge("process_open_fds", "File descriptors that are open.", open);
    let most = getrlimit(Resource::Nofile).current.map(|most| most.to_string());
    gauge("process_max_fds", "File descriptors that may be open.", most);
    all
}

/// Numbers of `/proc/self/stat` (proc_pid_stat(5)).
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    threads: u64,
    /// The start, in ticks since the machine's boot.
    start_ticks: u64,
    /// Bytes of virtual memory.
    bytes: u64,
    /// Resident pages.
    pages: u64,
}

impl Stat {
    fn of(text: &str) -> Option<Self> {
        // The name may contain spaces and parentheses. The third field follows it.
        let (_, behind) = text.rsplit_once(')')?;
        let fields: Vec<_> = behind.split_ascii_whitespace().collect();
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        Some(Self {
            threads: field(20)?,
            start_ticks: field(22)?,
            bytes: field(23)?,
            pages: field(24)?,
        })
    }

    /// The start in seconds since 1970, with hundredths.
    fn start(&self, boot_secs: u64, ticks_per_second: u64) -> String {
        let hundredths = self.start_ticks * 100 / ticks_per_second.max(1);
        decimal(boot_secs * 100 + hundredths, 2)
    }
}

/// The machine's start in `/proc/stat`, in seconds since 1970.
fn boot_secs(text: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()
}

/// Open descriptors. Kernels before 6.2 do not report the number of names in the folder.
fn open_descriptors() -> Option<u64> {
    const FOLDER: &str = "/proc/self/fd";
    match fs::metadata(FOLDER).ok()?.len() {
        // The descriptor of this listing does not count.
        0 => Some((fs::read_dir(FOLDER).ok()?.count() as u64).saturating_sub(1)),
        told => Some(told),
    }
}

/// `value` with so many decimal places, without trailing zeros.
pub(crate) fn decimal(value: u64, places: u32) -> String {
    let unit = 10_u64.pow(places);
    let text = format!("{}.{:0places$}", value / unit, value % unit, places = places as usize);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "17 (a) b (c) S 1 17 17 0 -1 4194560 900 0 5 0 12 34 0 0 20 0 7 0 123456 \
                        99328000 512 18446744073709551615 1 1 0 0 0 0 0 4096 0 0 0 0 17 1 0 0 0\n";

    #[test]
    fn numbers_stand_behind_a_name_of_any_kind() {
        let stat = Stat { threads: 7, start_ticks: 123_456, bytes: 99_328_000, pages: 512 };
        assert_eq!(Stat::of(STAT), Some(stat));
        for bad in ["", "17 (a) S 1", "17 (a) S 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 x 0 1 2 3"] {
            assert_eq!(Stat::of(bad), None, "{bad}");
        }
    }

    #[test]
    fn the_start_counts_from_the_machines() {
        let stat = Stat::of(STAT).expect("numbers");
        assert_eq!(boot_secs("cpu 1 2\nbtime 1700000000\nprocesses 9\n"), Some(1_700_000_000));
        assert_eq!(boot_secs("cpu 1 2\n"), None);
        assert_eq!(stat.start(1_700_000_000, 100), "1700001234.56");
    }

    #[test]
    fn this_process_has_every_figure() {
        let all = figures();
        assert_eq!(all.len(), 7);
        for (name, _, about, value) in all {
            assert!(value.parse::<f64>().is_ok_and(|value| value >= 0.0), "{name} {value}");
            assert!(name.starts_with("process_") && about.ends_with('.'), "{name}");
        }
    }

    #[test]
    fn needless_zeros_are_left_out() {
        let all = [decimal(0, 6), decimal(10_000_000, 6), decimal(1_500_000, 6), decimal(105, 2)];
        assert_eq!(all, ["0", "10", "1.5", "1.05"]);
    }
}
