//! The compiled form of a program, and what makes it run: a tree of steps and expressions in which
//! every name is resolved, every constant folded and every pattern prepared.
//!
//! Nothing here looks a name up, and nothing allocates that Varnish's language does not ask for:
//! tests of headers and of the URL read them where they lie.

mod arith;
mod clean;
mod code;
mod cond;
mod exec;
mod expr;
mod shown;
mod term;
#[cfg(test)]
mod tests;
mod text;

pub(crate) use arith::{ArithOp, calculate};
pub(crate) use clean::Clean;
pub(crate) use code::{Arm, New, Op, Routine, Saying, Step, Verdict};
pub(crate) use exec::is_status;
pub(crate) use expr::{Arith, Cond, Invoke, MethodInvoke, Order, Regsub, Sides, Term, Text};
pub(crate) use shown::append_plain;
