//! Execution of statements within a step budget. No statement waits.

use crate::failure::ProgramFailure;
use crate::run::{
    Arm, CompiledStatement, NewStatement, Op, Routine, StringTerm, SyntheticArguments, Term,
    Verdict,
};
use crate::state::ctx::Ctx;
use crate::state::program::Executable;
use crate::state::value::{Value, VclMessage};
use crate::sub::{Action, Sub, SyntheticStatus};
use crate::tag::Tag;
use crate::vmod::ObjectIdentity;
use crate::{headers, vars};

/// Control flow after a statement.
enum Flow {
    /// The next statement follows.
    Next,
    /// The statement after the `call` follows.
    Back,
    /// The subroutine ends; [`Task::action`](crate::state::ctx::Task) is its result. The result is
    /// not stored here, so that a statement's result fits in registers.
    Done,
}

impl Executable for Routine {
    fn name(&self) -> &str {
        &self.name
    }

    fn run(&self, ctx: &mut Ctx<'_>) -> Result<bool, ProgramFailure> {
        Ok(matches!(block(&self.body, ctx)?, Flow::Done))
    }
}

fn block(steps: &[CompiledStatement], ctx: &mut Ctx<'_>) -> Result<Flow, ProgramFailure> {
    if ctx.task.traced
        && let Some(first) = steps.first()
    {
        trace(ctx, first);
    }
    for step in steps {
        match statement(step, ctx) {
            Ok(Flow::Next) => {}
            Ok(Flow::Back) => return Ok(Flow::Back),
            Ok(Flow::Done) => {
                ctx.task.at.get_or_insert(step.at);
                return Ok(Flow::Done);
            }
            Err(failure) => {
                ctx.task.at.get_or_insert(step.at);
                return Err(failure);
            }
        }
    }
    Ok(Flow::Next)
}

#[inline(always)]
fn statement(step: &CompiledStatement, ctx: &mut Ctx<'_>) -> Result<Flow, ProgramFailure> {
    ctx.step()?;
    operation(&step.op, ctx)
}

#[inline(always)]
fn operation(op: &Op, ctx: &mut Ctx<'_>) -> Result<Flow, ProgramFailure> {
    match op {
        Op::Block(steps) => return block(steps, ctx),
        Op::If(arms, otherwise) => return branch(arms, otherwise, ctx),
        Op::SetHeader(set) => {
            let (header, text) = &**set;
            text.with_ctx(ctx, |ctx, value| {
                ctx.task.workspace.charge(value.len())?;
                headers::set(ctx, header, value)
            })??;
        }
        Op::Clean(clean) => clean.run(ctx)?,
        Op::UnsetHeader(header) => headers::unset(ctx, header),
        Op::Set(set, value) => {
            let value = value.eval(ctx)?;
            set(ctx, value)?;
        }
        Op::SetBody(set, value) => {
            let value = value.eval_for_body(ctx)?;
            set(ctx, value)?;
        }
        Op::AddToBody(message, value) => {
            let value = value.eval_for_body(ctx)?;
            vars::add_to_body(ctx, *message, value)?;
        }
        Op::Synthetic(value) => {
            let value = value.eval_for_body(ctx)?;
            let is_fetch = ctx.sub == Sub::BackendError;
            let message = if is_fetch { VclMessage::Beresp } else { VclMessage::Resp };
            vars::add_to_body(ctx, message, value)?;
        }
        Op::Unset(remove) => remove(ctx),
        Op::Call(number) => return call(*number, ctx),
        Op::Return(verdict) => return verdict.give(ctx),
        Op::New(new) => make(new, ctx)?,
        Op::Do(call) => {
            call.eval(ctx)?;
        }
        Op::HashData(text) => hash_data(text, ctx)?,
        Op::Ban(text) => text.with_ctx(ctx, |ctx, value| ban(ctx, value))?,
        Op::Ending(inner) => return ending(inner, ctx),
    }
    Ok(Flow::Next)
}

/// Executes `inner`, which is rare, out of line.
#[cold]
#[inline(never)]
fn ending(inner: &Op, ctx: &mut Ctx<'_>) -> Result<Flow, ProgramFailure> {
    match operation(inner, ctx)? {
        Flow::Next if ctx.task.action.is_some() => Ok(Flow::Done),
        flow => Ok(flow),
    }
}

