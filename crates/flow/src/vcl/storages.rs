//! Storages by name: each response belongs to one, which programs set and read. All share one
//! memory; the choice decides about the disk below.

use std::sync::Arc;

use cache::DemotionPolicy;
use vcl::ctx::BerespState;
use vcl::params::Param;

use crate::state::vcl::{StorageRotation, VclSettings};

/// The storage of transient responses.
const TRANSIENT: &str = "Transient";

/// The storage of passing responses.
pub(crate) fn transient(settings: &VclSettings) -> Option<&Arc<str>> {
    settings.storages.iter().find(|name| ***name == *TRANSIENT)
}

/// The storage of a response before its program runs: storages rotate, and a response for one
/// request is in `Transient`.
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

/// The final storage of a response: the program's choice, or `Transient` if it is kept for less
/// than the parameter `shortlived`, or not shared.
pub(crate) fn place<'n>(settings: &VclSettings, state: &'n BerespState) -> &'n str {
    match &state.storage {
        Some(name) if !(state.uncacheable || is_short(settings, state)) => name,
        _ => TRANSIENT,
    }
}

/// The storage of this name, if it still exists.
pub(crate) fn named<'l>(settings: &'l VclSettings, name: &[u8]) -> Option<&'l Arc<str>> {
    settings.storages.iter().find(|own| own.as_bytes() == name)
}

/// The demotion policy of a response in the storage of this name. As storages rotate, a memory
/// storage keeps a response from the disk only if a program chose it.
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
