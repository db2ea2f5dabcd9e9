//! A visit: one request of the past, and what is known of its response. Sources yield visits and
//! must leave a value empty that they do not know.

use std::net::IpAddr;

use observe::record::Served;

/// One request of the past, and what is known of its response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Visit {
    /// Unix time of its start, in milliseconds.
    pub at_ms: u64,
    /// Address of the client.
    pub client: Option<IpAddr>,
    /// True if it came over TLS.
    pub is_tls: bool,
    /// Name of the site; empty if unknown.
    pub site: String,
    /// Host in lower case; empty if unknown.
    pub host: String,
    /// Method.
    pub method: String,
    /// Path and query as the client sent them.
    pub target: Vec<u8>,
    /// Request fields that are known, with names in lower case.
    pub fields: Vec<(String, Vec<u8>)>,
    /// Status of the response to the client.
    pub status: u16,
    /// Bytes of the response's body.
    pub body_bytes: u64,
    /// Cache result, if the source has one.
    pub served: Option<Served>,
    /// Reason for which the response was not stored, as the record has it.
    pub not_stored: String,
    /// Evidence of that reason, as the record has it.
    pub evidence: String,
    /// Limit that the request met, as the record has it.
    pub limit: String,
    /// Time at the origin in microseconds, if it was asked.
    pub fetch_us: Option<u64>,
    /// The origin's response fields, if known, with names in lower case.
    pub response: Option<Vec<(String, Vec<u8>)>>,
    /// Fingerprint of the body of the origin's response.
    pub body: Option<BodyPrint>,
    /// Class of the crawler; empty if unknown.
    pub class: String,
}

/// Fingerprint of a body: exact, and with numbers and tokens masked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BodyPrint {
    /// Hash of the bytes.
    pub exact: u64,
    /// Hash of the bytes with numbers and tokens masked.
    pub masked: u64,
}
