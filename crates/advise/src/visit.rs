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

impl Visit {
    /// The target up to the first `?`.
    pub fn path(&self) -> &[u8] {
        self.target.split(|byte| *byte == b'?').next().unwrap_or_default()
    }

    /// The first value of a request field, whose name is in lower case.
    pub fn field(&self, name: &str) -> Option<&[u8]> {
        value(&self.fields, name)
    }

    /// The first value of a field of the origin's response, whose name is in lower case.
    pub fn response_field(&self, name: &str) -> Option<&[u8]> {
        value(self.response.as_deref().unwrap_or_default(), name)
    }

    /// All values of a field of the origin's response, whose name is in lower case.
    pub fn response_fields<'v>(&'v self, name: &'v str) -> impl Iterator<Item = &'v [u8]> {
        let fields = self.response.as_deref().unwrap_or_default();
        fields.iter().filter(move |(own, _)| own == name).map(|(_, value)| &value[..])
    }
}

impl Visit {
    /// Sets the host, without its port and in lower case.
    pub fn set_host(&mut self, host: &str) {
        let end = host.rfind(':').filter(|at| !host[*at..].contains(']')).unwrap_or(host.len());
        self.host = host[..end].trim_end_matches('.').to_ascii_lowercase();
    }

    /// Adds a request field, unless it is there.
    pub fn set_field(&mut self, name: &str, value: &str) {
        let field = (name.to_ascii_lowercase(), value.as_bytes().to_vec());
        if !self.fields.contains(&field) {
            self.fields.push(field);
        }
    }

    /// Adds a field of the origin's response.
    pub fn set_response_field(&mut self, name: &str, value: &str) {
        let fields = self.response.get_or_insert_default();
        fields.push((name.to_ascii_lowercase(), value.as_bytes().to_vec()));
    }
}

fn value<'f>(fields: &'f [(String, Vec<u8>)], name: &str) -> Option<&'f [u8]> {
    fields.iter().find(|(own, _)| own == name).map(|(_, value)| &value[..])
}

/// Fingerprint of a body: a hash of its bytes. Only those of one source can be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BodyPrint {
    /// The hash.
    pub exact: u64,
}
