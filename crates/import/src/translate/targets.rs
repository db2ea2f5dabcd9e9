//! Targets of `try_files`: guards and rules of a location and of what its requests are led to.
//!
//! nginx checks the guards of the location before it looks for files, and then those of the target
//! as well. Here both are one route: no guard of either is lost, and where both cannot be said at
//! once, no client is let in.

use super::chain::Chain;
use super::conditions::{Question, question};
use super::guards;
use super::locations::Location;
use super::origins::FrontFiles;
use super::predicate::Predicate;
use super::questions::Test;
use super::rules::{RulePlace, answering, is_act, is_guard};
use super::sites::{Destination, Made, Maker, named_front};
use super::state::{Handler, ids};
use crate::document::Settings;
use crate::syntax::Directive;

const TWO_GUARDS: &str =
    "the location that leads here and its target have different guards of this kind";
const ONE_GUARD: &str = "one guard for both; until then Larder answers 403";
const RULE: &str = "this rule of a location that `try_files` leads to cannot be said";
const FILES_TOO: &str = "files that `try_files` finds are behind it, too";

/// A kind of guard.
struct GuardKind {
    names: &'static [&'static str],
    /// Tells whether it keeps no client out.
    is_open: fn(&Chain<'_>) -> bool,
    /// Tells whether two that are not open are one.
    is_same: fn(&Chain<'_>, &Chain<'_>) -> bool,
}

const ADDRESSES: &[&str] = &["allow", "deny"];
const PASSWORDS: &[&str] = &["auth_basic", "auth_basic_user_file"];
const REQUESTS: &[&str] = &["limit_req", "limit_req_status", "limit_req_dry_run"];
const CONNECTIONS: &[&str] = &["limit_conn", "limit_conn_status", "limit_conn_dry_run"];

/// All kinds. Of two limits, nginx counts for the first that a request meets.
const KINDS: &[GuardKind] = &[
    GuardKind {
        names: ADDRESSES,
        is_open: |chain| {
            let rules = chain.all(ADDRESSES);
            rules.first().is_none_or(|first| first.name == "allow" && first.arg(0) == "all")
                || rules.iter().all(|own| own.name == "allow")
        },
        is_same: |one, other| say_same(&one.all(ADDRESSES), &other.all(ADDRESSES)),
    },
    GuardKind {
        names: PASSWORDS,
        is_open: |chain| {
            is_off(chain.one("auth_basic")) || chain.one("auth_basic_user_file").is_none()
        },
        is_same: |one, other| {
            let file = |chain: &Chain<'_>| {
                chain.one("auth_basic_user_file").map(|own| own.arg(0).to_owned())
            };
            file(one) == file(other)
        },
    },
    GuardKind {
        names: &["auth_request"],
        is_open: |chain| is_off(chain.one("auth_request")),
        is_same: |one, other| say_same(&one.all(&["auth_request"]), &other.all(&["auth_request"])),
    },
    GuardKind {
        names: &guards::FOREIGN,
        is_open: |chain| guards::FOREIGN.iter().all(|name| is_off(chain.one(name))),
        is_same: |_, _| true,
    },
    GuardKind {
        names: REQUESTS,
        is_open: |chain| chain.all(&["limit_req"]).is_empty(),
        is_same: |_, _| true,
    },
    GuardKind {
        names: CONNECTIONS,
        is_open: |chain| chain.all(&["limit_conn"]).is_empty(),
        is_same: |_, _| true,
    },
];

fn is_off(own: Option<&Directive>) -> bool {
    own.is_none_or(|own| own.arg(0) == "off")
}

fn say_same(one: &[&Directive], other: &[&Directive]) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(one, other)| one.says_same(other))
}

/// Ways to carry over a directive of a target.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TargetRule {
    /// It is no rule, or one that changes nothing of who gets what.
    Other,
    /// A guard that becomes a route before that of the location.
    Guard,
    /// A guard that cannot be said: no client is let in.
    Inexact,
    /// A rule that sends requests elsewhere.
    Elsewhere,
}

