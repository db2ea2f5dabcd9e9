//! Terms, evaluated to values. Each call takes a step of the budget.

use smallvec::SmallVec;

use crate::failure::ProgramFailure;
use crate::run::{Term, calculate};
use crate::state::backend::Backend;
use crate::state::ctx::Ctx;
use crate::state::value::Value;
use crate::sub::Subs;

/// Arguments; most calls need no heap for them.
type Values = SmallVec<[Value; 4]>;

impl Term {
    /// Evaluates the term.
    ///
    /// # Errors
    /// The failure of the program.
    pub(crate) fn eval(&self, ctx: &mut Ctx<'_>) -> Result<Value, ProgramFailure> {
        Ok(match self {
            Self::Const(value) => value.clone(),
            Self::Var(get) => get(ctx),
            Self::Text(text) => Value::String(text.bytes(ctx)?),
            Self::Cond(cond) => Value::Bool(cond.holds(ctx)?),
            Self::Arith(arith) => {
                let left = arith.left.eval(ctx)?;
                let right = arith.right.eval(ctx)?;
                calculate(arith.op, &left, &right)?
            }
            Self::Call(invoke) => {
                let arguments = Self::eval_all(&invoke.arguments, ctx)?;
                may_call(invoke.from, ctx)?;
                made((invoke.call)(ctx, &arguments)?, ctx)?
            }
            Self::Method(invoke) => {
                let arguments = Self::eval_all(&invoke.arguments, ctx)?;
                may_call(invoke.from, ctx)?;
                let object = ctx.instance.made(invoke.object)?;
                made((invoke.call)(ctx, object, &arguments)?, ctx)?
            }
            Self::Backend(number) => Value::Backend(ctx.instance.declared(*number).clone()),
            Self::DefaultBackend => Value::Backend(ctx.instance.default_backend().clone()),
            Self::Resolve(director) => match director.eval(ctx)? {
                Value::Backend(backend) => {
                    Value::Backend(backend.resolve(ctx).map_or(Backend::None, Backend::Leaf))
                }
                other => other,
            },
            Self::Storage(fact, name) => fact.get(ctx, name),
        })
    }

    /// Evaluates the term for a body, whose bytes the workspace is not charged for, as in Varnish.
    ///
    /// # Errors
    /// The failure of the program.
    pub(super) fn eval_for_body(&self, ctx: &mut Ctx<'_>) -> Result<Value, ProgramFailure> {
        let Self::Text(text) = self else { return self.eval(ctx) };
        let mut body = Vec::new();
        text.append(ctx, &mut body)?;
        Ok(Value::String(Some(body.into())))
    }

    /// Evaluates arguments in order.
    pub(super) fn eval_all(all: &[Self], ctx: &mut Ctx<'_>) -> Result<Values, ProgramFailure> {
        let mut values = Values::new();
        for argument in all {
            values.push(argument.eval(ctx)?);
        }
        Ok(values)
    }
}

/// Charges the workspace for strings and blobs that a call has made, and returns the value. Shared
/// bytes were not made by the call.
fn made(value: Value, ctx: &Ctx<'_>) -> Result<Value, ProgramFailure> {
    match &value {
        Value::String(Some(bytes)) | Value::Blob(Some(bytes)) if bytes.is_unique() => {
            ctx.task.workspace.charge(bytes.len())?;
        }
        _ => {}
    }
    Ok(value)
}

/// Takes a step for a call, and checks that the subroutine is one of `from`.
fn may_call(from: Subs, ctx: &mut Ctx<'_>) -> Result<(), ProgramFailure> {
    ctx.step()?;
    if from.has(ctx.sub) {
        return Ok(());
    }
    Err(ProgramFailure::new(format!("this function cannot be called in {}", ctx.sub.name())))
}
