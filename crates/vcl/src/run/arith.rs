//! Arithmetic on numbers, times and durations.
//!
//! Whole numbers that overflow and divisions by zero fail the program: what Varnish does there is
//! undefined.

use crate::run::Expr;
use crate::value::{Failure, Value};

/// Two operands and what is between them.
#[derive(Debug)]
pub(crate) struct Arith {
    pub(crate) op: ArithOp,
    pub(crate) left: Expr,
    pub(crate) right: Expr,
}

/// What is between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ArithOp {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `%`
    Modulo,
}

impl ArithOp {
    /// The operator.
    pub(crate) fn sign(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Modulo => "%",
        }
    }

    fn whole(self, a: i64, b: i64) -> Option<i64> {
        match self {
            Self::Add => a.checked_add(b),
            Self::Subtract => a.checked_sub(b),
            Self::Multiply => a.checked_mul(b),
            Self::Divide => a.checked_div(b),
            Self::Modulo => a.checked_rem(b),
        }
    }

    fn real(self, a: f64, b: f64) -> Option<f64> {
        let result = match self {
            Self::Add => a + b,
            Self::Subtract => a - b,
            Self::Multiply => a * b,
            Self::Divide => a / b,
            Self::Modulo => return None,
        };
        result.is_finite().then_some(result)
    }
}

/// The value of `left op right`, whose types the checker has allowed.
///
/// # Errors
/// A whole number does not fit into 64 bits, or the result is no number.
pub(crate) fn calculate(op: ArithOp, left: &Value, right: &Value) -> Result<Value, Failure> {
    let made = match (left, right) {
        (Value::Int(a), Value::Int(b)) => op.whole(*a, *b).map(Value::Int),
        (Value::Bytes(a), Value::Bytes(b) | Value::Int(b)) => op.whole(*a, *b).map(Value::Bytes),
        (Value::Bytes(a), _) => op.real(*a as f64, right.seconds()).and_then(bytes),
        (Value::Time(a), Value::Time(b)) => op.real(*a, *b).map(Value::Duration),
        (Value::Time(a), _) => op.real(*a, right.seconds()).map(Value::Time),
        (Value::Duration(a), _) => op.real(*a, right.seconds()).map(Value::Duration),
        _ => op.real(left.seconds(), right.seconds()).map(Value::Real),
    };
    made.ok_or_else(|| {
        let zero = matches!(op, ArithOp::Divide | ArithOp::Modulo) && right.seconds() == 0.0;
        Failure::new(if zero { "division by zero" } else { "a number grew too large" })
    })
}

/// A number of bytes, its fraction cut off as C does it.
fn bytes(n: f64) -> Option<Value> {
    // Every i64 that matters is well within what f64 holds exactly; the bounds are powers of two.
    (n.abs() < 9.0e18).then_some(Value::Bytes(n as i64))
}
