//! Sizing: memory and cores that the daemon may use, as limited by control groups.
//!
//! Everything but [`Machine::read`] is a pure function of file contents.

use std::fs;

use crate::model::MemorySize;

/// Memory and cores of the machine, within the limits of its control group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Bytes of memory: the smallest of RAM and every limit on the way to the root control group.
    pub memory_bytes: u64,
    /// Cores: those in the affinity mask, or the control group's quota, rounded up. At least one.
    pub cpus: usize,
}

/// Contents of files about the machine; `None` for a missing file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MachineFiles {
    /// `/proc/meminfo`.
    pub meminfo: Option<String>,
    /// `memory.max` (v2) or `memory.limit_in_bytes` (v1) of the control group and its ancestors.
    pub memory_limits: Vec<String>,
    /// `cpu.max` (v2) of the control group and its ancestors.
    pub cpu_max: Vec<String>,
    /// `cpu.cfs_quota_us` and `cpu.cfs_period_us` (v1) of the control group and its ancestors.
    pub cfs: Vec<(String, String)>,
    /// Cores in the process's affinity mask.
    pub cpus: usize,
}

/// The assumed RAM if it is unknown.
const UNKNOWN_RAM: u64 = 1 << 30;

impl Machine {
    /// Derives the limits from `files`.
    pub fn from_files(files: &MachineFiles) -> Self {
        let ram = files.meminfo.as_deref().and_then(meminfo_total).unwrap_or(UNKNOWN_RAM);
        // `max` (v2) does not parse, and v1's huge number is larger than RAM: no limit.
        let limits = files.memory_limits.iter().filter_map(|l| l.trim().parse::<u64>().ok());
        let memory_bytes = limits.fold(ram, u64::min);
        let v2 = files.cpu_max.iter().filter_map(|text| {
            let (quota, period) = text.trim().split_once(' ')?;
            quota_cpus(quota, period)
        });
        let v1 = files.cfs.iter().filter_map(|(quota, period)| quota_cpus(quota, period));
        let cpus = v2.chain(v1).fold(files.cpus, usize::min).max(1);
        Self { memory_bytes, cpus }
    }

    /// Reads the system's files.
    pub fn read() -> Self {
        Self::from_files(&MachineFiles::read())
    }

    /// The bytes of `size` on this machine.
    pub fn memory_bytes(&self, size: MemorySize) -> u64 {
        match size {
            MemorySize::Auto => self.memory_bytes / 2,
            MemorySize::Bytes(bytes) => bytes,
            MemorySize::Percent(percent) => {
                (u128::from(self.memory_bytes) * u128::from(percent) / 100) as u64
            }
        }
    }

    /// Bytes to reserve for the cache within `size`: nine tenths of it. The rest is for the
    /// allocator's fragmentation and for buffers of requests, so that the process takes about
    /// `size`.
    pub fn cache_bytes(&self, size: MemorySize) -> u64 {
        let bytes = self.memory_bytes(size);
        bytes - bytes / 10
    }

    /// Bytes for the index of the disk if 0 is configured: an eighth of the memory. That suffices
    /// for some 40 million responses on a machine with 16 GiB.
    pub fn disk_index_bytes(&self, configured: u64) -> u64 {
        const LEAST: u64 = 64 << 20;
        if configured == 0 { (self.memory_bytes / 8).max(LEAST) } else { configured }
    }

    /// The default number of core threads.
    pub fn default_workers(&self) -> usize {
        self.cpus
    }
}

fn meminfo_total(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim_end().parse().ok()?;
    kib.checked_mul(1024)
}

/// Cores of a quota of `quota` in each `period` microseconds; `None` without a quota (`max` in v2,
/// -1 in v1).
fn quota_cpus(quota: &str, period: &str) -> Option<usize> {
    let quota: u64 = quota.trim().parse().ok()?;
    let period: u64 = period.trim().parse().ok().filter(|p| *p > 0)?;
    usize::try_from(quota.div_ceil(period)).ok()
}

/// Nested control groups that are read; systemd and container runtimes nest fewer.
const DEPTH: usize = 32;

impl MachineFiles {
    /// Reads the files.
    pub fn read() -> Self {
        let mut files = Self {
            meminfo: fs::read_to_string("/proc/meminfo").ok(),
            // `available_parallelism` of std rounds the quota down.
            cpus: rustix::thread::sched_getaffinity(None).map_or(1, |set| set.count() as usize),
            ..Self::default()
        };
        let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        for (root, path) in groups.lines().filter_map(hierarchy) {
            for dir in upwards(&root, path) {
                let read = |file: &str| fs::read_to_string(format!("{dir}/{file}")).ok();
                files
                    .memory_limits
                    .extend(read("memory.max").or_else(|| read("memory.limit_in_bytes")));
                files.cpu_max.extend(read("cpu.max"));
                files.cfs.extend(read("cpu.cfs_quota_us").zip(read("cpu.cfs_period_us")));
            }
        }
        files
    }
}

