//! Receiving: the decisions of [`Policy::receive`](crate::Policy::receive).

use std::sync::Arc;

use message::cookie;
use message::{Framing, HeaderId, Method, Request, Scheme, Upgrade, path, percent, upgrade};

use super::candidates::Wanted;
use super::explanations;
use super::plan::{BypassRules, FileRedirects, OwnResponses, RoutePlan, Rule};
use super::{Declared, Matcher};
use crate::answer::{ConfiguredResponse, Redirect};
use crate::conditions::RoutedRequest;
use crate::decision_steps::Listener;
use crate::forged_fields::{self, HeadFindings};
use crate::forwarded;
use crate::pattern::NamePattern;
use crate::peer::ConnectionPeer;
use crate::points::{Notes, ReceiveCtx, ReceiveVerdict, StoreUse};
use crate::value::ValuePattern;

/// The prefix of requests of certificate authorities over plain HTTP (RFC 8555 8.3).
const ACME_CHALLENGE: &[u8] = b"/.well-known/acme-challenge/";

/// A path that differs from its normal form, with the interpretations of origins.
#[derive(Debug, Default)]
pub(super) struct Readings {
    /// Escapes decoded, dot segments and double slashes resolved.
    normal: Vec<u8>,
    /// As sent, with necessary escapes decoded.
    literal: Vec<u8>,
    /// Without parameters, and with escaped backslashes as slashes, if different; and the scripts
    /// that these paths run.
    others: Vec<Vec<u8>>,
}

/// The parts of a target that decide.
#[derive(Clone, Copy, Debug)]
struct TargetParts<'a> {
    /// The interpretations of its path, if there are several.
    readings: Option<&'a Readings>,
    /// The target had a query before policy changed it.
    has_query: bool,
}

/// The plan for a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct RouteSelection {
    /// The index of the plan.
    pub(super) plan: usize,
    /// The index of a further plan whose access rules apply: an origin may treat the path as one of
    /// its paths.
    pub(super) also: Option<usize>,
}

impl Declared {
    /// Decides, and passes the steps to the listener.
    ///
    /// Functions that `decide` calls are inlined by force. `decide` is compiled once per listener;
    /// a function called by both copies would not be inlined, which costs the request path a tenth.
    pub(super) fn decide(
        &self,
        ctx: &mut ReceiveCtx<'_>,
        listener: &mut impl Listener,
    ) -> ReceiveVerdict {
        let head = HeadFindings::of(&ctx.request.headers);
        let client = self.client(head, ctx);
        listener.record(|| self.tell_client(ctx, head, client));
        if let Some(refusal) = self.refusal_of(&ctx.request.method) {
            ctx.notes.rule = Rule::MethodRefused as u32;
            listener.record(|| explanations::method_refused(ctx.request));
            return ReceiveVerdict::Synth(Arc::clone(refusal));
        }
        if let Some(redirect) = self.redirect_of(ctx.request, ctx.request.scheme) {
            ctx.notes.rule = Rule::Answer as u32;
            listener.record(|| self.tell_https());
            return ReceiveVerdict::Synth(self.redirect(redirect, ctx.request, &[]));
        }
        let mut readings = None;
        let path = ctx.request.path();
        let has_query = path.len() < ctx.request.target.len();
        let asked = RoutedRequest { path, request: ctx.request, client };
        let Some(selection) = self.route(asked, &mut readings) else {
            ctx.notes.rule = Rule::PathForm as u32;
            listener.record(|| explanations::ambiguous(ctx.request));
            return ReceiveVerdict::Synth(Arc::clone(&self.refusals.path));
        };
        let RouteSelection { plan: route, also } = selection;
        let plan = &self.plans[route];
        listener.record(|| self.tell_route(selection, asked));
        self.note(selection, asked, readings.is_some(), ctx.notes);
        ctx.notes.personal = self.requests_are_personal && (head.authorization || head.cookie);
        if self.keeps_out(selection, client, listener) {
            ctx.notes.rule = Rule::Access as u32;
            return ReceiveVerdict::Synth(Arc::clone(&self.refusals.access));
        }
        if let Some(answers) = &plan.answers
            && let Some(answer) = self.own_answer(plan, answers, ctx, listener)
        {
            ctx.notes.rule = Rule::Answer as u32;
            return ReceiveVerdict::Synth(answer);
        }
        if let Some(files) = plan.files {
            ctx.notes.rule = Rule::Files as u32;
            listener.record(|| explanations::files(plan));
            return ReceiveVerdict::Files(files);
        }
        if ctx.request.upgrade == Upgrade::Asked && take_upgrade(plan, ctx.request) {
            ctx.notes.rule = Rule::Upgrade as u32;
            listener.record(|| explanations::upgrade(plan, ctx.request));
            return ReceiveVerdict::Upgrade;
        }
        let may_cache = plan.cache && also.is_none_or(|also| self.plans[also].cache);
        let (rule, verdict) = match pass_unread(may_cache, ctx) {
            Some(rule) => {
                listener.record(|| explanations::pass_unread(plan, rule, ctx.request));
                (rule as u32, ReceiveVerdict::Pass)
            }
            None => {
                let parts = TargetParts { readings: readings.as_ref(), has_query };
                self.canonical(plan, head, parts, ctx, listener)
            }
        };
        ctx.notes.rule = rule;
        verdict
    }

