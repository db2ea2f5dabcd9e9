//! Control functions of `std`: files, the environment, the log, bans, and settings of the request.
//! None waits.

use bytes::Bytes;

use crate::failure::ProgramFailure;
use crate::state::ctx::Ctx;
use crate::state::value::{Value, VclMessage};
use crate::tag::Tag;
use crate::vmods::args::{Args, owned};

/// Message of the last `std.ban`; empty if it succeeded.
#[derive(Default)]
struct BanError(String);

fn file(ctx: &Ctx<'_>, args: &[Value]) -> Option<Bytes> {
    ctx.environment.file(str::from_utf8(args.bytes(0)).ok()?)
}

pub(super) fn fileread(ctx: &mut Ctx<'_>, args: &[Value]) -> Result<Value, ProgramFailure> {
    Ok(Value::String(file(ctx, args)))
}

pub(super) fn blobread(ctx: &mut Ctx<'_>, args: &[Value]) -> Result<Value, ProgramFailure> {
    Ok(Value::Blob(file(ctx, args)))
}

pub(super) fn file_exists(ctx: &mut Ctx<'_>, args: &[Value]) -> Result<Value, ProgramFailure> {
    let path = str::from_utf8(args.bytes(0)).ok().filter(|path| !path.is_empty());
    Ok(Value::Bool(path.is_some_and(|path| ctx.environment.exists(path))))
}

pub(super) fn healthy(_: &mut Ctx<'_>, args: &[Value]) -> Result<Value, ProgramFailure> {
    Ok(Value::Bool(args.backend(0).health().is_healthy))
}

pub(super) fn log(ctx: &mut Ctx<'_>, args: &[Value]) -> Result<Value, ProgramFailure> {
    ctx.environment.log(Tag::Log, args.bytes(0));
    Ok(Value::Void)
}

pub(super) fn syslog(ctx: &mut Ctx<'_>, args: &[Value]) -> Result<Value, ProgramFailure> {
    ctx.environment.syslog(args.int(0).unwrap_or_default(), args.bytes(1));
    Ok(Value::Void)
}

pub(super) fn timestamp(ctx: &mut Ctx<'_>, args: &[Value]) -> Result<Value, ProgramFailure> {
    if let Some(label) = args.string(0) {
        ctx.environment.log(Tag::Timestamp, label);
    }
    Ok(Value::Void)
}

pub(super) fn syntax(ctx: &mut Ctx<'_>, args: &[Value]) -> Result<Value, ProgramFailure> {
    let asked = (args.real(0).unwrap_or_default() * 10.0).round();
    Ok(Value::Bool(asked <= f64::from(ctx.instance.program().version())))
}

pub(super) fn getenv(ctx: &mut Ctx<'_>, args: &[Value]) -> Result<Value, ProgramFailure> {
    let name = str::from_utf8(args.bytes(0)).ok().filter(|name| !name.is_empty());
    let Some(name) = name else { return Ok(Value::String(None)) };
    Ok(Value::String(ctx.environment.env(name).or_else(|| args.string(1).cloned())))
}

pub(super) fn cache_req_body(ctx: &mut Ctx<'_>, args: &[Value]) -> Result<Value, ProgramFailure> {
    let bytes_max = u64::try_from(args.int(0).unwrap_or_default()).unwrap_or_default();
    Ok(Value::Bool(ctx.environment.keep_body(bytes_max)))
}

pub(super) fn late_100_continue(
    ctx: &mut Ctx<'_>,
    args: &[Value],
) -> Result<Value, ProgramFailure> {
    if let Some(req) = &mut ctx.req {
        req.state.late_continue = args.truth(0).unwrap_or(false);
    }
    Ok(Value::Void)
}

pub(super) fn set_ip_tos(ctx: &mut Ctx<'_>, args: &[Value]) -> Result<Value, ProgramFailure> {
    // The system uses the low byte.
    let tos = (args.int(0).unwrap_or_default() & 0xff) as u8;
    if let Some(Err(error)) = ctx.session.control.as_ref().map(|control| control.set_tos(tos)) {
        ctx.environment.log(Tag::Error, format!("std.set_ip_tos({tos}): {error}").as_bytes());
    }
    Ok(Value::Void)
}

pub(super) fn rollback(ctx: &mut Ctx<'_>, args: &[Value]) -> Result<Value, ProgramFailure> {
    let (head, original) = match args.message(0) {
        Some(VclMessage::Req) => (ctx.req.as_mut().map(|r| (&mut *r.head, r.original))).unzip(),
        Some(VclMessage::Bereq) => (ctx.bereq.as_mut().map(|r| (&mut *r.head, r.original))).unzip(),
        _ => {
            return Err(ProgramFailure::new(
                "std.rollback(): only req and bereq can be rolled back",
            ));
        }
    };
    if let (Some(head), Some(Some(original))) = (head, original) {
        head.clone_from(original);
    }
    ctx.task.forget();
    if args.message(0) == Some(VclMessage::Bereq)
        && let Some(beresp) = &mut ctx.beresp
    {
        beresp.state.cut_off = true;
    }
    Ok(Value::Void)
}

pub(super) fn now(ctx: &mut Ctx<'_>, _: &[Value]) -> Result<Value, ProgramFailure> {
    Ok(Value::Time(ctx.environment.clock()))
}

pub(super) fn timed_call(ctx: &mut Ctx<'_>, args: &[Value]) -> Result<Value, ProgramFailure> {
    let Some(Value::Sub(number)) = args.first() else {
        return Err(ProgramFailure::new("std.timed_call(): no subroutine"));
    };
    let began = ctx.environment.clock();
    // An action of the called subroutine ends this statement: the compiler has marked it so.
    ctx.instance.program().routine(*number).run(ctx)?;
    Ok(Value::Duration((ctx.environment.clock() - began).max(0.0)))
}

pub(super) fn rfc_ttl(ctx: &mut Ctx<'_>, _: &[Value]) -> Result<Value, ProgramFailure> {
    let (environment, now) = (ctx.environment, ctx.now);
    if let Some(beresp) = &mut ctx.beresp {
        let times = environment.lifetime(beresp.state.status, &beresp.head.headers, now);
        let state = &mut *beresp.state;
        (state.ttl, state.grace, state.keep) = (times.ttl, times.grace, times.keep);
        state.age = times.age;
    }
    Ok(Value::Void)
}

pub(super) fn ban(ctx: &mut Ctx<'_>, args: &[Value]) -> Result<Value, ProgramFailure> {
    let result = match args.string(0).map(|text| str::from_utf8(text)) {
        None => Err("Null argument".to_string()),
        Some(Err(_)) => Err("A ban must be UTF-8".to_string()),
        Some(Ok(text)) => ctx.environment.ban(text),
    };
    let is_good = result.is_ok();
    if let Err(reason) = &result {
        // Logged, since a program may not ask for the error.
        ctx.environment.log(Tag::Error, format!("std.ban(): {reason}").as_bytes());
    }
    ctx.task.keep::<BanError>("std", 0).0 = result.err().unwrap_or_default();
    Ok(Value::Bool(is_good))
}

pub(super) fn ban_error(ctx: &mut Ctx<'_>, _: &[Value]) -> Result<Value, ProgramFailure> {
    Ok(owned(ctx.task.keep::<BanError>("std", 0).0.clone()))
}
