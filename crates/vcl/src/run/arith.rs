//! Arithmetic on numbers, times and durations. An INT never wraps: overflow and division by zero
//! fail the program, where Varnish's behaviour is undefined.

use crate::failure::ProgramFailure;
use crate::state::value::Value;

/// Arithmetic operator.
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
    /// The operator as written.
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

/// Value of `left op right`, whose types the checker has permitted.
///
/// # Errors
/// If an INT overflows, or the result is not finite.
pub(crate) fn calculate(op: ArithOp, left: &Value, right: &Value) -> Result<Value, ProgramFailure> {
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
        ProgramFailure::new(if zero { "division by zero" } else { "a number grew too large" })
    })
}

/// A number of bytes; the fraction is cut off as in C.
fn bytes(n: f64) -> Option<Value> {
    // Each i64 of practical size is exact in an f64; the bounds are powers of two.
    (n.abs() < 9.0e18).then_some(Value::Bytes(n as i64))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const OPS: [ArithOp; 5] =
        [ArithOp::Add, ArithOp::Subtract, ArithOp::Multiply, ArithOp::Divide, ArithOp::Modulo];

    /// Model of the operator on integers that cannot overflow.
    fn model(op: ArithOp, a: i128, b: i128) -> Option<i64> {
        let wide = match op {
            ArithOp::Add => a + b,
            ArithOp::Subtract => a - b,
            ArithOp::Multiply => a * b,
            ArithOp::Divide => a.checked_div(b)?,
            ArithOp::Modulo => a.checked_rem(b)?,
        };
        wide.try_into().ok()
    }

    fn whole() -> impl Strategy<Value = i64> {
        prop_oneof![any::<i64>(), -5..5i64, Just(i64::MIN), Just(i64::MAX)]
    }

    proptest! {
        #[test]
        fn whole_numbers_are_right_or_fail(at in 0..OPS.len(), a in whole(), b in whole()) {
            let op = OPS[at];
            // The remainder of the least INT by -1 is 0, which the processor rejects.
            let least = op == ArithOp::Modulo && (a, b) == (i64::MIN, -1);
            let expected = model(op, a.into(), b.into()).filter(|_| !least);
            match calculate(op, &Value::Int(a), &Value::Int(b)) {
                Ok(Value::Int(n)) => prop_assert_eq!(Some(n), expected),
                Ok(other) => prop_assert!(false, "{:?}", other),
                Err(_) => prop_assert_eq!(None, expected),
            }
        }

        #[test]
        fn real_numbers_are_finite_or_fail(at in 0..OPS.len(), a: f64, b: f64) {
            let whole = Value::Bytes(a as i64);
            for left in [Value::Real(a), Value::Time(a), Value::Duration(a), whole] {
                if let Ok(value) = calculate(OPS[at], &left, &Value::Real(b)) {
                    prop_assert!(value.seconds().is_finite());
                }
            }
        }
    }

    #[test]
    fn times_and_durations_keep_their_types() {
        let is = |op, a, b| calculate(op, &a, &b).expect("it can be done");
        use {ArithOp::*, Value::*};
        assert!(matches!(is(Subtract, Time(5.0), Time(3.0)), Duration(2.0)));
        assert!(matches!(is(Add, Time(5.0), Duration(3.0)), Time(8.0)));
        assert!(matches!(is(Multiply, Duration(5.0), Int(3)), Duration(15.0)));
        assert!(matches!(is(Divide, Bytes(5), Real(2.0)), Bytes(2)));
        assert!(matches!(is(Add, Int(1), Real(2.0)), Real(3.0)));
    }
}