    /// Notes the client before the request is received.
    #[inline(never)]
    pub(super) fn identified(&self, ctx: &mut ReceiveCtx<'_>) -> ConnectionPeer {
        self.client(HeadFindings::of(&ctx.request.headers), ctx)
    }

    /// Returns true if a route keeps a client out: the request's own, or one that its path leads to
    /// in another reading.
    #[inline(always)]
    fn keeps_out(
        &self,
        RouteSelection { plan, also }: RouteSelection,
        client: ConnectionPeer,
        listener: &mut impl Listener,
    ) -> bool {
        let own = &self.plans[plan];
        if let Some(access) = &own.access {
            listener.record(|| explanations::access(own, access, client));
        }
        if own.keeps_out(client) {
            return true;
        }
        let Some(other) = also.map(|also| &self.plans[also]) else { return false };
        if let Some(access) = &other.access {
            listener.record(|| explanations::access(other, access, client).of_other_reading());
        }
        other.keeps_out(client)
    }

    /// Notes the route of a request, whose path has several readings if it `is_odd`.
    #[inline(always)]
    fn note(
        &self,
        RouteSelection { plan: route, also }: RouteSelection,
        asked: RoutedRequest<'_>,
        is_odd: bool,
        notes: &mut Notes,
    ) {
        let plan = &self.plans[route];
        notes.route = route as u32;
        notes.also = also.map(|also| also as u32);
        if plan.is_divided {
            notes.apart = self.mark_of(route, asked, is_odd);
        }
        if let Some(sticky) = &plan.sticky {
            notes.server = sticky.server_of(&asked.request.headers);
        }
        notes.origin = plan.origin;
        notes.pages = plan.page_cache;
    }

    /// The mark in the key of a request that belongs to the route of this number, which has
    /// conditions; 0 for no mark.
    #[inline(never)]
    fn mark_of(&self, route: usize, asked: RoutedRequest<'_>, is_odd: bool) -> u64 {
        let class = self.plans[route].class;
        let is_shared = !is_odd && self.plans[self.route_by_url(route, asked)].class == class;
        if is_shared { 0 } else { class.number() }
    }

    /// The route, behind the one of this number, that the URL alone leads to.
    fn route_by_url(&self, behind: usize, asked: RoutedRequest<'_>) -> usize {
        let is_it = |at: usize| {
            let scope = &self.matchers[at].scope;
            scope.when.is_empty() && scope.is_for(asked.path, &asked.request.method)
        };
        // None before it is for the URL alone: the request would belong to that.
        let found = match &self.candidates {
            Some(candidates) => candidates.find(Wanted::Unconditional, asked, is_it),
            None => (behind..self.matchers.len()).find(|at| is_it(*at)),
        };
        found.map_or(0, |at| at + 1)
    }

    /// The response to a rejected method.
    #[inline(always)]
    pub(super) fn refusal_of(&self, method: &Method) -> Option<&Arc<crate::Synthetic>> {
        match method {
            Method::Connect => Some(&self.refusals.connect),
            Method::Trace | Method::Purge | Method::Ban => Some(&self.refusals.method),
            _ => None,
        }
    }

