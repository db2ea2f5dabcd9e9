//! Declared policy: a site's settings, compiled so that a decision takes a hundred nanoseconds.
//!
//! A request is first brought into canonical form (forged fields, tracking parameters and tracking
//! cookies removed). Key, route, verdict and forwarded request come from that form only: what is
//! not in the key must never reach the origin.

mod candidates;
mod compiler;
mod directives;
mod explanations;
mod media;
mod plan;
mod receive;
mod response;
mod storage_class;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use base::KeyBuf;
use message::store::{JudgedHead, NotStored, StoreRules};
use message::{HeaderBlock, HeaderId, Request, Response, Scheme, Status, cookie};

use crate::acl::CidrSet;
use crate::answer::Redirect;
use crate::conditions::{RouteScope, RoutedRequest};
use crate::countries::Countries;
use crate::decision_steps::{DecisionStep, NullListener, SettingLocation};
use crate::forged_fields;
use crate::forwarded::{self, ClientField};
use crate::headers::FieldName;
use crate::peer::ConnectionPeer;
use crate::points::{
    BackendResponse, DeliverCtx, FetchCtx, FetchVerdict, HitCtx, HitVerdict, Notes, Policy,
    ReceiveCtx, ReceiveVerdict, ResponseCtx, Routes, StorageChoice, TrailerCtx,
};
use crate::response_rules::{self, MatchedRules};
use crate::rewrite::Rewrite;
use crate::rules::{BrowserCaching, ServeMode};
use crate::scripts::ScriptNames;
use crate::sticky::StickyCookie;
use crate::template::{CapturedBytes, TemplateValues};
use candidates::Candidates;
use plan::{Refusals, RoutePlan, Rule};
use receive::RouteSelection;

/// A site's policy made from its [`SiteRules`](crate::SiteRules).
#[derive(Debug)]
pub struct Declared {
    /// Cookies and Authorization make a request personal.
    requests_are_personal: bool,
    trusted: CidrSet,
    client_field: ClientField,
    /// Origins get Forwarded, too.
    forwarded: bool,
    redirect_https: Option<Redirect>,
    /// A key has fields of CDNs about the client's place.
    keys_places: bool,
    /// Rules also apply to spellings that an origin may treat as their paths.
    guards_spellings: bool,
    /// The scripts that may run with a path info; empty if no rule is for a path.
    scripts: ScriptNames,
    /// The countries of clients, if a route is for some.
    countries: Option<Arc<Countries>>,
    /// The conditions of each route; the first that matches counts.
    matchers: Vec<Matcher>,
    /// The way to the matching ones, if there are many.
    candidates: Option<Box<Candidates>>,
    /// The plans for requests: that of the site itself first, then those of `matchers`.
    plans: Vec<RoutePlan>,
    /// Names of the routes, in the order of `plans`.
    route_names: Vec<String>,
    rule_names: Vec<String>,
    refusals: Refusals,
}

/// A part of a key.
enum KeyPart<'a> {
    /// A value of the source.
    Value(KeySource<'a>, &'a [u8]),
    /// The end of the source's values.
    End(KeySource<'a>),
}

/// The source of a part of a key.
#[derive(Clone, Copy)]
enum KeySource<'a> {
    Cookie(&'a [u8]),
    Field(&'a FieldName),
}

impl fmt::Display for KeySource<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cookie(name) => write!(f, "cookie {}", name.escape_ascii()),
            Self::Field(name) => write!(f, "{name}"),
        }
    }
}

#[derive(Debug)]
struct Matcher {
    scope: RouteScope,
    /// The paths of `scope` whose patterns cover the path info behind a script's name.
    meant: Vec<bool>,
}

impl Declared {
    /// Passes the parts of the key besides the URL to `each`.
    #[inline(always)]
    fn split_key<'a>(
        &'a self,
        request: &'a Request,
        notes: &Notes,
        mut each: impl FnMut(KeyPart<'a>),
    ) {
        let plan = self.plan(notes);
        for name in &plan.cookie_key {
            // All values of the name: which of several an origin reads is not known here.
            let pairs = cookie::pairs(request.headers.values(HeaderId::Cookie));
            for pair in pairs.filter(|pair| pair.name == &**name) {
                each(KeyPart::Value(KeySource::Cookie(name), pair.value));
            }
            each(KeyPart::End(KeySource::Cookie(name)));
        }
        for name in &plan.header_key {
            for value in name.values(&request.headers) {
                each(KeyPart::Value(KeySource::Field(name), value));
            }
            each(KeyPart::End(KeySource::Field(name)));
        }
    }

