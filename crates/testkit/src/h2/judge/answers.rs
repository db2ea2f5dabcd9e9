//! Answers of a server on their streams, judged block by block (RFC 9113 8).

use super::fault::ProtocolFault;
use crate::wire::{self, Fields};

/// Connection fields, which HTTP/2 forbids (RFC 9113 8.2.2).
const OF_CONNECTION: [&str; 5] =
    ["connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"];

/// All that the server sent on one stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exchange {
    /// Interim responses: status and fields.
    pub interim: Vec<(u16, Fields)>,
    /// The final status; 0 before the head.
    pub status: u16,
    /// The head's fields except `:status`.
    pub fields: Fields,
    /// The body so far.
    pub body: Vec<u8>,
    /// Bytes of body in each DATA frame.
    pub data: Vec<usize>,
    /// The trailers.
    pub trailers: Fields,
    /// Bytes of each field block.
    pub blocks: Vec<usize>,
    /// True if the server has ended the response in order.
    pub whole: bool,
    /// The code of the server's reset, which may follow the response.
    pub reset: Option<u32>,
    /// Window granted minus DATA received, without the initial window.
    pub(super) window: i64,
    /// Window that the server granted minus DATA sent, without the initial window.
    pub(super) sending: i64,
    head_only: bool,
}

impl Exchange {
    pub(super) fn new(head_only: bool) -> Self {
        Self { head_only, ..Self::default() }
    }

    /// The values of the fields called `name`, joined by `, `; `None` without such a field.
    pub fn field(&self, name: &str) -> Option<String> {
        let values = wire::values(&self.fields, name);
        let shown: Vec<_> = values.iter().map(|value| String::from_utf8_lossy(value)).collect();
        (!shown.is_empty()).then(|| shown.join(", "))
    }

    /// The body as text, for messages and comparisons.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Returns true if nothing more can come.
    pub fn over(&self) -> bool {
        self.whole || self.reset.is_some()
    }

    pub(super) fn data(&mut self, body: &[u8], end: bool) -> Result<(), ProtocolFault> {
        if self.status == 0 || (self.bodiless() && !body.is_empty()) {
            return Err(ProtocolFault::Body);
        }
        self.body.extend_from_slice(body);
        self.data.push(body.len());
        if end { self.end() } else { Ok(()) }
    }

    pub(super) fn block(
        &mut self,
        fields: Vec<(Vec<u8>, Vec<u8>)>,
        bytes: usize,
        end: bool,
    ) -> Result<(), ProtocolFault> {
        self.blocks.push(bytes);
        let fields = named(fields)?;
        if self.status != 0 {
            // Trailers.
            check(&fields)?;
            self.trailers = fields;
            return if end { self.end() } else { Err(ProtocolFault::Order) };
        }
        let (status, fields) = head(fields)?;
        if status < 200 {
            self.interim.push((status, fields));
            return if end { Err(ProtocolFault::Order) } else { Ok(()) };
        }
        self.status = status;
        self.fields = fields;
        if end { self.end() } else { Ok(()) }
    }

    fn bodiless(&self) -> bool {
        self.head_only || matches!(self.status, 204 | 304)
    }

    fn end(&mut self) -> Result<(), ProtocolFault> {
        self.whole = true;
        let declared = self.field("content-length");
        match declared {
            Some(declared) if !self.bodiless() => {
                let came = self.body.len();
                let right = declared.parse() == Ok(came);
                if right { Ok(()) } else { Err(ProtocolFault::ContentLength { declared, came }) }
            }
            _ => Ok(()),
        }
    }
}

/// Splits `:status` off.
fn head(mut fields: Fields) -> Result<(u16, Fields), ProtocolFault> {
    let missing = || ProtocolFault::PseudoField(":status".to_owned());
    let (name, value) = (!fields.is_empty()).then(|| fields.remove(0)).ok_or_else(missing)?;
    if name != ":status" {
        return Err(missing());
    }
    check(&fields)?;
    let status = match *value.as_slice() {
        [a @ b'1'..=b'5', b @ b'0'..=b'9', c @ b'0'..=b'9'] => {
            let digit = |byte| u16::from(byte - b'0');
            digit(a) * 100 + digit(b) * 10 + digit(c)
        }
        _ => 101,
    };
    if status == 101 {
        return Err(ProtocolFault::Status(String::from_utf8_lossy(&value).into_owned()));
    }
    Ok((status, fields))
}

/// Checks names and values of ordinary fields.
fn check(fields: &Fields) -> Result<(), ProtocolFault> {
    for (name, value) in fields {
        if name.starts_with(':') {
            return Err(ProtocolFault::PseudoField(name.clone()));
        }
        let token = wire::token(name.as_bytes()).is_some();
        if !token || name.bytes().any(|b| b.is_ascii_uppercase()) {
            return Err(ProtocolFault::FieldName(name.clone()));
        }
        if OF_CONNECTION.contains(&name.as_str()) {
            return Err(ProtocolFault::ConnectionField(name.clone()));
        }
        let blank = |b: Option<&u8>| b.is_some_and(|b| matches!(b, b' ' | b'\t'));
        let forbidden = value.iter().any(|b| matches!(b, 0 | b'\r' | b'\n'));
        if forbidden || blank(value.first()) || blank(value.last()) {
            return Err(ProtocolFault::FieldValue(name.clone()));
        }
    }
    Ok(())
}

/// Returns field lines with names as text.
///
/// # Errors
/// A name that is no UTF-8.
fn named(fields: Vec<(Vec<u8>, Vec<u8>)>) -> Result<Fields, ProtocolFault> {
    let text = |(name, value)| match String::from_utf8(name) {
        Ok(name) => Ok((name, value)),
        Err(error) => Err(ProtocolFault::FieldName(error.to_string())),
    };
    fields.into_iter().map(text).collect()
}
