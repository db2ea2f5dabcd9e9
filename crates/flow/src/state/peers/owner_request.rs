//! A request that the owner of its key may be asked with.

use arc_swap::ArcSwapOption;
use message::Request;
use origin::OriginRequestContext;

use super::nodes::Peers;
use crate::state::miss::Miss;

/// A request that the owner of its key may be asked with.
#[derive(Debug)]
pub(crate) struct OwnerRequest {
    /// As the client has made it.
    pub(crate) request: Request,
    /// As variants are selected by it; `None` for the same.
    pub(crate) selecting: Option<Request>,
    pub(crate) key: Box<[u8]>,
}

/// The fetch that a node is asked for.
#[derive(Clone, Copy)]
pub(crate) struct FetchIdentity<'a> {
    pub(crate) key_hash: u64,
    /// The client that the fetch is for.
    pub(crate) caller: &'a OriginRequestContext,
}

impl OwnerRequest {
    /// The question behind `miss`; `None` where its key is this node's own, or nodes share nothing.
    pub(crate) fn of(peers: &ArcSwapOption<Peers>, miss: Miss<'_>) -> Option<Box<Self>> {
        let peers = peers.load();
        peers.as_ref()?.owner(miss.key)?.way()?;
        let (request, selecting) = (miss.asked.clone(), miss.changed.cloned());
        Some(Box::new(Self { request, selecting, key: miss.key.into() }))
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
