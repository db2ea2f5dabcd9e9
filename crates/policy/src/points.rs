//! Points of a request at which a policy decides: their contexts and verdicts.

use std::sync::Arc;

use base::{KeyBuf, Now};
use message::freshness::Freshness;
use message::header::Field;
use message::store::{JudgedHead, StorePlan};
use message::{HeaderBlock, Request, Response, Scheme, Status};

use crate::decision_steps::{DecisionStep, SettingLocation};
use crate::peer::ConnectionPeer;
use crate::response_rules::MatchedRules;
use crate::sticky::StickyCookie;

/// The value of `Allow` in this cache's own responses (RFC 9110 10.2.1): the usual methods but
/// CONNECT and TRACE, which are rejected. Other methods are forwarded, too.
pub const ALLOW: &[u8] = b"GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";

/// Notes of a policy about one request, kept from point to point and read by `flow`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    /// Index of the origin to fetch from, in the site's list.
    pub origin: u32,
    /// The policy's own mark of the route that matched.
    pub route: u32,
    /// Another route that an origin may take the request's path for: its access rules hold, too.
    pub also: Option<u32>,
    /// A mark in the key that keeps its responses apart from those to requests for the same URL
    /// that belong to other routes; 0 for no mark.
    pub apart: u64,
    /// The request has personal fields (cookies beyond tracking ones, Authorization): only a
    /// response that the origin declares shared may answer it or be stored from it.
    pub personal: bool,
    /// Name of the rule that decided, for logs and `explain`; an index into [`Policy::rule_name`].
    pub rule: u32,
    /// The server that the request is for, as an index into the list of its origin.
    pub server: Option<u16>,
    /// The plugin whose pages on the disk may answer, if the cache does not.
    pub pages: Option<PageCache>,
    /// The client of the request: the peer, or the client that a trusted proxy names. Set by
    /// [`Policy::receive`]; [`Policy::fetch`] reports it to the origin.
    pub client: Option<ConnectionPeer>,
    /// A proxy has forwarded the request: its connection may carry requests of many clients.
    pub passed_on: bool,
}

/// The tiers that store a response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StorageChoice {
    /// In memory only.
    Memory,
    /// In memory, and on disk after eviction, regardless of the disk's admission rules.
    Disk,
    /// In memory, and on disk by the disk's admission rules.
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

/// The use of the store that was decided before [`Policy::receive`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StoreUse {
    /// None was decided: the rules decide.
    #[default]
    ByRules,
    /// The request passes, in canonical form: the site's VCL beside the policy says so.
    Passed,
    /// The request passes as it came, with its cookies, query and fields of variants: the site only
    /// observes.
    Untouched,
}

/// Context of [`Policy::receive`]: the client's request, which the policy may change.
#[derive(Debug)]
pub struct ReceiveCtx<'a> {
    /// The request; changes here affect the key and the forwarded request.
    pub request: &'a mut Request,
    /// The peer of the client's connection.
    pub client: ConnectionPeer,
    /// The time of the request's arrival.
    pub now: Now,
    /// The use of the store that is decided already.
    pub store: StoreUse,
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
    /// Fetch without the cache, and become a tunnel if the origin switches protocols (RFC 9110 7.8;
    /// Varnish: `pipe`). The request's Upgrade names the protocols for the origin.
    Upgrade,
    /// Answer with a file below the site's root with this number.
    Files(u32),
    /// Answer with this response.
    Synth(Arc<Synthetic>),
    /// Remove every variant of the key.
    Purge,
}

/// A response made by policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Synthetic {
    /// Its status.
    pub status: Status,
    /// Its fields, whose names and values are already checked.
    pub fields: Vec<(Vec<u8>, Vec<u8>)>,
    /// Its body; if empty, a small page is made from the status.
    pub body: Vec<u8>,
    /// The connection is closed after it.
    pub close: bool,
}

/// Context of [`Policy::hit`]: the times of a stored response.
#[derive(Clone, Copy, Debug)]
pub struct HitCtx<'a> {
    /// The client's request.
    pub request: &'a Request,
    /// The request's notes.
    pub notes: &'a Notes,
    /// The stored response's times, from which age and remaining lifetime follow.
    pub freshness: &'a Freshness,
    /// The present time, in milliseconds of the monotonic clock.
    pub now_ms: u64,
}

/// Verdicts of [`Policy::hit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HitVerdict {
    /// Deliver the stored response, if it is fresh or within its grace.
    Deliver,
    /// Deliver the stored response however stale it is, unless its origin forbids stale use.
    DeliverStale,
    /// Continue as if nothing were stored.
    Miss,
    /// Fetch without the cache.
    Pass,
}