    /// Returns true if requests for one URL may belong to several routes.
    fn divides(&self) -> bool {
        self.matchers.iter().any(|matcher| !matcher.scope.when.is_empty())
    }

    /// The target that the origin is asked for in place of that of `request`.
    fn rewritten(&self, rewrite: &Rewrite, request: &Request, notes: &Notes) -> Option<Vec<u8>> {
        let captures = self.captures(notes.route, request.path(), rewrite.captures())?;
        rewrite.target(request, &captures)
    }

    /// The parts of `path` that the pattern of a route stands for. `None` if fewer than `needed`
    /// are there: the route is the request's for another reading of its path.
    fn captures<'a>(&self, route: u32, path: &'a [u8], needed: usize) -> Option<CapturedBytes<'a>> {
        if needed == 0 {
            return Some(CapturedBytes::new());
        }
        let matcher = self.matchers.get(usize::try_from(route).ok()?.checked_sub(1)?)?;
        let found = matcher.scope.paths.iter().find_map(|pattern| pattern.captures(path))?;
        (found.len() >= needed).then_some(found)
    }

    /// Passes the values of variables to `use_values`. A part of the path that the route's pattern
    /// does not have, since the route is the request's for another reading, is empty.
    fn with_values(
        &self,
        request: &Request,
        notes: &Notes,
        captures: usize,
        use_values: impl FnOnce(TemplateValues<'_>),
    ) {
        let captured = self.captures(notes.route, request.path(), captures).unwrap_or_default();
        let (client, captures) = (notes.client, &captured[..]);
        use_values(TemplateValues { request, client, captures });
    }

    fn plan(&self, notes: &Notes) -> &RoutePlan {
        // Notes of another policy (before a reload) may have a route that does not exist here.
        self.plans.get(notes.route as usize).unwrap_or(&self.plans[0])
    }
}

impl Policy for Declared {
    fn asker(&self, request: &Request, peer: ConnectionPeer) -> ConnectionPeer {
        let client = self.client(request, peer);
        if client == peer
            && !self.trusted.has(peer)
            && forged_fields::is_passed_on(&request.headers)
        {
            return ConnectionPeer::Unnamed(peer.address());
        }
        client
    }

    fn client(&self, request: &Request, peer: ConnectionPeer) -> ConnectionPeer {
        forwarded::client_named(peer, &self.trusted, &self.client_field, &request.headers)
    }

    fn scheme(&self, request: &Request, peer: ConnectionPeer) -> Scheme {
        forwarded::scheme_named(peer, &self.trusted, &self.client_field, request)
    }

    fn wants_https(&self, request: &Request, scheme: Scheme) -> bool {
        self.redirect_of(request, scheme).is_some()
    }

    fn remove_forged(&self, headers: &mut HeaderBlock) {
        forged_fields::remove(headers, false, self.keys_places);
        if let Some(name) = self.client_field.named() {
            headers.remove_named(name.as_bytes());
        }
    }

    fn routes(&self, request: &Request, client: ConnectionPeer) -> Routes {
        let asked = RoutedRequest { path: request.path(), request, client };
        match self.route(asked, &mut None) {
            Some(routed) => {
                Routes { own: routed.plan as u32, also: routed.also.map(|also| also as u32) }
            }
            // The request is rejected.
            None => Routes::default(),
        }
    }

    fn splits_key(&self, notes: &Notes) -> bool {
        let plan = self.plan(notes);
        !plan.cookie_key.is_empty() || !plan.header_key.is_empty()
    }

    fn targets_apart(&self, request: &Request) -> Vec<Vec<u8>> {
        let path = request.path();
        let mut targets = Vec::new();
        for (matcher, plan) in self.matchers.iter().zip(&self.plans[1..]) {
            let scope = &matcher.scope;
            if scope.when.is_empty() {
                continue;
            }
            let is_odd = !self.scripts.leave_one_reading(path);
            if !is_odd && !scope.is_for(path, &request.method) {
                continue;
            }
            let mut asked = request.clone();
            plan.query.iter().for_each(|query| query.apply(&mut asked));
            targets.push(asked.target);
        }
        targets
    }

    fn keeps_out(&self, request: &Request, client: ConnectionPeer) -> bool {
        let asked = RoutedRequest { path: request.path(), request, client };
        let Some(RouteSelection { plan, also }) = self.route(asked, &mut None) else { return true };
        let mut plans = std::iter::once(plan).chain(also).map(|at| &self.plans[at]);
        self.refusal_of(&request.method).is_some() || plans.any(|plan| plan.keeps_out(client))
    }

