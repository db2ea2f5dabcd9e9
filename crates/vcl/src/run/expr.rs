//! Expressions of every type while they run.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::ctx::Ctx;
use crate::run::{Arith, Cond, Text, calculate};
use crate::sub::Subs;
use crate::value::{Failure, Value};
use crate::vars::{Get, StorageFact};
use crate::vmod::{Call, MethodCall};

/// An expression.
#[derive(Debug)]
pub(crate) enum Term {
    /// Always the same.
    Const(Value),
    /// A variable.
    Var(Get),
    /// A string.
    Text(Box<Text>),
    /// A truth.
    Cond(Box<Cond>),
    /// Two numbers and what is between them.
    Arith(Box<Arith>),
    /// A function of a module.
    Call(Box<Invoke>),
    /// A method of an object.
    Method(Box<MethodInvoke>),
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
pub(crate) struct Invoke {
    /// The function.
    pub(crate) call: Call,
    /// Where it works.
    pub(crate) from: Subs,
    /// One for each parameter.
    pub(crate) arguments: Box<[Term]>,
}

/// A call of a method.
#[derive(Debug)]
pub(crate) struct MethodInvoke {
    /// The method.
    pub(crate) call: MethodCall,
    /// Where it works.
    pub(crate) from: Subs,
    /// The object, by number.
    pub(crate) object: u32,
    /// One for each parameter.
    pub(crate) arguments: Box<[Term]>,
}

/// Arguments. Most need no memory of their own.
type Values = SmallVec<[Value; 4]>;

impl Term {
    /// Its value.
    ///
    /// # Errors
    /// The program failed.
    pub(crate) fn eval(&self, ctx: &mut Ctx<'_>) -> Result<Value, Failure> {
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
                Value::Backend(backend) => Value::Backend(
                    backend
                        .resolve(ctx)
                        .map_or(crate::backend::Backend::None, crate::backend::Backend::Leaf),
                ),
                other => other,
            },
            Self::Storage(fact, name) => fact.get(ctx, name),
        })
    }

    /// Its value as that of a body, whose bytes are not the workspace's, as in Varnish.
    ///
    /// # Errors
    /// The program failed.
    pub(super) fn eval_for_body(&self, ctx: &mut Ctx<'_>) -> Result<Value, Failure> {
        let Self::Text(text) = self else { return self.eval(ctx) };
        let mut body = Vec::new();
        text.append(ctx, &mut body)?;
        Ok(Value::String(Some(body.into())))
    }

    /// The values of arguments in their order.
    pub(super) fn eval_all(all: &[Self], ctx: &mut Ctx<'_>) -> Result<Values, Failure> {
        let mut values = Values::new();
        for argument in all {
            values.push(argument.eval(ctx)?);
        }
        Ok(values)
    }
}

/// Charges the task for the strings and blobs that a call has made, and returns the value. What
/// others hold as well, the call has not made.
fn made(value: Value, ctx: &Ctx<'_>) -> Result<Value, Failure> {
    match &value {
        Value::String(Some(bytes)) | Value::Blob(Some(bytes)) if bytes.is_unique() => {
            ctx.task.workspace.charge(bytes.len())?;
        }
        _ => {}
    }
    Ok(value)
}

/// Takes a step for a call, which must be in one of the subroutines `from`.
fn may_call(from: Subs, ctx: &mut Ctx<'_>) -> Result<(), Failure> {
    ctx.step()?;
    if from.has(ctx.sub) {
        return Ok(());
    }
    Err(Failure::new(format!("this function cannot be called in {}", ctx.sub.name())))
}
