//! Types of VCL, named as in its manual.

use std::fmt;

/// A type of VCL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// `ACL`
    Acl,
    /// `BACKEND`: a backend or a director.
    Backend,
    /// `BLOB`: bytes of any value.
    Blob,
    /// `BODY`: body of a message, which can only be set and unset.
    Body,
    /// `BOOL`
    Bool,
    /// `BYTES`: a number of bytes.
    Bytes,
    /// `DURATION`: seconds.
    Duration,
    /// `ENUM`: one of the values that a parameter lists.
    Enum,
    /// `HEADER`: a header of a message, not its value.
    Header,
    /// `HTTP`: a message's head.
    Http,
    /// An object made by `new`, by the number of its class.
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
    /// `SUB`: a subroutine of the program.
    Sub,
    /// `TIME`: a point in time.
    Time,
    /// The result of functions without one.
    Void,
}

impl Type {
    /// Name of the type in the manual.
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
