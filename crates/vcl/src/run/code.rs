//! Compiled form of statements. Statements stay small, with rare parts boxed: between two requests
//! a core's caches lose most of it. No name is left unresolved.

use crate::run::{Cond, HeaderCleanup, StringTerm, Term};
use crate::source::StatementNumber;
use crate::state::value::{Header, VclMessage};
use crate::sub::Action;
use crate::vars::{VariableSetter, VariableUnsetter};
use crate::vmod::ObjectConstructor;

/// A subroutine: all declarations of its name, concatenated.
#[derive(Debug)]
pub(crate) struct Routine {
    /// The name.
    pub(crate) name: Box<str>,
    /// The statements.
    pub(crate) body: Box<[CompiledStatement]>,
}

/// A statement with its number.
#[derive(Debug)]
pub(crate) struct CompiledStatement {
    /// The operation.
    pub(crate) op: Op,
    /// Number of the statement.
    pub(crate) at: StatementNumber,
}

/// Operation of a statement.
#[derive(Debug)]
pub(crate) enum Op {
    /// Statements in sequence.
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
    /// `synthetic(...)`: appends to the body of the synthetic response.
    Synthetic(Term),
    /// `unset variable`
    Unset(VariableUnsetter),
    /// `call sub`
    Call(u32),
    /// `return (...)`
    Return(Verdict),
    /// `new object = ...`
    New(Box<NewStatement>),
    /// A function call as a statement.
    Do(Term),
    /// `hash_data(...)`
    HashData(StringTerm),
    /// `ban(...)`
    Ban(StringTerm),
    /// A statement whose function calls a subroutine: a `return` there ends the statement's
    /// subroutine.
    Ending(Box<Self>),
}

/// `new name = class(...)`
#[derive(Debug)]
pub(crate) struct NewStatement {
    /// Name of the object.
    pub(crate) name: Box<str>,
    /// Number of the object.
    pub(crate) number: u32,
    /// Constructor of the object.
    pub(crate) construct: ObjectConstructor,
    /// Arguments, one for each parameter.
    pub(crate) arguments: Box<[Term]>,
}

/// `if (condition) { body }`
#[derive(Debug)]
pub(crate) struct Arm {
    /// The condition.
    pub(crate) condition: Cond,
    /// Statements of the arm.
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

/// Status and reason of `synth` and `error`.
#[derive(Debug)]
pub(crate) struct SyntheticArguments {
    /// The status, a whole number.
    pub(crate) status: Term,
    /// The reason phrase; `None` for the status's usual one.
    pub(crate) reason: Option<StringTerm>,
}
