//! The table of framing cases, and the parts of its requests.

/// The treatment that a strict server must give to a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Treatment {
    /// The first request is rejected: a 4xx or 5xx response (or none, if the head was accepted and
    /// its body is wrong), then the connection is closed. No later byte is read as a request.
    Reject,
    /// This many well-formed requests, and no byte left over.
    Accept {
        /// The number of requests.
        requests: usize,
    },
}

/// A case: all bytes of a client on one connection.
#[derive(Clone, Debug)]
pub struct FramingCase {
    /// Unique within the table.
    pub name: String,
    /// The class of the attack.
    pub class: &'static str,
    /// All bytes of the connection.
    pub bytes: Vec<u8>,
    /// The required treatment.
    pub expect: Treatment,
}

pub(super) struct FramingTable {
    pub(super) cases: Vec<FramingCase>,
}

impl FramingTable {
    pub(super) fn reject(&mut self, class: &'static str, name: &str, bytes: impl Into<Vec<u8>>) {
        self.push(class, name, bytes.into(), Treatment::Reject);
    }

    pub(super) fn accept(
        &mut self,
        class: &'static str,
        name: &str,
        requests: usize,
        bytes: impl Into<Vec<u8>>,
    ) {
        self.push(class, name, bytes.into(), Treatment::Accept { requests });
    }

    fn push(&mut self, class: &'static str, name: &str, bytes: Vec<u8>, expect: Treatment) {
        self.cases.push(FramingCase { name: format!("{class}/{name}"), class, bytes, expect });
    }
}

/// A GET with `fields` after its Host.
pub(super) fn get(fields: &[u8]) -> Vec<u8> {
    [b"GET / HTTP/1.1\r\nHost: example.com\r\n", fields, b"\r\n"].concat()
}

/// A POST with `fields` after its Host, and `rest` behind the head.
pub(super) fn post(fields: &[u8], rest: &[u8]) -> Vec<u8> {
    [b"POST / HTTP/1.1\r\nHost: example.com\r\n", fields, b"\r\n", rest].concat()
}

/// A chunked POST.
pub(super) fn chunked(body: &[u8]) -> Vec<u8> {
    post(b"Transfer-Encoding: chunked\r\n", body)
}

/// The smuggled request: no server may read it as one.
pub(super) const SMUGGLED: &[u8] = b"GET /smuggled HTTP/1.1\r\nHost: example.com\r\n\r\n";