    /// The redirect for a request with this scheme that must use HTTPS.
    #[inline(always)]
    pub(super) fn redirect_of(&self, request: &Request, scheme: Scheme) -> Option<&Redirect> {
        let redirect = self.redirect_https.as_ref()?;
        (scheme == Scheme::Http && !is_challenge(request.path())).then_some(redirect)
    }

    /// The client of the request. Forwarding fields of clients are removed; those of trusted
    /// proxies are kept in X-Forwarded-For.
    #[inline(always)]
    fn client(&self, head: HeadFindings, ctx: &mut ReceiveCtx<'_>) -> ConnectionPeer {
        // In a second call the fields are gone, and the client was noted.
        if let Some(client) = ctx.notes.client {
            return client;
        }
        let (request, field) = (&mut *ctx.request, &self.client_field);
        let client = forwarded::client_of(ctx.client, &self.trusted, field, request);
        ctx.notes.client = Some(client);
        if head.forged {
            ctx.notes.passed_on = forged_fields::is_passed_on(&request.headers);
            let rewritten = client != ctx.client;
            let placed = self.keys_places || self.trusted.has(ctx.client);
            forged_fields::remove(&mut request.headers, rewritten, placed);
        }
        if let Some(name) = field.named() {
            request.headers.remove_named(name.as_bytes());
        }
        client
    }

    /// The index of the plan for `request`, whose path is `path`. `None` if the path has no normal
    /// form, or has two interpretations with different routes (path confusion: a request could
    /// evade a rule for one route through the other).
    #[inline(always)]
    pub(super) fn route(
        &self,
        asked: RoutedRequest<'_>,
        readings: &mut Option<Readings>,
    ) -> Option<RouteSelection> {
        if self.scripts.leave_one_reading(asked.path) {
            return Some(RouteSelection { plan: self.find(asked), also: None });
        }
        self.route_of_odd(asked, readings)
    }

    /// The plan for a path with several interpretations.
    #[inline(never)]
    fn route_of_odd(
        &self,
        asked: RoutedRequest<'_>,
        readings: &mut Option<Readings>,
    ) -> Option<RouteSelection> {
        let path = asked.path;
        let find = |path: &[u8]| self.find(RoutedRequest { path, ..asked });
        // No URL contains it (RFC 3986 3.3), and Windows' servers treat it as a slash.
        if path.contains(&b'\\') {
            return None;
        }
        let mut normal = Vec::new();
        if !path::normal_form(path, &mut normal).ok()? {
            normal = path.to_vec();
        }
        let literal = decode_necessary(path);
        let plan = find(&normal);
        let same = plan == find(&literal);
        let other = match self.guards_spellings {
            true => path::lenient_form(path).ok()?,
            false => None,
        };
        // A route for a path info applies to it, whatever the script.
        let is_meant = plan.checked_sub(1).is_some_and(|at| self.matchers[at].means(&normal));
        let scripts: Vec<_> = match is_meant {
            true => Vec::new(),
            false => self.scripts.of(&normal).map(<[u8]>::to_vec).collect(),
        };
        let runs = !scripts.is_empty();
        let of_other = other.iter().flat_map(|other| self.scripts.of(other)).map(<[u8]>::to_vec);
        let others: Vec<_> = scripts.into_iter().chain(of_other).collect();
        let others: Vec<_> = others.into_iter().chain(other).collect();
        let mut further: Vec<_> = others.iter().map(|other| find(other)).collect();
        *readings = Some(Readings { normal, literal, others });
        further.retain(|another| *another != plan);
        further.dedup();
        match further[..] {
            _ if !same => None,
            [] => Some(RouteSelection { plan, also: None }),
            // A path that an origin may treat as a path with a configured response or without
            // storing is treated as that path, and one that runs a script as the script's: no
            // spelling evades a rule.
            [another] => {
                let guards = [plan, another].map(|at| self.plans[at].is_guard());
                let is_other = guards[1] && !guards[0] || runs && guards[0] == guards[1];
                let (plan, also) = if is_other { (another, plan) } else { (plan, another) };
                Some(RouteSelection { plan, also: Some(also) })
            }
            // A request cannot be held to the rules of three routes.
            _ => None,
        }
    }

