//! Request: converts the fields of one block to the canonical request (RFC 9113 8.1 to 8.3).
//!
//! Everything that HTTP/1 rejects is rejected here by the same rules: `message` parses targets,
//! hosts, lengths and byte classes for both. This module must never repair: one invalid field makes
//! the whole request malformed.

use base::{Limit, Limits};
use message::authority::{parse_authority, write_authority};
use message::framing::{content_length, is_lookalike};
use message::header::is_value;
use message::trailers::{Judgement, judge};
use message::{
    Framing, HeaderId, Method, Request, Scheme, Trailers, Upgrade, Version, class, target,
};

mod error;
#[cfg(test)]
mod tests;

pub use error::{Malformed, RequestError};

use crate::table::OVERHEAD;

/// Longest method, in bytes, as in HTTP/1.
const METHOD_BYTES: usize = 32;
/// The separator of two cookies (RFC 9113 8.2.3).
const CRUMBS: &[u8] = b"; ";

/// Pseudo-fields, a bit each.
mod pseudo {
    pub(super) const METHOD: u8 = 1;
    pub(super) const SCHEME: u8 = 2;
    pub(super) const AUTHORITY: u8 = 4;
    pub(super) const PATH: u8 = 8;
    pub(super) const PROTOCOL: u8 = 16;
}

/// Limits of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ListLimits {
    /// The most fields, including pseudo-fields; the crumbs of a cookie count as one.
    pub(crate) fields: usize,
    /// Bytes of all names and values, and 32 for each field (RFC 9113 6.5.2).
    pub(crate) list_bytes: usize,
    /// Bytes of one field, name and value.
    pub(crate) field_bytes: usize,
    /// Bytes of `:path`.
    pub(crate) target_bytes: usize,
    /// The limit `list_bytes` for a trailer section.
    pub(crate) trailer_bytes: usize,
    /// True if `:path` may have raw UTF-8, which is then escaped.
    pub(crate) raw_utf8: bool,
}

