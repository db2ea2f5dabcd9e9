//! Statements in their compiled form. They are kept small, and what is seldom run lies elsewhere:
//! between two requests, a core forgets most of what it has read.

use crate::run::{Cond, HeaderCleanup, StringTerm, Term};
use crate::source::StatementNumber;
use crate::state::value::{Header, VclMessage};
use crate::sub::Action;
use crate::vars::{VariableSetter, VariableUnsetter};
use crate::vmod::ObjectConstructor;

/// A subroutine: all that bear its name, one after the other.
#[derive(Debug)]
pub(crate) struct Routine {
    /// Its name.
    pub(crate) name: Box<str>,
    /// Its statements.
    pub(crate) body: Box<[CompiledStatement]>,
}

/// A statement and where it stands.
#[derive(Debug)]
pub(crate) struct CompiledStatement {
    /// Its operation.
    pub(crate) op: Op,
    /// Where it stands.
    pub(crate) at: StatementNumber,
}

/// The operation of a statement.
#[derive(Debug)]
pub(crate) enum Op {
    /// Some statements one after the other.
    Block(Box<[CompiledStatement]>),
    /// The first arm whose condition holds, or else the statements at the end.
    If(Box<[Arm]>, Box<[CompiledStatement]>),
    /// `set x.http.y = ...`
    SetHeader(Box<(Header, StringTerm)>),
    /// `set x.http.y = regsub(x.http.y, ...)`, once or several times
    Clean(Box<HeaderCleanup>),
    /// `unset x.http.y`
    UnsetHeader(Header),
    /// `set variable = ...`
    Set(VariableSetter, Term),
    /// `set resp.body = ...`
    SetBody(VariableSetter, Term),
    /// `set resp.body += ...`
    AddToBody(VclMessage, Term),
    /// `synthetic(...)`: the same for the answer that the subroutine makes.
    Synthetic(Term),
    /// `unset variable`
    Unset(VariableUnsetter),
    /// `call sub`
    Call(u32),
    /// `return (...)`
    Return(Verdict),
    /// `new object = ...`
    New(Box<NewStatement>),
    /// A function called for its effect.
    Do(Term),
    /// `hash_data(...)`
    HashData(StringTerm),
    /// `ban(...)`
    Ban(StringTerm),
    /// A statement in which a function calls a subroutine, whose `return` ends this one, too.
    Ending(Box<Self>),
}

/// `new name = class(...)`
#[derive(Debug)]
pub(crate) struct NewStatement {
    /// The object's name.
    pub(crate) name: Box<str>,
    /// Its number.
    pub(crate) number: u32,
    /// Makes it.
    pub(crate) construct: ObjectConstructor,
    /// The arguments, one for each parameter.
    pub(crate) arguments: Box<[Term]>,
}

/// `if (condition) { body }`
#[derive(Debug)]
pub(crate) struct Arm {
    /// The condition.
    pub(crate) condition: Cond,
    /// The statements that run if the condition holds.
    pub(crate) body: Box<[CompiledStatement]>,
}

/// The verdict of a `return`.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// `return;`: back to the caller.
    Back,
    /// An action whose arguments are constants.
    Fixed(Action),
    /// `synth(status, reason)`
    Synth(Box<SyntheticArguments>),
    /// `error(status, reason)`
    Error(Box<SyntheticArguments>),
    /// `pass(duration)`
    Pass(Term),
    /// `fail(reason)`
    Fail(StringTerm),
}

/// The status and reason that a verdict gives an answer.
#[derive(Debug)]
pub(crate) struct SyntheticArguments {
    /// The status, a whole number.
    pub(crate) status: Term,
    /// The reason; without one it is the usual one of the status.
    pub(crate) reason: Option<StringTerm>,
}
