//! Compiled form of expressions. Types are checked and constants folded; no name is left
//! unresolved.

use std::sync::Arc;

use bytes::Bytes;

use crate::regex::Regex;
use crate::run::ArithOp;
use crate::state::value::{Header, Value};
use crate::sub::Subs;
use crate::vars::{StorageFact, StringGetter, VariableGetter};
use crate::vmod::{Call, MethodCall};

/// An expression.
#[derive(Debug)]
pub(crate) enum Term {
    /// A constant.
    Const(Value),
    /// A variable.
    Var(VariableGetter),
    /// A string.
    Text(Box<StringTerm>),
    /// A BOOL.
    Cond(Box<Cond>),
    /// An arithmetic operation.
    Arith(Box<Arith>),
    /// A call of a VMOD's function.
    Call(Box<FunctionInvocation>),
    /// A call of a method of an object.
    Method(Box<MethodInvocation>),
    /// A backend, by number.
    Backend(u32),
    /// The default backend.
    DefaultBackend,
    /// The backend that a director selects now: `.resolve()`.
    Resolve(Box<Self>),
    /// A fact about a storage.
    Storage(StorageFact, Arc<str>),
}

/// A call of a function.
#[derive(Debug)]
pub(crate) struct FunctionInvocation {
    /// The function.
    pub(crate) call: Call,
    /// Subroutines in which the function may be called.
    pub(crate) from: Subs,
    /// Arguments, one for each parameter.
    pub(crate) arguments: Box<[Term]>,
}

/// A call of a method.
#[derive(Debug)]
pub(crate) struct MethodInvocation {
    /// The method.
    pub(crate) call: MethodCall,
    /// Subroutines in which the method may be called.
    pub(crate) from: Subs,
    /// Number of the object.
    pub(crate) object: u32,
    /// Arguments, one for each parameter.
    pub(crate) arguments: Box<[Term]>,
}

/// An expression of type BOOL.
#[derive(Debug)]
pub(crate) enum Cond {
    /// A constant.
    Const(bool),
    /// The truth of a value: a `BOOL`, an `INT` other than 0, a `DURATION` above 0, a backend other
    /// than none.
    Value(Term),
    /// True for a string that is present, even if empty.
    Is(StringTerm),
    /// `!`
    Not(Box<Self>),
    /// `&&`
    All(Box<[Self]>),
    /// `||`
    Any(Box<[Self]>),
    /// `~` with a pattern. An absent string matches like an empty one.
    Match(StringTerm, Arc<Regex>),
    /// `==` of strings. An absent string equals nothing, not even another absent string.
    Same(Box<Sides<StringTerm>>),
    /// Order of strings by bytes. An absent string is greater than any string, in either direction.
    TextOrder(OrderingOperator, Box<Sides<StringTerm>>),
    /// `==` of other types.
    Equal(Box<Sides<Term>>),
    /// Order of numbers.
    Order(OrderingOperator, Box<Sides<Term>>),
    /// `~` with an ACL.
    Acl(Term, u32),
}

/// Operands of a comparison.
#[derive(Debug)]
pub(crate) struct Sides<T> {
    /// The left operand.
    pub(crate) left: T,
    /// The right operand.
    pub(crate) right: T,
}

/// Operators between ordered values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OrderingOperator {
    /// `<`
    Less,
    /// `>`
    Greater,
    /// `<=`
    LessEqual,
    /// `>=`
    GreaterEqual,
}

/// An expression of type STRING. An absent header is no string; in a concatenation it is empty.
#[derive(Debug)]
pub(crate) enum StringTerm {
    /// A constant.
    Const(Bytes),
    /// The value of a header.
    Header(Header),
    /// A string borrowed from a message.
    Borrowed(StringGetter),
    /// Concatenation.
    Join(Vec<Self>),
    /// `regsub(...)`, `regsuball(...)`
    Regsub(Box<Regsub>),
    /// `.lower()`
    Lower(Box<Self>),
    /// `.upper()`
    Upper(Box<Self>),
    /// A value of another type, converted.
    Shown(Box<Term>),
    /// The string, or `(null)` if it is absent.
    OrNull(Box<Self>),
}

/// `regsub(subject, regex, replacement)`
#[derive(Debug)]
pub(crate) struct Regsub {
    pub(crate) subject: StringTerm,
    pub(crate) regex: Arc<Regex>,
    pub(crate) replacement: StringTerm,
    /// True for `regsuball`.
    pub(crate) all: bool,
}

/// An arithmetic operation with its operands.
#[derive(Debug)]
pub(crate) struct Arith {
    pub(crate) op: ArithOp,
    pub(crate) left: Term,
    pub(crate) right: Term,
}
