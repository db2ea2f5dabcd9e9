//! Arguments of VMOD functions, and constructors of their signatures. Types were checked at compile
//! time, so that no access fails.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;

use crate::failure::ProgramFailure;
use crate::state::backend::Backend;
use crate::state::program::Object;
use crate::state::value::{Header, Value, VclMessage};
use crate::types::Type;
use crate::vmod::{ArgumentType, Parameter, ParameterDefault};

/// A required parameter.
pub(crate) const fn required_parameter(name: &'static str, kind: Type) -> Parameter {
    Parameter { name, kind: ArgumentType::Of(kind), default: None }
}

/// An optional parameter without a default.
pub(crate) const fn optional_parameter(name: &'static str, kind: Type) -> Parameter {
    Parameter { name, kind: ArgumentType::Of(kind), default: Some(ParameterDefault::Absent) }
}

/// An optional number.
pub(crate) const fn number(name: &'static str, kind: Type, default: f64) -> Parameter {
    Parameter {
        name,
        kind: ArgumentType::Of(kind),
        default: Some(ParameterDefault::Number(default)),
    }
}

/// An optional string.
pub(crate) const fn text(name: &'static str, default: &'static str) -> Parameter {
    Parameter {
        name,
        kind: ArgumentType::Of(Type::String),
        default: Some(ParameterDefault::Str(default)),
    }
}

/// An optional BOOL.
pub(crate) const fn truth(name: &'static str, default: bool) -> Parameter {
    Parameter {
        name,
        kind: ArgumentType::Of(Type::Bool),
        default: Some(ParameterDefault::Bool(default)),
    }
}

/// An optional value of an enumeration.
pub(crate) const fn enumeration(
    name: &'static str,
    words: &'static [&'static str],
    default: &'static str,
) -> Parameter {
    Parameter {
        name,
        kind: ArgumentType::Enum(words),
        default: Some(ParameterDefault::Enum(default)),
    }
}

/// A parameter of Varnish's function that is not supported, with the reason.
pub(crate) const fn refused(name: &'static str, kind: Type, why: &'static str) -> Parameter {
    Parameter {
        name,
        kind: ArgumentType::Refused(kind, why),
        default: Some(ParameterDefault::Absent),
    }
}

/// Access to the arguments of a call by position.
pub(crate) trait Args {
    /// The string; `None` if the header or argument is absent.
    fn string(&self, at: usize) -> Option<&Bytes>;

    /// The string; empty if absent.
    fn bytes(&self, at: usize) -> &[u8];

    /// The blob, if present.
    fn blob(&self, at: usize) -> Option<&Bytes>;

    /// The INT or BYTES, if given.
    fn int(&self, at: usize) -> Option<i64>;

    /// The REAL, DURATION or TIME, if given.
    fn real(&self, at: usize) -> Option<f64>;

    /// The BOOL, if given.
    fn truth(&self, at: usize) -> Option<bool>;

    /// The value of the enumeration, if given.
    fn enum_value(&self, at: usize) -> Option<&'static str>;

    /// The address, if present.
    fn ip(&self, at: usize) -> Option<SocketAddr>;

    /// The backend; [`Backend::None`] if not given.
    fn backend(&self, at: usize) -> &Backend;

    /// The header.
    fn header(&self, at: usize) -> Option<&Header>;

    /// The message.
    fn message(&self, at: usize) -> Option<VclMessage>;

    /// The number of the pattern.
    fn regex(&self, at: usize) -> Option<u32>;
}

impl Args for [Value] {
    fn string(&self, at: usize) -> Option<&Bytes> {
        if let Some(Value::String(text)) = self.get(at) { text.as_ref() } else { None }
    }

    fn bytes(&self, at: usize) -> &[u8] {
        self.string(at).map_or(&[], |text| text)
    }

    fn blob(&self, at: usize) -> Option<&Bytes> {
        if let Some(Value::Blob(blob)) = self.get(at) { blob.as_ref() } else { None }
    }

    fn int(&self, at: usize) -> Option<i64> {
        if let Some(Value::Int(n) | Value::Bytes(n)) = self.get(at) { Some(*n) } else { None }
    }

    fn real(&self, at: usize) -> Option<f64> {
        match self.get(at) {
            Some(Value::Real(n) | Value::Duration(n) | Value::Time(n)) => Some(*n),
            _ => None,
        }
    }

    fn truth(&self, at: usize) -> Option<bool> {
        if let Some(Value::Bool(truth)) = self.get(at) { Some(*truth) } else { None }
    }

    fn enum_value(&self, at: usize) -> Option<&'static str> {
        if let Some(Value::Enum(value)) = self.get(at) { Some(value) } else { None }
    }

    fn ip(&self, at: usize) -> Option<SocketAddr> {
        if let Some(Value::Ip(ip)) = self.get(at) { *ip } else { None }
    }

    fn backend(&self, at: usize) -> &Backend {
        if let Some(Value::Backend(backend)) = self.get(at) { backend } else { &Backend::None }
    }

    fn header(&self, at: usize) -> Option<&Header> {
        if let Some(Value::Header(header)) = self.get(at) { Some(header) } else { None }
    }

    fn message(&self, at: usize) -> Option<VclMessage> {
        if let Some(Value::Http(message)) = self.get(at) { Some(*message) } else { None }
    }

    fn regex(&self, at: usize) -> Option<u32> {
        if let Some(Value::Regex(number)) = self.get(at) { Some(*number) } else { None }
    }
}

/// A string as a value.
pub(crate) fn owned(text: impl Into<Bytes>) -> Value {
    Value::String(Some(text.into()))
}

/// `object` as its class.
///
/// # Errors
/// If it is of another class, which the checker excludes.
pub(crate) fn this<T: Object>(object: &Arc<dyn Object>) -> Result<&T, ProgramFailure> {
    object.as_any().downcast_ref().ok_or_else(|| ProgramFailure::new("an object of another class"))
}
