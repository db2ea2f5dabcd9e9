//! A case, its frames, and the judgement of what came of it.

use super::super::{FieldBlock, FieldList, Frame, RequestOutcome, error, frames};
use crate::reference_reader::ParsedRequest;
use crate::reply::ConnectionEnd;
use crate::wire::Fields;

/// The request that the origin must have been sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForwardedRequest {
    /// Its method.
    pub method: String,
    /// Its target, byte for byte.
    pub target: String,
    /// Its Host.
    pub host: String,
    /// Every field but Host, framing and what a proxy adds, in any order; names in lower case.
    pub fields: Fields,
    /// Its body, however framed.
    pub body: Vec<u8>,
}

/// The result that a case must have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DowngradeExpectation {
    /// RFC 9113 8.1.1 calls it malformed: RST_STREAM with PROTOCOL_ERROR.
    Reset,
    /// HTTP itself forbids it, as over HTTP/1: the same, or a 400.
    Refused,
    /// Not forwarded: any reset, or an answer of 400 and above.
    Denied,
    /// Answered here, with this status.
    Status(u16),
    /// Sent to the origin as this and nothing else, and answered with 200.
    Forwarded(ForwardedRequest),
    /// One or the other.
    RefusedOr(ForwardedRequest),
}

/// One DATA frame: its body, and its padding if it has any.
pub type DataPiece = (Vec<u8>, Option<u8>);

/// A case: everything that a client sends on one stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// Unique within the table.
    pub name: String,
    /// The kind of trick.
    pub class: &'static str,
    /// Its head, pseudo-fields among the others.
    pub fields: FieldList,
    /// Its body.
    pub data: Vec<DataPiece>,
    /// Its trailers.
    pub trailers: Option<FieldList>,
    /// The last frame ends the stream.
    pub ended: bool,
    /// The result that the case must have.
    pub expect: DowngradeExpectation,
}

/// Fields of a forwarded request that are not the client's: a proxy writes them anew.
const OWN: [&str; 11] = [
    "accept-encoding",
    "content-length",
    "host",
    "surrogate-capability",
    "transfer-encoding",
    "via",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-port",
    "x-forwarded-proto",
    "x-real-ip",
];

impl Case {
    /// All its frames on `stream`.
    pub fn bytes(&self, stream: u32) -> Vec<u8> {
        let mut left = self.data.len() + usize::from(self.trailers.is_some());
        let head = FieldBlock::of(&self.fields);
        let end = |left: usize| left == 0 && self.ended;
        let mut bytes =
            frames::header_frames(stream, head.bytes(), frames::PAYLOAD_BYTES, end(left));
        for (body, padding) in &self.data {
            left -= 1;
            let frame = match padding {
                None => Frame::data(stream, body, end(left)),
                Some(padding) => Frame::padded_data(stream, body, *padding, end(left)),
            };
            bytes.extend(frame.bytes());
        }
        if let Some(trailers) = &self.trailers {
            bytes.extend(Frame::headers(stream, FieldBlock::of(trailers), end(0)).bytes());
        }
        bytes
    }

    /// Checks the result of the case: `outcome` at the client, and the whole requests `sent` to the
    /// origin.
    ///
    /// # Errors
    /// A text that says what is wrong.
    pub fn check(&self, outcome: &RequestOutcome, sent: &[ParsedRequest]) -> Result<(), String> {
        let protocol_error = outcome.reset() == Some(error::PROTOCOL_ERROR);
        let status = match outcome {
            RequestOutcome::Answered(exchange) => exchange.status,
            _ => 0,
        };
        let any_reset = outcome.reset().is_some();
        let kept_back = |right: bool| match (right, sent.first()) {
            (_, Some(first)) => Err(format!("forwarded: {}", show(first))),
            (true, None) => Ok(()),
            (false, None) => Err(format!("it came to {}", brief(outcome))),
        };
        match &self.expect {
            DowngradeExpectation::Reset => kept_back(protocol_error),
            DowngradeExpectation::Refused => kept_back(protocol_error || status == 400),
            DowngradeExpectation::Denied => kept_back(any_reset || status >= 400),
            DowngradeExpectation::Status(wanted) => kept_back(status == *wanted),
            DowngradeExpectation::RefusedOr(_) if sent.is_empty() => {
                kept_back(protocol_error || status == 400)
            }
            DowngradeExpectation::Forwarded(wanted) | DowngradeExpectation::RefusedOr(wanted) => {
                match sent {
                    [one] if status == 200 => wanted.check(one),
                    [_] => Err(format!("forwarded, but it came to {}", brief(outcome))),
                    _ => {
                        let all: Vec<_> = sent.iter().map(show).collect();
                        Err(format!("{} requests instead of one: {all:?}", sent.len()))
                    }
                }
            }
        }
    }

    /// The request that would be forwarded, if any may be.
    pub fn forwarded(&self) -> Option<&ForwardedRequest> {
        match &self.expect {
            DowngradeExpectation::Forwarded(forwarded)
            | DowngradeExpectation::RefusedOr(forwarded) => Some(forwarded),
            _ => None,
        }
    }
}

impl ForwardedRequest {
    fn check(&self, sent: &ParsedRequest) -> Result<(), String> {
        let fields = sent.fields.iter().map(|(name, value)| (name.to_lowercase(), value.clone()));
        let mut fields: Fields = fields.filter(|(name, _)| !OWN.contains(&&**name)).collect();
        let mut wanted = self.fields.clone();
        fields.sort();
        wanted.sort();
        let host = sent.values("host") == [self.host.as_bytes()];
        let line = sent.method == self.method && sent.target == self.target && !sent.old;
        if line && host && fields == wanted && sent.body == self.body {
            return Ok(());
        }
        Err(format!("forwarded as {} instead of {self:?}", show(sent)))
    }
}

/// A request in one line.
fn show(request: &ParsedRequest) -> String {
    let ParsedRequest { method, target, fields, body, .. } = request;
    let fields: Vec<_> =
        fields.iter().map(|(name, value)| format!("{name}: {}", value.escape_ascii())).collect();
    format!("{method} {target} {fields:?} {}", body.escape_ascii())
}

/// An outcome in a few words.
fn brief(outcome: &RequestOutcome) -> String {
    match outcome {
        RequestOutcome::Answered(exchange) => format!("status {}", exchange.status),
        RequestOutcome::Reset(code, exchange) => {
            format!("reset {code} (status {})", exchange.status)
        }
        RequestOutcome::Over(ending) if ending.end == ConnectionEnd::Open => {
            "an open end".to_owned()
        }
        RequestOutcome::Over(ending) => format!("the connection's end: {ending:?}"),
        RequestOutcome::Silent(exchange) => format!("silence (status {})", exchange.status),
        RequestOutcome::Faulty(fault) => format!("a fault of the server: {fault}"),
    }
}
