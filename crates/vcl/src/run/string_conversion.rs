//! String conversion of values, byte for byte as in Varnish.

use crate::failure::ProgramFailure;
use crate::state::backend::Backend;
use crate::state::ctx::Ctx;
use crate::state::value::Value;
use crate::{headers, text};

/// Appends `value` as a string. An absent value (header, address) appends nothing.
///
/// # Errors
/// A number has more than fifteen digits.
pub(super) fn append(
    ctx: &Ctx<'_>,
    value: &Value,
    out: &mut Vec<u8>,
) -> Result<(), ProgramFailure> {
    match value {
        Value::Header(header) => {
            out.extend_from_slice(headers::get(ctx, header).unwrap_or_default());
            Ok(())
        }
        value => append_plain(value, out),
    }
}

/// Appends a value other than a header, which needs no context.
///
/// # Errors
/// A number has more than fifteen digits.
pub(crate) fn append_plain(value: &Value, out: &mut Vec<u8>) -> Result<(), ProgramFailure> {
    match value {
        Value::Bool(truth) => out.extend_from_slice(if *truth { b"true" } else { b"false" }),
        Value::Int(n) | Value::Bytes(n) => text::append_int(*n, out)?,
        Value::Real(n) | Value::Duration(n) => text::append_real(*n, out)?,
        Value::Time(secs) => text::calendar::append_http_date(*secs, out),
        Value::String(Some(bytes)) => out.extend_from_slice(bytes),
        Value::Ip(Some(addr)) => text::append_ip(addr.ip(), out),
        Value::Backend(Backend::None) => {}
        Value::Backend(backend) => out.extend_from_slice(backend.name().as_bytes()),
        Value::Stevedore(Some(name)) => {
            out.extend_from_slice(b"storage.");
            out.extend_from_slice(name.as_bytes());
        }
        Value::Enum(word) => out.extend_from_slice(word.as_bytes()),
        Value::Blob(Some(bytes)) => text::append_blob(bytes, out),
        _ => {}
    }
    Ok(())
}

/// Returns true if `value` is no string, such as an absent header. An empty string is one.
pub(super) fn is_none(ctx: &Ctx<'_>, value: &Value) -> bool {
    match value {
        Value::Header(header) => headers::get(ctx, header).is_none(),
        Value::String(None)
        | Value::Blob(None)
        | Value::Ip(None)
        | Value::Stevedore(None)
        | Value::Void => true,
        Value::Backend(backend) => matches!(backend, Backend::None),
        _ => false,
    }
}
