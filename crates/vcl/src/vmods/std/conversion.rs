//! Conversion functions of `std`, and arithmetic. A number that does not fit never wraps.

use std::net::SocketAddr;

use crate::failure::ProgramFailure;
use crate::state::ctx::Ctx;
use crate::state::value::Value;
use crate::text::{address, number};
use crate::vmods::args::Args;

/// Largest INT, which is exact as a REAL; larger values fail.
const WHOLE_MAX: f64 = crate::text::INT_MAX as f64;

pub(super) fn random(ctx: &mut Ctx<'_>, args: &[Value]) -> Result<Value, ProgramFailure> {
    let (lo, hi) = (args.real(0).unwrap_or_default(), args.real(1).unwrap_or_default());
    Ok(Value::Real(ctx.environment.random() * (hi - lo) + lo))
}

pub(super) fn round(_: &mut Ctx<'_>, args: &[Value]) -> Result<Value, ProgramFailure> {
    Ok(Value::Real(args.real(0).unwrap_or_default().round()))
}

pub(super) fn port(_: &mut Ctx<'_>, args: &[Value]) -> Result<Value, ProgramFailure> {
    Ok(Value::Int(args.ip(0).map_or(0, |addr| addr.port().into())))
}

/// The single argument that was given beside the fallback (number 1).
///
/// # Errors
/// If none or several were given.
fn only<'v>(name: &str, args: &'v [Value]) -> Result<&'v Value, ProgramFailure> {
    let mut given = args
        .iter()
        .enumerate()
        .filter(|(at, value)| *at != 1 && !matches!(value, Value::Void))
        .map(|(_, value)| value);
    match (given.next(), given.next()) {
        (Some(value), None) => Ok(value),
        (None, _) => Err(ProgramFailure::new(format!("std.{name}: no arguments"))),
        (Some(_), Some(_)) => {
            Err(ProgramFailure::new(format!("std.{name}: more than one argument")))
        }
    }
}

/// `value`, or the fallback, or else a failure.
fn or_fallback(name: &str, value: Option<Value>, args: &[Value]) -> Result<Value, ProgramFailure> {
    match (value, args.get(1)) {
        (Some(value), _) => Ok(value),
        (None, Some(fallback)) if !matches!(fallback, Value::Void) => Ok(fallback.clone()),
        _ => Err(ProgramFailure::new(format!("std.{name}: conversion failed"))),
    }
}

/// A number truncated towards zero; `None` if out of range.
fn whole(n: f64) -> Option<i64> {
    (n.abs() <= WHOLE_MAX).then_some(n as i64)
}

pub(super) fn duration(_: &mut Ctx<'_>, args: &[Value]) -> Result<Value, ProgramFailure> {
    let secs = match only("duration", args)? {
        Value::String(text) => text.as_ref().and_then(|text| number::duration(text)),
        other => Some(other.seconds()),
    };
    or_fallback("duration", secs.map(Value::Duration), args)
}

pub(super) fn bytes(_: &mut Ctx<'_>, args: &[Value]) -> Result<Value, ProgramFailure> {
    let bytes = match only("bytes", args)? {
        Value::String(text) => text.as_ref().and_then(|text| number::bytes(text)),
        Value::Real(n) => Some(*n).filter(|n| *n >= 0.0).and_then(whole),
        other => Some(other.int()).filter(|n| *n >= 0),
    };
    or_fallback("bytes", bytes.map(Value::Bytes), args)
}

pub(super) fn integer(_: &mut Ctx<'_>, args: &[Value]) -> Result<Value, ProgramFailure> {
    let n = match only("integer", args)? {
        Value::String(text) => text.as_ref().and_then(|text| number::int(text)),
        Value::Bool(truth) => Some(i64::from(*truth)),
        Value::Bytes(n) => Some(*n),
        other => whole(other.seconds()),
    };
    or_fallback("integer", n.map(Value::Int), args)
}

pub(super) fn real(_: &mut Ctx<'_>, args: &[Value]) -> Result<Value, ProgramFailure> {
    let n = match only("real", args)? {
        Value::String(text) => text.as_ref().and_then(|text| number::real(text)),
        Value::Bool(truth) => Some(if *truth { 1.0 } else { 0.0 }),
        other => Some(other.seconds()),
    };
    or_fallback("real", n.map(Value::Real), args)
}

pub(super) fn time(ctx: &mut Ctx<'_>, args: &[Value]) -> Result<Value, ProgramFailure> {
    let secs = match only("time", args)? {
        Value::String(text) => {
            let short_days = ctx.environment.has_feature("http_date_postel");
            text.as_ref().and_then(|text| number::time(text, short_days))
        }
        other => Some(other.seconds()),
    };
    or_fallback("time", secs.map(Value::Time), args)
}

pub(super) fn ip(ctx: &mut Ctx<'_>, args: &[Value]) -> Result<Value, ProgramFailure> {
    let addr = str::from_utf8(args.bytes(0)).ok().and_then(|text| {
        let port = match str::from_utf8(args.bytes(3)) {
            Ok("") | Err(_) => "80",
            Ok(port) => port,
        };
        address_of(ctx, text, port, args.truth(2).unwrap_or(true))
    });
    or_fallback("ip", addr.map(|addr| Value::Ip(Some(addr))), args)
}

fn address_of(ctx: &Ctx<'_>, text: &str, port: &str, resolve: bool) -> Option<SocketAddr> {
    let named = address::parse(text)?;
    match address::socket(&named, port) {
        Some(addr) => Some(addr),
        None if !resolve => None,
        None => {
            let port = named.port.unwrap_or(port);
            ctx.environment.resolve(named.host, port).into_iter().next()
        }
    }
}

pub(super) fn real2integer(_: &mut Ctx<'_>, args: &[Value]) -> Result<Value, ProgramFailure> {
    let n = whole(args.real(0).unwrap_or_default().round());
    Ok(n.map_or_else(|| args[1].clone(), Value::Int))
}

pub(super) fn real2time(_: &mut Ctx<'_>, args: &[Value]) -> Result<Value, ProgramFailure> {
    let n = args.real(0).filter(|n| n.is_finite());
    Ok(n.map_or_else(|| args[1].clone(), Value::Time))
}

pub(super) fn time2integer(_: &mut Ctx<'_>, args: &[Value]) -> Result<Value, ProgramFailure> {
    let n = whole(args.real(0).unwrap_or_default().round());
    Ok(n.map_or_else(|| args[1].clone(), Value::Int))
}

pub(super) fn time2real(_: &mut Ctx<'_>, args: &[Value]) -> Result<Value, ProgramFailure> {
    let n = args.real(0).filter(|n| n.is_finite());
    Ok(n.map_or_else(|| args[1].clone(), Value::Real))
}
