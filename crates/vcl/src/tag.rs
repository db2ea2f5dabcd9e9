//! Tags of log lines that a program writes, named as in `varnishlog`.

/// Tag of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tag {
    /// `VCL_Log`: `std.log`.
    Log,
    /// `VCL_Error`
    Error,
    /// `FetchError`: the reason why a fetch, or one attempt, failed.
    FetchError,
    /// `VCL_trace`: a block of statements begins.
    Trace,
    /// `VCL_acl`: a lookup in an ACL with `+log`.
    Acl,
    /// `Timestamp`: `std.timestamp`.
    Timestamp,
    /// `Debug`
    Debug,
    /// `ESI_xmlerror`: a fault in a page's instructions.
    EsiXmlError,
}

impl Tag {
    /// Name of the tag in `varnishlog`.
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
