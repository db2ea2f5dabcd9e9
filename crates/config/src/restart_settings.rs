//! Restart settings: those that a reload cannot change, since they concern things that the daemon
//! opens or creates once.

use base::limits::{self, LimitSpec};

use crate::model::Config;
use crate::parse::TOP;

impl Config {
    /// The names of settings that differ between this configuration, with which the daemon was
    /// started, and `next`, and that take effect at a restart only.
    pub fn fixed_changes(&self, next: &Self) -> Vec<&'static str> {
        let restarts = TOP
            .all()
            .into_iter()
            .flat_map(|section| (section.keys)())
            .filter_map(|key| key.restart);
        let settings = restarts.filter(|own| (own.differs)(self, next)).map(|own| own.name);
        let differs = |spec: &&LimitSpec| {
            spec.takes_restart && self.limits.value(spec.limit) != next.limits.value(spec.limit)
        };
        let limits = limits::TABLE.iter().filter(differs);
        settings.chain(limits.map(|spec| spec.setting)).collect()
    }
}
