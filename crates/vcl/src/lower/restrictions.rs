//! Restrictions on places: each statement must be allowed in every subroutine of Varnish's from
//! which it is reached. Recursive subroutines are always rejected.

use crate::ast::Name;
use crate::input::ProgramRole;
use crate::lower::Lowering;
use crate::lower::extra::actions;
use crate::lower::facts::{RestrictionKind, SubFacts, SubroutineRestriction};
use crate::source::SourceSpan;
use crate::state::value::VclMessage;
use crate::sub::{Sub, Subs};

/// Most nested blocks, with those of called subroutines; execution recurses into them.
const DEEP_MAX: u32 = 200;

impl Lowering<'_> {
    /// Restricts the current subroutine to `allowed`. `what` is called only for a message.
    pub(super) fn restrict(
        &mut self,
        allowed: Subs,
        span: SourceSpan,
        what: impl FnOnce() -> String,
    ) {
        if allowed != Subs::ALL {
            let what = what().into();
            let restriction =
                SubroutineRestriction { what, span, allowed, kind: RestrictionKind::Use };
            self.facts[self.current].restrictions.push(restriction);
        }
    }

    /// Restricts the current subroutine by the verb of a `return`.
    pub(super) fn restrict_verb(&mut self, allowed: Subs, verb: &Name) {
        let what = format!("`{}` cannot be returned", verb.text).into();
        let restriction = SubroutineRestriction {
            what,
            span: verb.span,
            allowed,
            kind: RestrictionKind::ActionKind,
        };
        self.facts[self.current].restrictions.push(restriction);
    }

    /// Restricts the current subroutine by a function of a VMOD, which fails elsewhere at run time.
    pub(super) fn restrict_call(&mut self, allowed: Subs, name: &Name) {
        if allowed != Subs::ALL {
            let what = format!("`{}` always fails", name.text).into();
            let restriction = SubroutineRestriction {
                what,
                span: name.span,
                allowed,
                kind: RestrictionKind::Lenient,
            };
            self.facts[self.current].restrictions.push(restriction);
        }
    }

    /// Records a call of subroutine `number`.
    pub(super) fn calls(&mut self, number: u32, span: SourceSpan) {
        self.facts[self.current].calls.push((number, span));
    }

    /// Records a use of a message's header.
    pub(super) fn touches(&mut self, message: VclMessage) {
        if matches!(message, VclMessage::Resp | VclMessage::Obj) {
            self.facts[self.current].head = true;
        }
    }

    /// Records a use of a variable, which may stand for part of a head.
    pub(super) fn uses_var(&mut self, name: &str) {
        let in_head = name == "resp"
            || name.starts_with("resp.")
            || matches!(name, "obj.status" | "obj.reason" | "obj.proto");
        self.facts[self.current].head |= in_head;
    }

    /// Checks all restrictions, and determines what each of Varnish's subroutines uses.
    pub(super) fn check_restrictions(&mut self) {
        if self.recursion() {
            return;
        }
        let mut reported = Vec::new();
        for sub in Sub::ALL {
            let Some(number) = self.symbols.sub(sub.name()) else { continue };
            let mut reached = vec![false; self.facts.len()];
            let mut chain = Vec::new();
            self.reach(*sub, number, &mut reached, &mut chain, &mut reported);
            let reached = || self.facts.iter().zip(&reached).filter(|(_, there)| **there);
            let own = reached().any(|(facts, _)| facts.own);
            let head = reached().any(|(facts, _)| facts.head);
            let uses = &mut self.parts.uses;
            if own {
                uses.own = uses.own.and(sub.only());
            }
            if head {
                uses.head = uses.head.and(sub.only());
            }
        }
    }

    /// Checks the restrictions of subroutine `number` and of its callees against `sub`. `chain` is
    /// the path of calls.
    fn reach(
        &mut self,
        sub: Sub,
        number: u32,
        reached: &mut [bool],
        chain: &mut Vec<SourceSpan>,
        reported: &mut Vec<SourceSpan>,
    ) {
        if std::mem::replace(&mut reached[number as usize], true) {
            return;
        }
        let facts = &self.facts[number as usize];
        for restriction in &facts.restrictions {
            // Each place is reported once, however many paths lead to it.
            if restriction.allowed.has(sub) || reported.contains(&restriction.span) {
                continue;
            }
            reported.push(restriction.span);
            let message = format!("{} in {}", restriction.what, sub.name());
            let entry = match restriction.kind {
                RestrictionKind::Lenient => self.report.advice(restriction.span, message),
                RestrictionKind::Use | RestrictionKind::ActionKind => {
                    self.report.error(restriction.span, message)
                }
            };
            for call in chain.iter().rev() {
                entry.label(*call, "reached through this call");
            }
            entry.note(where_it_works(restriction.allowed));
            if restriction.kind == RestrictionKind::ActionKind {
                let role = self.input.rules.role;
                let verbs: Vec<_> = actions(sub, role).iter().map(|verb| verb.name()).collect();
                let place = match role {
                    ProgramRole::Whole => "",
                    ProgramRole::Extra => " beside a site's settings",
                };
                entry.help(format!("{} returns one of {}{place}", sub.name(), verbs.join(", ")));
            }
        }
        let calls = facts.calls.clone();
        for (callee, span) in calls {
            chain.push(span);
            self.reach(sub, callee, reached, chain, reported);
            chain.pop();
        }
    }

    /// Reports recursive and too deeply nested subroutines. Returns true if there are any.
    fn recursion(&mut self) -> bool {
        let mut walk = Walk { states: vec![State::New; self.facts.len()], circles: Vec::new() };
        for number in 0..self.facts.len() {
            walk.visit(number, &self.facts);
        }
        let mut found = !walk.circles.is_empty();
        for (callee, span) in &walk.circles {
            let facts = &self.facts[*callee];
            self.report
                .error(*span, format!("sub `{}` calls itself", facts.name))
                .here("this call closes the circle")
                .label(facts.span, "it begins here");
        }
        for (facts, state) in self.facts.iter().zip(&walk.states) {
            if matches!(state, State::Done(deep) if *deep > DEEP_MAX) {
                found = true;
                self.report
                    .error(facts.span, format!("sub `{}` is nested too deeply", facts.name))
                    .note(format!(
                        "at most {DEEP_MAX} blocks may be within each other, calls included"
                    ));
                break;
            }
        }
        found
    }
}

