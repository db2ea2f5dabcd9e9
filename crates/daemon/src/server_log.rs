//! The server log: text that origin servers send besides responses, in the daemon's log: one line
//! for each of theirs, behind the request's name.

use std::sync::Arc;

use origin::{HealthChange, Journal, ServerMessage};

/// The cores' side of the log, which never makes them wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServerLog;

impl ServerLog {
    /// The journal that all cores share.
    pub(crate) fn shared() -> Arc<dyn Journal> {
        Arc::new(Self)
    }
}

impl Journal for ServerLog {
    fn said(&self, said: &ServerMessage<'_>) {
        // As nginx logs a FastCGI server's error stream.
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
            "larder: {server}: lines of its response heads end without CR; they are accepted"
        );
    }
}
