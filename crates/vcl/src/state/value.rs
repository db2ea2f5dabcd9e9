//! The values of expressions while a program runs.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use message::HeaderId;

use crate::state::backend::Backend;

pub use crate::failure::ProgramFailure;

/// A value.
#[derive(Clone, Debug)]
pub enum Value {
    /// Of functions that return nothing.
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
    /// `STRING`; none is what a header that is not there is: no string, which becomes an empty one
    /// where it is put together with others.
    String(Option<Bytes>),
    /// `BLOB`; none is no blob.
    Blob(Option<Bytes>),
    /// `IP`; `None` where there is no address.
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
    /// One of a function's words.
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

    /// The seconds of a duration or time, and the number of whatever else is one; 0 of the rest.
    pub fn seconds(&self) -> f64 {
        match self {
            Self::Duration(n) | Self::Time(n) | Self::Real(n) => *n,
            Self::Int(n) | Self::Bytes(n) => *n as f64,
            _ => 0.0,
        }
    }

    /// A whole number; 0 for other values.
    pub fn int(&self) -> i64 {
        match self {
            Self::Int(n) | Self::Bytes(n) => *n,
            _ => 0,
        }
    }

    /// Returns true if the value is a BOOL that is true.
    pub fn is_true(&self) -> bool {
        matches!(self, Self::Bool(true))
    }
}

/// The messages that VCL names.
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

/// A header of a message by its name, interned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Of which message.
    pub place: VclMessage,
    /// Its number; [`HeaderId::Other`] for a name that has none.
    pub id: HeaderId,
    /// Its name as written in the program, which is how it is sent.
    pub name: Arc<str>,
}