/// Mount point and path of a line of `/proc/self/cgroup` that limits memory or processors:
/// `0::/path` (v2), `4:memory:/path` or `3:cpu,cpuacct:/path` (v1).
fn hierarchy(line: &str) -> Option<(String, &str)> {
    let mut parts = line.splitn(3, ':');
    let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
    let known = ["memory", "cpu"];
    match controllers {
        "" => Some(("/sys/fs/cgroup".to_owned(), path)),
        _ => {
            let controller = controllers.split(',').find(|c| known.contains(c))?;
            Some((format!("/sys/fs/cgroup/{controller}"), path))
        }
    }
}

/// The folder of `path` under `root` with its ancestors up to `root`: the limits of all of them
/// hold. In a container the path may be the host's; then only the root exists, and it is the
/// container's.
fn upwards(root: &str, path: &str) -> Vec<String> {
    let mut path = path.trim_end_matches('/');
    let mut dirs = Vec::new();
    while dirs.len() < DEPTH && !path.is_empty() {
        dirs.push(format!("{root}{path}"));
        path = path.rfind('/').map_or("", |at| &path[..at]);
    }
    dirs.push(root.to_owned());
    dirs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(meminfo_kib: u64, cpus: usize) -> MachineFiles {
        let meminfo = format!("MemTotal:       {meminfo_kib} kB\nMemFree: 1 kB\n");
        MachineFiles { meminfo: Some(meminfo), cpus, ..MachineFiles::default() }
    }

    #[test]
    fn without_control_groups_the_machine_is_ours() {
        let machine = Machine::from_files(&files(4 << 20, 8));
        assert_eq!(machine, Machine { memory_bytes: 4 << 30, cpus: 8 });
        assert_eq!(machine.memory_bytes(MemorySize::Auto), 2 << 30);
        assert_eq!(machine.memory_bytes(MemorySize::Percent(25)), 1 << 30);
        assert_eq!(machine.memory_bytes(MemorySize::Bytes(7)), 7);
        assert_eq!(machine.cache_bytes(MemorySize::Bytes(1_000)), 900);
        assert_eq!(machine.default_workers(), 8);
    }

    #[test]
    fn the_tightest_memory_limit_holds() {
        let mut files = files(4 << 20, 1);
        files.memory_limits = vec!["max\n".into(), "536870912\n".into(), "1073741824\n".into()];
        assert_eq!(Machine::from_files(&files).memory_bytes, 512 << 20);
        files.memory_limits = vec!["9223372036854771712\n".into()];
        assert_eq!(Machine::from_files(&files).memory_bytes, 4 << 30);
    }

    #[test]
    fn a_processor_quota_is_rounded_up() {
        for (quota, cpus) in
            [("max 100000", 8), ("150000 100000", 2), ("10000 100000", 1), ("x", 8)]
        {
            let files = MachineFiles { cpu_max: vec![quota.into()], ..files(1, 8) };
            assert_eq!(Machine::from_files(&files).cpus, cpus, "{quota}");
        }
        for (quota, cpus) in [("-1\n", 8), ("300000\n", 3), ("0", 1)] {
            let files =
                MachineFiles { cfs: vec![(quota.into(), "100000\n".into())], ..files(1, 8) };
            assert_eq!(Machine::from_files(&files).cpus, cpus, "{quota}");
        }
    }

    #[test]
    fn control_groups_are_found_in_both_versions() {
        assert_eq!(hierarchy("0::/a/b"), Some(("/sys/fs/cgroup".into(), "/a/b")));
        assert_eq!(hierarchy("4:memory:/a"), Some(("/sys/fs/cgroup/memory".into(), "/a")));
        assert_eq!(hierarchy("3:cpu,cpuacct:/"), Some(("/sys/fs/cgroup/cpu".into(), "/")));
        assert_eq!(hierarchy("2:pids:/a"), None);
        assert_eq!(hierarchy("nonsense"), None);
        assert_eq!(upwards("/r", "/a/b"), ["/r/a/b", "/r/a", "/r"]);
        assert_eq!(upwards("/r", "/"), ["/r"]);
    }

    #[test]
    fn this_machine_has_something() {
        let machine = Machine::read();
        assert!(machine.cpus >= 1 && machine.memory_bytes > 1 << 20);
    }
}
