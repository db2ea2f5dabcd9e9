//! The points at which a policy is asked, what it sees there and what it may answer.

use std::sync::Arc;

use base::{KeyBuf, Now};
use message::freshness::Freshness;
use message::header::Field;
use message::store::StorePlan;
use message::{HeaderBlock, Request, Response, Scheme, Status};

use crate::decision_steps::{DecisionStep, SettingLocation};
use crate::peer::ConnectionPeer;

/// The value of `Allow` in this cache's own answers (RFC 9110 10.2.1): the usual methods but
/// CONNECT and TRACE, which are refused. Other methods are passed on, too.
pub const ALLOW: &[u8] = b"GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";

/// Notes of a policy about one request, kept from point to point and read by `flow`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    /// Index of the origin to fetch from, in the site's list.
    pub origin: u32,
    /// The policy's own mark of the route that matched.
    pub route: u32,
    /// The request carries something personal (cookies beyond tracking ones, Authorization): only a
    /// response marked as shared by the origin may answer it or be stored from it.
    pub personal: bool,
    /// Name of the rule that decided, for logs and `explain`; an index into [`Policy::rule_name`].
    pub rule: u32,
    /// Whose pages on the disk may answer, where the cache does not.
    pub pages: Option<PageCache>,
    /// On whose behalf the request is made: the peer, or who a trusted proxy says it is. Set by
    /// [`Policy::receive`]; [`Policy::fetch`] tells it the origin.
    pub client: Option<ConnectionPeer>,
    /// The request says that a proxy has passed it on: its connection may carry many clients'.
    pub passed_on: bool,
}

/// Where a response is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StorageChoice {
    /// In memory alone.
    Memory,
    /// In memory, and on disk once memory has no room for it, whatever is admitted otherwise.
    Disk,
    /// In memory, and on disk by what is admitted there.
    #[default]
    Both,
}

/// A plugin of an application that writes pages to the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageCache {
    /// WP Super Cache, for WordPress.
    WpSuperCache,
    /// WP Rocket, for WordPress.
    WpRocket,
    /// Boost, for Drupal.
    Boost,
}

/// Context of [`Policy::receive`]: the client's request, which the policy may change.
#[derive(Debug)]
pub struct ReceiveCtx<'a> {
    /// The request; what is changed here is what is keyed and forwarded.
    pub request: &'a mut Request,
    /// The client that asks, as far as the connection tells.
    pub client: ConnectionPeer,
    /// When the request arrived.
    pub now: Now,
    /// The request's notes.
    pub notes: &'a mut Notes,
}

/// Verdicts of [`Policy::receive`].
#[derive(Clone, Debug)]
pub enum ReceiveVerdict {
    /// Look the key up.
    Lookup,
    /// Fetch without the cache.
    Pass,
    /// Fetch without the cache, and become a tunnel if the origin changes the protocol (RFC 9110
    /// 7.8; Varnish: `pipe`). The request's Upgrade is what the origin is asked for.
    Upgrade,
    /// Answer with a file below the site's root of this number.
    Files(u32),
    /// Answer with this.
    Synth(Arc<Synthetic>),
    /// Remove every variant of the key.
    Purge,
}

/// A response made by policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Synthetic {
    /// Its status.
    pub status: Status,
    /// Its fields, names and values already checked.
    pub fields: Vec<(Vec<u8>, Vec<u8>)>,
    /// Its body; empty for a small page made from the status.
    pub body: Vec<u8>,
    /// The connection ends after it.
    pub close: bool,
}

/// Context of [`Policy::hit`]: a stored response as far as its times go.
#[derive(Clone, Copy, Debug)]
pub struct HitCtx<'a> {
    /// The client's request.
    pub request: &'a Request,
    /// The request's notes.
    pub notes: &'a Notes,
    /// The stored response's times, from which age and remaining lifetime follow.
    pub freshness: &'a Freshness,
    /// The moment at which it is asked for, in milliseconds of the monotonic clock.
    pub now_ms: u64,
}

/// Verdicts of [`Policy::hit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HitVerdict {
    /// Deliver the stored response, if it is fresh or within its grace.
    Deliver,
    /// Deliver it however stale it is, unless its origin forbids that.
    DeliverStale,
    /// Go on as if nothing was stored.
    Miss,
    /// Fetch without the cache.
    Pass,
}

/// Context of [`Policy::fetch`]: the request about to go to the origin.
#[derive(Debug)]
pub struct FetchCtx<'a> {
    /// The origin request; changes are what the origin sees.
    pub request: &'a mut Request,
    /// The response will not be stored, whatever it is.
    pub pass: bool,
    /// The request's notes.
    pub notes: &'a mut Notes,
}

/// Verdicts of [`Policy::fetch`].
#[derive(Clone, Debug)]
pub enum FetchVerdict {
    /// Send it.
    Fetch,
    /// Answer with this instead.
    Synth(Arc<Synthetic>),
}

/// Context of [`Policy::response`]: the origin's head, and the plan RFC 9111 makes of it.
#[derive(Debug)]
pub struct ResponseCtx<'a> {
    /// The request the origin answered.
    pub request: &'a Request,
    /// The origin's response; changes are stored and delivered.
    pub response: &'a mut Response,
    /// The plan to store it or not, and for how long; the policy may change the plan.
    pub plan: &'a mut StorePlan,
    /// The request's notes.
    pub notes: &'a Notes,
}

/// Verdicts of [`Policy::response`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackendResponse {
    /// Use it as the plan says.
    Deliver,
    /// Ask the origin again, if the retry limit allows.
    Retry,
    /// Treat it as a failed fetch (stale may be served instead).
    Fail,
}

