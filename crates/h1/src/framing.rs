//! Framing facts of a head: what its fields state about the body and the connection.

use message::framing::{content_length, is_lookalike};
use message::header::FieldSpan;
use message::{HeaderId, Version, list};

use crate::error::FramingError;
use crate::fields::{self, FieldLines};

/// The most fields that a Connection may name besides the standard options: each costs a pass over
/// the head.
const NOMINATIONS: usize = 32;

/// The framing and connection fields of one head.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FramingFacts {
    pub(crate) length: Option<u64>,
    pub(crate) chunked: bool,
    /// `Connection: close`
    pub(crate) close: bool,
    /// `Connection: keep-alive`
    pub(crate) keep_alive: bool,
    /// `Connection: upgrade`
    pub(crate) upgrade: bool,
    nominations: usize,
}

impl FramingFacts {
    /// Records a response's Content-Length. Returns how many bytes of its value to keep; `None` if
    /// the field repeats an earlier one. Equal values, in several lines or in a list, are one
    /// length (RFC 9110 8.6).
    pub(crate) fn note_lengths(&mut self, value: &[u8]) -> Result<Option<usize>, FramingError> {
        let before = self.length;
        let mut first = None;
        for member in value.split(|b| *b == b',').map(list::trim) {
            let length = content_length(member).ok_or(FramingError::ContentLength)?;
            if self.length.is_some_and(|known| known != length) {
                return Err(FramingError::DuplicateContentLength);
            }
            self.length = Some(length);
            first = first.or(Some(member.len()));
        }
        if self.chunked {
            return Err(FramingError::LengthAndCoding);
        }
        Ok(first.filter(|_| before.is_none()))
    }

    /// Records one field.
    pub(crate) fn note(
        &mut self,
        span: &FieldSpan,
        section: &[u8],
        version: Version,
    ) -> Result<(), FramingError> {
        let value = fields::value(section, span);
        match span.id {
            HeaderId::ContentLength => {
                if self.length.is_some() {
                    return Err(FramingError::DuplicateContentLength);
                }
                let length = content_length(value).ok_or(FramingError::ContentLength)?;
                self.length = Some(length);
            }
            HeaderId::TransferEncoding => self.transfer_encoding(value, version)?,
            HeaderId::Connection => self.connection(value)?,
            HeaderId::Other if is_lookalike(fields::name(section, span)) => {
                return Err(FramingError::Lookalike);
            }
            _ => return Ok(()),
        }
        if self.chunked && self.length.is_some() {
            return Err(FramingError::LengthAndCoding);
        }
        Ok(())
    }

    fn transfer_encoding(&mut self, value: &[u8], version: Version) -> Result<(), FramingError> {
        if version == Version::Http10 {
            return Err(FramingError::TransferEncodingForbidden);
        }
        if self.chunked {
            return Err(FramingError::TransferEncoding);
        }
        if value.eq_ignore_ascii_case(b"chunked") {
            self.chunked = true;
            Ok(())
        } else if message::header::is_token(value) {
            Err(FramingError::UnknownCoding)
        } else {
            Err(FramingError::TransferEncoding)
        }
    }

    fn connection(&mut self, value: &[u8]) -> Result<(), FramingError> {
        for option in options(value) {
            if option.eq_ignore_ascii_case(b"close") {
                self.close = true;
                continue;
            }
            match HeaderId::of(option) {
                HeaderId::KeepAlive => self.keep_alive = true,
                HeaderId::Upgrade => self.upgrade = true,
                HeaderId::Host | HeaderId::ContentLength | HeaderId::TransferEncoding => {
                    return Err(FramingError::Connection);
                }
                // The encoder drops these in any case.
                id if id.is_hop_by_hop() => {}
                _ => self.nominations += 1,
            }
        }
        if self.nominations > NOMINATIONS { Err(FramingError::Connection) } else { Ok(()) }
    }

    /// Returns true if the connection persists after the message (RFC 9112 9.3).
    pub(crate) fn persistent(&self, version: Version) -> bool {
        !self.close && (self.keep_alive || version == Version::Http11)
    }

    /// Drops the fields that Connection names (RFC 9110 7.6.1), except those for which `stays`
    /// returns true.
    ///
    /// Done once, on arrival, and never later: a client could otherwise name a field that this
    /// proxy adds, such as X-Forwarded-For, and thereby remove it.
    pub(crate) fn drop_nominated(
        &self,
        lines: &mut FieldLines,
        section: &[u8],
        stays: impl Fn(HeaderId) -> bool,
    ) {
        if self.nominations == 0 {
            return;
        }
        let connection: Vec<FieldSpan> =
            lines.spans().iter().filter(|s| s.id == HeaderId::Connection).copied().collect();
        lines.retain(|span| {
            let name = fields::name(section, span);
            let nominated = |option: &[u8]| option.eq_ignore_ascii_case(name);
            // Close is an option, not the name of a field (RFC 9110 7.6.1). Upgrade is for this
            // proxy; the encoder drops it.
            name.eq_ignore_ascii_case(b"close")
                || span.id == HeaderId::Upgrade
                || stays(span.id)
                || !connection.iter().any(|c| options(fields::value(section, c)).any(nominated))
        });
    }
}

/// The members of a Connection value; empty ones are skipped (RFC 9110 5.6.1.2).
fn options(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|b| *b == b',').map(list::trim).filter(|option| !option.is_empty())
}
