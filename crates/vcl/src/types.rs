//! The types of VCL, as its manual names them.

use std::fmt;

/// A type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// `ACL`
    Acl,
    /// `BACKEND`: a backend or a director.
    Backend,
    /// `BLOB`: bytes of any value.
    Blob,
    /// `BODY`: of a message; can be set and unset only.
    Body,
    /// `BOOL`
    Bool,
    /// `BYTES`: a number of bytes.
    Bytes,
    /// `DURATION`: seconds.
    Duration,
    /// `ENUM`: one of a function's words.
    Enum,
    /// `HEADER`: the name of a header of a message, not its value.
    Header,
    /// `HTTP`: a message's head as a whole.
    Http,
    /// An object made by `new`; its class by number in the registry.
    Instance(u32),
    /// `INT`
    Int,
    /// `IP`: address and port.
    Ip,
    /// `PROBE`
    Probe,
    /// `REAL`
    Real,
    /// `REGEX`: a constant pattern.
    Regex,
    /// `STEVEDORE`: a storage.
    Stevedore,
    /// `STRING`
    String,
    /// `SUB`: a subroutine of one's own.
    Sub,
    /// `TIME`: a point in time.
    Time,
    /// Of functions that return nothing.
    Void,
}

impl Type {
    /// Its name in the manual.
    pub fn name(self) -> &'static str {
        match self {
            Self::Acl => "ACL",
            Self::Backend => "BACKEND",
            Self::Blob => "BLOB",
            Self::Body => "BODY",
            Self::Bool => "BOOL",
            Self::Bytes => "BYTES",
            Self::Duration => "DURATION",
            Self::Enum => "ENUM",
            Self::Header => "HEADER",
            Self::Http => "HTTP",
            Self::Instance(_) => "INSTANCE",
            Self::Int => "INT",
            Self::Ip => "IP",
            Self::Probe => "PROBE",
            Self::Real => "REAL",
            Self::Regex => "REGEX",
            Self::Stevedore => "STEVEDORE",
            Self::String => "STRING",
            Self::Sub => "SUB",
            Self::Time => "TIME",
            Self::Void => "VOID",
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
