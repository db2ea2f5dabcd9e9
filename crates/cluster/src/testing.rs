//! What several tests begin with.

use crate::Level;
use crate::settings::{Credentials, Settings, Tls};

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
    }
}
