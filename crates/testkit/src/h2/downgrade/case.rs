//! A case, its frames, and the check of its result.

use super::super::{FieldBlock, FieldList, Frame, RequestOutcome, error, frames};
use crate::reference_reader::ParsedRequest;
use crate::reply::ConnectionEnd;
use crate::wire::Fields;

/// The request that the origin must receive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForwardedRequest {
    /// The method.
    pub method: String,
    /// The target, byte for byte.
    pub target: String,
    /// The Host.
    pub host: String,
    /// All fields except Host, framing and those that a proxy adds, in any order; names in lower
    /// case.
    pub fields: Fields,
    /// The body, without framing.
    pub body: Vec<u8>,
}

/// The required result of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DowngradeExpectation {
    /// Malformed by RFC 9113 8.1.1: RST_STREAM with PROTOCOL_ERROR.
    Reset,
    /// Invalid HTTP in any version: RST_STREAM with PROTOCOL_ERROR, or a 400.
    Refused,
    /// Not forwarded: any reset, or a status of 400 and above.
    Denied,
    /// Answered by the proxy, with this status.
    Status(u16),
    /// Forwarded exactly like this, and answered with 200.
    Forwarded(ForwardedRequest),
    /// Rejected as by `Refused`, or forwarded like this.
    RefusedOr(ForwardedRequest),
}

/// A DATA frame: its body, and its padding, if any.
pub type DataPiece = (Vec<u8>, Option<u8>);

/// A case: all frames of a client on one stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// Unique within the table.
    pub name: String,
    /// The class of the attack.
    pub class: &'static str,
    /// The head's fields, pseudo-fields included.
    pub fields: FieldList,
    /// The body.
    pub data: Vec<DataPiece>,
    /// The trailers.
    pub trailers: Option<FieldList>,
    /// True if the last frame ends the stream.
    pub ended: bool,
    /// The required result.
    pub expect: DowngradeExpectation,
}

/// Fields of a forwarded request that the proxy generates.
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
    /// Serialises all frames on `stream`.
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

    /// Checks the result: `outcome` at the client, and the requests `sent` to the origin.
    ///
    /// # Errors
    /// A text about what is wrong.
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

    /// The request that the origin may receive, if any.
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

/// Shows a request as a line.
fn show(request: &ParsedRequest) -> String {
    let ParsedRequest { method, target, fields, body, .. } = request;
    let fields: Vec<_> =
        fields.iter().map(|(name, value)| format!("{name}: {}", value.escape_ascii())).collect();
    format!("{method} {target} {fields:?} {}", body.escape_ascii())
}

/// Shows an outcome briefly.
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
