//! Forecast of a lookup: the stored responses, the field that makes each fresh or stale, and the
//! next step.

use std::sync::Arc;

use base::{KeyBuf, Limits, key_fields};
use cache::{KeyInspection, Object, VariantInspection};
use message::cache_control::CacheControl;
use message::freshness::Freshness;
use message::store::{self, JudgedHead, LifetimeSource, StorePlan, StoreRules, lifetime_words};
use message::{HeaderId, targeted_control};
use policy::{DecisionStep, SettingLocation, decision_steps::shown};

use super::builder::ForecastBuilder;
use vcl::sub::Sub;

use crate::decisions::{self, JudgementReason, LookupDecision, freshness_until};
use crate::disposition::Start;
use crate::forecast::disk_candidates;
use crate::forecast::outcome::{Ending, ForecastOutcome};
use crate::forecast::variants;
use crate::forecast::words::duration;
use crate::state::reply::{CacheOutcome, ForwardReason};
use crate::state::request_context::RequestContext;
use crate::{declared, surrogate};

/// The route of a request to its fetch.
#[derive(Clone, Copy)]
struct FetchRoute {
    /// The request waits for another request's fetch.
    waits: bool,
    /// The request fetches without waiters.
    alone: bool,
    /// The disk may have a response.
    reads_disk: bool,
}

impl ForecastBuilder<'_> {
    /// Forecasts a request that the store cannot answer.
    pub(super) fn fetch_after(
        &mut self,
        ctx: &RequestContext<'_>,
        key: &KeyBuf,
        next: LookupDecision,
    ) -> Ending {
        let (is_fetched, marked, reads_disk) = match &self.findings {
            Some(findings) => (findings.peek.is_fetched, findings.marked, findings.reads_disk),
            None => (false, false, false),
        };
        match next {
            // `Deliver` has no fetch.
            LookupDecision::Pass | LookupDecision::Deliver(..) => {
                let why = "would be passed to the origin: its conditions are the origin's business";
                self.past_the_store(ctx, ForwardReason::Bypass, why.to_owned())
            }
            LookupDecision::Fetch(old) => {
                let alone = decisions::goes_alone(ctx.request, ctx.live);
                let waits = is_fetched && !marked && !alone;
                let reason = match old {
                    // A mark applies even beside a stored response.
                    Some(_) if marked && !alone => ForwardReason::HitForMiss,
                    Some(_) => ForwardReason::Stale,
                    None => ForwardReason::UriMiss,
                };
                let turning = FetchRoute { waits, alone: alone || marked, reads_disk };
                self.miss(ctx, key, reason, old, turning)
            }
            LookupDecision::Alone(reason) => {
                let turning = FetchRoute { waits: false, alone: true, reads_disk };
                self.miss(ctx, key, reason, None, turning)
            }
        }
    }

    fn miss(
        &mut self,
        ctx: &RequestContext<'_>,
        key: &KeyBuf,
        reason: ForwardReason,
        old: Option<Arc<Object>>,
        FetchRoute { waits, alone, reads_disk }: FetchRoute,
    ) -> Ending {
        if let Some(refused) = self.refused(ctx) {
            return refused;
        }
        if !waits && let Some(refused) = self.queued(ctx) {
            return refused;
        }
        let stale = old.is_some();
        match reason {
            ForwardReason::Bypass => self.fetch_beside(ctx),
            _ => self.fetch_by(ctx, key, old.as_deref(), alone, waits),
        }
        let summary = match reason {
            _ if waits => "would wait for another request's fetch of the same",
            ForwardReason::HitForMiss => {
                "would be fetched, without waiting for others: a former answer could not be stored"
            }
            ForwardReason::Bypass => {
                "would be fetched for this client alone: what is stored is not for personal requests"
            }
            ForwardReason::Stale => "would be fetched: the stored response must be revalidated",
            ForwardReason::UriMiss | ForwardReason::Method if reads_disk => "would be fetched",
            ForwardReason::UriMiss | ForwardReason::Method => {
                "would be fetched: no stored response fits"
            }
        };
        // A request that bypasses a stored response does not read the disk.
        let reads_disk = reads_disk && !waits && reason != ForwardReason::Bypass;
        let summary =
            if reads_disk { disk_candidates::summary(summary) } else { summary.to_owned() };
        (ForecastOutcome::Fetch { reason, stale, waits, reads_disk }, summary)
    }

    /// Advice on the verdict; `None` if it depends on an earlier response.
    pub(super) fn advice(
        &self,
        ctx: &RequestContext<'_>,
        seen: Option<&VariantInspection>,
        peek: &KeyInspection,
    ) -> Option<String> {
        let ground = seen.map(|seen| {
            let times =
                freshness_until(ctx.live, &seen.object, seen.fresh_until_ms, ctx.now.mono_ms);
            (
                decisions::ground(ctx, &seen.object, &times),
                untrusted(ctx, seen.fresh_until_ms),
                times,
            )
        });
        let advice = match ground {
            Some((JudgementReason::Personal, ..)) => return self.advice_on_visitor(),
            None if ctx.notes.personal => return self.advice_on_visitor(),
            None if peek.is_fetched => "Nothing: that fetch answers all waiting requests.",
            None => return variants::advice(ctx, peek),
            Some((JudgementReason::Passed, ..)) => return None,
            Some((JudgementReason::Condition, ..)) => {
                "Nothing: only the origin can judge the condition."
            }
            Some((JudgementReason::Unwanted, ..)) => {
                "Nothing, or let no client's Cache-Control count: `[site.cache] \
                 request_directives = \"ignore\"`."
            }
            Some((
                JudgementReason::Fresh | JudgementReason::Grace | JudgementReason::MaxStale,
                ..,
            )) => "Nothing: the cache answers. `freshness` names the time and its source.",
            Some((JudgementReason::Stale, Some(_), _)) => {
                "Nothing: it ends once this node has caught up."
            }
            Some((JudgementReason::Stale, None, times)) if times.must_validate => {
                "Have the application leave `no-cache` out, or speak to this cache alone: \
                 `CDN-Cache-Control: max-age=300`."
            }
            Some((JudgementReason::Stale, None, _)) => {
                "A longer life, by `Cache-Control: s-maxage` or `[site.cache] ttl`, or a longer time \
                 in which the old one answers at once: `[site.cache] stale_while_revalidate`."
            }
        };
        Some(advice.to_owned())
    }

    /// The policy's advice on the fields that distinguish visitors.
    fn advice_on_visitor(&self) -> Option<String> {
        self.forecast.steps.iter().find(|step| step.what == "personal")?.advice.clone()
    }
}

