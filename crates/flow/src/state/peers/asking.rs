//! A request that the owner of its key may be asked with.

use message::Request;

use crate::state::live::Shared;

/// A request that the owner of its key may be asked with.
#[derive(Debug)]
pub(crate) struct Asking {
    /// As the client has made it.
    pub(crate) request: Request,
    /// As variants are selected by it; `None` for the same.
    pub(crate) selecting: Option<Request>,
    pub(crate) key: Box<[u8]>,
}

impl Asking {
    /// The question behind `request`, whose key is `key`; `None` where that is this node's own, or
    /// nodes share nothing.
    pub(crate) fn of(
        shared: &Shared,
        request: &Request,
        selecting: Option<&Request>,
        key: &[u8],
    ) -> Option<Box<Self>> {
        let peers = shared.peers.load();
        peers.as_ref()?.owner(key)?.way()?;
        let (request, selecting) = (request.clone(), selecting.cloned());
        Some(Box::new(Self { request, selecting, key: key.into() }))
    }

    /// Memory that it takes, in bytes.
    pub(crate) fn memory(&self) -> usize {
        let of = |request: &Request| {
            request.headers.memory() + request.target.len() + request.host.len()
        };
        let requests = of(&self.request) + self.selecting.as_ref().map_or(0, of);
        size_of::<Self>() + requests + self.key.len()
    }
}
