//! Values as strings, exactly as Varnish writes them.

use std::io::Write;
use std::net::IpAddr;

use message::date::HttpDate;

use crate::ctx::Ctx;
use crate::headers;
use crate::value::Value;

/// Appends `value` as a string. What has none (no header of that name, no backend, ...) adds
/// nothing.
pub fn append(ctx: &Ctx<'_>, value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Header(header) => {
            out.extend_from_slice(headers::get(ctx, header).unwrap_or_default());
        }
        value => append_plain(value, out),
    }
}

/// The same for what is no header: constants of a program among them.
pub(crate) fn append_plain(value: &Value, out: &mut Vec<u8>) {
    // Writing to memory does not fail.
    let _ = match value {
        Value::Bool(true) => out.write_all(b"true"),
        Value::Bool(false) => out.write_all(b"false"),
        Value::Int(n) | Value::Bytes(n) => write!(out, "{n}"),
        Value::Real(n) | Value::Duration(n) => write!(out, "{n:.3}"),
        Value::Time(secs) => out.write_all(HttpDate::new(*secs as u64).as_bytes()),
        Value::String(Some(bytes)) => out.write_all(bytes),
        Value::Ip(Some(addr)) => write!(out, "{}", shown(addr.ip())),
        Value::Backend(backend) => out.write_all(backend.name().as_bytes()),
        Value::Stevedore(Some(name)) => write!(out, "storage.{name}"),
        Value::Enum(word) => out.write_all(word.as_bytes()),
        _ => Ok(()),
    };
}

/// Whether `value` is no string rather than an empty one: a header that is not there, and the like.
pub fn is_none(ctx: &Ctx<'_>, value: &Value) -> bool {
    match value {
        Value::Header(header) => headers::get(ctx, header).is_none(),
        Value::String(None) | Value::Ip(None) | Value::Stevedore(None) | Value::Void => true,
        _ => false,
    }
}

fn shown(addr: IpAddr) -> IpAddr {
    addr.to_canonical()
}
