//! Statements in their compiled form. They are kept small, and what is seldom run lies elsewhere:
//! between two requests, a core forgets most of what it has read.

use crate::run::{Clean, Cond, Term, Text};
use crate::source::At;
use crate::state::value::{Header, Place};
use crate::sub::Action;
use crate::vars::{Remove, Set};
use crate::vmod::Construct;

/// A subroutine: all that bear its name, one after the other.
#[derive(Debug)]
pub(crate) struct Routine {
    /// Its name.
    pub(crate) name: Box<str>,
    /// Its statements.
    pub(crate) body: Box<[Step]>,
}

/// A statement and where it stands.
#[derive(Debug)]
pub(crate) struct Step {
    /// Its operation.
    pub(crate) op: Op,
    /// Where it stands.
    pub(crate) at: At,
}

/// The operation of a statement.
#[derive(Debug)]
pub(crate) enum Op {
    /// Some statements one after the other.
    Block(Box<[Step]>),
    /// The first arm whose condition holds, or else the statements at the end.
    If(Box<[Arm]>, Box<[Step]>),
    /// `set x.http.y = ...`
    SetHeader(Box<(Header, Text)>),
    /// `set x.http.y = regsub(x.http.y, ...)`, once or several times
    Clean(Box<Clean>),
    /// `unset x.http.y`
    UnsetHeader(Header),
    /// `set variable = ...`
    Set(Set, Term),
    /// `set resp.body = ...`
    SetBody(Set, Term),
    /// `set resp.body += ...`
    AddToBody(Place, Term),
    /// `synthetic(...)`: the same for the answer that the subroutine makes.
    Synthetic(Term),
    /// `unset variable`
    Unset(Remove),
    /// `call sub`
    Call(u32),
    /// `return (...)`
    Return(Verdict),
    /// `new object = ...`
    New(Box<New>),
    /// A function called for its effect.
    Do(Term),
    /// `hash_data(...)`
    HashData(Text),
    /// `ban(...)`
    Ban(Text),
    /// A statement in which a function calls a subroutine, whose `return` ends this one, too.
    Ending(Box<Self>),
}

/// `new name = class(...)`
#[derive(Debug)]
pub(crate) struct New {
    /// The object's name.
    pub(crate) name: Box<str>,
    /// Its number.
    pub(crate) number: u32,
    /// Makes it.
    pub(crate) construct: Construct,
    /// The arguments, one for each parameter.
    pub(crate) arguments: Box<[Term]>,
}

/// `if (condition) { body }`
#[derive(Debug)]
pub(crate) struct Arm {
    /// The condition.
    pub(crate) condition: Cond,
    /// The statements that run if the condition holds.
    pub(crate) body: Box<[Step]>,
}

/// The verdict of a `return`.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// `return;`: back to the caller.
    Back,
    /// An action whose arguments are constants.
    Fixed(Action),
    /// `synth(status, reason)`
    Synth(Box<Saying>),
    /// `error(status, reason)`
    Error(Box<Saying>),
    /// `pass(duration)`
    Pass(Term),
    /// `fail(reason)`
    Fail(Text),
}

/// The status and reason that a verdict gives an answer.
#[derive(Debug)]
pub(crate) struct Saying {
    /// The status, a whole number.
    pub(crate) status: Term,
    /// The reason; without one it is the usual one of the status.
    pub(crate) reason: Option<Text>,
}
