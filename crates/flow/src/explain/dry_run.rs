//! Dry run of a request's course: a handler that reports each step and does none.

use std::sync::Arc;

use base::{HashSeed, KeyBuf};
use cache::{CacheLookup, Object};
use message::freshness::Freshness;
use policy::{DecisionStep, ReceiveVerdict, Synthetic, decision_steps::shown};

use super::form::about_form;
use super::lookup::{about_freshness, about_key, about_verdict, deliver_stored};
use super::teller::{ComposablePage, Findings, ForecastBuilder, error_of, look};
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
        &self.telling.shared.seed
    }

    fn key(&self) -> Box<KeyBuf> {
        Box::new(KeyBuf::new())
    }

    fn file(&mut self, ask: &RequestContext<'_>, root: u32) -> Ending {
        let reply = match ask.site.files.get(root as usize) {
            Some(root) => from_files::answer(None, ask, &look(ask, root)),
            None => pages::problem(ask.request, Problem::NoFile),
        };
        let what = match reply.served {
            CacheOutcome::File => "the file is there".to_owned(),
            _ => error_of(&reply),
        };
        self.telling.steps.push(DecisionStep::new("file", what));
        answered(&reply, "from a file")
    }

    fn file_beside(&mut self, ask: &RequestContext<'_>, _: &ReceiveVerdict) -> Option<Ending> {
        let reply = self.found(ask, from_files::likely_root(ask)?)?;
        Some(answered(&reply, "from a file beside the scripts"))
    }

    fn other_file_beside(&mut self, ask: &RequestContext<'_>) -> Option<Ending> {
        let reply = self.found(ask, from_files::beside_scripts(ask)?)?;
        Some(answered(&reply, "from a file beside the scripts"))
    }

    fn find(&mut self, ask: &RequestContext<'_>, key: &KeyBuf) -> CacheLookup {
        self.key = key.hash();
        self.telling.steps.push(about_key(ask, key));
        let peek = self.telling.shared.cache.peek(key, &mut select_by(&ask.request.headers));
        self.telling.steps.extend(variants(ask, &peek));
        let marked = peek.marked_until_ms.is_some_and(|until_ms| ask.now.mono_ms < until_ms);
        let reads_disk = peek.below > 0 && decisions::refusal(ask.request, ask.live).is_none();
        let found = match peek.found.map(|at| &peek.variants[at]) {
            Some(seen) => {
                self.telling.steps.push(about_freshness(ask, seen));
                CacheLookup::Object(Arc::clone(&seen.object))
            }
            None if marked => CacheLookup::HitForMiss,
            None => CacheLookup::Nothing,
        };
        self.looked = Some(Findings { peek, marked, reads_disk });
        found
    }

    fn note_found(&mut self, ask: &RequestContext<'_>) {
        let Some(looked) = &self.looked else { return };
        let seen = looked.peek.found.map(|at| &looked.peek.variants[at]);
        let mut verdict = about_verdict(ask, seen, &looked.peek, looked.reads_disk);
        verdict.advice = self.advice(ask, seen, &looked.peek);
        self.telling.steps.push(verdict);
    }

    fn times(&self, ask: &RequestContext<'_>, object: &Object) -> Freshness {
        let peek = self.looked.as_ref().map(|looked| &looked.peek);
        let seen = peek.and_then(|peek| Some(&peek.variants[peek.found?]));
        let until_ms = seen.map_or(0, |seen| seen.fresh_until_ms);
        freshness_until(ask.live, object, until_ms, ask.now.mono_ms)
    }

    fn deliver(
        &mut self,
        ask: &RequestContext<'_>,
        _: &KeyBuf,
        object: Arc<Object>,
        served: CacheOutcome,
    ) -> Ending {
        self.telling.steps.push(about_form(ask, &object, &self.telling.shared.dictionaries));
        if object.whole().is_some()
            && let Some(dialect) = declared::dialect_of(object.flags())
        {
            let (object, site) = (Arc::clone(&object), Arc::clone(ask.site));
            self.page = Some(ComposablePage { object, site, dialect });
        }
        deliver_stored(ask, &object, served)
    }

    fn stand_in(
        &mut self,
        ask: &RequestContext<'_>,
        key: &KeyBuf,
        object: &Arc<Object>,
    ) -> Option<Ending> {
        self.failing(ask, key, object)
    }

    fn page(&mut self, ask: &RequestContext<'_>, _: &KeyBuf, _: &LookupDecision) -> Option<Ending> {
        let (root, path) = from_files::page_of(ask)?;
        let look = root.look(&path, files::Depth::Full).ok()?;
        let reply = from_files::found(None, ask, &look)?;
        let place = ask.site.policy.place(&ask.notes, "page_cache");
        let why = format!("a plugin has written this page to the disk: {}", shown(&path));
        let advice = "Nothing: the plugin's page spares the application.";
        self.telling
            .steps
            .push(DecisionStep::new("page cache", why).at(place).decisive().advise(advice));
        Some(answered(&reply, "from a page that a plugin has written to the disk"))
    }

    fn fetch(&mut self, ask: &RequestContext<'_>, key: &KeyBuf, next: LookupDecision) -> Ending {
        self.fetch_after(ask, key, next)
    }

    fn pass(&mut self, ask: &RequestContext<'_>, reason: ForwardReason) -> Ending {
        let rule = ask.site.policy.rule_name(ask.notes.rule);
        self.past_the_store(ask, reason, format!("would be passed to the origin: rule `{rule}`"))
    }

    fn upgrade(&mut self, ask: &RequestContext<'_>) -> Ending {
        if let Some(told) = self.refused(ask) {
            return told;
        }
        self.ask_for_upgrade(ask);
        let rule = ask.site.policy.rule_name(ask.notes.rule);
        let why = format!("would be passed to the origin as a tunnel: rule `{rule}`");
        (ForecastOutcome::Tunnel, why)
    }

    fn answer(&mut self, ask: &RequestContext<'_>, synthetic: &Synthetic) -> Ending {
        let reply = pages::synthetic(ask.request, synthetic);
        let (foreseen, _) = answered(&reply, "");
        let (rule, status) = (ask.site.policy.rule_name(ask.notes.rule), reply.status);
        (foreseen, format!("would be answered with status {status}: rule `{rule}`"))
    }

    fn last_hop(&mut self, ask: &RequestContext<'_>) -> Ending {
        let why = "Max-Forwards is 0: it goes no further (RFC 9110 7.6.2)";
        self.telling.steps.push(DecisionStep::new("rule", why).decisive());
        answered(&pages::options(ask.request), "here")
    }

    fn purge(&mut self, ask: &RequestContext<'_>) -> Ending {
        let rule = ask.site.policy.rule_name(ask.notes.rule);
        (ForecastOutcome::Purge, format!("would purge its URL: rule `{rule}`"))
    }
}