impl<'d> Maker<'_, 'd> {
    /// The chain of a location's requests at their target.
    pub(crate) fn joined(&mut self, location: &Chain<'d>, target: &Chain<'d>) -> Chain<'d> {
        let mut chain = location.with(target.own());
        for kind in KINDS {
            let is_open = [location, target].map(kind.is_open);
            let is_of_location = match is_open {
                [_, true] => true,
                [true, false] => {
                    self.files_behind(kind.names, location, target);
                    false
                }
                [false, false] => {
                    if !(kind.is_same)(location, target) {
                        let two = target.all(kind.names);
                        let ledger = &mut self.state.ledger;
                        two.iter().for_each(|own| ledger.left(own.id, TWO_GUARDS, ONE_GUARD));
                        chain.refuse(&ids(&two));
                    }
                    true
                }
            };
            chain.guard_by(kind.names, if is_of_location { location } else { target });
        }
        let looks = location.own_one("try_files").is_some_and(|own| has_word(own, "$uri"));
        if looks && target.own_one("add_header").is_some() {
            let fields = location.own().iter().filter(|own| own.name == "add_header");
            chain.add_front_fields(fields);
        }
        chain
    }

    /// Says that a guard of the target holds for files, too.
    fn files_behind(&mut self, names: &[&str], location: &Chain<'d>, target: &Chain<'d>) {
        let of = |chain: &Chain<'d>| {
            let own = chain.own().iter().filter(|own| names.contains(&own.name.as_str()));
            own.map(|own| own.id).collect::<Vec<_>>()
        };
        let instead = "a route with `files` for the folder that has them";
        of(location).iter().for_each(|id| self.state.ledger.left(*id, FILES_TOO, instead));
        of(target).iter().for_each(|id| self.state.ledger.carried(*id, FILES_TOO));
    }

    /// Where the requests of a block go whose `try_files` ends with a named location; `None` if it
    /// does not.
    pub(crate) fn named_destination(
        &mut self,
        chain: &Chain<'d>,
        all: &[Location<'d>],
        path: &str,
    ) -> Option<Destination<'d>> {
        let named = self.named(chain, all)?;
        let tries = chain.own_one("try_files")?;
        let is_round = chain.blocks().iter().any(|own| std::ptr::eq(*own, named.own()));
        let mut joined = self.joined(chain, &named.chain);
        self.refuse_rules(&mut joined, named);
        self.state.ledger.carried(named.directive.id, "");
        let front = FrontFiles::of(chain, tries);
        self.front_files = front;
        let found = if is_round || self.sends_elsewhere(named) {
            unsaid(&joined)
        } else {
            self.destination(&joined, all, path)
        };
        let is_used = front.is_some() && self.front_files.take().is_none();
        if !is_used {
            let instead = "a route with `files` for the folder that has them";
            let why = "only `$uri` below a `root` is looked for in front of an application";
            self.state.ledger.left(tries.id, why, instead);
        }
        Some(found)
    }

    /// Where requests go that a rule sends to a named location, whose own rules are none of that.
    pub(crate) fn sent_to(
        &mut self,
        named: &Location<'d>,
        all: &[Location<'d>],
    ) -> Destination<'d> {
        let mut chain = named.chain.clone();
        for own in named.own() {
            if matches!(target_rule(own, named), TargetRule::Guard | TargetRule::Inexact) {
                own.visit(&mut |own| self.state.ledger.left(own.id, RULE, ONE_GUARD));
                chain.refuse(&[own.id]);
            }
        }
        if self.sends_elsewhere(named) {
            unsaid(&chain)
        } else {
            self.destination(&chain, all, "/*")
        }
    }

    /// Lets no client in where a guard among the rules of a target cannot be said.
    pub(crate) fn refuse_rules(&mut self, chain: &mut Chain<'d>, target: &Location<'d>) {
        for own in target.own() {
            let rule = target_rule(own, target);
            if rule == TargetRule::Inexact {
                let instead = "routes with `when`; until then Larder answers 403";
                own.visit(&mut |own| self.state.ledger.left(own.id, RULE, instead));
                chain.refuse(&[own.id]);
            }
        }
    }

    /// Tells whether rules of a named location send requests elsewhere, and lists them.
    fn sends_elsewhere(&mut self, named: &Location<'d>) -> bool {
        let rules: Vec<&Directive> = named
            .own()
            .iter()
            .filter(|own| target_rule(own, named) == TargetRule::Elsewhere)
            .collect();
        let instead = "routes with `rewrite` or `redirect`; until then Larder answers 501";
        for own in &rules {
            own.visit(&mut |own| self.state.ledger.left(own.id, RULE, instead));
        }
        !rules.is_empty()
    }

    /// Tells whether a location, or one that it leads to, has rules that keep some clients out.
    pub(crate) fn has_guard_rules(&self, location: &Location<'d>, all: &[Location<'d>]) -> bool {
        let has = |own: &Location<'_>| {
            let rules = own.own().iter().map(|rule| target_rule(rule, own));
            rules.into_iter().any(|r| matches!(r, TargetRule::Guard | TargetRule::Inexact))
        };
        let named = self.named(&location.chain, all);
        has(location) || named.is_some_and(has)
    }

    /// The routes of guards among the rules of what a location leads to.
    pub(crate) fn target_rules(&mut self, place: RulePlace<'_, 'd>) -> Vec<Made> {
        let mut made = Vec::new();
        let mut chain = place.chain.clone();
        for target in self.targets(place) {
            chain = self.joined(&chain, &target.chain);
            for own in target.own() {
                if target_rule(own, &target) != TargetRule::Guard {
                    continue;
                }
                let inner = RulePlace { chain: &chain, ..place };
                made.extend(match own.name.as_str() {
                    "limit_except" => self.kept_methods(own, inner),
                    _ => self.conditional(own, inner),
                });
            }
        }
        made
    }

    /// The locations to which `try_files` of a place leads, one after the other.
    fn targets(&self, place: RulePlace<'_, 'd>) -> Vec<Location<'d>> {
        let mut found: Vec<Location<'d>> = Vec::new();
        let mut chain = place.chain.clone();
        while let Some(named) = self.named(&chain, place.all) {
            if found.iter().any(|own| own.directive.id == named.directive.id) {
                break;
            }
            chain = named.chain.clone();
            found.push(named.clone());
        }
        // The rules of scripts are those of the site itself where it is one of scripts.
        let own = place.location.filter(|own| !self.is_main(own, place.all));
        let script = own.and_then(|own| self.front_script(own, place.all));
        found.extend(script.cloned());
        found
    }

    /// The route of a `limit_except` of a target, which keeps all clients out.
    fn kept_methods(&self, own: &'d Directive, place: RulePlace<'_, 'd>) -> Vec<Made> {
        let mut names = own.args.clone();
        if names.iter().any(|name| name == "GET") && !names.iter().any(|name| name == "HEAD") {
            names.push("HEAD".to_owned());
        }
        let when = self.within(Predicate::methods(names).not().with(&[own.id]), place);
        let mut settings = Settings::default();
        let from: Vec<usize> = own.children().iter().map(|own| own.id).collect();
        settings.put("respond", "{ status = 403 }", &from);
        answering(own, &when, &settings)
    }
}

