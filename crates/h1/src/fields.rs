//! Field lines of a head: one pass, resumable at any byte.
//!
//! An error must be found at the byte that makes the line invalid, so that the result does not
//! depend on how the input was split.

use base::Limit;
use message::header::FieldSpan;
use message::{HeaderId, tags};

use crate::class;
use crate::error::{FieldError, RequestError, ResponseError};
use crate::limits::HeadLimits;

/// Longest name that fits a span.
const NAME_BYTES: usize = u16::MAX as usize;

#[derive(Clone, Copy, Debug, Default)]
enum LineState {
    #[default]
    LineStart,
    Name,
    BeforeValue,
    Value,
    LineCr,
    LastCr,
}

/// The reason why a line was rejected; requests and responses convert it to their own errors.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LineError {
    Field(FieldError),
    Limit(Limit),
}

impl From<FieldError> for LineError {
    fn from(error: FieldError) -> Self {
        Self::Field(error)
    }
}

impl From<Limit> for LineError {
    fn from(limit: Limit) -> Self {
        Self::Limit(limit)
    }
}

impl From<LineError> for RequestError {
    fn from(error: LineError) -> Self {
        match error {
            LineError::Field(error) => Self::Field(error),
            LineError::Limit(limit) => Self::Limit(limit),
        }
    }
}

impl From<LineError> for ResponseError {
    fn from(error: LineError) -> Self {
        match error {
            LineError::Field(error) => Self::Field(error),
            LineError::Limit(limit) => Self::Limit(limit),
        }
    }
}

/// The result of [`FieldLines::next`].
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    /// All bytes were consumed and the section has not ended.
    Partial,
    /// A field; also kept in [`FieldLines::spans`].
    Field(FieldSpan),
    /// The blank line; the section ends at [`FieldLines::position`].
    End,
}

/// Reads the field lines of one head.
#[derive(Debug, Default)]
pub(crate) struct FieldLines {
    state: LineState,
    /// Offset of the section in the buffer; spans are relative to it.
    base: usize,
    /// Next byte to parse.
    pos: usize,
    line_at: usize,
    name_end: usize,
    value_at: usize,
    value_len: usize,
    spans: Vec<FieldSpan>,
    line_feeds: LineFeeds,
}

/// The treatment of an LF without CR before it (RFC 9112 2.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum LineFeeds {
    /// An error.
    #[default]
    Rejected,
    /// The end of a line.
    Accepted,
    /// The end of a line, and one was found.
    Found,
}

impl FieldLines {
    /// Starts a section at `base`; keeps the memory.
    pub(crate) fn start(&mut self, base: usize) {
        self.state = LineState::LineStart;
        self.base = base;
        self.pos = base;
        self.spans.clear();
    }

    pub(crate) fn base(&self) -> usize {
        self.base
    }

    pub(crate) fn position(&self) -> usize {
        self.pos
    }

    /// The fields found, as offsets from [`FieldLines::base`].
    pub(crate) fn spans(&self) -> &[FieldSpan] {
        &self.spans
    }

    /// Bytes read so far of the value of a partial line with surrogate keys.
    pub(crate) fn open_tag_bytes(&self, buf: &[u8]) -> usize {
        let open = matches!(self.state, LineState::Value | LineState::LineCr);
        let tagged = open && tags::is_tag_field(&buf[self.line_at..self.name_end]);
        if tagged { self.pos - self.line_at } else { 0 }
    }

    pub(crate) fn retain(&mut self, keep: impl FnMut(&FieldSpan) -> bool) {
        self.spans.retain(keep);
    }

    /// Sets the treatment of line ends without CR, for this section and later ones.
    pub(crate) fn set_line_feeds(&mut self, line_feeds: LineFeeds) {
        self.line_feeds = line_feeds;
    }

    pub(crate) fn line_feeds(&self) -> LineFeeds {
        self.line_feeds
    }

    /// Handles a line that ends without CR.
    ///
    /// # Errors
    /// If that is not permitted.
    pub(crate) fn bare_line_feed(&mut self) -> Result<(), FieldError> {
        if self.line_feeds == LineFeeds::Rejected {
            return Err(FieldError::BareLf);
        }
        self.line_feeds = LineFeeds::Found;
        Ok(())
    }

