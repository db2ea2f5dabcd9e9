//! Test settings and hosts, shared by several tests.

use std::sync::Arc;

use crate::Level;
use crate::follower::Loss;
use crate::members::Card;
use crate::position::Position;
use crate::settings::{Credentials, Host, Settings, Tls};
use crate::stance::Stance;

pub(crate) fn settings(name: &str) -> Settings {
    Settings {
        servers: vec!["nats://127.0.0.1:1".to_owned()],
        name: name.to_owned(),
        prefix: "larder".to_owned(),
        credentials: Credentials::None,
        tls: Tls::default(),
        level: Level::Quorum,
        max_isolation_ms: 30_000,
        replicas: 1,
        keep_ms: 3_600_000,
        queue: 100,
        wait_ms: 5_000,
        before: None,
    }
}

/// A host without a daemon, which calls a function when it should apply an entry.
pub(crate) struct CallbackHost<F>(pub(crate) F);

/// A host without a daemon.
pub(crate) fn nobody() -> Arc<dyn Host> {
    Arc::new(CallbackHost(|| {}))
}

impl<F: Fn() + Send + Sync + 'static> Host for CallbackHost<F> {
    fn apply(&self, _: &[u8]) -> Result<(), String> {
        self.0();
        Ok(())
    }
    fn doubt(&self, _: Loss) {
        self.0();
    }
    fn trust_until(&self, _: u64) {}
    fn settle(&self) -> Result<(), String> {
        Ok(())
    }
    fn save(&self, _: Position) -> Result<(), String> {
        Ok(())
    }
    fn stand(&self, _: Stance) {}
    fn figures(&self, _: &mut Card) {}
    fn overflowed(&self) {}
    fn waited_in_vain(&self) {}
    fn say(&self, _: &str) {}
}