/// Context of [`Policy::fetch`]: the request about to go to the origin.
#[derive(Debug)]
pub struct FetchCtx<'a> {
    /// The request for the origin, which may be changed.
    pub request: &'a mut Request,
    /// The response will not be stored.
    pub pass: bool,
    /// The request's notes.
    pub notes: &'a mut Notes,
}

/// Verdicts of [`Policy::fetch`].
#[derive(Clone, Debug)]
pub enum FetchVerdict {
    /// Send it.
    Fetch,
    /// Answer with this response instead.
    Synth(Arc<Synthetic>),
}

/// Context of [`Policy::response`]: the origin's head, and the storage plan by RFC 9111.
#[derive(Debug)]
pub struct ResponseCtx<'a> {
    /// The request for the origin.
    pub request: &'a Request,
    /// The origin's response; changes are stored and delivered.
    pub response: &'a mut Response,
    /// The storage plan, which the policy may change.
    pub plan: &'a mut StorePlan,
    /// The request's notes.
    pub notes: &'a Notes,
}

/// Verdicts of [`Policy::response`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackendResponse {
    /// Use it as the plan says.
    Deliver,
    /// Fetch again, if the retry limit permits.
    Retry,
    /// Treat the response as a failed fetch; a stale one may be served instead.
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
    /// The rules for responses that match it.
    pub matched: &'a MatchedRules,
    /// The request's notes.
    pub notes: &'a Notes,
}

/// Context of [`Policy::passes_trailer`]: a trailer field.
#[derive(Clone, Copy, Debug)]
pub struct TrailerCtx<'a> {
    /// The field; fields that never pass ([`message::trailers::judge`]) do not get here.
    pub field: Field<'a>,
    /// The field goes to the origin; otherwise it goes to the client.
    pub of_request: bool,
    /// The request's notes.
    pub notes: &'a Notes,
}

/// The routes of a request, by number. 0 is the site itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Routes {
    /// The route of the request.
    pub own: u32,
    /// Another route whose path an origin may see in the request's path.
    pub also: Option<u32>,
}

impl Notes {
    /// The routes that a request was found to belong to.
    pub fn routes(&self) -> Routes {
        Routes { own: self.route, also: self.also }
    }
}

/// A site's policy.
pub trait Policy: Send + Sync {
    /// The client of a request from `peer` that is not [received](Policy::receive): a purge.
    /// [`ConnectionPeer::Unnamed`] if a proxy that is not trusted has forwarded it.
    fn asker(&self, request: &Request, peer: ConnectionPeer) -> ConnectionPeer;

    /// The client of a request from `peer`, as [`Policy::receive`] will note it.
    fn client(&self, request: &Request, peer: ConnectionPeer) -> ConnectionPeer;

    /// The scheme of a request that `peer` makes, as [`Policy::receive`] will note it.
    fn scheme(&self, request: &Request, peer: ConnectionPeer) -> Scheme;

    /// Returns true if [`Policy::receive`] will redirect a request with this scheme to HTTPS.
    fn wants_https(&self, request: &Request, scheme: Scheme) -> bool;

    /// Removes forged fields, as [`Policy::receive`] does.
    fn remove_forged(&self, headers: &mut HeaderBlock);

    /// The routes of a request that is made on behalf of `client`, as [`Policy::receive`] will note
    /// the first.
    fn routes(&self, _request: &Request, _client: ConnectionPeer) -> Routes {
        Routes::default()
    }

    /// The targets in keys with a mark that keeps them apart ([`Notes::apart`]), under which there
    /// may be responses to requests like this one, but for their fields and their client.
    fn targets_apart(&self, _request: &Request) -> Vec<Vec<u8>> {
        Vec::new()
    }

    /// Returns true if [`Policy::key`] may distinguish responses of one URL.
    fn splits_key(&self, _notes: &Notes) -> bool {
        false
    }

    /// Returns true if [`Policy::receive`] would refuse the request of `client` for its method, the
    /// form of its path, or the client's address.
    fn keeps_out(&self, _request: &Request, _client: ConnectionPeer) -> bool {
        false
    }