/// Forecasts the reply from a stored response.
pub(super) fn deliver_stored(
    ctx: &RequestContext<'_>,
    object: &Arc<Object>,
    served: CacheOutcome,
) -> Ending {
    // A body that still arrives would register a reader.
    let complete = !object.is_filling();
    let mut start = complete.then(|| declared::stored(None, ctx, object, served));
    let status = start.as_mut().and_then(Start::reply).map(|reply| reply.status);
    let from = match served {
        CacheOutcome::Stale => "from the cache, stale, while one fetch refreshes it",
        CacheOutcome::StaleOnError => "from the cache, stale, since its origin fails",
        _ => "from the cache",
    };
    let page = declared::page_for(ctx, object.status());
    let page = if page.is_some() { " and the site's page for it" } else { "" };
    let summary = match status {
        Some(status) => format!("would be answered {from}, with status {status}{page}"),
        None => format!("would be answered {from}, while its body is still coming"),
    };
    (ForecastOutcome::Answer { served, status }, summary)
}

pub(super) fn about_key(ctx: &RequestContext<'_>, key: &KeyBuf) -> DecisionStep {
    let why = super::url_of(ctx.request);
    let parts = ctx.site.policy.key_parts(ctx.request, &ctx.notes);
    let with: Vec<String> =
        parts.iter().map(|(name, value)| format!("{name}: {}", shown(value))).collect();
    let added = ctx.extra.map(|extra| extra.added_key()).unwrap_or_default();
    let hashed = key_fields(&added).map(|part| format!("hash_data: {}", shown(part)));
    let with: Vec<String> = with.into_iter().chain(hashed).collect();
    let why = match with.is_empty() {
        true => format!("{why}, and nothing else"),
        false => format!("{why}, and {}", with.join(", ")),
    };
    let place = ["cookies.key", "cache.key_headers"]
        .into_iter()
        .find_map(|key| ctx.site.policy.place(&ctx.notes, key));
    DecisionStep::new("key", why)
        .at(place.filter(|_| !parts.is_empty()))
        .fact("hash", format!("{:016x}", key.hash()))
}

