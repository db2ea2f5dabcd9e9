//! Kinds of lines in the log.

/// A line for the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tag {
    /// `VCL_Log`: `std.log`, `std.timestamp` has its own.
    Log,
    /// `VCL_Error`
    Error,
    /// `FetchError`: why a fetch, or one try of it, came to nothing.
    FetchError,
    /// `VCL_trace`: a block of statements has begun.
    Trace,
    /// `VCL_acl`: an ACL with `+log` was asked.
    Acl,
    /// `Timestamp`: `std.timestamp`.
    Timestamp,
    /// `Debug`
    Debug,
    /// `ESI_xmlerror`: a fault in a page's instructions.
    EsiXmlError,
}

impl Tag {
    /// Its name, as in `varnishlog`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Log => "VCL_Log",
            Self::Error => "VCL_Error",
            Self::FetchError => "FetchError",
            Self::Trace => "VCL_trace",
            Self::Acl => "VCL_acl",
            Self::Timestamp => "Timestamp",
            Self::Debug => "Debug",
            Self::EsiXmlError => "ESI_xmlerror",
        }
    }
}
