//! Volumes of the disk cache, as operators see them.

use disk::{Reason, Stats, VolumeCondition};
use serde_json::json;

use crate::state::Daemon;

/// A volume, as operators see it.
#[derive(Clone, Debug)]
pub(crate) struct Volume {
    pub(crate) path: String,
    pub(crate) condition: VolumeCondition,
    pub(crate) stats: Stats,
    /// The reason why it could not be opened.
    pub(crate) absence: Option<String>,
}

impl Volume {
    pub(crate) fn is_in(&self) -> bool {
        self.condition == VolumeCondition::In
    }

    /// The state, as text.
    pub(crate) fn state(&self) -> String {
        match self.condition {
            VolumeCondition::In => "in use".to_owned(),
            VolumeCondition::Pausing(reason) => format!("pauses: {}", reason.about()),
            VolumeCondition::Out(reason) => {
                format!("out of use: {}", self.absence.as_deref().unwrap_or_else(|| reason.about()))
            }
        }
    }

    /// State and figures, as JSON.
    pub(crate) fn json(&self) -> serde_json::Value {
        let mut map = serde_json::Map::new();
        map.insert("state".to_owned(), self.state().into());
        for (name, _, value) in self.stats.gauges().chain(self.stats.counted()) {
            map.insert(name.to_owned(), value.into());
        }
        map.into()
    }

    /// The row for a dashboard. `rate` gives the growth per second of one of the counters.
    pub(crate) fn row(&self, rate: impl Fn(fn(&Stats) -> u64) -> f64) -> serde_json::Value {
        let stats = &self.stats;
        json!({
            "path": self.path,
            "state": self.state(),
            "is_in": self.is_in(),
            "records": stats.records,
            "live_bytes": stats.live_bytes,
            "dead_bytes": stats.dead_bytes,
            "bytes": stats.bytes,
            "queued_bytes": stats.queued_bytes,
            "damaged": stats.damaged(),
            "errors": stats.errors(),
            "rates": {
                "reads": rate(|stats| stats.reads),
                "read_bytes": rate(|stats| stats.read_bytes),
                "written_bytes": rate(|stats| stats.written_bytes),
            },
        })
    }
}

/// The volumes of the disk cache.
pub(crate) fn all(daemon: &Daemon) -> Vec<Volume> {
    let Some(disk) = daemon.shared.cache.lower().disk() else { return Vec::new() };
    let paths = daemon.volumes();
    let volume = |(number, path)| {
        let known = disk.volume_stats(number);
        // No volume could be opened.
        let none = || (VolumeCondition::Out(Reason::Start), Stats::default());
        let (condition, stats) = known.unwrap_or_else(none);
        Volume { path, condition, stats, absence: disk.absence(number) }
    };
    paths.into_iter().enumerate().map(volume).collect()
}