/// Logs the beginning of a block of statements as `VCL_trace`.
#[cold]
fn trace(ctx: &Ctx<'_>, first: &CompiledStatement) {
    let mut text = Vec::new();
    ctx.instance.program().write_trace(first.at, &mut text);
    ctx.environment.log(Tag::Trace, &text);
}

fn hash_data(text: &StringTerm, ctx: &mut Ctx<'_>) -> Result<(), ProgramFailure> {
    let Some(key) = ctx.key.take() else { return Ok(()) };
    // As in Varnish an absent string differs from an empty one in the key; no string is this byte.
    let added = text.with(ctx, |value| key.field(value.unwrap_or(b"\0")));
    ctx.key = Some(key);
    added
}

fn branch(
    arms: &[Arm],
    otherwise: &[CompiledStatement],
    ctx: &mut Ctx<'_>,
) -> Result<Flow, ProgramFailure> {
    for arm in arms {
        if arm.condition.holds(ctx)? {
            return block(&arm.body, ctx);
        }
    }
    block(otherwise, ctx)
}

fn call(number: u32, ctx: &mut Ctx<'_>) -> Result<Flow, ProgramFailure> {
    let instance = ctx.instance;
    let is_done = instance.program().routine(number).run(ctx)?;
    Ok(if is_done { Flow::Done } else { Flow::Next })
}

fn make(new: &NewStatement, ctx: &mut Ctx<'_>) -> Result<(), ProgramFailure> {
    let arguments = Term::eval_all(&new.arguments, ctx)?;
    let naming = ObjectIdentity { name: &new.name, number: new.number };
    let object = (new.construct)(ctx, &naming, &arguments)?;
    ctx.instance.put(new.number, object)
}

/// Makes a ban. As in Varnish, an invalid expression is logged and does not end the program.
fn ban(ctx: &Ctx<'_>, expression: &[u8]) {
    let said = std::str::from_utf8(expression).map_err(|_| "not UTF-8".to_string());
    if let Err(reason) = said.and_then(|expression| ctx.environment.ban(expression)) {
        ctx.environment.log(Tag::Error, format!("ban(): {reason}").as_bytes());
    }
}

impl Verdict {
    fn give(&self, ctx: &mut Ctx<'_>) -> Result<Flow, ProgramFailure> {
        let action = match self {
            Self::Back => return Ok(Flow::Back),
            Self::Fixed(action) => action.clone(),
            Self::Synth(saying) => Action::Synth(say(saying, ctx)?),
            Self::Error(saying) => Action::Error(say(saying, ctx)?),
            Self::Pass(duration) => match duration.eval(ctx)? {
                Value::Duration(seconds) => Action::Pass(Some(seconds)),
                _ => Action::Pass(None),
            },
            Self::Fail(reason) => reason
                .with_ctx(ctx, |_, reason| Action::Fail(String::from_utf8_lossy(reason).into()))?,
        };
        ctx.task.action = Some(action);
        Ok(Flow::Done)
    }
}

fn say(saying: &SyntheticArguments, ctx: &mut Ctx<'_>) -> Result<SyntheticStatus, ProgramFailure> {
    let status = match saying.status.eval(ctx)? {
        Value::Int(status) => status,
        _ => 0,
    };
    let valid = u16::try_from(status).ok().filter(|_| is_status(status));
    let Some(status) = valid else {
        return Err(ProgramFailure::new(format!("no response can have the status {status}")));
    };
    let reason = match &saying.reason {
        Some(text) => text.bytes(ctx)?.map(|bytes| Box::<[u8]>::from(bytes.as_ref())),
        None => None,
    };
    if reason.as_ref().is_some_and(|reason| !headers::is_valid(reason)) {
        return Err(ProgramFailure::new("a reason cannot have control characters".to_owned()));
    }
    Ok(SyntheticStatus { status, reason })
}

/// Returns true for a status that a response may have: 100 to 65535, where the last three digits,
/// which are sent, must be at least 100.
pub(crate) fn is_status(status: i64) -> bool {
    (100..=65535).contains(&status) && status % 1000 >= 100
}
