//! Dry run of a request's course: a handler that reports each step and does none.

use std::sync::Arc;

use base::{HashSeed, KeyBuf};
use cache::{CacheLookup, Object};
use message::freshness::Freshness;
use policy::{DecisionStep, ReceiveVerdict, Synthetic, decision_steps::shown};

use super::builder::{ComposablePage, Findings, ForecastBuilder, error_of, look};
use super::form::about_form;
use super::lookup::{about_freshness, about_key, about_verdict, deliver_stored};
use crate::course::CourseHandler;
use crate::decisions::{self, LookupDecision, freshness_until};
use crate::forecast::outcome::{Ending, ForecastOutcome};
use crate::forecast::steps::answered;
use crate::forecast::variants::variants;
use crate::key::select_by;
use crate::problem::Problem;
use crate::state::reply::{CacheOutcome, ForwardReason};
use crate::state::request_context::RequestContext;
use crate::{declared, files as from_files, pages};

impl CourseHandler for ForecastBuilder<'_> {
    type End = Ending;
    type Key = Box<KeyBuf>;

    fn seed(&self) -> &HashSeed {
        &self.forecast.shared.seed
    }

    fn key(&self) -> Box<KeyBuf> {
        Box::new(KeyBuf::new())
    }

    fn file(&mut self, ctx: &RequestContext<'_>, root: u32) -> Ending {
        let reply = match ctx.site.files.get(root as usize) {
            Some(root) => from_files::answer(None, ctx, &look(ctx, root)),
            None => pages::problem(ctx.request, Problem::NoFile),
        };
        let what = match reply.served {
            CacheOutcome::File => "the file is there".to_owned(),
            _ => error_of(&reply),
        };
        self.forecast.steps.push(DecisionStep::new("file", what));
        answered(&reply, "from a file")
    }

    fn file_beside(&mut self, ctx: &RequestContext<'_>, _: &ReceiveVerdict) -> Option<Ending> {
        let reply = self.found(ctx, from_files::likely_root(ctx)?)?;
        Some(answered(&reply, "from a file in the origin's root"))
    }

    fn other_file_beside(&mut self, ctx: &RequestContext<'_>) -> Option<Ending> {
        let reply = self.found(ctx, from_files::front_root(ctx)?)?;
        Some(answered(&reply, "from a file in the origin's root"))
    }

    fn find(&mut self, ctx: &RequestContext<'_>, key: &KeyBuf) -> CacheLookup {
        self.key = key.hash();
        self.forecast.steps.push(about_key(ctx, key));
        let peek = self.forecast.shared.cache.peek(key, &mut select_by(&ctx.request.headers));
        self.forecast.steps.extend(variants(ctx, &peek));
        let marked = peek.marked_until_ms.is_some_and(|until_ms| ctx.now.mono_ms < until_ms);
        let reads_disk = peek.below > 0 && decisions::refusal(ctx.request, ctx.live).is_none();
        let found = match peek.found.map(|at| &peek.variants[at]) {
            Some(seen) => {
                self.forecast.steps.push(about_freshness(ctx, seen));
                CacheLookup::Object(Arc::clone(&seen.object))
            }
            None if marked => CacheLookup::HitForMiss,
            None => CacheLookup::Nothing,
        };
        self.findings = Some(Findings { peek, marked, reads_disk });
        found
    }

    fn note_found(&mut self, ctx: &RequestContext<'_>) {
        let Some(findings) = &self.findings else { return };
        let seen = findings.peek.found.map(|at| &findings.peek.variants[at]);
        let mut verdict = about_verdict(ctx, seen, &findings.peek, findings.reads_disk);
        verdict.advice = self.advice(ctx, seen, &findings.peek);
        self.forecast.steps.push(verdict);
    }

    fn times(&self, ctx: &RequestContext<'_>, object: &Object) -> Freshness {
        let peek = self.findings.as_ref().map(|findings| &findings.peek);
        let seen = peek.and_then(|peek| Some(&peek.variants[peek.found?]));
        let until_ms = seen.map_or(0, |seen| seen.fresh_until_ms);
        freshness_until(ctx.live, object, until_ms, ctx.now.mono_ms)
    }

    fn deliver(
        &mut self,
        ctx: &RequestContext<'_>,
        _: &KeyBuf,
        object: Arc<Object>,
        served: CacheOutcome,
    ) -> Ending {
        self.forecast.steps.push(about_form(ctx, &object, &self.forecast.shared.dictionaries));
        if object.whole().is_some()
            && let Some(dialect) = declared::dialect_of(object.flags())
        {
            let (object, site) = (Arc::clone(&object), Arc::clone(ctx.site));
            self.page = Some(ComposablePage { object, site, dialect, routes: ctx.notes.routes() });
        }
        deliver_stored(ctx, &object, served)
    }

    fn stand_in(
        &mut self,
        ctx: &RequestContext<'_>,
        key: &KeyBuf,
        object: &Arc<Object>,
    ) -> Option<Ending> {
        self.failing(ctx, key, object)
    }

    fn page(&mut self, ctx: &RequestContext<'_>, _: &KeyBuf, _: &LookupDecision) -> Option<Ending> {
        let (root, path) = from_files::page_of(ctx)?;
        let look = root.look(&path, files::Depth::Full).ok()?;
        let reply = from_files::found(None, ctx, &look)?;
        let place = ctx.site.policy.place(&ctx.notes, "page_cache");
        let why = format!("a plugin has written this page to the disk: {}", shown(&path));
        let advice = "Nothing: the plugin's page spares the application.";
        self.forecast
            .steps
            .push(DecisionStep::new("page cache", why).at(place).decisive().advise(advice));
        Some(answered(&reply, "from a page that a plugin has written to the disk"))
    }

    fn fetch(&mut self, ctx: &RequestContext<'_>, key: &KeyBuf, next: LookupDecision) -> Ending {
        self.fetch_after(ctx, key, next)
    }

    fn pass(&mut self, ctx: &RequestContext<'_>, reason: ForwardReason) -> Ending {
        let rule = ctx.site.policy.rule_name(ctx.notes.rule);
        self.past_the_store(ctx, reason, format!("would be passed to the origin: rule `{rule}`"))
    }

    fn upgrade(&mut self, ctx: &RequestContext<'_>) -> Ending {
        if let Some(refused) = self.refused(ctx).or_else(|| self.queued(ctx)) {
            return refused;
        }
        self.ask_for_upgrade(ctx);
        let rule = ctx.site.policy.rule_name(ctx.notes.rule);
        let why = format!("would be passed to the origin as a tunnel: rule `{rule}`");
        (ForecastOutcome::Tunnel, why)
    }

    fn answer(&mut self, ctx: &RequestContext<'_>, synthetic: &Synthetic) -> Ending {
        let reply = pages::synthetic(ctx.request, synthetic);
        let (outcome, _) = answered(&reply, "");
        let (rule, status) = (ctx.site.policy.rule_name(ctx.notes.rule), reply.status);
        (outcome, format!("would be answered with status {status}: rule `{rule}`"))
    }

    fn last_hop(&mut self, ctx: &RequestContext<'_>) -> Ending {
        let why = "Max-Forwards is 0: it goes no further (RFC 9110 7.6.2)";
        self.forecast.steps.push(DecisionStep::new("rule", why).decisive());
        answered(&pages::options(ctx.request), "here")
    }

    fn purge(&mut self, ctx: &RequestContext<'_>) -> Ending {
        let rule = ctx.site.policy.rule_name(ctx.notes.rule);
        (ForecastOutcome::Purge, format!("would purge its URL: rule `{rule}`"))
    }
}