/// An answer that says that a destination is not carried over.
fn unsaid<'d>(chain: &Chain<'d>) -> Destination<'d> {
    let mut settings = Settings::default();
    settings.put("respond", "{ status = 501 }", &[]);
    Destination::new(Handler::Answer, chain, settings)
}

fn has_word(own: &Directive, word: &str) -> bool {
    own.args.iter().any(|arg| arg == word)
}

/// Tells whether a rule of scripts looks at their path, and may hold for the one in front. `None`
/// if it looks at something else.
fn holds_for_script(asked: &Question<'_>) -> Option<bool> {
    let paths = ["$uri", "$document_uri", "$fastcgi_script_name", "$script_name"];
    if asked.operator.contains('-') || !paths.contains(&asked.variable) {
        return None;
    }
    let (operator, value) = (asked.operator, asked.value);
    let test = Test { operator, value, ignores_case: false };
    Some(test.holds_for("/index.php") != Some(false))
}

/// The way of a directive of `target`.
fn target_rule(own: &Directive, target: &Location<'_>) -> TargetRule {
    let inner = own.children();
    let is_script = target.own().iter().any(|own| own.name == "fastcgi_pass");
    match own.name.as_str() {
        "limit_except" => match inner {
            [only] if only.name == "deny" && only.arg(0) == "all" => TargetRule::Guard,
            _ => TargetRule::Inexact,
        },
        "rewrite" if !is_script && named_front(target).is_none() => TargetRule::Elsewhere,
        "if" => {
            let Some(act) = inner.iter().find(|own| is_act(own)) else { return TargetRule::Other };
            let status = act.arg(0);
            if act.name != "return" || !is_guard(status) {
                return if is_script { TargetRule::Other } else { TargetRule::Elsewhere };
            }
            let asked = question(own);
            match asked.as_ref().filter(|_| is_script).and_then(holds_for_script) {
                Some(true) => return TargetRule::Inexact,
                Some(false) => return TargetRule::Other,
                None => {}
            }
            let is_file = asked.is_some_and(|asked| asked.operator.contains('-'));
            let is_page = |page: &&Directive| {
                has_word(page, status) && page.args.last().is_some_and(|own| own.starts_with('@'))
            };
            let is_led_on = target.chain.all(&["error_page"]).iter().any(is_page);
            if is_led_on || is_file && !is_script { TargetRule::Inexact } else { TargetRule::Guard }
        }
        _ => TargetRule::Other,
    }
}