    fn find(&self, asked: RoutedRequest<'_>) -> usize {
        let found = match &self.candidates {
            Some(candidates) => {
                let is_it = |at: usize| self.matchers[at].scope.contains(asked);
                candidates.find(Wanted::All, asked, is_it)
            }
            None => self.matchers.iter().position(|matcher| matcher.scope.contains(asked)),
        };
        found.map_or(0, |at| at + 1)
    }

    /// The response that the settings make to a request, if they make one to it.
    #[inline(never)]
    fn own_answer(
        &self,
        plan: &RoutePlan,
        answers: &OwnResponses,
        ctx: &ReceiveCtx<'_>,
        listener: &mut impl Listener,
    ) -> Option<Arc<crate::Synthetic>> {
        if let Some(FileRedirects { file, map }) = &answers.redirects {
            let found = map.find(ctx.request, file.status);
            listener.record(|| explanations::redirect_map(plan, file, found.as_ref()));
            if let Some(found) = found {
                return Some(Arc::new(found.response));
            }
        }
        let answer = answers.other.as_ref()?;
        listener.record(|| self.tell_answer(plan, answer, ctx));
        Some(self.answer(answer, ctx))
    }

    fn answer(&self, answer: &ConfiguredResponse, ctx: &ReceiveCtx<'_>) -> Arc<crate::Synthetic> {
        match answer {
            ConfiguredResponse::Fixed(synthetic) => Arc::clone(synthetic),
            ConfiguredResponse::Redirect(redirect) => {
                let path = ctx.request.path();
                match self.captures(ctx.notes.route, path, redirect.captures()) {
                    Some(captures) => self.redirect(redirect, ctx.request, &captures),
                    None => Arc::clone(&self.refusals.path),
                }
            }
        }
    }

    fn redirect(
        &self,
        redirect: &Redirect,
        request: &Request,
        captures: &[&[u8]],
    ) -> Arc<crate::Synthetic> {
        match redirect.answer(request, captures) {
            Some(synthetic) => Arc::new(synthetic),
            None => Arc::clone(&self.refusals.path),
        }
    }

    /// Brings a request that may be looked up into canonical form, and decides if it is.
    #[inline(always)]
    fn canonical(
        &self,
        plan: &RoutePlan,
        head: HeadFindings,
        parts: TargetParts<'_>,
        ctx: &mut ReceiveCtx<'_>,
        listener: &mut impl Listener,
    ) -> (u32, ReceiveVerdict) {
        let request = &mut *ctx.request;
        let mut light = false;
        if head.cookie {
            listener.record(|| explanations::cookies(plan, request));
            let mut scratch = Vec::new();
            cookie::remove(&mut request.headers, |name| plan.cookies.strips(name), &mut scratch);
            let (mut any, mut personal) = (false, false);
            for pair in cookie::pairs(request.headers.values(HeaderId::Cookie)) {
                any = true;
                let counts = plan.cookies.counts(pair.name);
                light |= !counts;
                personal |= counts && !plan.is_in_key(pair.name);
            }
            ctx.notes.personal = self.requests_are_personal && (head.authorization || personal);
            if !any {
                request.headers.remove(HeaderId::Cookie);
            }
        }
        if self.requests_are_personal && (head.authorization || head.cookie) {
            listener.record(|| explanations::personal(plan, request, ctx.notes.personal));
        }
        if parts.has_query
            && let Some(query) = &plan.query
        {
            listener.record(|| explanations::query(plan, query, request));
            query.apply(request);
        }
        let reason = if ctx.store == StoreUse::Passed {
            Some(Rule::Vcl as u32)
        } else {
            let reason = plan.bypass.reason(request, parts);
            listener.record(|| self.tell_bypass(plan, request, reason));
            reason
        };
        match reason {
            Some(rule) => (rule, ReceiveVerdict::Pass),
            None => {
                if light {
                    plan.remove_ignored_cookies(&mut request.headers, ctx.notes.personal);
                }
                if let Some(vary) = &plan.vary {
                    let personal = ctx.notes.personal;
                    listener.record(|| explanations::vary(plan, vary, request, personal));
                    vary.normalise(request, personal);
                }
                (Rule::Cache as u32, ReceiveVerdict::Lookup)
            }
        }
    }
}

/// Returns true for a certificate authority's request of a token. The token has base64url bytes
/// only, so that its path has one interpretation.
fn is_challenge(path: &[u8]) -> bool {
    let is_of_token = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_');
    path.strip_prefix(ACME_CHALLENGE).is_some_and(|token| token.iter().all(is_of_token))
}