    /// Drops the field read last.
    pub(crate) fn drop_last(&mut self) {
        self.spans.pop();
    }

    /// Shortens the value of the last field to `len` bytes.
    pub(crate) fn shorten_last(&mut self, len: usize) {
        if let Some(last) = self.spans.last_mut() {
            last.value_len = last.value_len.min(len as u32);
        }
    }

    /// Continues to the end of the next field line.
    pub(crate) fn next(&mut self, buf: &[u8], limits: &HeadLimits) -> Result<Event, LineError> {
        if let LineState::LineStart = self.state
            && let Some(span) = self.whole_line(buf, limits)
        {
            return Ok(Event::Field(span));
        }
        loop {
            let event = match self.state {
                LineState::LineStart => self.line_start(buf, limits)?,
                LineState::Name => self.name(buf, limits)?,
                LineState::BeforeValue => self.before_value(buf, limits),
                LineState::Value => self.value(buf, limits)?,
                LineState::LineCr => self.line_end(buf)?,
                LineState::LastCr => match buf.get(self.pos) {
                    None => Some(Event::Partial),
                    Some(b'\n') => {
                        self.pos += 1;
                        Some(Event::End)
                    }
                    Some(_) => return Err(FieldError::BareCr.into()),
                },
            };
            if let Some(event) = event {
                return Ok(event);
            }
        }
    }

    /// Parses a line that is complete and valid, as nearly every one is. All other lines are left
    /// to the states below, which parse them from their start: only these bytes are looked at
    /// twice.
    #[inline]
    fn whole_line(&mut self, buf: &[u8], limits: &HeadLimits) -> Option<FieldSpan> {
        let line_at = self.pos;
        let name_end = class::skip_to_colon(buf, line_at);
        let name = &buf[line_at..name_end];
        let room = self.spans.len() < limits.field_count;
        if name.is_empty() || buf.get(name_end) != Some(&b':') || !room {
            return None;
        }
        let id = HeaderId::of(name);
        // A known name is a token. Other names that exceed a span are checked against a limit
        // below.
        if id == HeaderId::Other && !(name.len() < NAME_BYTES && class::all(name, class::TOKEN)) {
            return None;
        }
        let mut value_at = name_end + 1;
        while matches!(buf.get(value_at), Some(b' ' | b'\t')) {
            value_at += 1;
        }
        let line_end = class::skip_value(buf, value_at);
        let line_bytes = line_end - line_at;
        if buf.get(line_end..line_end + 2) != Some(b"\r\n") || line_bytes > limits.field_bytes {
            return None;
        }
        let span = FieldSpan {
            id,
            name_at: (line_at - self.base) as u32,
            name_len: name.len() as u16,
            value_at: (value_at - self.base) as u32,
            value_len: trimmed(&buf[value_at..line_end]) as u32,
        };
        self.pos = line_end + 2;
        self.spans.push(span);
        Some(span)
    }

    fn line_start(&mut self, buf: &[u8], limits: &HeadLimits) -> Result<Option<Event>, LineError> {
        match buf.get(self.pos) {
            None => return Ok(Some(Event::Partial)),
            Some(b'\r') => {
                self.pos += 1;
                self.state = LineState::LastCr;
            }
            Some(b'\n') if self.line_feeds != LineFeeds::Rejected => {
                self.bare_line_feed()?;
                self.pos += 1;
                return Ok(Some(Event::End));
            }
            Some(b' ' | b'\t') if self.spans.is_empty() => {
                return Err(FieldError::LeadingSpace.into());
            }
            Some(b' ' | b'\t') => return Err(FieldError::ObsFold.into()),
            Some(_) if self.spans.len() >= limits.field_count => {
                return Err(Limit::HeaderCount.into());
            }
            Some(_) => {
                self.line_at = self.pos;
                self.state = LineState::Name;
            }
        }
        Ok(None)
    }

