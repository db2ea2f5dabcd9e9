//! Expressions in their compiled form.

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
    /// Always the same.
    Const(Value),
    /// A variable.
    Var(VariableGetter),
    /// A string.
    Text(Box<StringTerm>),
    /// A truth.
    Cond(Box<Cond>),
    /// Two numbers and what is between them.
    Arith(Box<Arith>),
    /// A function of a module.
    Call(Box<FunctionInvocation>),
    /// A method of an object.
    Method(Box<MethodInvocation>),
    /// A backend of the program, by number.
    Backend(u32),
    /// The backend a program begins with: `default`.
    DefaultBackend,
    /// The backend that a director would choose now: `.resolve()`.
    Resolve(Box<Self>),
    /// A fact about a storage.
    Storage(StorageFact, Arc<str>),
}

/// A call of a function.
#[derive(Debug)]
pub(crate) struct FunctionInvocation {
    /// The function.
    pub(crate) call: Call,
    /// Where it works.
    pub(crate) from: Subs,
    /// One for each parameter.
    pub(crate) arguments: Box<[Term]>,
}

/// A call of a method.
#[derive(Debug)]
pub(crate) struct MethodInvocation {
    /// The method.
    pub(crate) call: MethodCall,
    /// Where it works.
    pub(crate) from: Subs,
    /// The object, by number.
    pub(crate) object: u32,
    /// One for each parameter.
    pub(crate) arguments: Box<[Term]>,
}

/// An expression whose value is true or false.
#[derive(Debug)]
pub(crate) enum Cond {
    /// Always the same.
    Const(bool),
    /// A value that is true as `if` sees it: a `BOOL`, an `INT` other than 0, a `DURATION` of more
    /// than nothing, a backend that is one.
    Value(Term),
    /// There is a string, even an empty one.
    Is(StringTerm),
    /// `!`
    Not(Box<Self>),
    /// `&&`
    All(Box<[Self]>),
    /// `||`
    Any(Box<[Self]>),
    /// `~` with a pattern. What is no string is matched as an empty one.
    Match(StringTerm, Arc<Regex>),
    /// `==` of strings. A value that is no string equals nothing, not even another such value.
    Same(Box<Sides<StringTerm>>),
    /// Strings in order, byte by byte. What is no string is greater than any, and any than it.
    TextOrder(OrderingOperator, Box<Sides<StringTerm>>),
    /// `==` of whatever else.
    Equal(Box<Sides<Term>>),
    /// Numbers in order.
    Order(OrderingOperator, Box<Sides<Term>>),
    /// `~` with an ACL.
    Acl(Term, u32),
}

/// Both sides of a comparison.
#[derive(Debug)]
pub(crate) struct Sides<T> {
    /// Before the sign.
    pub(crate) left: T,
    /// Behind it.
    pub(crate) right: T,
}

/// The comparisons of what has an order.
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

/// An expression whose value is a string. A header that is not there gives no string, which is
/// empty where it is put together with others.
#[derive(Debug)]
pub(crate) enum StringTerm {
    /// Always the same.
    Const(Bytes),
    /// The value of a header.
    Header(Header),
    /// A string that lies in a message.
    Borrowed(StringGetter),
    /// One behind the other.
    Join(Vec<Self>),
    /// `regsub(...)`, `regsuball(...)`
    Regsub(Box<Regsub>),
    /// `.lower()`
    Lower(Box<Self>),
    /// `.upper()`
    Upper(Box<Self>),
    /// Any other value, as a string.
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
    /// `regsuball`
    pub(crate) all: bool,
}

/// Two operands and what is between them.
#[derive(Debug)]
pub(crate) struct Arith {
    pub(crate) op: ArithOp,
    pub(crate) left: Term,
    pub(crate) right: Term,
}
