//! Owner request: a request that the owner of its key may be asked with.

use arc_swap::ArcSwapOption;
use message::Request;
use origin::OriginRequestContext;

use super::nodes::Peers;
use crate::state::miss::Miss;

/// A request that the owner of its key may be asked with.
#[derive(Debug)]
pub(crate) struct OwnerRequest {
    /// The client's request.
    pub(crate) request: Request,
    /// The request that selects variants; `None` if it is the client's.
    pub(crate) selecting: Option<Request>,
    pub(crate) key: Box<[u8]>,
    /// The fields that the VCL beside the site's settings has added to `key`; `None` if it has not
    /// received the request.
    pub(crate) added_key: Option<Box<[u8]>>,
}

/// The identity of the fetch that a node is asked for.
#[derive(Clone, Copy)]
pub(crate) struct FetchIdentity<'a> {
    pub(crate) key_hash: u64,
    /// The client of the fetch.
    pub(crate) caller: &'a OriginRequestContext,
}

impl OwnerRequest {
    /// The request for `miss`; `None` if this node owns the key, or nodes share nothing.
    pub(crate) fn of(peers: &ArcSwapOption<Peers>, miss: Miss<'_>) -> Option<Box<Self>> {
        let peers = peers.load();
        peers.as_ref()?.owner(miss.key)?.origin()?;
        let (request, selecting) = (miss.asked.clone(), miss.changed.cloned());
        let added_key = miss.extra.map(|extra| extra.added_key().into());
        Some(Box::new(Self { request, selecting, key: miss.key.into(), added_key }))
    }

    /// Bytes in memory.
    pub(crate) fn memory(&self) -> usize {
        let of = |request: &Request| {
            let target = request.target.len() + request.respelt.len();
            request.headers.memory() + target + request.host.len()
        };
        let requests = of(&self.request) + self.selecting.as_ref().map_or(0, of);
        let added = self.added_key.as_ref().map_or(0, |key| key.len());
        size_of::<Self>() + requests + self.key.len() + added
    }
}