/// Context of [`Policy::deliver`]: the head about to be sent to the client.
#[derive(Debug)]
pub struct DeliverCtx<'a> {
    /// The client's request.
    pub request: &'a Request,
    /// The response's head; changes go to this client only.
    pub response: &'a mut Response,
    /// The response comes from the store.
    pub hit: bool,
    /// The request's notes.
    pub notes: &'a Notes,
}

/// Context of [`Policy::passes_trailer`]: a field behind a body that passes.
#[derive(Clone, Copy, Debug)]
pub struct TrailerCtx<'a> {
    /// The field; fields that never pass ([`message::trailers::judge`]) are not asked about.
    pub field: Field<'a>,
    /// The field goes to the origin; otherwise it goes to the client.
    pub of_request: bool,
    /// The request's notes.
    pub notes: &'a Notes,
}

/// The routes of a request, by their marks. 0 is the site itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Routes {
    /// The one that the request belongs to.
    pub own: u32,
    /// Another that an origin may take its path for.
    pub also: Option<u32>,
}

/// A site's policy.
pub trait Policy: Send + Sync {
    /// On whose behalf `peer` makes a request that is not [received](Policy::receive) like others:
    /// a purge. Nobody's ([`Peer::Unnamed`]) when it was passed on by a proxy that is not trusted.
    fn asker(&self, request: &Request, peer: ConnectionPeer) -> ConnectionPeer;

    /// On whose behalf `peer` makes a request, as [`Policy::receive`] will note it.
    fn client(&self, request: &Request, peer: ConnectionPeer) -> ConnectionPeer;

    /// The scheme of a request that `peer` makes, as [`Policy::receive`] will note it.
    fn scheme(&self, request: &Request, peer: ConnectionPeer) -> Scheme;

    /// Returns true if [`Policy::receive`] will have a request of this scheme come over HTTPS, and
    /// let it go no further.
    fn wants_https(&self, request: &Request, scheme: Scheme) -> bool;

    /// Removes the fields that speak for a proxy, as [`Policy::receive`] does with a client's.
    fn remove_forged(&self, headers: &mut HeaderBlock);

    /// The routes of a request, as [`Policy::receive`] will note the first.
    fn routes(&self, _request: &Request) -> Routes {
        Routes::default()
    }

    /// Returns true if [`Policy::key`] tells apart responses of one URL.
    fn splits_key(&self, _notes: &Notes) -> bool {
        false
    }

    /// Decides about a request (Varnish: `vcl_recv`).
    fn receive(&self, ctx: &mut ReceiveCtx<'_>) -> ReceiveVerdict;

    /// Adds the fields that identify the representation beyond scheme, host, port and target, which
    /// `flow` has put there already (Varnish: `vcl_hash`).
    fn key(&self, request: &Request, notes: &Notes, key: &mut KeyBuf);

    /// Decides whether a stored response answers (Varnish: `vcl_hit`). Stale responses are asked
    /// about, too: for those, only [`HitVerdict::DeliverStale`] changes what happens.
    fn hit(&self, _ctx: &HitCtx<'_>) -> HitVerdict {
        HitVerdict::Deliver
    }

    /// Changes the request on its way to the origin (Varnish: `vcl_backend_fetch`).
    fn fetch(&self, ctx: &mut FetchCtx<'_>) -> FetchVerdict;

    /// Milliseconds that the origin may take for the head of its response to this request; `None`
    /// if the origin's own time counts (Varnish: `bereq.first_byte_timeout`).
    fn first_byte_ms(&self, _notes: &Notes) -> Option<u64> {
        None
    }

    /// Rules the plan is made by for this request.
    fn store_rules(&self, notes: &Notes) -> &message::store::StoreRules;

    /// Where a response to this request is kept, if it is stored (Varnish: `beresp.storage`).
    fn store_in(&self, _notes: &Notes) -> StorageChoice {
        StorageChoice::Both
    }

    /// Decides about an origin's answer (Varnish: `vcl_backend_response`).
    fn response(&self, ctx: &mut ResponseCtx<'_>) -> BackendResponse;

    /// Returns true if [`Policy::deliver`] would change anything for this request. Otherwise hits
    /// are served from their stored bytes without being taken apart.
    fn shapes_delivery(&self, notes: &Notes) -> bool;

    /// Changes the head on its way to the client (Varnish: `vcl_deliver`).
    fn deliver(&self, ctx: &mut DeliverCtx<'_>);

    /// Adds the site's fields to the head of a reply that was made here.
    fn complete(&self, _notes: &Notes, _headers: &mut message::HeaderBlock) {}

    /// Returns true if a trailer field passes. A field that the policy would have changed in the
    /// head does not pass.
    fn passes_trailer(&self, ctx: &TrailerCtx<'_>) -> bool;

    /// The name of a rule noted in [`Notes::rule`].
    fn rule_name(&self, rule: u32) -> &str;

    /// Does what [`Policy::receive`] does, and tells how it came to that.
    fn explain(&self, ctx: &mut ReceiveCtx<'_>) -> (ReceiveVerdict, Vec<DecisionStep>) {
        (self.receive(ctx), Vec::new())
    }

    /// Parts that [`Policy::key`] adds: each with its name in words, and its value.
    fn key_parts(&self, _request: &Request, _notes: &Notes) -> Vec<(String, Vec<u8>)> {
        Vec::new()
    }

    /// Where a setting that counts for this request is written, by its key in the configuration.
    fn place(&self, _notes: &Notes, _setting: &str) -> Option<&SettingLocation> {
        None
    }
}
