//! Statuses and reasons of answers that programs make.

use message::Status;

/// The usual reason phrase of a status, as Varnish says it.
pub fn usual_reason(status: Status) -> &'static [u8] {
    crate::headers::reason(status.code()).as_bytes()
}

/// The status that is sent of one that a program may have set beyond three digits.
pub fn sent_status(code: u16) -> Status {
    Status::new(code % 1000).unwrap_or(Status::SERVICE_UNAVAILABLE)
}

/// Returns true if `code` is sent as a status that ends no exchange (RFC 9110 15.2): a client that
/// gets it would wait for another, or take the connection for a tunnel.
pub fn is_interim(code: u16) -> bool {
    sent_status(code).code() < 200
}
