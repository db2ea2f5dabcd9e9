//! Storages by name: each response belongs to one, and programs choose, see and change it. One
//! memory is behind all of them. What is chosen decides what goes to the disk below that.

use std::sync::Arc;

use cache::DemotionPolicy;
use vcl::ctx::BerespState;
use vcl::params::Param;

use crate::state::vcl::{StorageRotation, VclSettings};

/// The storage of what is not kept, or not for long.
const TRANSIENT: &str = "Transient";

/// The storage of what passes through unstored.
pub(crate) fn transient(settings: &VclSettings) -> Option<&Arc<str>> {
    settings.storages.iter().find(|name| ***name == *TRANSIENT)
}

/// Where a response goes that its program has not seen yet: the storages take turns, and what is
/// for one request only is `Transient`'s.
pub(crate) fn first(
    settings: &VclSettings,
    turns: &StorageRotation,
    private: bool,
) -> Option<Arc<str>> {
    let all = &settings.storages;
    let wanted = |name: &&Arc<str>| (***name == *TRANSIENT) == private;
    let turn = match private || all.len() <= 2 {
        true => 0,
        false => turns.next(),
    };
    let among = all.iter().filter(wanted).count().max(1);
    all.iter().filter(wanted).nth(turn % among).cloned()
}

/// The storage where a response ends up: what its program has chosen, or `Transient` for what is
/// kept for less than the parameter `shortlived`, or not for others.
pub(crate) fn place<'n>(settings: &VclSettings, state: &'n BerespState) -> &'n str {
    match &state.storage {
        Some(name) if !(state.uncacheable || is_short(settings, state)) => name,
        _ => TRANSIENT,
    }
}

/// The storage of this name, if there still is one.
pub(crate) fn named<'l>(settings: &'l VclSettings, name: &[u8]) -> Option<&'l Arc<str>> {
    settings.storages.iter().find(|own| own.as_bytes() == name)
}

/// The fate of a response in the storage of this name when it leaves memory. Storages take
/// turns: one of memory is no reason to lose what no program has put there.
pub(crate) fn sinks(settings: &VclSettings, name: &str) -> DemotionPolicy {
    let is_disk = || settings.disk_storages.iter().any(|own| **own == *name);
    match name {
        TRANSIENT => DemotionPolicy::Never,
        _ if is_disk() => DemotionPolicy::Always,
        _ => DemotionPolicy::ByMerit,
    }
}

/// Returns true if a response is kept for less than the parameter `shortlived`.
pub(crate) fn is_short(settings: &VclSettings, state: &BerespState) -> bool {
    let kept = state.ttl + state.grace + state.keep;
    kept < settings.params.seconds(Param::Shortlived)
}
