//! Background work beside the requests: name lookups and probes.

use std::sync::Arc;

use tokio::task::JoinSet;

use crate::config::OriginConfig;
use crate::journal::Journal;
use crate::origin::Origin;
use crate::probe::{self, ProbeRequest};
use crate::resolution::{self, LookupSchedule};

/// Resolves the names of `origin`'s servers and probes them while it is polled; returns at once if
/// there is nothing to do. Changes of health are reported to `journal`.
///
/// It runs tasks on the current runtime, which must have I/O and time. Dropping it ends them; known
/// results stay in use.
///
/// # Panics
/// If one of its tasks panicked, since stale names must not go unnoticed.
pub async fn run_background(origin: Arc<Origin>, journal: Option<Arc<dyn Journal>>) {
    let mut tasks = JoinSet::new();
    for server in origin.shared() {
        if let Some((host, port)) = server.name_to_resolve() {
            let (server, host) = (Arc::clone(server), host.to_owned());
            let OriginConfig { lookups: times, pace, .. } = origin.config();
            let again = LookupSchedule { times: *times, pace: pace.clone() };
            let make = resolution::system_resolver;
            tasks.spawn(resolution::resolve_for_ever(server, host, port, again, make));
        }
        if let Some(probe) = &origin.config().probe {
            let request = ProbeRequest::new(&server.config, origin.config(), probe);
            let (server, probe) = (Arc::clone(server), probe.clone());
            let (name, journal) = (Arc::clone(origin.name()), journal.clone());
            tasks.spawn(probe::probe_for_ever(server, request, probe, name, journal));
        }
    }
    while let Some(ended) = tasks.join_next().await {
        if let Err(error) = ended
            && error.is_panic()
        {
            std::panic::resume_unwind(error.into_panic());
        }
    }
}
