//! Statuses of synthetic responses and their reason phrases. A status beyond three digits is never
//! sent.

use message::Status;

/// Varnish's reason phrase of a status.
pub fn usual_reason(status: Status) -> &'static [u8] {
    reason(status.code()).as_bytes()
}

/// The status that is sent for a `code` that may exceed three digits.
pub fn sent_status(code: u16) -> Status {
    Status::new(code % 1000).unwrap_or(Status::SERVICE_UNAVAILABLE)
}

/// Returns true if `code` is sent as an interim status (RFC 9110 15.2): a client would wait for
/// another response, or take the connection for a tunnel.
pub fn is_interim(code: u16) -> bool {
    sent_status(code).code() < 200
}

/// Varnish's reason phrase, in places older than RFC 9110's.
pub(crate) fn reason(status: u16) -> &'static str {
    match status % 1000 {
        207 => "Multi-Status",
        208 => "Already Reported",
        226 => "IM Used",
        305 => "Use Proxy",
        306 => "(Unused)",
        402 => "Payment Required",
        407 => "Proxy Authentication Required",
        413 => "Request Entity Too Large",
        414 => "Request-URI Too Long",
        416 => "Requested Range Not Satisfiable",
        422 => "Unprocessable Entity",
        423 => "Locked",
        424 => "Failed Dependency",
        428 => "Precondition Required",
        506 => "Variant Also Negotiates",
        507 => "Insufficient Storage",
        508 => "Loop Detected",
        510 => "Not Extended",
        511 => "Network Authentication Required",
        code => match Status::new(code).map_or("", Status::reason) {
            "" => "Unknown HTTP Status",
            reason => reason,
        },
    }
}
