//! Reception: what a policy makes of a visit's request, by the functions that a daemon's requests
//! go through.

use base::{KeyBuf, Now};
use message::freshness::Freshness;
use message::store::{ExchangeTimes, StorePlan, plan};
use message::{
    ClassifiedClient, ClientClass, ClientProof, Framing, HeaderBlock, Method, Request, Response,
    Scheme, Status, target,
};
use policy::points::StoreUse;
use policy::{
    ConnectionPeer, HitCtx, HitVerdict, Notes, Policy, ReceiveCtx, ReceiveVerdict, ResponseCtx,
};

use crate::sample::Sample;
use crate::settings::Settings;
use crate::visit::Visit;

/// The step that follows the policy's verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Course {
    /// The store is asked.
    Lookup,
    /// The request goes to the origin, past the store.
    Pass,
    /// The settings themselves answer: a redirect, a file, a refusal.
    Own,
    /// The request purges what is stored for it.
    Purge,
}

/// A request as its site's policy received it.
pub(crate) struct Reception<'s> {
    /// Index of the site.
    pub(crate) site: usize,
    /// The site's policy.
    pub(crate) policy: &'s dyn Policy,
    /// The request in canonical form.
    pub(crate) request: Request,
    /// The policy's notes on it.
    pub(crate) notes: Notes,
    /// The next step.
    pub(crate) course: Course,
}

/// The request of a visit as the client sent it; `None` if its target is malformed.
pub(crate) fn sent_request(visit: &Visit) -> Option<Request> {
    let mut request = Request::new();
    request.method = Method::from_token(visit.method.as_bytes());
    request.scheme = if visit.is_tls { Scheme::Https } else { Scheme::Http };
    request.host.extend_from_slice(visit.host.as_bytes());
    request.target.clone_from(&visit.target);
    if !request.target.starts_with(b"/") || target::check(&request).is_err() {
        return None;
    }
    target::canonical(&mut request);
    for (name, value) in &visit.fields {
        request.headers.push_named(name.as_bytes(), value);
    }
    request.arrived_unix_ms = visit.at_ms;
    request.client = ClientClass::of_word(&visit.class).map(|class| ClassifiedClient {
        class,
        proof: ClientProof::default(),
        number: None,
    });
    if !matches!(request.method, Method::Get | Method::Head) {
        request.framing = Framing::Length(0);
    }
    Some(request)
}

/// Receives a visit's request; `None` if it is malformed, for no site, or for one whose program
/// decides.
pub(crate) fn receive<'s>(settings: &'s Settings, visit: &Visit) -> Option<Reception<'s>> {
    let mut request = sent_request(visit)?;
    let site = settings.site_of(&request.host).filter(|site| !settings.has_program(*site))?;
    let policy = settings.policy(site);
    // Many logs do not say by which scheme a request came. One that was not redirected came by the
    // right one.
    if policy.wants_https(&request, request.scheme) && !matches!(visit.status, 301 | 302 | 308) {
        request.scheme = Scheme::Https;
    }
    let mut notes = Notes::default();
    let is_purge = matches!(request.method, Method::Purge | Method::Ban);
    if is_purge {
        // Its key is that of the page that it is about.
        request.method = Method::Get;
        request.framing = Framing::None;
    }
    let verdict = policy.receive(&mut ReceiveCtx {
        request: &mut request,
        client: visit.client.map_or(ConnectionPeer::Local, ConnectionPeer::Host),
        now: now(visit.at_ms),
        store: StoreUse::ByRules,
        notes: &mut notes,
    });
    let course = match verdict {
        _ if is_purge => Course::Purge,
        ReceiveVerdict::Lookup => Course::Lookup,
        ReceiveVerdict::Pass | ReceiveVerdict::Upgrade => Course::Pass,
        ReceiveVerdict::Files(_) | ReceiveVerdict::Synth(_) => Course::Own,
        ReceiveVerdict::Purge => Course::Purge,
    };
    Some(Reception { site, policy, request, notes, course })
}

fn now(at_ms: u64) -> Now {
    Now { mono_ms: at_ms, unix_ms: at_ms }
}

/// A response as its site's policy judged it.
#[derive(Debug)]
pub(crate) struct JudgedResponse {
    /// The plan for storing it.
    pub(crate) plan: StorePlan,
    /// The head that is stored.
    pub(crate) headers: HeaderBlock,
}

impl Reception<'_> {
    /// The key under which a response is stored.
    pub(crate) fn key(&self) -> KeyBuf {
        let mut key = KeyBuf::new();
        key.field(self.request.scheme.as_str().as_bytes());
        key.field(&self.request.host);
        key.field(&self.request.target);
        self.policy.key(&self.request, &self.notes, &mut key);
        key
    }

    /// Judges the origin's response in `sample`.
    pub(crate) fn judge(&self, sample: &Sample<'_>) -> JudgedResponse {
        let mut response = sample.head();
        let rules = self.policy.store_rules(&self.notes);
        let judged = self.policy.judged_head(&self.notes, &response);
        let exchange = ExchangeTimes { request_ms: sample.at_ms, response_ms: sample.at_ms };
        let mut plan = plan(&self.request, self.notes.personal, &judged, exchange, rules);
        // What selects a variant is the head as it is judged.
        let headers = judged.headers.into_owned();
        _ = self.policy.response(&mut ResponseCtx {
            request: &self.request,
            response: &mut response,
            plan: &mut plan,
            notes: &self.notes,
        });
        JudgedResponse { plan, headers }
    }

    /// The policy's verdict about a stored response.
    pub(crate) fn hit(&self, freshness: &Freshness, now_ms: u64) -> HitVerdict {
        let (request, notes) = (&self.request, &self.notes);
        self.policy.hit(&HitCtx { request, notes, freshness, now_ms })
    }
}

/// A response of `status` without a body.
pub(crate) fn response(status: u16, fields: &[(String, Vec<u8>)]) -> Response {
    let mut response = Response::new(Status::new(status).unwrap_or(Status::OK));
    for (name, value) in fields {
        response.headers.push_named(name.as_bytes(), value);
    }
    response
}
