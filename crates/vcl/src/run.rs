//! The compiled form of a program, and what makes it run: a tree of steps and expressions in which
//! every name is resolved, every constant folded and every pattern prepared.
//!
//! Nothing here looks a name up, and nothing allocates that Varnish's language does not ask for:
//! tests of headers and of the URL read them where they lie.

mod arith;
mod code;
mod cond;
mod execution;
mod expr;
mod header_cleanup;
mod string_conversion;
mod term;
#[cfg(test)]
mod tests;
mod text;

pub(crate) use arith::{ArithOp, calculate};
pub(crate) use code::{
    Arm, CompiledStatement, NewStatement, Op, Routine, SyntheticArguments, Verdict,
};
pub(crate) use execution::is_status;
pub(crate) use expr::{
    Arith, Cond, FunctionInvocation, MethodInvocation, OrderingOperator, Regsub, Sides, StringTerm,
    Term,
};
pub(crate) use header_cleanup::HeaderCleanup;
pub(crate) use string_conversion::append_plain;
