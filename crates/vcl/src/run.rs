//! Compiled programs and their execution: a tree of statements and expressions with names resolved,
//! constants folded and patterns compiled. No name is looked up at run time, and nothing is
//! allocated that the program does not ask for: headers and the URL are tested in place.

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
