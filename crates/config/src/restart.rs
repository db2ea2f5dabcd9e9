//! Settings that a reload cannot change: they concern things that the daemon opens or makes once,
//! when it starts.

use crate::model::{ClusterConfig, Config, DiskVolume};

impl Config {
    /// The settings in which `next` differs from this configuration, with which the daemon was
    /// started, although only another start can change them; as they are called in the file.
    pub fn fixed_changes(&self, next: &Self) -> Vec<&'static str> {
        let disk = |config: &Self| {
            config.disk.as_ref().map(|disk| {
                let volume = |own: &DiskVolume| (own.path.clone(), own.bytes, own.weight);
                let volumes: Vec<_> = disk.volumes.iter().map(volume).collect();
                (volumes, disk.admission, disk.durable_purges, disk.erase)
            })
        };
        // What stands elsewhere in the file is the same.
        let cluster = |config: &Self| config.cluster.as_ref().map(ClusterConfig::placeless);
        let cli = |config: &Self| config.varnish_cli.as_ref().map(|cli| cli.listen.clone());
        let metrics = |config: &Self| config.metrics.as_ref().map(|own| own.listen.clone());
        // What is closed by a reload that leaves its table out may come back by another.
        let cli_moved = cli(next).is_some() && cli(self) != cli(next);
        [
            ("listen", self.listen != next.listen),
            ("workers", self.workers != next.workers),
            ("[disk]", disk(self) != disk(next)),
            ("[run]", self.run != next.run),
            ("[admin]", self.admin != next.admin),
            ("[health] listen", self.health.listen != next.health.listen),
            ("[metrics] listen", metrics(self) != metrics(next)),
            ("[varnish_cli] listen", cli_moved),
            ("[htcp]", self.htcp != next.htcp),
            ("[cluster]", cluster(self) != cluster(next)),
            // Records in the ring have what traces are made of, or have it not.
            ("[tracing]", self.tracing.is_none() && next.tracing.is_some()),
            ("access_log", self.access_log != next.access_log),
            ("error_log", self.error_log.target != next.error_log.target),
            ("log_ring", self.log_ring != next.log_ring),
            ("[limits] cluster_queue", self.limits.cluster_queue != next.limits.cluster_queue),
            ("[limits] cluster_wait", self.limits.cluster_wait != next.limits.cluster_wait),
            ("[limits] cluster_lease", self.limits.cluster_lease != next.limits.cluster_lease),
            (
                "[limits] cluster_secrets",
                self.limits.cluster_secrets != next.limits.cluster_secrets,
            ),
            (
                "[limits] cluster_secret_bytes",
                self.limits.cluster_secret_bytes != next.limits.cluster_secret_bytes,
            ),
            (
                "[limits] cluster_configuration_bytes",
                self.limits.cluster_configuration_bytes != next.limits.cluster_configuration_bytes,
            ),
            (
                "[limits] disk_queue_bytes",
                self.limits.disk_queue_bytes != next.limits.disk_queue_bytes,
            ),
            ("[limits] disk_retry", self.limits.disk_retry != next.limits.disk_retry),
            (
                "[limits] blocking_threads",
                self.limits.blocking_threads != next.limits.blocking_threads,
            ),
        ]
        .into_iter()
        .filter_map(|(name, differs)| differs.then_some(name))
        .collect()
    }
}
