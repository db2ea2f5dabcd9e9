//! Forecast of a fetch: the origin, its request, and the responses that would be stored.

use base::KeyBuf;
use cache::Object;
use message::store::{IgnoredField, StatusMatch, StoreRules};
use message::{Framing, HeaderId, Request};
use policy::{DecisionStep, FetchCtx, FetchVerdict, decision_steps::shown};

use super::builder::ForecastBuilder;
use super::lookup::body_limit;
use crate::forecast::outcome::{Ending, ForecastOutcome};
use crate::forecast::words::duration;
use crate::origin_messages::{self, FetchPurpose};
use crate::state::origin::SiteOrigin;
use crate::state::reply::ForwardReason;
use crate::state::request_context::RequestContext;
use crate::{declared, peers, sources};
use codec::CompressionScope;
use vcl::sub::Sub;

impl ForecastBuilder<'_> {
    /// Forecasts a request that bypasses the store; `summary` gives the reason.
    pub(super) fn past_the_store(
        &mut self,
        ctx: &RequestContext<'_>,
        reason: ForwardReason,
        summary: String,
    ) -> Ending {
        if let Some(refused) = self.refused(ctx).or_else(|| self.queued(ctx)) {
            return refused;
        }
        self.ask_origin(
            ctx,
            &FetchPurpose::Own,
            self.forecast.shared.seed.hash(&ctx.request.target),
        );
        let why = "never: what goes past the cache is for this client alone";
        self.forecast.steps.push(DecisionStep::new("storing", why));
        (ForecastOutcome::Fetch { reason, stale: false, waits: false, reads_disk: false }, summary)
    }

    /// Reports a request that may change the protocol.
    pub(super) fn ask_for_upgrade(&mut self, ctx: &RequestContext<'_>) {
        self.ask_origin(
            ctx,
            &FetchPurpose::Upgrade,
            self.forecast.shared.seed.hash(&ctx.request.target),
        );
    }

    /// Reports a fetch that bypasses the object stored under its key.
    pub(super) fn fetch_beside(&mut self, ctx: &RequestContext<'_>) {
        self.ask_origin(
            ctx,
            &FetchPurpose::Own,
            self.forecast.shared.seed.hash(&ctx.request.target),
        );
        let why = "never: the object stored under its key is for others, and stays";
        self.forecast.steps.push(DecisionStep::new("storing", why));
    }

    /// Reports a fetch whose response may be stored.
    pub(super) fn fetch_by(
        &mut self,
        ctx: &RequestContext<'_>,
        key: &KeyBuf,
        old: Option<&Object>,
        alone: bool,
        waits: bool,
    ) {
        let purpose = if alone { FetchPurpose::Alone } else { FetchPurpose::Store(old) };
        if !waits {
            if !alone && peers::may_have(ctx) {
                let miss = ctx.miss(key.bytes(), old.is_none());
                self.forecast.steps.extend(sources::foretell(self.forecast.shared, miss));
            }
            self.ask_origin(ctx, &purpose, key.hash());
        }
        self.forecast.steps.push(about_storing(ctx));
    }

    /// Reports what changes the request for the origin beyond fields: the VCL beside the settings,
    /// or a rewrite. Returns false if it would not be sent.
    fn changed_for_origin(
        &mut self,
        ctx: &RequestContext<'_>,
        pass: bool,
        request: &mut Request,
    ) -> bool {
        if let Some(own) = ctx.extra.filter(|own| own.has(Sub::BackendFetch)) {
            let is_sent = own.foretell_fetch(ctx, pass, request);
            self.forecast.steps.extend(own.take_steps());
            if !is_sent {
                let why = "the VCL beside the settings fails: the request is not sent";
                self.forecast.steps.push(DecisionStep::new("fetch", why));
                return false;
            }
        } else if request.target != ctx.request.target {
            let why = format!("the origin is asked for {}", shown(&request.target));
            let place = ["rewrite", "strip_prefix", "add_prefix"]
                .iter()
                .find_map(|key| ctx.site.policy.place(&ctx.notes, key));
            self.forecast.steps.push(
                DecisionStep::new("rewrite", why).at(place).fact("key", "has the client's URL"),
            );
        }
        true
    }

    fn ask_origin(&mut self, ctx: &RequestContext<'_>, purpose: &FetchPurpose<'_>, hash: u64) {
        let mut request = origin_messages::origin_request(ctx, purpose);
        let mut notes = ctx.notes;
        let pass = matches!(purpose, FetchPurpose::Own | FetchPurpose::Upgrade);
        let mut policy_ctx = FetchCtx { request: &mut request, pass, notes: &mut notes };
        if let FetchVerdict::Synth(synthetic) = ctx.site.policy.fetch(&mut policy_ctx) {
            let why = format!("policy answers instead of the origin: status {}", synthetic.status);
            self.forecast.steps.push(DecisionStep::new("fetch", why));
            return;
        }
        if !self.changed_for_origin(ctx, pass, &mut request) {
            return;
        }
        let Some(SiteOrigin { origin, .. }) = ctx.site.origin(&notes) else {
            self.forecast.steps.push(DecisionStep::new("fetch", "this site has no origin to ask"));
            return;
        };
        let config = origin.config();
        let server = origin.likely(hash, notes.server.map(usize::from), ctx.now.mono_ms);
        let conditions: Vec<String> = [HeaderId::IfNoneMatch, HeaderId::IfModifiedSince]
            .into_iter()
            .filter_map(|id| Some(format!("{}: {}", id.name(), shown(request.headers.value(id)?))))
            .collect();
        let how = match purpose {
            FetchPurpose::Store(Some(_)) if !conditions.is_empty() => {
                "asked whether what is stored is still good"
            }
            FetchPurpose::Store(_) => "asked, once for all waiting requests",
            FetchPurpose::Alone | FetchPurpose::Own => "asked for this client alone",
            FetchPurpose::Upgrade => "asked, and may change the protocol",
        };
        let name = origin.name();
        let why = match server {
            Some(server) => {
                let kind = if server.is_backup { "backup" } else { "server" };
                format!("origin `{name}`, likely its {kind} {}, would be {how}", server.name)
            }
            None => {
                format!("origin `{name}` would be {how}, but its probes find all servers unhealthy")
            }
        };
        let servers = origin.servers();
        let healthy = servers.iter().filter(|server| server.healthy).count();
        let times = &config.timeouts;
        let own = ctx.site.policy.first_byte_ms(&notes);
        let first_byte_ms = own.unwrap_or(times.first_byte_ms);
        let (connect, first) = (duration(times.connect_ms), duration(first_byte_ms));
        let (between, total) = (duration(times.between_bytes_ms), duration(times.total_ms));
        let timeouts =
            format!("connect {connect}, first byte {first}, between bytes {between}, all {total}");
        self.forecast.steps.push(
            DecisionStep::new("fetch", why)
                .at(ctx.site.policy.place(&ctx.notes, "origin"))
                .fact("request", format!("{} {}", request.method, shown(&request.target)))
                .fact("conditions", conditions.join(", "))
                .fact("errors replaced", replaced_errors(ctx))
                .fact("mirror", mirror(ctx, &request, purpose))
                .fact("servers in service", format!("{healthy} of {}", servers.len()))
                .fact("timeouts", timeouts),
        );
    }
}