/// Returns true if a request may switch protocols, and leaves the permitted ones in its Upgrade. A
/// request that may not is handled as if it had not asked (RFC 9110 7.8).
fn take_upgrade(plan: &RoutePlan, request: &mut Request) -> bool {
    let Some(protocols) = upgrade::admitted(request, &plan.upgrade) else { return false };
    request.headers.set(HeaderId::Upgrade, &protocols);
    request.upgrade = Upgrade::Granted;
    true
}

/// The rule by which a request passes the cache before anything in it is changed, since its content
/// is for the origin only.
#[inline(always)]
fn pass_unread(may_cache: bool, ctx: &ReceiveCtx<'_>) -> Option<Rule> {
    if !matches!(ctx.request.method, Method::Get | Method::Head) {
        return Some(Rule::Method);
    }
    // "Fat GET": the body is not in the key, so the response to it must not be stored.
    if ctx.request.framing != Framing::None {
        return Some(Rule::RequestBody);
    }
    if ctx.store == StoreUse::Untouched {
        return Some(Rule::Observe);
    }
    (!may_cache).then_some(Rule::CacheOff)
}

impl Matcher {
    /// Returns true if the route matches `path` by a pattern that covers a path info.
    fn means(&self, path: &[u8]) -> bool {
        let mut paths = self.scope.paths.iter().zip(&self.meant);
        paths.any(|(pattern, meant)| *meant && pattern.matches(path))
    }
}

impl BypassRules {
    /// The rule by which `request`, in canonical form, passes the cache.
    #[inline(always)]
    fn reason(&self, request: &Request, parts: TargetParts<'_>) -> Option<u32> {
        if !self.paths.is_empty()
            && let Some(rule) = self.reason_of_path(request.path(), parts.readings)
        {
            return Some(rule);
        }
        if !self.unless.is_empty()
            && self.unless.iter().any(|name| name.values(&request.headers).next().is_some())
        {
            return None;
        }
        if !self.cookies.is_empty() {
            for pair in cookie::pairs(request.headers.values(HeaderId::Cookie)) {
                if let Some((_, rule)) = self.cookies.iter().find(|(p, _)| p.matches(pair.name)) {
                    return Some(*rule);
                }
            }
        }
        for (name, value, rule) in &self.headers {
            let wanted = |v: &[u8]| value.as_ref().is_none_or(|value| value == v);
            if name.values(&request.headers).any(wanted) {
                return Some(*rule);
            }
        }
        if !parts.has_query || self.any_query.is_none() && self.queries.is_empty() {
            return None;
        }
        let query = request.query()?;
        self.any_query.or_else(|| {
            message::query::params(query).find_map(|param| {
                let name = message::query::name(param);
                let value = param.get(name.len() + 1..).unwrap_or_default();
                let applies = |(n, v, _): &&(NamePattern, Option<ValuePattern>, u32)| {
                    n.matches(name) && v.as_ref().is_none_or(|v| v.matches(value))
                };
                self.queries.iter().find(applies).map(|(_, _, rule)| *rule)
            })
        })
    }
}

impl BypassRules {
    /// The rule by which a request for `path` passes the cache.
    fn reason_of_path(&self, path: &[u8], readings: Option<&Readings>) -> Option<u32> {
        let matching = self.paths.iter().find(|(pattern, _)| match readings {
            Some(readings) => {
                pattern.matches(&readings.normal)
                    || pattern.matches(&readings.literal)
                    || readings.others.iter().any(|other| pattern.matches(other))
            }
            None => pattern.matches(path),
        });
        matching.map(|(_, rule)| *rule)
    }
}

/// Decodes the percent sign's escape and those of bytes that a path must escape (RFC 3986 3.3).
/// Other escapes are the sender's choice, and origins interpret them differently.
fn decode_necessary(path: &[u8]) -> Vec<u8> {
    percent::decode_selected(path, must_be_escaped)
}

fn must_be_escaped(byte: u8) -> bool {
    byte >= 0x80
        || matches!(byte, b' ' | b'"' | b'<' | b'>' | b'^' | b'`' | b'{' | b'|' | b'}' | b'%')
}
