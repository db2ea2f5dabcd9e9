//! Response: converts the fields of one block to a response's head (RFC 9113 8.1 to 8.3).
//!
//! Must never repair: one invalid field makes the whole response malformed.

use std::fmt;

use base::{Limit, Limits};
use message::framing::{content_length, is_lookalike};
use message::tags::is_tag_field;
use message::{Framing, HeaderId, Response, Status, Version};

use crate::request::{ListLimits, Malformed, RequestError, check_name, check_size, check_value};
use crate::table::OVERHEAD;

/// The reason why a response was rejected. Its stream is reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseError {
    /// A field is malformed.
    Malformed(Malformed),
    /// `:status` is not of three digits, or 101, which HTTP/2 does not have.
    Status,
    /// Content before the head of the final response, or a second one.
    Order,
    /// An interim response that ends its stream.
    Interim,
    /// The body is not as long as its Content-Length.
    Length,
    /// A limit was exceeded.
    Limit(Limit),
}

impl ResponseError {
    /// The limit that was exceeded, if it was one.
    pub fn limit(&self) -> Option<Limit> {
        match self {
            Self::Limit(limit) => Some(*limit),
            _ => None,
        }
    }
}

impl fmt::Display for ResponseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed(what) => what.fmt(f),
            Self::Status => f.write_str("malformed status"),
            Self::Order => f.write_str("content outside of a response's body"),
            Self::Interim => f.write_str("ended after a 1xx response"),
            Self::Length => f.write_str("body of another length than its Content-Length"),
            Self::Limit(limit) => write!(f, "beyond the limit {}", limit.name()),
        }
    }
}

impl std::error::Error for ResponseError {}

impl From<Malformed> for ResponseError {
    fn from(what: Malformed) -> Self {
        Self::Malformed(what)
    }
}

impl From<RequestError> for ResponseError {
    /// The fault of a trailer section, which requests and responses have alike.
    fn from(error: RequestError) -> Self {
        match error {
            RequestError::Malformed(what) => Self::Malformed(what),
            RequestError::Limit(limit) => Self::Limit(limit),
            _ => Self::Order,
        }
    }
}

impl From<Limit> for ResponseError {
    fn from(limit: Limit) -> Self {
        Self::Limit(limit)
    }
}

/// Limits of a response's head.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResponseLimits {
    pub(crate) list: ListLimits,
    /// Bytes that fields with surrogate keys may have besides.
    tag_bytes: usize,
}

impl From<&Limits> for ResponseLimits {
    fn from(limits: &Limits) -> Self {
        let bytes = |limit: u64| usize::try_from(limit).unwrap_or(usize::MAX);
        let or = |own: u64, common: usize| if own == 0 { common } else { bytes(own) };
        let common = ListLimits::from(limits);
        let list = ListLimits {
            list_bytes: or(limits.response_header_bytes, common.list_bytes),
            field_bytes: or(limits.response_field_bytes, common.field_bytes),
            ..common
        };
        Self { list, tag_bytes: bytes(limits.tag_bytes).saturating_mul(2) }
    }
}

impl ResponseLimits {
    /// Bytes of all fields together.
    pub(crate) fn bytes(&self) -> usize {
        self.list.list_bytes.saturating_add(self.tag_bytes)
    }
}

/// Collects the fields of one response after another.
///
/// Order of calls: [`ResponseCollector::start`], [`ResponseCollector::field`] for each field, then
/// [`ResponseCollector::finish`].
#[derive(Debug, Default)]
pub(crate) struct ResponseCollector {
    /// The first fault. The block is decoded to its end nevertheless.
    fault: Option<ResponseError>,
    status: Option<Status>,
    /// True after a regular field.
    regular: bool,
    length: Option<u64>,
    fields: usize,
    list_bytes: usize,
    tag_bytes: usize,
}

impl ResponseCollector {
    /// Starts a response; clears `response`.
    pub(crate) fn start(&mut self, response: &mut Response) {
        *self = Self::default();
        response.version = Version::Http2;
        response.reason.clear();
        response.no_reason = false;
        response.headers.clear();
    }