/// The statuses of errors that the site's pages would replace.
fn replaced_errors(ctx: &RequestContext<'_>) -> String {
    let pages = ctx.site.error_pages.iter().map(|page| page.status);
    let replaced = pages.filter(|status| declared::page_for(ctx, *status).is_some());
    replaced.map(|status| status.to_string()).collect::<Vec<_>>().join(", ")
}

/// The origin that would get a copy of `request`, or why there would be none.
fn mirror(ctx: &RequestContext<'_>, request: &Request, purpose: &FetchPurpose<'_>) -> String {
    let Some(mirror) = ctx.site.mirrors.of_route(ctx.notes.route) else { return String::new() };
    let is_upgrade = matches!(purpose, FetchPurpose::Upgrade);
    match request.framing == Framing::None && !is_upgrade {
        true => format!("origin `{}` gets a copy", mirror.name()),
        false => "no copy: the request has a body, or changes the protocol".to_owned(),
    }
}

/// Reports which responses would be stored.
fn about_storing(ctx: &RequestContext<'_>) -> DecisionStep {
    let policy = &ctx.site.policy;
    let rules = policy.store_rules(&ctx.notes);
    let why = match ctx.notes.personal {
        true => {
            "the answer only if its origin marks it as for all (`public`, `s-maxage`): the request \
             is personal"
        }
        false => "the answer, unless it says otherwise (RFC 9111 3) or sets a cookie",
    };
    let drops_cookies = rules.ignored.has(IgnoredField::SetCookie);
    let why = match (rules.store_set_cookie || drops_cookies) && !ctx.notes.personal {
        true => "the answer, unless it says otherwise (RFC 9111 3)",
        false => why,
    };
    let ttl = policy.place(&ctx.notes, "cache.ttl");
    DecisionStep::new("storing", why)
        .at(ttl)
        .fact("ignored", rules.ignored.names().collect::<Vec<_>>().join(", "))
        .fact("ttl where it names none", default_lifetimes(rules))
        .fact("rules for responses", policy.response_rules_words(&ctx.notes))
        .fact("largest body", body_limit(&ctx.live.limits))
        .fact("compress", compress(ctx))
        .fact("vcl", by_program(ctx))
}

/// The part of the VCL beside the settings.
fn by_program(ctx: &RequestContext<'_>) -> &'static str {
    match ctx.extra.is_some_and(|extra| extra.has(Sub::BackendResponse)) {
        true => "vcl_backend_response may then change its times and fields, or keep it out",
        false => "",
    }
}

/// The codings that the site's settings permit.
fn compress(ctx: &RequestContext<'_>) -> String {
    let settings = &ctx.live.compression;
    match ctx.site.compress {
        CompressionScope::Off => "off".to_owned(),
        CompressionScope::Stored | CompressionScope::All => {
            let (gzip, hits) = (settings.gzip, settings.gzip_hits);
            let (token, level) = (gzip.coding().token(), gzip.level());
            format!("{token} {level}, after {hits} hits of clients that take it")
        }
    }
}

fn default_lifetimes(rules: &StoreRules) -> String {
    let one = |(of, ms): &(StatusMatch, u64)| format!("{of}: {}", duration(*ms));
    let mut all: Vec<String> = rules.default_lifetime_ms.iter().map(one).collect();
    if rules.heuristic {
        all.push(format!(
            "a tenth of the time since Last-Modified, at most {}",
            duration(rules.heuristic_max_ms)
        ));
    }
    match all.is_empty() {
        true => "none: it is not stored".to_owned(),
        false => all.join(", "),
    }
}
