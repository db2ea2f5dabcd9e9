//! Verdicts: the verbs of `return` and their arguments. A verb outside its subroutines is always
//! rejected.

use crate::ast;
use crate::input::ProgramRole;
use crate::lower::Lowering;
use crate::lower::extra::actions;
use crate::run::{Op, StringTerm, SyntheticArguments, Term, Verdict};
use crate::source::SourceSpan;
use crate::state::value::Value;
use crate::sub::{Action, ActionKind, Sub, Subs, SyntheticStatus};
use crate::types::Type;

impl Lowering<'_> {
    pub(super) fn verdict(&mut self, given: Option<&ast::Return>, span: SourceSpan) -> Option<Op> {
        let Some(given) = given else {
            let name = &self.facts[self.current].name;
            if Sub::ALL.iter().any(|sub| sub.name() == &**name) {
                self.report
                    .error(span, format!("`return` without an action in {name}"))
                    .note("only the program's own subroutines return to their caller")
                    .expected("an action in parentheses");
                return None;
            }
            return Some(Op::Return(Verdict::Back));
        };
        let Some(verb) = ActionKind::of(&given.verb.text) else {
            self.unknown_verb(given);
            return None;
        };
        self.restrict_verb(allowed(verb, self.role()), &given.verb);
        let arguments = &given.arguments[..];
        let verdict = match verb {
            ActionKind::Synth | ActionKind::Error => self.status_and_reason(verb, given)?,
            ActionKind::Pass => match arguments {
                [] => Verdict::Fixed(Action::Pass(None)),
                [duration] => Verdict::Pass(self.value(duration, Type::Duration)?),
                _ => return self.arguments_of_verb(given, "at most a duration"),
            },
            ActionKind::Fail => match arguments {
                [] => Verdict::Fixed(Action::Fail(Box::default())),
                [reason] => self.failing(reason)?,
                _ => return self.arguments_of_verb(given, "at most a reason"),
            },
            ActionKind::Vcl => return self.label(given),
            _ if !arguments.is_empty() => return self.arguments_of_verb(given, "none"),
            ActionKind::Restart => {
                self.parts.uses.restart = true;
                Verdict::Fixed(Action::Restart)
            }
            plain => Verdict::Fixed(plain_action(plain)),
        };
        Some(Op::Return(verdict))
    }

    fn unknown_verb(&mut self, given: &ast::Return) {
        let word = &*given.verb.text;
        let entry = self.report.error(given.verb.span, format!("there is no action `{word}`"));
        match super::advice::old_verb(word) {
            Some(help) => entry.help(help),
            None => entry.did_you_mean(word, ActionKind::ALL.iter().map(|verb| verb.name())),
        };
    }

    fn arguments_of_verb(&mut self, given: &ast::Return, what: &str) -> Option<Op> {
        let verb = &given.verb.text;
        self.report
            .error(given.verb.span, format!("`{verb}` has the wrong arguments"))
            .expected(what);
        None
    }

    /// `synth(status, reason)`, `error(status, reason)`.
    fn status_and_reason(&mut self, verb: ActionKind, given: &ast::Return) -> Option<Verdict> {
        let (status, reason) = match &given.arguments[..] {
            [] if verb == ActionKind::Error => {
                let reason = Some(b"Backend fetch failed"[..].into());
                return Some(Verdict::Fixed(Action::Error(SyntheticStatus {
                    status: 503,
                    reason,
                })));
            }
            [status] => (status, None),
            [status, reason] => (status, Some(reason)),
            _ => {
                self.arguments_of_verb(given, "a status, and perhaps a reason");
                return None;
            }
        };
        let status_value = self.value(status, Type::Int);
        let reason = match reason {
            Some(reason) => Some(self.string(reason)?),
            None => None,
        };
        let status_value = status_value?;
        if let Term::Const(Value::Int(n)) = &status_value {
            if !crate::run::is_status(*n) {
                self.report
                    .advice(status.span, format!("no response can have the status {n}"))
                    .note("100 to 65535, with at least 100 in the last three digits");
            } else if let Some(fixed) = fixed(verb, *n, reason.as_ref()) {
                return Some(Verdict::Fixed(fixed));
            }
        }
        let saying = SyntheticArguments { status: status_value, reason };
        Some(match verb {
            ActionKind::Synth => Verdict::Synth(Box::new(saying)),
            _ => Verdict::Error(Box::new(saying)),
        })
    }

    fn failing(&mut self, reason: &ast::Expr) -> Option<Verdict> {
        Some(match self.string(reason)? {
            StringTerm::Const(text) => {
                Verdict::Fixed(Action::Fail(String::from_utf8_lossy(&text).into()))
            }
            text => Verdict::Fail(text),
        })
    }

    /// `return (vcl(label))`
    fn label(&mut self, given: &ast::Return) -> Option<Op> {
        let [argument] = &given.arguments[..] else {
            return self.arguments_of_verb(given, "the name of a label");
        };
        let ast::ExprKind::Name(name) = &argument.kind else {
            self.report.error(argument.span, "this is no label").expected("the name of a label");
            return None;
        };
        let labels = self.input.rules.labels;
        if !labels.contains(&&*name.text) {
            self.report
                .error(name.span, format!("there is no label `{}`", name.text))
                .did_you_mean(&name.text, labels.iter().copied())
                .note("`vcl.label NAME PROGRAM` on the CLI gives a loaded program a label");
            return None;
        }
        if !self.parts.uses.labels.contains(&name.text) {
            self.parts.uses.labels.push(name.text.clone());
        }
        Some(Op::Return(Verdict::Fixed(Action::Vcl(name.text.clone()))))
    }
}

/// The action of a verdict whose arguments are all constant.
fn fixed(verb: ActionKind, status: i64, reason: Option<&StringTerm>) -> Option<Action> {
    let reason = match reason {
        None => None,
        Some(StringTerm::Const(text)) => Some(Box::from(&text[..])),
        Some(_) => return None,
    };
    let synthetic = SyntheticStatus { status: u16::try_from(status).ok()?, reason };
    Some(if verb == ActionKind::Synth {
        Action::Synth(synthetic)
    } else {
        Action::Error(synthetic)
    })
}

fn plain_action(verb: ActionKind) -> Action {
    match verb {
        ActionKind::Abandon => Action::Abandon,
        ActionKind::Beresp => Action::Beresp,
        ActionKind::Deliver => Action::Deliver,
        ActionKind::Fetch => Action::Fetch,
        ActionKind::Hash => Action::Hash,
        ActionKind::Lookup => Action::Lookup,
        ActionKind::Merge => Action::Merge,
        ActionKind::ObjStale => Action::ObjStale,
        ActionKind::Ok => Action::Ok,
        ActionKind::Pipe => Action::Pipe,
        ActionKind::Purge => Action::Purge,
        ActionKind::Retry => Action::Retry,
        ActionKind::Restart => Action::Restart,
        ActionKind::Pass => Action::Pass(None),
        // The other verbs have arguments of their own kinds.
        ActionKind::Error | ActionKind::Fail | ActionKind::Synth | ActionKind::Vcl => {
            Action::Fail(Box::default())
        }
    }
}

/// Subroutines that may return `verb` in a program of this role.
fn allowed(verb: ActionKind, role: ProgramRole) -> Subs {
    Sub::ALL
        .iter()
        .filter(|sub| actions(**sub, role).contains(&verb))
        .fold(Subs::NONE, |subs, sub| subs.and(sub.only()))
}
