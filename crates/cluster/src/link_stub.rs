//! The link stub of the demo build, which has no NATS client.

use std::sync::Arc;

use crate::bucket::Bucket;
use crate::cluster::Cluster;
use crate::error::SecretWriteError;

/// The crate has no NATS client: it runs no node.
pub const HAS_LINK: bool = false;

/// A connection. No value of this type exists.
#[derive(Clone)]
pub(crate) enum Context {}

impl Cluster {
    /// Waits forever: see [`HAS_LINK`].
    pub async fn run(self: Arc<Self>) {
        std::future::pending().await
    }

    /// The last sequence of the members' cards: unknown.
    pub(crate) async fn cards_last(&self) -> Option<u64> {
        None
    }
}

impl Bucket {
    /// Waits forever.
    pub async fn run(self: Arc<Self>) {
        std::future::pending().await
    }
}

/// Cannot be called.
pub(crate) async fn put(
    context: &Context,
    _subject: String,
    _over: u64,
    _bytes: Vec<u8>,
) -> Result<u64, SecretWriteError> {
    match *context {}
}
