//! The managed origin: an origin with its background work, which runs for as long as the value
//! lives.

use std::future::Future;
use std::sync::Arc;

use base::Counter;
use flow::SharedState;
use origin::Origin;
use tokio::task::JoinHandle;

/// An origin and its background work.
pub(crate) struct ManagedOrigin {
    pub(crate) origin: Arc<Origin>,
    work: JoinHandle<()>,
}

impl Drop for ManagedOrigin {
    fn drop(&mut self) {
        self.work.abort();
    }
}

/// Starts an origin's background work.
pub(crate) fn tend(origin: Arc<Origin>, shared: &SharedState) -> ManagedOrigin {
    let (journal, own) = (shared.shared_pool.journal().cloned(), Arc::clone(&origin));
    let work =
        keep_running(shared, move || origin::run_background(Arc::clone(&own), journal.clone()));
    ManagedOrigin { origin, work }
}

/// Starts a task that must always run: after a panic, which is counted, it starts again.
pub(crate) fn keep_running<F>(
    shared: &SharedState,
    begin: impl FnMut() -> F + Send + 'static,
) -> JoinHandle<()>
where
    F: Future<Output = ()> + Send + 'static,
{
    let counters = shared.counters.register();
    rt::spawn(async move { net::run_with_restarts(begin, || counters.inc(Counter::Panics)).await })
}