    fn identify(&self, ctx: &mut ReceiveCtx<'_>) {
        self.identified(ctx);
    }

    fn receive(&self, ctx: &mut ReceiveCtx<'_>) -> ReceiveVerdict {
        self.decide(ctx, &mut NullListener)
    }

    fn looks_at_cookie(&self, notes: &Notes, name: &[u8]) -> bool {
        self.plan(notes).is_in_key(name)
    }

    fn key(&self, request: &Request, notes: &Notes, key: &mut KeyBuf) {
        self.split_key(request, notes, |part| match part {
            KeyPart::Value(_, value) => {
                key.field(b"1");
                key.field(value);
            }
            KeyPart::End(_) => key.field(b"0"),
        });
        if notes.apart != 0 {
            key.field(&notes.apart.to_be_bytes());
        }
    }

    fn hit(&self, ctx: &HitCtx<'_>) -> HitVerdict {
        let plan = self.plan(ctx.notes);
        if plan.serve == ServeMode::Stored {
            // A crawler cannot have a page fetched anew either.
            return HitVerdict::DeliverStale;
        }
        if !plan.honours_requests {
            return HitVerdict::Deliver;
        }
        directives::apply_directives(ctx)
    }

    fn fetch(&self, ctx: &mut FetchCtx<'_>) -> FetchVerdict {
        let changes = &self.plan(ctx.notes).request_headers;
        // Variables are of the client's URL and fields.
        let asked = changes.need_values().then(|| ctx.request.clone());
        if let Some(rewrite) = &self.plan(ctx.notes).rewrite {
            match self.rewritten(rewrite, ctx.request, ctx.notes) {
                Some(target) => ctx.request.target = target,
                None => return FetchVerdict::Synth(Arc::clone(&self.refusals.path)),
            }
        }
        let request = &mut *ctx.request;
        if let Some(sticky) = &self.plan(ctx.notes).sticky {
            sticky.remove_from(&mut request.headers);
        }
        forwarded::tell(request, ctx.notes.client, &self.client_field, self.forwarded);
        match &asked {
            Some(asked) => self.with_values(asked, ctx.notes, changes.captures(), |values| {
                changes.apply(&mut request.headers, Some(values));
            }),
            None => changes.apply(&mut request.headers, None),
        }
        FetchVerdict::Fetch
    }

    fn first_byte_ms(&self, notes: &Notes) -> Option<u64> {
        self.plan(notes).first_byte_ms
    }

    fn serves_stored(&self, notes: &Notes) -> bool {
        self.plan(notes).serve == ServeMode::Stored
    }

    fn rewrites(&self, notes: &Notes) -> bool {
        self.plan(notes).rewrite.is_some()
    }

    fn store_rules(&self, notes: &Notes) -> &StoreRules {
        &self.plan(notes).store
    }

    fn judged_head<'a>(&'a self, notes: &Notes, response: &'a Response) -> JudgedHead<'a> {
        let plan = self.plan(notes);
        let mut judged = JudgedHead::of(response, &plan.store);
        response_rules::judge(&plan.response_rules, response, &mut judged);
        judged
    }

    fn store_in(&self, notes: &Notes) -> StorageChoice {
        self.plan(notes).store_in
    }

    fn response(&self, ctx: &mut ResponseCtx<'_>) -> BackendResponse {
        let plan = self.plan(ctx.notes);
        let status = ctx.response.status;
        let judged = JudgedHead::of(ctx.response, &plan.store);
        let drops_ignored = judged.drops_cookies();
        // The response of a request that was not looked up may set cookies.
        let looked_up = ctx.notes.rule == Rule::Cache as u32;
        let other_key = || response::other_key(plan, ctx.request, ctx.response, &judged);
        let mut drops_cookies = false;
        if looked_up && let Some(why) = other_key() {
            ctx.plan.refuse(why, status);
        } else if looked_up {
            let admits = plan.drop_set_cookie && ctx.plan.admit_without_cookies();
            drops_cookies = admits || drops_ignored;
        }
        // Whoever the client is counts, even if Vary is ignored.
        let headers = &ctx.response.headers;
        if forwarded::is_varied_by(headers, &self.client_field)
            || response::is_varied_by_changes(plan, headers)
        {
            ctx.plan.refuse(NotStored::VaryAny, status);
        }
        if ctx.plan.verdict().is_ok() && plan.not_stored.iter().any(|of| of.matches(status)) {
            ctx.plan.refuse(NotStored::Status, status);
        }
        if plan.match_type && ctx.plan.verdict().is_ok() {
            let kind = ctx.response.headers.value(HeaderId::ContentType).unwrap_or_default();
            if !media::fits(ctx.request.path(), kind) {
                ctx.plan.refuse(NotStored::ContentType, status);
            }
        }
        // What one client was given stays with it, unless others get the response.
        if drops_cookies && ctx.plan.verdict().is_ok() {
            ctx.response.headers.remove(HeaderId::SetCookie);
        }
        if let Some(field) = &plan.dictionary
            && ctx.plan.verdict().is_ok()
            && ctx.response.status == Status::OK
            && !ctx.response.headers.contains(HeaderId::UseAsDictionary)
        {
            ctx.response.headers.push(HeaderId::UseAsDictionary, field);
        }
        BackendResponse::Deliver
    }

