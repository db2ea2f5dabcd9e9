//! Conditions, evaluated. Headers and URLs are tested in place wherever possible, without a copy.

use crate::failure::ProgramFailure;
use crate::run::{Cond, OrderingOperator, Sides, StringTerm};
use crate::state::backend::Backend;
use crate::state::ctx::Ctx;
use crate::state::value::Value;
use crate::tag::Tag;

impl OrderingOperator {
    fn holds<T: PartialOrd + ?Sized>(self, left: &T, right: &T) -> bool {
        match self {
            Self::Less => left < right,
            Self::Greater => left > right,
            Self::LessEqual => left <= right,
            Self::GreaterEqual => left >= right,
        }
    }
}

impl Cond {
    /// Returns true if the condition holds.
    ///
    /// # Errors
    /// The failure of the program.
    pub(crate) fn holds(&self, ctx: &mut Ctx<'_>) -> Result<bool, ProgramFailure> {
        Ok(match self {
            Self::Const(known) => *known,
            Self::Value(expr) => is_true(&expr.eval(ctx)?),
            Self::Is(text) => text.with(ctx, |bytes| bytes.is_some())?,
            Self::Not(inner) => !inner.holds(ctx)?,
            Self::All(parts) => {
                for part in parts {
                    if !part.holds(ctx)? {
                        return Ok(false);
                    }
                }
                true
            }
            Self::Any(parts) => {
                for part in parts {
                    if part.holds(ctx)? {
                        return Ok(true);
                    }
                }
                false
            }
            Self::Match(text, regex) => {
                text.with(ctx, |bytes| regex.is_match(bytes.unwrap_or_default()))??
            }
            Self::Same(texts) => both(texts, ctx, |a, b| a.zip(b).is_some_and(|(a, b)| a == b))?,
            Self::TextOrder(order, texts) => both(texts, ctx, |a, b| match a.zip(b) {
                Some((a, b)) => order.holds(a, b),
                None => order.holds(&1, &0),
            })?,
            Self::Equal(values) => {
                let left = values.left.eval(ctx)?;
                equal(&left, &values.right.eval(ctx)?)
            }
            Self::Order(order, values) => {
                let left = values.left.eval(ctx)?;
                ordered(*order, &left, &values.right.eval(ctx)?)
            }
            Self::Acl(address, acl) => match address.eval(ctx)? {
                Value::Ip(Some(address)) => {
                    let log = |line: &str| ctx.environment.log(Tag::Acl, line.as_bytes());
                    ctx.instance.acl(*acl).check(address.ip(), log)
                }
                _ => false,
            },
        })
    }
}

/// Both strings, if they can be borrowed.
fn both(
    texts: &Sides<StringTerm>,
    ctx: &mut Ctx<'_>,
    then: impl FnOnce(Option<&[u8]>, Option<&[u8]>) -> bool,
) -> Result<bool, ProgramFailure> {
    let Sides { left, right } = texts;
    if let Some((left, right)) = left.peek(ctx).zip(right.peek(ctx)) {
        return Ok(then(left, right));
    }
    let mut buffer = ctx.task.take_buffer();
    let result = left
        .append(ctx, &mut buffer)
        .and_then(|is_some| right.with(ctx, |right| then(is_some.then_some(&buffer[..]), right)));
    ctx.task.give_buffer(buffer);
    result
}

fn is_true(value: &Value) -> bool {
    match value {
        Value::Bool(known) => *known,
        Value::Int(n) => *n != 0,
        Value::Duration(seconds) => *seconds > 0.0,
        Value::String(bytes) => bytes.is_some(),
        Value::Backend(backend) => !matches!(backend, Backend::None),
        _ => false,
    }
}

fn equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Int(a), Value::Int(b)) | (Value::Bytes(a), Value::Bytes(b)) => a == b,
        (Value::Real(a), Value::Real(b))
        | (Value::Duration(a), Value::Duration(b))
        | (Value::Time(a), Value::Time(b)) => a == b,
        (Value::Ip(a), Value::Ip(b)) => a.map(|a| a.ip()) == b.map(|b| b.ip()),
        (Value::Backend(a), Value::Backend(b)) => a.is(b),
        (Value::Stevedore(a), Value::Stevedore(b)) => a == b,
        (Value::Acl(a), Value::Acl(b)) | (Value::Probe(a), Value::Probe(b)) => a == b,
        _ => false,
    }
}

fn ordered(order: OrderingOperator, left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Int(a), Value::Int(b)) | (Value::Bytes(a), Value::Bytes(b)) => order.holds(a, b),
        _ => order.holds(&left.seconds(), &right.seconds()),
    }
}
