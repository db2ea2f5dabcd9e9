//! Text that origin servers send besides responses, in the daemon's log: one line for each line of
//! theirs, with the request's name before it.

use std::sync::Arc;

use origin::{HealthChange, Journal, ServerMessage};

/// The cores' side of the log, which never makes them wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServerLog;

impl ServerLog {
    /// One for all cores.
    pub(crate) fn shared() -> Arc<dyn Journal> {
        Arc::new(Self)
    }
}

impl Journal for ServerLog {
    fn said(&self, said: &ServerMessage<'_>) {
        // As nginx has what a FastCGI server writes to its error stream.
        base::tell!(Error, "{}", said.to_string().trim_end_matches('\n'));
    }

    fn probed(&self, turn: &HealthChange<'_>) {
        if turn.healthy {
            base::tell!(Notice, "larder: {turn}");
        } else {
            base::tell!(Warn, "larder: {turn}");
        }
    }

    fn line_feeds(&self, server: &str) {
        base::tell!(
            Warn,
            "larder: {server}: lines of its response heads end without CR; that is let pass"
        );
    }
}