    fn name(&mut self, buf: &[u8], limits: &HeadLimits) -> Result<Option<Event>, LineError> {
        let stop = self.line_at.saturating_add(limits.field_bytes.min(NAME_BYTES));
        self.pos = class::skip(&buf[..buf.len().min(stop)], self.pos, class::TOKEN);
        let Some(b) = buf.get(self.pos) else { return Ok(Some(Event::Partial)) };
        if self.pos >= stop {
            return Err(Limit::HeaderFieldBytes.into());
        }
        match b {
            b':' if self.pos == self.line_at => Err(FieldError::EmptyName.into()),
            b':' => {
                self.name_end = self.pos;
                self.pos += 1;
                self.state = LineState::BeforeValue;
                Ok(None)
            }
            b' ' | b'\t' => Err(FieldError::SpaceBeforeColon.into()),
            b'\n' if self.line_feeds == LineFeeds::Rejected => Err(FieldError::BareLf.into()),
            _ => Err(FieldError::Name.into()),
        }
    }

    fn before_value(&mut self, buf: &[u8], limits: &HeadLimits) -> Option<Event> {
        let stop = self.line_at.saturating_add(limits.field_bytes);
        while self.pos < stop && matches!(buf.get(self.pos), Some(b' ' | b'\t')) {
            self.pos += 1;
        }
        buf.get(self.pos).map_or(Some(Event::Partial), |_| {
            self.value_at = self.pos;
            self.state = LineState::Value;
            None
        })
    }

    /// Continues a value that is too long for fields other than surrogate keys. A separate
    /// function, since no other field reaches it.
    #[cold]
    fn long_value(&mut self, buf: &[u8], limits: &HeadLimits) -> Result<Option<Event>, LineError> {
        if limits.tag_bytes <= limits.field_bytes
            || !tags::is_tag_field(&buf[self.line_at..self.name_end])
        {
            return Err(Limit::HeaderFieldBytes.into());
        }
        self.value(buf, &HeadLimits { field_bytes: limits.tag_bytes, tag_bytes: 0, ..*limits })
    }

    fn value(&mut self, buf: &[u8], limits: &HeadLimits) -> Result<Option<Event>, LineError> {
        let stop = self.line_at.saturating_add(limits.field_bytes);
        self.pos = class::skip_value(&buf[..buf.len().min(stop)], self.pos);
        match buf.get(self.pos) {
            None => Ok(Some(Event::Partial)),
            Some(b'\r') => {
                self.value_len = trimmed(&buf[self.value_at..self.pos]);
                self.pos += 1;
                self.state = LineState::LineCr;
                Ok(None)
            }
            Some(_) if self.pos >= stop => self.long_value(buf, limits),
            Some(b'\n') => {
                self.bare_line_feed()?;
                self.value_len = trimmed(&buf[self.value_at..self.pos]);
                Ok(Some(self.field(buf)))
            }
            Some(_) => Err(FieldError::Control.into()),
        }
    }

    fn line_end(&mut self, buf: &[u8]) -> Result<Option<Event>, LineError> {
        match buf.get(self.pos) {
            None => Ok(Some(Event::Partial)),
            Some(b'\n') => Ok(Some(self.field(buf))),
            Some(_) => Err(FieldError::BareCr.into()),
        }
    }

    /// Returns the field of a line whose LF is next.
    fn field(&mut self, buf: &[u8]) -> Event {
        self.pos += 1;
        self.state = LineState::LineStart;
        let span = FieldSpan {
            id: HeaderId::of(&buf[self.line_at..self.name_end]),
            name_at: (self.line_at - self.base) as u32,
            name_len: (self.name_end - self.line_at) as u16,
            value_at: (self.value_at - self.base) as u32,
            value_len: self.value_len as u32,
        };
        self.spans.push(span);
        Event::Field(span)
    }
}

/// The length of `value` without white space at its end.
fn trimmed(value: &[u8]) -> usize {
    value.iter().rposition(|b| !matches!(b, b' ' | b'\t')).map_or(0, |last| last + 1)
}

/// The name of `span` in a section's bytes.
pub(crate) fn name<'a>(section: &'a [u8], span: &FieldSpan) -> &'a [u8] {
    let at = span.name_at as usize;
    &section[at..at + usize::from(span.name_len)]
}

/// The value of `span` in a section's bytes.
pub(crate) fn value<'a>(section: &'a [u8], span: &FieldSpan) -> &'a [u8] {
    let at = span.value_at as usize;
    &section[at..at + span.value_len as usize]
}