    /// Notes the client, and brings scheme and the fields of proxies into canonical form.
    /// [`Policy::receive`] leaves these alone afterwards, whatever has been changed meanwhile.
    fn identify(&self, _ctx: &mut ReceiveCtx<'_>) {}

    /// Decides about a request (Varnish: `vcl_recv`).
    fn receive(&self, ctx: &mut ReceiveCtx<'_>) -> ReceiveVerdict;

    /// Returns true if the value of the cookie of this name is part of the key.
    fn looks_at_cookie(&self, _notes: &Notes, _name: &[u8]) -> bool {
        false
    }

    /// Adds the parts of the key besides scheme, host, port and target, which `flow` has added
    /// already (Varnish: `vcl_hash`).
    fn key(&self, request: &Request, notes: &Notes, key: &mut KeyBuf);

    /// Decides if a stored response may be used (Varnish: `vcl_hit`). Called for stale responses,
    /// too: for those, only [`HitVerdict::DeliverStale`] has an effect.
    fn hit(&self, _ctx: &HitCtx<'_>) -> HitVerdict {
        HitVerdict::Deliver
    }

    /// Returns true if the request is answered from the store wherever that is possible, and its
    /// fetch waits in the queue for crawlers.
    fn serves_stored(&self, _notes: &Notes) -> bool {
        false
    }

    /// Changes the request for the origin (Varnish: `vcl_backend_fetch`).
    fn fetch(&self, ctx: &mut FetchCtx<'_>) -> FetchVerdict;

    /// Returns true if the origin is asked for another URL than the client's: a cache that is asked
    /// for that would be asked for something else.
    fn rewrites(&self, _notes: &Notes) -> bool {
        false
    }

    /// Milliseconds until the head of the origin's response; `None` for the origin's own timeout
    /// (Varnish: `bereq.first_byte_timeout`).
    fn first_byte_ms(&self, _notes: &Notes) -> Option<u64> {
        None
    }

    /// The rules of the storage plan for this request.
    fn store_rules(&self, notes: &Notes) -> &message::store::StoreRules;

    /// The head of an origin's response as storing judges it: without fields that the site ignores,
    /// and with what its rules for responses say.
    fn judged_head<'a>(&'a self, notes: &Notes, response: &'a Response) -> JudgedHead<'a> {
        JudgedHead::of(response, self.store_rules(notes))
    }

    /// The tiers that store the response, if it is stored (Varnish: `beresp.storage`).
    fn store_in(&self, _notes: &Notes) -> StorageChoice {
        StorageChoice::Both
    }

    /// Decides about an origin's response (Varnish: `vcl_backend_response`).
    fn response(&self, ctx: &mut ResponseCtx<'_>) -> BackendResponse;

    /// Returns true if the site's page for `status` replaces an origin's response of that status.
    fn intercepts(&self, _notes: &Notes, _status: Status) -> bool {
        false
    }

    /// Returns true if [`Policy::deliver`] may change the response to this request. Otherwise hits
    /// are sent from their stored bytes without parsing them.
    fn shapes_delivery(&self, notes: &Notes) -> bool;

    /// The rules for responses that match an origin's response, before it is adapted to a client.
    fn matched_rules(&self, _notes: &Notes, _response: &Response) -> MatchedRules {
        MatchedRules::default()
    }

    /// Changes the head for the client (Varnish: `vcl_deliver`).
    fn deliver(&self, ctx: &mut DeliverCtx<'_>);

    /// The cookie that brings clients back to the server of their origin that answered them.
    fn sticky(&self, _notes: &Notes) -> Option<&StickyCookie> {
        None
    }

    /// Adds the site's fields to the head of a generated response.
    fn complete(&self, _request: &Request, _notes: &Notes, _headers: &mut HeaderBlock) {}

    /// Returns true if a trailer field may pass. A field that the policy would change in a head may
    /// not.
    fn passes_trailer(&self, ctx: &TrailerCtx<'_>) -> bool;

    /// The name of a rule in [`Notes::rule`].
    fn rule_name(&self, rule: u32) -> &str;

    /// The name of a route in [`Notes::route`].
    fn route_name(&self, _route: u32) -> &str {
        ""
    }

    /// Does what [`Policy::receive`] does, and returns the steps of the decision, too.
    fn explain(&self, ctx: &mut ReceiveCtx<'_>) -> (ReceiveVerdict, Vec<DecisionStep>) {
        (self.receive(ctx), Vec::new())
    }

    /// The parts that [`Policy::key`] adds: each with a description, and its value.
    fn key_parts(&self, _request: &Request, _notes: &Notes) -> Vec<(String, Vec<u8>)> {
        Vec::new()
    }

    /// The verdicts about storing of the rules for responses to this request, in words.
    fn response_rules_words(&self, _notes: &Notes) -> String {
        String::new()
    }

    /// The location of a setting that applies to this request, by its key in the configuration.
    fn place(&self, _notes: &Notes, _setting: &str) -> Option<&SettingLocation> {
        None
    }
}
