//! Values as strings, exactly as Varnish writes them.

pub(crate) mod address;
pub mod calendar;
pub mod number;
mod spelling;

pub use spelling::{INT_MAX, REAL_MAX, append_blob, append_int, append_ip, append_real};

use crate::backend::Backend;
use crate::ctx::Ctx;
use crate::headers;
use crate::value::{Failure, Value};

/// Appends `value` as a string. What has none (no header of that name, no address, ...) adds
/// nothing.
///
/// # Errors
/// A number of more than fifteen digits.
pub fn append(ctx: &Ctx<'_>, value: &Value, out: &mut Vec<u8>) -> Result<(), Failure> {
    match value {
        Value::Header(header) => {
            out.extend_from_slice(headers::get(ctx, header).unwrap_or_default());
            Ok(())
        }
        value => append_plain(value, out),
    }
}

/// The same for a value that says all of itself: any but a header.
///
/// # Errors
/// A number of more than fifteen digits.
pub fn append_plain(value: &Value, out: &mut Vec<u8>) -> Result<(), Failure> {
    match value {
        Value::Bool(truth) => out.extend_from_slice(if *truth { b"true" } else { b"false" }),
        Value::Int(n) | Value::Bytes(n) => append_int(*n, out)?,
        Value::Real(n) | Value::Duration(n) => append_real(*n, out)?,
        Value::Time(secs) => calendar::append_http_date(*secs, out),
        Value::String(Some(bytes)) => out.extend_from_slice(bytes),
        Value::Ip(Some(addr)) => append_ip(addr.ip(), out),
        Value::Backend(Backend::None) => {}
        Value::Backend(backend) => out.extend_from_slice(backend.name().as_bytes()),
        Value::Stevedore(Some(name)) => {
            out.extend_from_slice(b"storage.");
            out.extend_from_slice(name.as_bytes());
        }
        Value::Enum(word) => out.extend_from_slice(word.as_bytes()),
        Value::Blob(Some(bytes)) => append_blob(bytes, out),
        _ => {}
    }
    Ok(())
}

/// Returns true if `value` is no string, such as a header that is not there. An empty string is a
/// string.
pub fn is_none(ctx: &Ctx<'_>, value: &Value) -> bool {
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
