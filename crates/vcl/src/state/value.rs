//! Values of expressions at run time, one variant for each type of VCL. Nothing is converted here.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use message::HeaderId;

use crate::state::backend::Backend;

pub use crate::failure::ProgramFailure;

/// A value at run time.
#[derive(Clone, Debug)]
pub enum Value {
    /// The result of functions without one.
    Void,
    /// `BOOL`
    Bool(bool),
    /// `INT`
    Int(i64),
    /// `REAL`
    Real(f64),
    /// `DURATION`, in seconds.
    Duration(f64),
    /// `TIME`, in seconds since 1970.
    Time(f64),
    /// `BYTES`
    Bytes(i64),
    /// `STRING`; `None` for an absent header, which is empty in a concatenation.
    String(Option<Bytes>),
    /// `BLOB`; `None` for no blob.
    Blob(Option<Bytes>),
    /// `IP`; `None` for no address.
    Ip(Option<SocketAddr>),
    /// `BACKEND`
    Backend(Backend),
    /// `ACL`, by number in the program.
    Acl(u32),
    /// `PROBE`, by number in the program.
    Probe(u32),
    /// `SUB`, by number in the program.
    Sub(u32),
    /// `STEVEDORE`, by name.
    Stevedore(Option<Arc<str>>),
    /// `HEADER`
    Header(Header),
    /// `HTTP`
    Http(VclMessage),
    /// `ENUM`: one of the values that a parameter lists.
    Enum(&'static str),
    /// `REGEX`: a constant pattern, by number in the program.
    Regex(u32),
}

impl Value {
    /// A string's bytes.
    pub fn into_bytes(self) -> Option<Bytes> {
        match self {
            Self::String(bytes) | Self::Blob(bytes) => bytes,
            _ => None,
        }
    }

    /// Seconds of a DURATION or TIME, value of any other number; 0 for the rest.
    pub fn seconds(&self) -> f64 {
        match self {
            Self::Duration(n) | Self::Time(n) | Self::Real(n) => *n,
            Self::Int(n) | Self::Bytes(n) => *n as f64,
            _ => 0.0,
        }
    }

    /// An INT; 0 for other values.
    pub fn int(&self) -> i64 {
        match self {
            Self::Int(n) | Self::Bytes(n) => *n,
            _ => 0,
        }
    }

    /// Returns true for the BOOL true.
    pub fn is_true(&self) -> bool {
        matches!(self, Self::Bool(true))
    }
}

/// Messages that VCL names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VclMessage {
    /// `req`
    Req,
    /// `req_top`
    ReqTop,
    /// `bereq`
    Bereq,
    /// `beresp`
    Beresp,
    /// `obj`
    Obj,
    /// `resp`
    Resp,
}

/// A header of a message, interned by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The message.
    pub message: VclMessage,
    /// Number of the name; [`HeaderId::Other`] for a name without one.
    pub id: HeaderId,
    /// The name as written in the program, in which spelling it is sent.
    pub name: Arc<str>,
}