/// Depth-first search through the calls.
struct Walk {
    states: Vec<State>,
    /// Calls that close a circle.
    circles: Vec<(usize, SourceSpan)>,
}

impl Walk {
    /// Depth of nested blocks in subroutine `number` and its callees.
    fn visit(&mut self, number: usize, facts: &[SubFacts]) -> u32 {
        if let State::Done(deep) = self.states[number] {
            return deep;
        }
        self.states[number] = State::Open;
        let mut deep = 0;
        for (callee, span) in &facts[number].calls {
            let callee = *callee as usize;
            match self.states[callee] {
                State::Open => self.circles.push((callee, *span)),
                _ => deep = deep.max(self.visit(callee, facts)),
            }
        }
        // Far beyond the limit the exact depth does not matter.
        deep = (deep + facts[number].blocks).min(10 * DEEP_MAX);
        self.states[number] = State::Done(deep);
        deep
    }
}

/// State of a subroutine in the search.
#[derive(Clone, Copy)]
enum State {
    New,
    Open,
    /// Finished, with this depth.
    Done(u32),
}

/// The shorter of two lists: of subroutines where it works, or where it does not.
fn where_it_works(allowed: Subs) -> String {
    let names = |there: bool| -> Vec<_> {
        let some = Sub::ALL.iter().filter(move |sub| allowed.has(**sub) == there);
        some.map(|sub| sub.name()).collect()
    };
    let (within, without) = (names(true), names(false));
    match &within[..] {
        [] => "it works nowhere".to_owned(),
        [one] => format!("it works in {one} only"),
        some if some.len() > without.len() => format!("it works in all but {}", without.join(", ")),
        some => format!("it works in {}", some.join(", ")),
    }
}