/// The calculation of freshness, with the fields that it uses.
pub(super) fn about_freshness(ctx: &RequestContext<'_>, seen: &VariantInspection) -> DecisionStep {
    let object = &seen.object;
    let freshness = freshness_until(ctx.live, object, seen.fresh_until_ms, ctx.now.mono_ms);
    let now_ms = ctx.now.mono_ms;
    let (age_ms, ttl_ms) = (freshness.age_ms(now_ms), freshness.ttl_ms(now_ms));
    let rules = ctx.site.policy.store_rules(&ctx.notes);
    let head = surrogate::whole_head(object);
    let judged = ctx.site.policy.judged_head(&ctx.notes, &head);
    let (source, place) = lifetime(ctx, object, &judged, rules);
    let lifetime_ms = object.lifetime_ms();
    let left = match ttl_ms {
        1.. => format!("fresh for {}", duration(ttl_ms.unsigned_abs())),
        _ => format!("stale for {}", duration(ttl_ms.unsigned_abs())),
    };
    let why = format!("ttl {}: {source}; age {}; {left}", duration(lifetime_ms), duration(age_ms));
    let control = control_of(&judged, rules);
    let window = |ms: u64, named: bool, directive: &str, key: &str| {
        window_words(ctx, object, ms, named, directive, key)
    };
    let grace = window(
        freshness.grace_ms,
        control.stale_while_revalidate.is_some(),
        "stale-while-revalidate",
        "cache.stale_while_revalidate",
    );
    let named = control.stale_if_error.is_some();
    let error_ms = freshness.stale_if_error_ms;
    let error = window(error_ms, named, "stale-if-error", "cache.stale_if_error");
    let unreachable_ms = freshness.stale_if_unreachable_ms;
    let unreachable = window(unreachable_ms, named, "stale-if-error", "cache.stale_if_unreachable");
    let mut step = DecisionStep::new("freshness", why)
        .at(place.as_ref())
        .fact("grace", grace)
        .fact("stale if the origin fails", error)
        .fact("stale if it is unreachable", unreachable);
    let planned_ms =
        object.born_ms().saturating_add(i64::try_from(lifetime_ms).unwrap_or(i64::MAX));
    if seen.fresh_until_ms < planned_ms && !object.flags().must_validate {
        step = step.fact("purged softly", "its freshness was ended before its time");
    }
    if object.flags().must_validate {
        step = step.fact("no-cache", "every use is revalidated first (RFC 9111 5.2.2.4)");
    }
    if let Some(why) = untrusted(ctx, seen.fresh_until_ms) {
        step = step.fact("cluster", why);
    }
    let left_out = judged.left_out_words();
    if !left_out.is_empty() {
        step = step.fact("ignored", format!("{left_out} (`cache.ignore`)"));
    }
    if object.flags().shared {
        step = step.fact("for all", "its origin says so: it answers personal requests too");
    }
    step
}

