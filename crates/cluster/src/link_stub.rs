//! The demo build in place of the way to the stream: it has no client of NATS.

use std::sync::Arc;

use crate::bucket::Bucket;
use crate::cluster::Cluster;
use crate::error::NotWritten;

/// The crate has no link to servers: it runs no node.
pub const HAS_LINK: bool = false;

/// The way to the stream, which there never is.
#[derive(Clone)]
pub(crate) enum Context {}

impl Cluster {
    /// Waits for ever: see [`HAS_LINK`].
    pub async fn run(self: Arc<Self>) {
        std::future::pending().await
    }

    /// The last sequence of the members' cards, which is not known.
    pub(crate) async fn cards_last(&self) -> Option<u64> {
        None
    }
}

impl Bucket {
    /// Waits for ever.
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
) -> Result<u64, NotWritten> {
    match *context {}
}
