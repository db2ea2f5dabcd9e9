//! Where things may stand: whatever a subroutine does must be allowed in every subroutine of
//! Varnish's from which it is reached. Also: no subroutine may come back to itself.

use crate::ast::Name;
use crate::lower::Lowering;
use crate::lower::facts::{RestrictionKind, SubFacts, SubroutineRestriction};
use crate::source::SourceSpan;
use crate::state::value::VclMessage;
use crate::sub::{Sub, Subs};

/// Blocks within each other, those of called subroutines among them. What runs them recurses.
const DEEP_MAX: u32 = 200;

impl Lowering<'_> {
    /// The subroutine that is being lowered does something that only `allowed` may do. `what` is
    /// made only where that is of interest.
    pub(super) fn need(&mut self, allowed: Subs, span: SourceSpan, what: impl FnOnce() -> String) {
        if allowed != Subs::ALL {
            let what = what().into();
            let need = SubroutineRestriction { what, span, allowed, kind: RestrictionKind::Use };
            self.facts[self.current].needs.push(need);
        }
    }

    /// The same for what is returned.
    pub(super) fn verb_need(&mut self, allowed: Subs, verb: &Name) {
        let what = format!("`{}` cannot be returned", verb.text).into();
        let need = SubroutineRestriction {
            what,
            span: verb.span,
            allowed,
            kind: RestrictionKind::ActionKind,
        };
        self.facts[self.current].needs.push(need);
    }

    /// The same for a function of a VMOD, which fails when it runs elsewhere.
    pub(super) fn call_need(&mut self, allowed: Subs, name: &Name) {
        if allowed != Subs::ALL {
            let what = format!("`{}` always fails", name.text).into();
            let need = SubroutineRestriction {
                what,
                span: name.span,
                allowed,
                kind: RestrictionKind::Lenient,
            };
            self.facts[self.current].needs.push(need);
        }
    }

    /// It calls another.
    pub(super) fn calls(&mut self, number: u32, span: SourceSpan) {
        self.facts[self.current].calls.push((number, span));
    }

    /// It touches a header of a message.
    pub(super) fn touches(&mut self, place: VclMessage) {
        if matches!(place, VclMessage::Resp | VclMessage::Obj) {
            self.facts[self.current].head = true;
        }
    }

    /// It uses a variable, which may stand for a part of a head, too.
    pub(super) fn uses_var(&mut self, name: &str) {
        let in_head = name == "resp"
            || name.starts_with("resp.")
            || matches!(name, "obj.status" | "obj.reason" | "obj.proto");
        self.facts[self.current].head |= in_head;
    }

    /// Checks all places, and finds out what each of Varnish's subroutines does.
    pub(super) fn places(&mut self) {
        if self.recursion() {
            return;
        }
        let mut told = Vec::new();
        for sub in Sub::ALL {
            let Some(number) = self.symbols.sub(sub.name()) else { continue };
            let mut reached = vec![false; self.facts.len()];
            let mut chain = Vec::new();
            self.reach(*sub, number, &mut reached, &mut chain, &mut told);
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

    /// Checks the needs of subroutine `number` and those it calls against `sub`. `chain` has the
    /// calls that led here.
    fn reach(
        &mut self,
        sub: Sub,
        number: u32,
        reached: &mut [bool],
        chain: &mut Vec<SourceSpan>,
        told: &mut Vec<SourceSpan>,
    ) {
        if std::mem::replace(&mut reached[number as usize], true) {
            return;
        }
        let facts = &self.facts[number as usize];
        for need in &facts.needs {
            // Once for each place, however many ways lead there.
            if need.allowed.has(sub) || told.contains(&need.span) {
                continue;
            }
            told.push(need.span);
            let message = format!("{} in {}", need.what, sub.name());
            let entry = match need.kind {
                RestrictionKind::Lenient => self.report.advice(need.span, message),
                RestrictionKind::Use | RestrictionKind::ActionKind => {
                    self.report.error(need.span, message)
                }
            };
            for call in chain.iter().rev() {
                entry.label(*call, "reached through this call");
            }
            entry.note(where_it_works(need.allowed));
            if need.kind == RestrictionKind::ActionKind {
                let words: Vec<_> = sub.actions().iter().map(|verb| verb.word()).collect();
                entry.help(format!("{} returns one of {}", sub.name(), words.join(", ")));
            }
        }
        let calls = facts.calls.clone();
        for (callee, span) in calls {
            chain.push(span);
            self.reach(sub, callee, reached, chain, told);
            chain.pop();
        }
    }

    /// Reports subroutines that come back to themselves or go too deep, and says whether there are
    /// any.
    fn recursion(&mut self) -> bool {
        let mut walk = Walk { states: vec![State::New; self.facts.len()], circles: Vec::new() };
        for number in 0..self.facts.len() {
            walk.visit(number, &self.facts);
        }
        let mut found = !walk.circles.is_empty();
        for (callee, span) in &walk.circles {
            let facts = &self.facts[*callee];
            self.report
                .error(*span, format!("sub `{}` comes back to itself", facts.name))
                .here("this call closes the circle")
                .label(facts.span, "it begins here");
        }
        for (facts, state) in self.facts.iter().zip(&walk.states) {
            if matches!(state, State::Done(deep) if *deep > DEEP_MAX) {
                found = true;
                self.report.error(facts.span, format!("sub `{}` goes too deep", facts.name)).note(
                    format!("at most {DEEP_MAX} blocks may be within each other, calls included"),
                );
                break;
            }
        }
        found
    }
}

/// The walk through the calls.
struct Walk {
    states: Vec<State>,
    /// Calls that come back to where they began.
    circles: Vec<(usize, SourceSpan)>,
}

impl Walk {
    /// Returns the depth of blocks within each other in subroutine `number` and in those that it
    /// calls.
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
        // What is far beyond the bound need not be told from what is farther.
        deep = (deep + facts[number].blocks).min(10 * DEEP_MAX);
        self.states[number] = State::Done(deep);
        deep
    }
}

/// The state of a subroutine in the walk through the calls.
#[derive(Clone, Copy)]
enum State {
    New,
    Open,
    /// It goes so deep.
    Done(u32),
}

/// The shorter of two ways to say it.
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
