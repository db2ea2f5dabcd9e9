//! The course of a request, with nothing done on it: what is asked is told.

use std::sync::Arc;

use base::{HashSeed, KeyBuf};
use cache::{Found, Object};
use message::freshness::Freshness;
use policy::{ReceiveVerdict, Step, Synthetic, told::shown};

use super::form::about_form;
use super::stored::{about_freshness, about_key, about_verdict, deliver_stored};
use super::teller::{Findings, Teller, Whole, error_of, look};
use crate::course::Mode;
use crate::decide::{self, Next, freshness_until};
use crate::forecast::foreseen::{Ending, Foreseen};
use crate::forecast::telling::answered;
use crate::forecast::variants::variants;
use crate::key::select_by;
use crate::problem::Problem;
use crate::state::ask::Ask;
use crate::state::reply::{Forward, Served};
use crate::{declared, files as from_files, pages};

impl Mode for Teller<'_> {
    type End = Ending;
    type Key = Box<KeyBuf>;

    fn seed(&self) -> &HashSeed {
        &self.telling.shared.seed
    }

    fn key(&self) -> Box<KeyBuf> {
        Box::new(KeyBuf::new())
    }

    fn file(&mut self, ask: &Ask<'_>, root: u32) -> Ending {
        let reply = match ask.site.files.get(root as usize) {
            Some(root) => from_files::answer(None, ask, &look(ask, root)),
            None => pages::problem(ask.request, Problem::NoFile),
        };
        let what = match reply.served {
            Served::File => "the file is there".to_owned(),
            _ => error_of(&reply),
        };
        self.telling.steps.push(Step::new("file", what));
        answered(&reply, "from a file")
    }

    fn file_beside(&mut self, ask: &Ask<'_>, _: &ReceiveVerdict) -> Option<Ending> {
        let reply = self.found(ask, from_files::likely_root(ask)?)?;
        Some(answered(&reply, "from a file beside the scripts"))
    }

    fn other_file_beside(&mut self, ask: &Ask<'_>) -> Option<Ending> {
        let reply = self.found(ask, from_files::beside_scripts(ask)?)?;
        Some(answered(&reply, "from a file beside the scripts"))
    }

    fn find(&mut self, ask: &Ask<'_>, key: &KeyBuf) -> Found {
        self.key = key.hash();
        self.telling.steps.push(about_key(ask, key));
        let peek = self.telling.shared.cache.peek(key, &mut select_by(&ask.request.headers));
        self.telling.steps.extend(variants(ask, &peek));
        let marked = peek.marked_until_ms.is_some_and(|until_ms| ask.now.mono_ms < until_ms);
        let reads_disk = peek.below > 0 && decide::refusal(ask.request, ask.live).is_none();
        let found = match peek.found.map(|at| &peek.variants[at]) {
            Some(seen) => {
                self.telling.steps.push(about_freshness(ask, seen));
                Found::Object(Arc::clone(&seen.object))
            }
            None if marked => Found::HitForMiss,
            None => Found::Nothing,
        };
        self.looked = Some(Findings { peek, marked, reads_disk });
        found
    }

    fn note_found(&mut self, ask: &Ask<'_>) {
        let Some(looked) = &self.looked else { return };
        let seen = looked.peek.found.map(|at| &looked.peek.variants[at]);
        let mut verdict = about_verdict(ask, seen, &looked.peek, looked.reads_disk);
        verdict.advice = self.advice(ask, seen, &looked.peek);
        self.telling.steps.push(verdict);
    }

    fn times(&self, ask: &Ask<'_>, object: &Object) -> Freshness {
        let peek = self.looked.as_ref().map(|looked| &looked.peek);
        let seen = peek.and_then(|peek| Some(&peek.variants[peek.found?]));
        let until_ms = seen.map_or(0, |seen| seen.fresh_until_ms);
        freshness_until(ask.live, object, until_ms, ask.now.mono_ms)
    }

    fn deliver(
        &mut self,
        ask: &Ask<'_>,
        _: &KeyBuf,
        object: Arc<Object>,
        served: Served,
    ) -> Ending {
        self.telling.steps.push(about_form(ask, &object, &self.telling.shared.dictionaries));
        if object.whole().is_some()
            && let Some(dialect) = declared::dialect_of(object.flags())
        {
            let (object, site) = (Arc::clone(&object), Arc::clone(ask.site));
            self.page = Some(Whole { object, site, dialect });
        }
        deliver_stored(ask, &object, served)
    }

    fn stand_in(&mut self, ask: &Ask<'_>, key: &KeyBuf, object: &Arc<Object>) -> Option<Ending> {
        self.failing(ask, key, object)
    }

    fn page(&mut self, ask: &Ask<'_>, _: &KeyBuf, _: &Next) -> Option<Ending> {
        let (root, path) = from_files::page_of(ask)?;
        let look = root.look(&path, files::Depth::Full).ok()?;
        let reply = from_files::found(None, ask, &look)?;
        let place = ask.site.policy.place(&ask.notes, "page_cache");
        let why = format!("a plugin has written this page to the disk: {}", shown(&path));
        let advice = "Nothing: the plugin's page spares the application.";
        self.telling.steps.push(Step::new("page cache", why).at(place).decisive().advise(advice));
        Some(answered(&reply, "from a page that a plugin has written to the disk"))
    }

    fn fetch(&mut self, ask: &Ask<'_>, key: &KeyBuf, next: Next) -> Ending {
        self.fetch_after(ask, key, next)
    }

    fn pass(&mut self, ask: &Ask<'_>, reason: Forward) -> Ending {
        let rule = ask.site.policy.rule_name(ask.notes.rule);
        self.past_the_store(ask, reason, format!("would be passed to the origin: rule `{rule}`"))
    }

    fn upgrade(&mut self, ask: &Ask<'_>) -> Ending {
        if let Some(told) = self.refused(ask) {
            return told;
        }
        self.ask_for_upgrade(ask);
        let rule = ask.site.policy.rule_name(ask.notes.rule);
        let why = format!("would be passed to the origin as a tunnel: rule `{rule}`");
        (Foreseen::Tunnel, why)
    }

    fn answer(&mut self, ask: &Ask<'_>, synthetic: &Synthetic) -> Ending {
        let reply = pages::synthetic(ask.request, synthetic);
        let (foreseen, _) = answered(&reply, "");
        let (rule, status) = (ask.site.policy.rule_name(ask.notes.rule), reply.status);
        (foreseen, format!("would be answered with status {status}: rule `{rule}`"))
    }

    fn last_hop(&mut self, ask: &Ask<'_>) -> Ending {
        let why = "Max-Forwards is 0: it goes no further (RFC 9110 7.6.2)";
        self.telling.steps.push(Step::new("rule", why).decisive());
        answered(&pages::options(ask.request), "here")
    }

    fn purge(&mut self, ask: &Ask<'_>) -> Ending {
        let rule = ask.site.policy.rule_name(ask.notes.rule);
        (Foreseen::Purge, format!("would purge its URL: rule `{rule}`"))
    }
}