    fn intercepts(&self, notes: &Notes, status: Status) -> bool {
        self.plan(notes).intercepted.iter().any(|of| of.matches(status))
    }

    fn shapes_delivery(&self, notes: &Notes) -> bool {
        self.plan(notes).shapes_delivery
    }

    fn matched_rules(&self, notes: &Notes, response: &Response) -> MatchedRules {
        let plan = self.plan(notes);
        match plan.rules_change_heads {
            true => response_rules::matched(&plan.response_rules, response),
            false => MatchedRules::default(),
        }
    }

    fn deliver(&self, ctx: &mut DeliverCtx<'_>) {
        let plan = self.plan(ctx.notes);
        if plan.browsers == BrowserCaching::NeverStore {
            response::keep_from_browsers(&mut ctx.response.headers);
        }
        let headers = &mut ctx.response.headers;
        self.with_values(ctx.request, ctx.notes, plan.response_captures, |values| {
            plan.response_headers.apply(headers, Some(values));
            response_rules::change(&plan.response_rules, ctx.matched, headers, values);
        });
    }

    fn sticky(&self, notes: &Notes) -> Option<&StickyCookie> {
        self.plan(notes).sticky.as_deref()
    }

    fn complete(&self, request: &Request, notes: &Notes, headers: &mut HeaderBlock) {
        let changes = &self.plan(notes).response_headers;
        self.with_values(request, notes, changes.captures(), |values| {
            changes.apply(headers, Some(values));
        });
    }

    fn passes_trailer(&self, ctx: &TrailerCtx<'_>) -> bool {
        let (name, plan) = (ctx.field.name, self.plan(ctx.notes));
        if !ctx.of_request {
            let rules = plan.response_rules.iter().map(|rule| &rule.headers);
            return !rules.chain([&plan.response_headers]).any(|own| own.speak_of(name));
        }
        let tells_client = self.client_field.named().is_some_and(|own| own.is_spelt(name));
        let in_key = plan.header_key.iter().any(|own| own.is_spelt(name));
        let is_free = !forged_fields::is_forged(ctx.field) && !plan.request_headers.speak_of(name);
        is_free && !tells_client && !in_key
    }

    fn rule_name(&self, rule: u32) -> &str {
        self.rule_names.get(rule as usize).map_or("", String::as_str)
    }

    /// `site` for the site's own settings.
    fn route_name(&self, route: u32) -> &str {
        self.route_names.get(route as usize).map_or("", String::as_str)
    }

    fn explain(&self, ctx: &mut ReceiveCtx<'_>) -> (ReceiveVerdict, Vec<DecisionStep>) {
        let mut steps = Vec::new();
        (self.decide(ctx, &mut steps), steps)
    }

    fn key_parts(&self, request: &Request, notes: &Notes) -> Vec<(String, Vec<u8>)> {
        let (mut parts, mut values) = (Vec::new(), 0);
        self.split_key(request, notes, |part| match part {
            KeyPart::Value(name, value) => {
                values += 1;
                parts.push((name.to_string(), value.to_vec()));
            }
            KeyPart::End(name) => {
                if std::mem::take(&mut values) == 0 {
                    parts.push((name.to_string(), b"(none)".to_vec()));
                }
            }
        });
        if notes.apart != 0 {
            let route = self.route_name(notes.route);
            parts.push(("its route".to_owned(), route.as_bytes().to_vec()));
        }
        parts
    }

    fn response_rules_words(&self, notes: &Notes) -> String {
        response_rules::words(&self.plan(notes).response_rules)
    }

    fn place(&self, notes: &Notes, setting: &str) -> Option<&SettingLocation> {
        self.plan(notes).places.of(setting)
    }
}