/// The reason for which the cluster has a response revalidated before use.
fn untrusted(ctx: &RequestContext<'_>, fresh_until_ms: i64) -> Option<&'static str> {
    let (trust, now_ms) = (&ctx.live.trust, ctx.now.mono_ms);
    if !trust.holds(now_ms) {
        Some("out of touch: every use is revalidated, as other nodes may have purged it")
    } else if trust.wants_validation(fresh_until_ms, now_ms) {
        Some("purges may have been missed since it was stored: it is revalidated first")
    } else {
        None
    }
}

/// A window of stale use, and the field or setting that names it.
fn window_words(
    ctx: &RequestContext<'_>,
    object: &Object,
    ms: u64,
    named: bool,
    directive: &str,
    key: &str,
) -> String {
    let from = if object.flags().never_stale {
        "forbidden by the response (must-revalidate and the like, RFC 9111 4.2.4)".to_owned()
    } else if named {
        format!("`{directive}` of the response (RFC 5861)")
    } else if let Some(place) = ctx.site.policy.place(&ctx.notes, key) {
        format!("setting `{key}`, {place}")
    } else {
        "default of the site's profile".to_owned()
    };
    format!("{}: {from}", duration(ms))
}

fn control_of(head: &JudgedHead<'_>, rules: &StoreRules) -> CacheControl {
    targeted_control::effective(&head.headers, &rules.targets)
        .unwrap_or_else(|| CacheControl::parse(head.headers.values(HeaderId::CacheControl)))
}

/// The source of an object's lifetime, computed again from its stored head, and the setting behind
/// it.
fn lifetime(
    ctx: &RequestContext<'_>,
    object: &Object,
    head: &JudgedHead<'_>,
    rules: &StoreRules,
) -> (String, Option<SettingLocation>) {
    let plan = planned_anew(ctx, object, head, rules);
    let (lifetime_ms, planned_ms) = (object.lifetime_ms(), plan.lifetime_ms);
    let same = match plan.source {
        // The lifetime began with this copy, whose age was not stored then.
        LifetimeSource::Setting => lifetime_ms >= setting_ms(object, rules),
        LifetimeSource::Rule => lifetime_ms >= head.ruled_ttl.map_or(0, |(ms, _)| ms),
        // Long lifetimes are stored to the second.
        _ => lifetime_ms.abs_diff(planned_ms) < 1000,
    };
    if !same {
        let accel = ctx.site.origin(&ctx.notes).and_then(|own| own.accel.as_ref());
        let by_program = ctx.extra.is_some_and(|extra| extra.has(Sub::BackendResponse));
        let why = match accel.is_some_and(|accel| accel.expires) {
            _ if by_program => {
                "`vcl_backend_response` of the site's VCL, or settings that have changed since"
            }
            true => "`X-Accel-Expires`, which is not kept, or settings that have changed since",
            false => "what was in force when it was stored: settings have changed since",
        };
        return (why.to_owned(), None);
    }
    let key = match plan.source {
        LifetimeSource::Setting => setting_key(object, rules),
        LifetimeSource::Heuristic => Some("cache.heuristic".to_owned()),
        LifetimeSource::Rule => Some("response".to_owned()),
        _ => None,
    };
    let place = key.as_ref().and_then(|key| ctx.site.policy.place(&ctx.notes, key)).cloned();
    let words = match (plan.source, &key) {
        (LifetimeSource::Setting, Some(key)) => match head.left_out_words() {
            words if words.is_empty() => {
                format!("setting `{key}`, since the origin names none")
            }
            words => format!("setting `{key}`, since {words} of the origin is ignored"),
        },
        (source, _) => lifetime_words(source, head, rules),
    };
    (words, place)
}

/// The plan for a stored head, as of the time when it was stored.
fn planned_anew(
    ctx: &RequestContext<'_>,
    object: &Object,
    head: &JudgedHead<'_>,
    rules: &StoreRules,
) -> StorePlan {
    let now = ctx.now;
    let born_ms = u64::try_from(now.unix_at(object.born_ms())).unwrap_or(0);
    let date_ms = object.date().map_or(0, |secs| secs.saturating_mul(1000));
    let at = born_ms.max(date_ms).min(now.unix_ms);
    let times = store::ExchangeTimes { request_ms: at, response_ms: at };
    store::plan(&message::Request::new(), false, head, times, rules)
}

fn setting_ms(object: &Object, rules: &StoreRules) -> u64 {
    let mut settings = rules.default_lifetime_ms.iter();
    settings.find(|(of, _)| of.matches(object.status())).map_or(0, |(_, ms)| *ms)
}

/// The configuration key of the lifetime for the status.
fn setting_key(object: &Object, rules: &StoreRules) -> Option<String> {
    use store::StatusMatch::{Any, Class, Exact};
    let mut settings = rules.default_lifetime_ms.iter();
    let (of, _) = settings.find(|(of, _)| of.matches(object.status()))?;
    Some(match of {
        Exact(status) => format!("cache.ttl.{status}"),
        Class(class) => format!("cache.ttl.{class}xx"),
        Any => "cache.ttl.any".to_owned(),
    })
}

/// Reports the verdict of the lookup.
pub(super) fn about_verdict(
    ctx: &RequestContext<'_>,
    seen: Option<&VariantInspection>,
    peek: &KeyInspection,
    reads_disk: bool,
) -> DecisionStep {
    let why = match seen {
        Some(seen) => judged(ctx, seen, reads_disk && !peek.is_fetched),
        None if ctx.notes.personal && reads_disk => {
            disk_candidates::verdict("nothing is in memory for it, and it is personal")
        }
        None if ctx.notes.personal => {
            "nothing is there for it, and it is personal: it fetches for itself".to_owned()
        }
        None if peek.is_fetched => {
            "another request fetches it: it would wait for that fetch".to_owned()
        }
        None if reads_disk => disk_candidates::verdict("nothing is in memory for it"),
        None => "nothing is there for it: it must be fetched".to_owned(),
    };
    DecisionStep::new("verdict", why).decisive()
}

fn judged(ctx: &RequestContext<'_>, seen: &VariantInspection, reads_disk: bool) -> String {
    let freshness = freshness_until(ctx.live, &seen.object, seen.fresh_until_ms, ctx.now.mono_ms);
    let why = match decisions::ground(ctx, &seen.object, &freshness) {
        JudgementReason::Personal => {
            "the request is personal, and the origin has not marked what is stored as for all: it \
             fetches for itself"
        }
        JudgementReason::Condition => {
            "it has a condition that only the origin can judge (RFC 9110 13.1)"
        }
        JudgementReason::Passed => "the site's policy sends it to the origin",
        JudgementReason::Unwanted => {
            "the client's Cache-Control asks for more, and the site honours that: it must be fetched"
        }
        JudgementReason::Fresh => "fresh: it answers",
        JudgementReason::Grace => {
            "stale but in its grace: it answers at once, and one fetch behind it brings a new one"
        }
        JudgementReason::MaxStale => "stale, and the client accepts that (max-stale)",
        JudgementReason::Stale if reads_disk => {
            return format!("{}; {}", stale_words(ctx, seen, &freshness), disk_candidates::FIRST);
        }
        JudgementReason::Stale => return stale_words(ctx, seen, &freshness),
    };
    why.to_owned()
}

fn stale_words(
    ctx: &RequestContext<'_>,
    seen: &VariantInspection,
    freshness: &Freshness,
) -> String {
    if let Some(why) = untrusted(ctx, seen.fresh_until_ms) {
        return format!("cluster: {why}");
    }
    if freshness.must_validate {
        return "no-cache: the origin must confirm it first (RFC 9111 5.2.2.4)".to_owned();
    }
    let now_ms = ctx.now.mono_ms;
    let may = match (freshness.may_serve_on_error(now_ms), freshness.may_serve_unreachable(now_ms))
    {
        (true, _) => "; if the origin fails, it answers nevertheless",
        (false, true) => "; if the origin is unreachable, it answers nevertheless",
        (false, false) => "",
    };
    let validators = seen.object.etag().is_some() || seen.object.last_modified().is_some();
    let how = if validators { "the origin is asked to confirm it" } else { "it is fetched anew" };
    format!("stale, and its grace is over: {how}{may}")
}

/// The limits on stored bodies.
pub(super) fn body_limit(limits: &Limits) -> String {
    format!("{} bytes (limit `object_bytes`)", limits.object_bytes)
}