    /// Takes one field. After the first fault, fields are dropped.
    pub(crate) fn field(
        &mut self,
        id: HeaderId,
        name: &[u8],
        value: &[u8],
        limits: &ResponseLimits,
        response: &mut Response,
    ) {
        if self.fault.is_some() {
            return;
        }
        let taken = match name {
            [b':', ..] => self.pseudo(name, value),
            _ => self.regular(id, name, value, limits, response),
        };
        self.fault = taken.err();
    }

    fn pseudo(&mut self, name: &[u8], value: &[u8]) -> Result<(), ResponseError> {
        if self.regular {
            return Err(Malformed::PseudoOrder.into());
        }
        if name != b":status" {
            return Err(Malformed::PseudoUnknown.into());
        }
        let digits: &[u8; 3] = value.try_into().map_err(|_| ResponseError::Status)?;
        if !digits.iter().all(u8::is_ascii_digit) {
            return Err(ResponseError::Status);
        }
        let code = digits.iter().fold(0, |code, digit| code * 10 + u16::from(digit - b'0'));
        let status = Status::new(code).filter(|status| status.code() != 101);
        match self.status.replace(status.ok_or(ResponseError::Status)?) {
            None => Ok(()),
            Some(_) => Err(Malformed::PseudoRepeated.into()),
        }
    }

    fn regular(
        &mut self,
        id: HeaderId,
        name: &[u8],
        value: &[u8],
        limits: &ResponseLimits,
        response: &mut Response,
    ) -> Result<(), ResponseError> {
        self.regular = true;
        let is_tags = limits.tag_bytes > 0 && is_tag_field(name);
        if !is_tags {
            check_size(name, value, &limits.list)?;
        }
        check_name(id, name)?;
        check_value(value)?;
        match id {
            HeaderId::Connection
            | HeaderId::KeepAlive
            | HeaderId::ProxyConnection
            | HeaderId::TransferEncoding
            | HeaderId::Upgrade => return Err(Malformed::ConnectionField.into()),
            HeaderId::ContentLength => {
                let length = content_length(value).ok_or(Malformed::ContentLength)?;
                match self.length.replace(length) {
                    None => {}
                    Some(before) if before == length => return self.count(0, false, limits),
                    Some(_) => return Err(Malformed::DuplicateContentLength.into()),
                }
            }
            HeaderId::Other if is_lookalike(name) => return Err(Malformed::Lookalike.into()),
            _ => {}
        }
        self.count(name.len() + value.len() + OVERHEAD, is_tags, limits)?;
        response.headers.push_as(id, name, value);
        Ok(())
    }

    fn count(
        &mut self,
        bytes: usize,
        is_tags: bool,
        limits: &ResponseLimits,
    ) -> Result<(), ResponseError> {
        self.fields += 1;
        let (sum, most) = match is_tags {
            true => (&mut self.tag_bytes, limits.tag_bytes),
            false => (&mut self.list_bytes, limits.list.list_bytes),
        };
        *sum += bytes;
        if self.fields > limits.list.fields {
            return Err(Limit::HeaderCount.into());
        }
        if *sum > most { Err(Limit::HeaderBytes.into()) } else { Ok(()) }
    }

    /// Completes `response`; returns the framing of its body. `ends`: the stream ends with the
    /// block. `is_head`: the request's method was HEAD.
    ///
    /// # Errors
    /// The first fault.
    pub(crate) fn finish(
        &self,
        ends: bool,
        is_head: bool,
        response: &mut Response,
    ) -> Result<Framing, ResponseError> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        response.status = self.status.ok_or(Malformed::PseudoMissing)?;
        if response.status.is_interim() {
            return if ends { Err(ResponseError::Interim) } else { Ok(Framing::None) };
        }
        if is_head || response.status.has_no_body() {
            return Ok(Framing::None);
        }
        match self.length {
            Some(length) if ends && length > 0 => Err(ResponseError::Length),
            Some(length) => Ok(Framing::Length(length)),
            None if ends => Ok(Framing::Length(0)),
            None => Ok(Framing::Chunked),
        }
    }
}