impl From<&Limits> for ListLimits {
    fn from(limits: &Limits) -> Self {
        let bytes = |limit: u64| usize::try_from(limit).unwrap_or(usize::MAX);
        Self {
            fields: bytes(limits.header_count),
            list_bytes: bytes(limits.header_bytes),
            field_bytes: bytes(limits.header_field_bytes),
            target_bytes: bytes(limits.target_bytes),
            trailer_bytes: bytes(limits.trailer_bytes),
            raw_utf8: true,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Expect {
    #[default]
    None,
    Continue,
    Other,
}

/// Collects the fields of one request after another; kept by the connection.
///
/// Order of calls: [`Collector::start`], [`Collector::field`] for each field, then
/// [`Collector::finish`]. For the trailer section of any request: [`Collector::start_trailer`],
/// [`Collector::trailer`], [`Collector::finish_trailer`].
#[derive(Debug, Default)]
pub(crate) struct Collector {
    /// The first fault. The block is decoded to its end nevertheless: the state of HPACK depends on
    /// it.
    fault: Option<RequestError>,
    /// The pseudo-fields received, a bit each.
    seen: u8,
    /// True after a regular field.
    regular: bool,
    host_seen: bool,
    /// `:protocol` is there and is `websocket`.
    websocket: bool,
    expect: Expect,
    length: Option<u64>,
    fields: usize,
    list_bytes: usize,
    /// The index of the field before which Cookie is inserted.
    cookie_at: Option<usize>,
    cookie: Vec<u8>,
    /// The host of a Host beside `:authority`, and later the value of Host.
    host: Vec<u8>,
    /// The fields of a trailer section that may pass.
    trailers: Trailers,
}

impl Collector {
    /// Starts a request on a connection of `scheme`; clears `request`.
    pub(crate) fn start(&mut self, scheme: Scheme, request: &mut Request) {
        self.reset();
        request.clear();
        request.version = Version::Http2;
        request.scheme = scheme;
        request.keep_alive = true;
    }

    fn reset(&mut self) {
        let (cookie, host) = (std::mem::take(&mut self.cookie), std::mem::take(&mut self.host));
        *self = Self { cookie, host, ..Self::default() };
        self.cookie.clear();
    }

    /// Takes one field. After the first fault, fields are dropped.
    #[inline]
    pub(crate) fn field(
        &mut self,
        id: HeaderId,
        name: &[u8],
        value: &[u8],
        limits: &ListLimits,
        request: &mut Request,
    ) {
        if self.fault.is_some() {
            return;
        }
        let taken = match name {
            [b':', ..] => self.pseudo(name, value, limits, request),
            _ => self.regular(id, name, value, limits, request),
        };
        self.fault = taken.err();
    }

    fn pseudo(
        &mut self,
        name: &[u8],
        value: &[u8],
        limits: &ListLimits,
        request: &mut Request,
    ) -> Result<(), RequestError> {
        if self.regular {
            return Err(Malformed::PseudoOrder.into());
        }
        let which = match name {
            b":method" => pseudo::METHOD,
            b":scheme" => pseudo::SCHEME,
            b":authority" => pseudo::AUTHORITY,
            b":path" => pseudo::PATH,
            b":protocol" => pseudo::PROTOCOL,
            _ => return Err(Malformed::PseudoUnknown.into()),
        };
        if self.seen & which != 0 {
            return Err(Malformed::PseudoRepeated.into());
        }
        self.seen |= which;
        match which {
            pseudo::METHOD => {
                if value.is_empty() || !class::all(value, class::TOKEN) {
                    return Err(Malformed::Method.into());
                }
                if value.len() > METHOD_BYTES {
                    return Err(RequestError::MethodTooLong);
                }
                request.method = Method::from_token(value);
            }
            pseudo::SCHEME => scheme(value, request.scheme)?,
            pseudo::AUTHORITY => {
                request.port = parse_authority(value, request.scheme, &mut request.host)?;
            }
            pseudo::PATH => {
                // Checked at the end, when the method is known.
                match target::escaped_len(value).filter(|_| limits.raw_utf8) {
                    Some(len) if len > limits.target_bytes => {
                        return Err(Limit::TargetBytes.into());
                    }
                    Some(len) => {
                        target::push(value, &mut request.target);
                        if len != value.len() {
                            request.respelt.extend_from_slice(value);
                        }
                    }
                    None if value.len() > limits.target_bytes => {
                        return Err(Limit::TargetBytes.into());
                    }
                    None => request.target.extend_from_slice(value),
                }
            }
            _ => {
                check_value(value)?;
                if value.is_empty() {
                    return Err(Malformed::Protocol.into());
                }
                self.websocket = value.eq_ignore_ascii_case(b"websocket");
            }
        }
        self.count(name, value, limits)
    }

    fn regular(
        &mut self,
        id: HeaderId,
        name: &[u8],
        value: &[u8],
        limits: &ListLimits,
        request: &mut Request,
    ) -> Result<(), RequestError> {
        self.regular = true;
        check_size(name, value, limits)?;
        check_name(id, name)?;
        check_value(value)?;
        match id {
            HeaderId::Connection
            | HeaderId::KeepAlive
            | HeaderId::ProxyConnection
            | HeaderId::TransferEncoding
            | HeaderId::Upgrade => return Err(Malformed::ConnectionField.into()),
            HeaderId::Te if !value.eq_ignore_ascii_case(b"trailers") => {
                return Err(Malformed::Te.into());
            }
            HeaderId::Host => {
                self.host(value, request)?;
                return self.count(name, value, limits);
            }
            HeaderId::Cookie => return self.crumb(name, value, limits, request),
            HeaderId::ContentLength => {
                if self.length.is_some() {
                    return Err(Malformed::DuplicateContentLength.into());
                }
                self.length = Some(content_length(value).ok_or(Malformed::ContentLength)?);
            }
            HeaderId::Expect => {
                let usual = value.eq_ignore_ascii_case(b"100-continue");
                self.expect = match self.expect {
                    Expect::None | Expect::Continue if usual => Expect::Continue,
                    _ => Expect::Other,
                };
            }
            HeaderId::Other if is_lookalike(name) => return Err(Malformed::Lookalike.into()),
            _ => {}
        }
        self.count(name, value, limits)?;
        request.headers.push_as(id, name, value);
        Ok(())
    }

    /// A Host replaces a missing `:authority`, or must equal it (RFC 9113 8.3.1).
    fn host(&mut self, value: &[u8], request: &mut Request) -> Result<(), RequestError> {
        if std::mem::replace(&mut self.host_seen, true) {
            return Err(Malformed::DuplicateHost.into());
        }
        if self.seen & pseudo::AUTHORITY == 0 {
            request.port = parse_authority(value, request.scheme, &mut request.host)?;
            return Ok(());
        }
        let port = parse_authority(value, request.scheme, &mut self.host)?;
        if (port, &self.host) == (request.port, &request.host) {
            Ok(())
        } else {
            Err(Malformed::HostMismatch.into())
        }
    }

    /// Joins the crumbs of a cookie, which may be split for better compression (RFC 9113 8.2.3).
    fn crumb(
        &mut self,
        name: &[u8],
        value: &[u8],
        limits: &ListLimits,
        request: &Request,
    ) -> Result<(), RequestError> {
        if self.cookie_at.is_none() {
            self.cookie_at = Some(request.headers.len());
            self.count(name, value, limits)?;
        } else {
            let joined = self.cookie.len() + CRUMBS.len() + value.len();
            if name.len() + joined > limits.field_bytes {
                return Err(Limit::HeaderFieldBytes.into());
            }
            self.add(CRUMBS.len() + value.len(), limits.list_bytes, Limit::HeaderBytes)?;
        }
        if !self.cookie.is_empty() && !value.is_empty() {
            self.cookie.extend_from_slice(CRUMBS);
        }
        self.cookie.extend_from_slice(value);
        Ok(())
    }

    /// Counts one field.
    #[inline]
    fn count(
        &mut self,
        name: &[u8],
        value: &[u8],
        limits: &ListLimits,
    ) -> Result<(), RequestError> {
        self.fields += 1;
        if self.fields > limits.fields {
            return Err(Limit::HeaderCount.into());
        }
        self.add(name.len() + value.len() + OVERHEAD, limits.list_bytes, Limit::HeaderBytes)
    }

    #[inline]
    fn add(&mut self, bytes: usize, most: usize, limit: Limit) -> Result<(), RequestError> {
        self.list_bytes += bytes;
        if self.list_bytes > most { Err(limit.into()) } else { Ok(()) }
    }

    /// Returns true if the request asks for another protocol on its stream (extended CONNECT, RFC
    /// 8441). The protocol's bytes then follow instead of a body. Valid after the request was
    /// finished.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(crate) fn is_extended(&self) -> bool {
        self.websocket
    }

    /// Completes `request`. `ends`: the stream ends with the block, so there is no body.
    ///
    /// # Errors
    /// The first fault. The request has the parts known by then; the target is as received.
    pub(crate) fn finish(&mut self, ends: bool, request: &mut Request) -> Result<(), RequestError> {
        match self.fault {
            Some(fault) => Err(fault),
            None => self.complete(ends, request),
        }
    }

    fn complete(&mut self, ends: bool, request: &mut Request) -> Result<(), RequestError> {
        self.check_pseudo(request)?;
        if request.host.is_empty() {
            return Err(Malformed::MissingHost.into());
        }
        request.framing = self.framing(ends)?;
        if self.seen & pseudo::PROTOCOL != 0 && !self.websocket {
            return Err(RequestError::Connect);
        }
        if self.expect == Expect::Other {
            return Err(RequestError::Expectation);
        }
        if let Some(at) = self.cookie_at {
            request.headers.insert(at, HeaderId::Cookie, &self.cookie);
        }
        self.host.clear();
        write_authority(&mut self.host, request);
        request.headers.insert(0, HeaderId::Host, &self.host);
        if self.websocket {
            // The form of the request in HTTP/1 (RFC 8441 5).
            request.method = Method::Get;
            request.headers.push(HeaderId::Upgrade, b"websocket");
            request.upgrade = Upgrade::Asked;
        }
        request.expect_continue = self.expect == Expect::Continue
            && !matches!(request.framing, Framing::None | Framing::Length(0));
        Ok(())
    }

    /// Checks that the method has exactly its required pseudo-fields (RFC 9113 8.3.1 and 8.5, RFC
    /// 8441 4), and that the target fits.
    fn check_pseudo(&self, request: &Request) -> Result<(), RequestError> {
        let has = |which| self.seen & which == which;
        if !has(pseudo::METHOD) {
            return Err(Malformed::PseudoMissing.into());
        }
        match (request.method == Method::Connect, has(pseudo::PROTOCOL)) {
            (true, false) if self.seen == pseudo::METHOD | pseudo::AUTHORITY => {
                return Err(RequestError::Connect);
            }
            (true, false) => return Err(Malformed::Connect.into()),
            (false, true) => return Err(Malformed::Protocol.into()),
            (true, true) | (false, false) => {}
        }
        if !has(pseudo::SCHEME | pseudo::PATH) {
            return Err(Malformed::PseudoMissing.into());
        }
        Ok(target::check(request)?)
    }

    /// The framing of the body. A tunnel has no body, whatever its bytes.
    fn framing(&self, ends: bool) -> Result<Framing, Malformed> {
        let extended = self.seen & pseudo::PROTOCOL != 0;
        match self.length {
            Some(length) if extended || (ends && length != 0) => Err(Malformed::ContentLength),
            Some(length) => Ok(Framing::Length(length)),
            None if ends || extended => Ok(Framing::None),
            None => Ok(Framing::Chunked),
        }
    }

    /// Starts a trailer section.
    pub(crate) fn start_trailer(&mut self) {
        self.reset();
    }

    /// Takes one field of a trailer section; those that may pass are kept.
    pub(crate) fn trailer(&mut self, id: HeaderId, name: &[u8], value: &[u8], limits: &ListLimits) {
        if self.fault.is_none() {
            self.fault = self.check_trailer(id, name, value, limits).err();
        }
    }

    fn check_trailer(
        &mut self,
        id: HeaderId,
        name: &[u8],
        value: &[u8],
        limits: &ListLimits,
    ) -> Result<(), RequestError> {
        let bytes = name.len() + value.len() + OVERHEAD;
        self.add(bytes, limits.trailer_bytes, Limit::TrailerBytes)?;
        if name.starts_with(b":") {
            return Err(Malformed::PseudoTrailer.into());
        }
        check_name(id, name)?;
        check_value(value)?;
        match judge(name) {
            Judgement::Pass => self.trailers.push(name, value),
            Judgement::Drop => {}
            Judgement::Refuse => return Err(Malformed::Trailer.into()),
        }
        Ok(())
    }

    /// Ends a trailer section: the fields that may pass, if any.
    ///
    /// # Errors
    /// The first fault.
    pub(crate) fn finish_trailer(&mut self) -> Result<Option<Trailers>, RequestError> {
        let trailers = std::mem::take(&mut self.trailers);
        match self.fault {
            Some(fault) => Err(fault),
            None => Ok(trailers.non_empty()),
        }
    }
}

/// A client may not claim `http` on a TLS connection. The reverse is permitted: a balancer before
/// this server may have ended TLS.
fn scheme(value: &[u8], connection: Scheme) -> Result<(), Malformed> {
    let is = |scheme: Scheme| value.eq_ignore_ascii_case(scheme.as_str().as_bytes());
    if is(Scheme::Https) || (connection == Scheme::Http && is(Scheme::Http)) {
        Ok(())
    } else {
        Err(Malformed::Scheme)
    }
}

pub(crate) fn check_size(name: &[u8], value: &[u8], limits: &ListLimits) -> Result<(), Limit> {
    // A header block keeps the length of a name in 16 bits.
    let fits = name.len() <= usize::from(u16::MAX);
    if fits && name.len() + value.len() <= limits.field_bytes {
        Ok(())
    } else {
        Err(Limit::HeaderFieldBytes)
    }
}

/// A name is a token without capitals (RFC 9113 8.2.1).
#[inline]
pub(crate) fn check_name(id: HeaderId, name: &[u8]) -> Result<(), Malformed> {
    if id.is_lower_case(name) { Ok(()) } else { Err(Malformed::Name) }
}

/// A value has no control byte but HTAB, and no white space at its start or end (RFC 9113 8.2.1).
#[inline]
pub(crate) fn check_value(value: &[u8]) -> Result<(), Malformed> {
    if let [b' ' | b'\t', ..] | [.., b' ' | b'\t'] = value {
        return Err(Malformed::ValueSpace);
    }
    if is_value(value) { Ok(()) } else { Err(Malformed::Value) }
}
