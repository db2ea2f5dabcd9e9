//! Parts of the modules' tables, and access to the arguments of functions. The checker has seen to
//! the types of the arguments.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;

use crate::failure::ProgramFailure;
use crate::state::backend::Backend;
use crate::state::program::Object;
use crate::state::value::{Header, Value, VclMessage};
use crate::types::Type;
use crate::vmod::{ArgumentType, Parameter, ParameterDefault};

/// A parameter that must be given.
pub(crate) const fn required_parameter(name: &'static str, kind: Type) -> Parameter {
    Parameter { name, kind: ArgumentType::Of(kind), default: None }
}

/// A parameter that may be left out; the function sees that.
pub(crate) const fn optional_parameter(name: &'static str, kind: Type) -> Parameter {
    Parameter { name, kind: ArgumentType::Of(kind), default: Some(ParameterDefault::Absent) }
}

/// A number that may be left out.
pub(crate) const fn number(name: &'static str, kind: Type, default: f64) -> Parameter {
    Parameter {
        name,
        kind: ArgumentType::Of(kind),
        default: Some(ParameterDefault::Number(default)),
    }
}

/// A string that may be left out.
pub(crate) const fn text(name: &'static str, default: &'static str) -> Parameter {
    Parameter {
        name,
        kind: ArgumentType::Of(Type::String),
        default: Some(ParameterDefault::Str(default)),
    }
}

/// A truth that may be left out.
pub(crate) const fn truth(name: &'static str, default: bool) -> Parameter {
    Parameter {
        name,
        kind: ArgumentType::Of(Type::Bool),
        default: Some(ParameterDefault::Bool(default)),
    }
}

/// One of these words, which may be left out.
pub(crate) const fn word(
    name: &'static str,
    words: &'static [&'static str],
    default: &'static str,
) -> Parameter {
    Parameter {
        name,
        kind: ArgumentType::Enum(words),
        default: Some(ParameterDefault::Word(default)),
    }
}

/// One that Varnish's function takes and ours does not, for this reason.
pub(crate) const fn refused(name: &'static str, kind: Type, why: &'static str) -> Parameter {
    Parameter {
        name,
        kind: ArgumentType::Refused(kind, why),
        default: Some(ParameterDefault::Absent),
    }
}

/// Reading the arguments of a call by number.
pub(crate) trait Args {
    /// The string; `None` for a header that is not there, or an argument left out.
    fn string(&self, at: usize) -> Option<&Bytes>;

    /// The string; empty if it is absent.
    fn bytes(&self, at: usize) -> &[u8];

    /// The blob, if there is one.
    fn blob(&self, at: usize) -> Option<&Bytes>;

    /// The number of an INT or of BYTES, if it was given.
    fn int(&self, at: usize) -> Option<i64>;

    /// The number of a REAL, DURATION or TIME, if it was given.
    fn real(&self, at: usize) -> Option<f64>;

    /// The truth, if it was given.
    fn truth(&self, at: usize) -> Option<bool>;

    /// The word, if it was given.
    fn word(&self, at: usize) -> Option<&'static str>;

    /// The address, if there is one.
    fn ip(&self, at: usize) -> Option<SocketAddr>;

    /// The backend; [`Backend::None`] also when it was not given.
    fn backend(&self, at: usize) -> &Backend;

    /// The header.
    fn header(&self, at: usize) -> Option<&Header>;

    /// The message.
    fn place(&self, at: usize) -> Option<VclMessage>;

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

    fn word(&self, at: usize) -> Option<&'static str> {
        if let Some(Value::Enum(word)) = self.get(at) { Some(word) } else { None }
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

    fn place(&self, at: usize) -> Option<VclMessage> {
        if let Some(Value::Http(place)) = self.get(at) { Some(*place) } else { None }
    }

    fn regex(&self, at: usize) -> Option<u32> {
        if let Some(Value::Regex(number)) = self.get(at) { Some(*number) } else { None }
    }
}

/// A string as a value.
pub(crate) fn owned(text: impl Into<Bytes>) -> Value {
    Value::String(Some(text.into()))
}

/// `object` as what it is.
///
/// # Errors
/// It is another: the checker calls a method only for objects of its class.
pub(crate) fn this<T: Object>(object: &Arc<dyn Object>) -> Result<&T, ProgramFailure> {
    object.as_any().downcast_ref().ok_or_else(|| ProgramFailure::new("an object of another class"))
}
