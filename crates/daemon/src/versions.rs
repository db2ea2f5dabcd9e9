//! Versions of the configuration that all nodes share: the one in force on this node, and the last
//! good one, which is kept for the next start.

use std::path::PathBuf;
use std::sync::Arc;

use cluster::Card;
use config::Config;
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::config_bundle::{self, ConfigBundle};

/// Bytes of a fault's reason on a node's card.
const FAULT_BYTES: usize = 400;

/// The shared configurations of a node.
pub(crate) struct Versions {
    folder: PathBuf,
    held: Mutex<VersionState>,
    /// Counts the orders to retry a refused version.
    again: watch::Sender<u64>,
}

#[derive(Default)]
struct VersionState {
    in_force: Option<Arc<ConfigBundle>>,
    /// The version; empty for none.
    version: String,
    good: Option<Arc<ConfigBundle>>,
    fault: Option<VersionFault>,
}

/// The reason why the version that the node is to run is not in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VersionFault {
    pub(crate) version: String,
    pub(crate) why: String,
    /// It was tried: another attempt would change nothing.
    pub(crate) was_tried: bool,
}

impl Versions {
    /// The versions of a node that started with the kept one; `None` if it shares none.
    pub(crate) fn begin(config: &Config) -> Option<Arc<Self>> {
        let cluster = config.cluster.as_ref().filter(|own| own.shares_configuration)?;
        let folder = config_bundle::folder(cluster.storage.as_deref());
        // A read failure was reported with the daemon's own configuration.
        let good = ConfigBundle::kept(&folder).ok().flatten().map(Arc::new);
        let version = good.as_ref().map(|own| own.version()).unwrap_or_default();
        let held = VersionState { in_force: good.clone(), version, good, fault: None };
        Some(Arc::new(Self { folder, held: Mutex::new(held), again: watch::Sender::new(0) }))
    }

    /// The bundle in force.
    pub(crate) fn in_force(&self) -> Option<Arc<ConfigBundle>> {
        self.held.lock().in_force.clone()
    }

    /// The version in force; empty for none.
    pub(crate) fn version(&self) -> String {
        self.held.lock().version.clone()
    }

    /// The last good bundle.
    pub(crate) fn good(&self) -> Option<Arc<ConfigBundle>> {
        self.held.lock().good.clone()
    }

    /// The reason why the wanted version is not in force.
    pub(crate) fn fault(&self) -> Option<VersionFault> {
        self.held.lock().fault.clone()
    }

    /// Notes the bundle in force.
    pub(crate) fn set(&self, bundle: Option<Arc<ConfigBundle>>) {
        let version = bundle.as_ref().map(|own| own.version()).unwrap_or_default();
        let mut held = self.held.lock();
        (held.in_force, held.version, held.fault) = (bundle, version, None);
    }

    /// Notes that the wanted version cannot be put in force. Returns true if that is new.
    pub(crate) fn set_fault(&self, fault: Option<VersionFault>) -> bool {
        let mut held = self.held.lock();
        let is_new = held.fault != fault;
        held.fault = fault;
        is_new
    }

    /// Notes that the bundle in force is good for all nodes, and saves it. It counts as good even
    /// if it cannot be saved.
    ///
    /// # Errors
    /// The reason why it cannot be saved.
    pub(crate) fn is_good(&self) -> Result<(), String> {
        let Some(in_force) = self.in_force() else { return Ok(()) };
        let is_known = self.good().is_some_and(|good| good.version() == in_force.version());
        self.held.lock().good = Some(Arc::clone(&in_force));
        if is_known { Ok(()) } else { in_force.keep(&self.folder) }
    }

    /// Orders a retry of the refused version.
    pub(crate) fn try_again(&self) {
        self.held.lock().fault = None;
        self.again.send_modify(|count| *count += 1);
    }

    /// Changes with every order to retry.
    pub(crate) fn trials(&self) -> watch::Receiver<u64> {
        self.again.subscribe()
    }

    /// Writes the node's version on its card.
    pub(crate) fn show(&self, card: &mut Card) {
        let held = self.held.lock();
        card.takes_configuration = true;
        card.configuration = held.version.clone();
        let fault = |fault: &VersionFault| {
            let why = &fault.why[..fault.why.floor_char_boundary(FAULT_BYTES)];
            format!("{}: {why}", fault.version)
        };
        card.configuration_fault = held.fault.as_ref().map(fault).unwrap_or_default();
    }
}
