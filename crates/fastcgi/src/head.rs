//! Head of a CGI response (RFC 3875 6) at the start of STDOUT.
//!
//! A script is not an HTTP peer, so its fields about framing and connection must never have effect:
//! Transfer-Encoding and hop-by-hop fields are dropped, as in nginx and Apache; Content-Length is
//! returned, so that the caller can compare it with the body.

use base::Limit;
use message::header::{FieldSpan, is_token, is_value};
use message::{HeaderId, Response, Status, Version, tags};

use crate::error::HeadError;

/// Longer than the name of any field with surrogate keys, with its colon.
const TAG_NAME_BYTES: usize = 32;

/// Limits on a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadLimits {
    /// Bytes of the whole head, including the blank line.
    pub head_bytes: usize,
    /// Bytes of one line without its end.
    pub field_bytes: usize,
    /// Lines.
    pub field_count: usize,
    /// Additional bytes for lines with surrogate keys; if 0, such a line is limited by
    /// `field_bytes`.
    pub tag_bytes: usize,
}

/// A complete head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Length of the head in the buffer; the rest is body.
    pub consumed: usize,
    /// The script's Content-Length.
    pub length: Option<u64>,
}

/// Incremental reader of one head; no byte is looked at twice.
#[derive(Clone, Debug, Default)]
pub struct HeadReader {
    /// The start of the line that has not ended yet.
    line_at: usize,
    /// The position up to which the line's end was searched.
    searched: usize,
    lines: usize,
    /// Bytes of complete lines with surrogate keys, without their ends.
    tagged: usize,
    spans: Vec<FieldSpan>,
    status: Option<(Status, u32, u32)>,
    length: Option<u64>,
    has_location: bool,
}

impl HeadReader {
    /// A reader at the start of STDOUT.
    pub fn new() -> Self {
        Self::default()
    }

    /// Continues the head. `buf` starts at the first byte of STDOUT; each call must pass the same
    /// bytes again, with more behind them. `None` while the head is incomplete. `response` is
    /// overwritten when it is complete.
    ///
    /// # Errors
    /// At the first invalid line: the response cannot be used.
    pub fn read(
        &mut self,
        buf: &[u8],
        limits: &HeadLimits,
        response: &mut Response,
    ) -> Result<Option<Head>, HeadError> {
        // Spans have 32 bits.
        let most = limits.head_bytes.saturating_add(limits.tag_bytes).min(u32::MAX as usize);
        let window = &buf[..buf.len().min(most)];
        loop {
            let line = &window[self.line_at..];
            let is_tags = line.len() > limits.field_bytes && has_tags(line);
            let open = if is_tags { line.len() } else { 0 };
            let field_bytes = if is_tags { limits.tag_bytes } else { limits.field_bytes };
            let field_bytes = field_bytes.max(limits.field_bytes);
            let Some(found) = memchr::memchr(b'\n', &window[self.searched..]) else {
                self.searched = window.len();
                // One byte beyond the limit: it may be the line's CR.
                return if line.len() > field_bytes + 1 {
                    Err(Limit::HeaderFieldBytes.into())
                } else if window.len() - self.tagged - open >= limits.head_bytes
                    || window.len() >= most
                {
                    Err(Limit::HeaderBytes.into())
                } else {
                    Ok(None)
                };
            };
            let line_end = self.searched + found;
            let line = &window[self.line_at..line_end];
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.len() > field_bytes {
                return Err(Limit::HeaderFieldBytes.into());
            }
            if has_tags(line) {
                self.tagged += line.len();
            }
            if line_end + 1 - self.tagged > limits.head_bytes {
                return Err(Limit::HeaderBytes.into());
            }
            if line.is_empty() {
                self.fill(window, response);
                return Ok(Some(Head { consumed: line_end + 1, length: self.length }));
            }
            if self.lines >= limits.field_count {
                return Err(Limit::HeaderCount.into());
            }
            self.lines += 1;
            self.line(line)?;
            self.line_at = line_end + 1;
            self.searched = self.line_at;
        }
    }

    /// Parses one line, without its end, that begins at `line_at`.
    fn line(&mut self, line: &[u8]) -> Result<(), HeadError> {
        let colon = memchr::memchr(b':', line).ok_or(HeadError::Line)?;
        let name = &line[..colon];
        let name_len = u16::try_from(name.len()).map_err(|_| Limit::HeaderFieldBytes)?;
        if !is_token(name) {
            return Err(HeadError::Line);
        }
        let rest = &line[colon + 1..];
        let value = rest.trim_ascii_start();
        let value_at = self.line_at + colon + 1 + (rest.len() - value.len());
        let value = value.trim_ascii_end();
        // Trimming treats a stray CR as a space.
        if !is_value(rest) {
            return Err(HeadError::Control);
        }
        let id = HeaderId::of(name);
        if name.eq_ignore_ascii_case(b"status") {
            return self.status_line(value, value_at);
        }
        if id == HeaderId::ContentLength {
            if self.length.is_some() {
                return Err(HeadError::ContentLength);
            }
            self.length = Some(content_length(value).ok_or(HeadError::ContentLength)?);
            return Ok(());
        }
        if id.is_hop_by_hop() {
            return Ok(());
        }
        self.has_location |= id == HeaderId::Location;
        self.spans.push(FieldSpan {
            id,
            name_at: self.line_at as u32,
            name_len,
            value_at: value_at as u32,
            value_len: value.len() as u32,
        });
        Ok(())
    }

    /// `3DIGIT [ SP reason ]`. Scripts may not send interim statuses.
    fn status_line(&mut self, value: &[u8], value_at: usize) -> Result<(), HeadError> {
        let code = match value {
            [a, b, c] | [a, b, c, b' ', ..] => [a, b, c],
            _ => return Err(HeadError::Status),
        };
        if self.status.is_some() || !code.iter().all(|b| b.is_ascii_digit()) {
            return Err(HeadError::Status);
        }
        let code = code.iter().fold(0, |n, b| n * 10 + u16::from(**b - b'0'));
        let status =
            Status::new(code).filter(|status| !status.is_interim()).ok_or(HeadError::Status)?;
        let reason_at = value.len().min(4);
        self.status =
            Some((status, (value_at + reason_at) as u32, (value.len() - reason_at) as u32));
        Ok(())
    }

    fn fill(&self, buf: &[u8], response: &mut Response) {
        response.version = Version::Http11;
        response.no_reason = false;
        response.reason.clear();
        response.status = match self.status {
            Some((status, at, len)) => {
                let (at, len) = (at as usize, len as usize);
                response.reason.extend_from_slice(buf[at..at + len].trim_ascii());
                status
            }
            // RFC 3875 6.2.3: a Location without Status is a redirect.
            None if self.has_location => Status::new(302).unwrap_or(Status::OK),
            None => Status::OK,
        };
        response.headers.clear();
        for span in &self.spans {
            response.headers.push_span(*span);
        }
        response.headers.adopt(&buf[..self.line_at]);
    }
}

/// Returns true if a line, or its start, is that of a field with surrogate keys.
fn has_tags(line: &[u8]) -> bool {
    let begin = &line[..line.len().min(TAG_NAME_BYTES)];
    memchr::memchr(b':', begin).is_some_and(|colon| tags::is_tag_field(&begin[..colon]))
}

/// `1*DIGIT` up to 2^63-1 (RFC 9110 8.6).
fn content_length(value: &[u8]) -> Option<u64> {
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let length: u64 = std::str::from_utf8(value).ok()?.parse().ok()?;
    (length <= i64::MAX as u64).then_some(length)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIMITS: HeadLimits =
        HeadLimits { head_bytes: 200, field_bytes: 60, field_count: 5, tag_bytes: 0 };

    type Fields = Vec<(String, String)>;

    fn read(bytes: &[u8], step: usize) -> Result<Option<(Head, Response)>, HeadError> {
        read_within(&LIMITS, bytes, step)
    }

    fn read_within(
        limits: &HeadLimits,
        bytes: &[u8],
        step: usize,
    ) -> Result<Option<(Head, Response)>, HeadError> {
        let mut reader = HeadReader::new();
        let mut response = Response::new(Status::OK);
        let mut end = 0;
        loop {
            end = (end + step).min(bytes.len());
            match reader.read(&bytes[..end], limits, &mut response)? {
                Some(head) => return Ok(Some((head, response))),
                None if end == bytes.len() => return Ok(None),
                None => {}
            }
        }
    }

    fn good(bytes: &str) -> (u16, Fields, Head) {
        let (head, response) =
            read(bytes.as_bytes(), usize::MAX / 2).expect("good").expect("whole");
        let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
        let fields = response.headers.iter().map(|f| (text(f.name), text(f.value))).collect();
        (response.status.code(), fields, head)
    }

    fn field(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn heads_end_with_a_blank_line_of_either_kind() {
        for head in [
            "Content-type: text/html; charset=UTF-8\r\nX-A:b\r\n\r\n",
            "Content-type:\ttext/html; charset=UTF-8 \nX-A: b\n\n",
            "Content-type: text/html; charset=UTF-8\r\nX-A: b\n\r\n",
        ] {
            let (status, fields, found) = good(&format!("{head}body"));
            assert_eq!((status, found), (200, Head { consumed: head.len(), length: None }));
            assert_eq!(
                fields,
                [field("Content-type", "text/html; charset=UTF-8"), field("X-A", "b")]
            );
        }
    }

    #[test]
    fn status_is_taken_from_its_field_and_not_passed_on() {
        let (status, fields, _) = good("status: 404 Not here\r\nX: y\r\n\r\n");
        assert_eq!((status, fields), (404, vec![field("X", "y")]));
        assert_eq!(good("Status: 201\n\n").0, 201);
        assert_eq!(good("Location: /elsewhere\n\n").0, 302);
        assert_eq!(good("Location: /elsewhere\nStatus: 201 Created\n\n").0, 201);
        assert_eq!(good("\n").0, 200);
    }

    #[test]
    fn the_reason_is_kept() {
        let (_, response) =
            read(b"Status: 404 Gone fishing\n\n", 99).expect("good").expect("whole");
        assert_eq!(response.reason, b"Gone fishing");
    }

    #[test]
    fn surrogate_keys_have_a_limit_of_their_own() {
        let limits = HeadLimits { tag_bytes: 500, ..LIMITS };
        let line = |name: &str, bytes: usize| format!("{name}: {}\r\n", "y".repeat(bytes));
        let field = |name| line(name, 50);
        for (head, error) in [
            (line("xkey", 450) + &field("X-A") + &field("X-B"), None),
            (line("Cache-Tags", 200) + &line("xkey", 200) + &field("X-A") + &field("X-B"), None),
            (line("xkey", 550), Some(Limit::HeaderFieldBytes)),
            (line("xkex", 100), Some(Limit::HeaderFieldBytes)),
            (line("xkey", 300) + &line("xkey", 300) + &line("xkey", 300), Some(Limit::HeaderBytes)),
            (
                line("xkey", 100) + &field("X-A") + &field("X-B") + &field("X-C") + &field("X-D"),
                Some(Limit::HeaderBytes),
            ),
        ] {
            let head = head + "\r\n";
            for step in [1, 7, 1000] {
                let read = read_within(&limits, head.as_bytes(), step);
                assert_eq!(read.err(), error.map(HeadError::from), "{head} by {step}");
            }
        }
    }

    #[test]
    fn framing_is_not_a_scripts_business() {
        let (_, fields, head) =
            good("Transfer-Encoding: chunked\nConnection: close\nContent-Length: 12\nX: y\n\n");
        assert_eq!((fields, head.length), (vec![field("X", "y")], Some(12)));
    }

    #[test]
    fn what_could_be_read_in_two_ways_is_refused() {
        let long = format!("X: {}\n\n", "y".repeat(58));
        let many = "X: y\n".repeat(6);
        let large = format!("X: {}\n", "y".repeat(50)).repeat(4);
        for (bytes, error) in [
            ("HTTP/1.1 200 OK\r\n\r\n", HeadError::Line),
            ("<html>\n", HeadError::Line),
            ("X : y\n\n", HeadError::Line),
            (": y\n\n", HeadError::Line),
            ("X: y\n z\n\n", HeadError::Line),
            ("X: y\n\tz: a\n\n", HeadError::Line),
            ("X: a\rb\n\n", HeadError::Control),
            ("X: a\r\r\n\n", HeadError::Control),
            ("X: a\0b\n\n", HeadError::Control),
            ("X:\x0by\n\n", HeadError::Control),
            ("Status: 200\nStatus: 200\n\n", HeadError::Status),
            ("Status: 100 Continue\n\n", HeadError::Status),
            ("Status: OK\n\n", HeadError::Status),
            ("Status: 2000\n\n", HeadError::Status),
            ("Status:\n\n", HeadError::Status),
            ("Content-Length: 1\nContent-Length: 1\n\n", HeadError::ContentLength),
            ("Content-Length: +1\n\n", HeadError::ContentLength),
            ("Content-Length: 9223372036854775808\n\n", HeadError::ContentLength),
            ("Content-Length:\n\n", HeadError::ContentLength),
            (&long, HeadError::Limit(Limit::HeaderFieldBytes)),
            (&many, HeadError::Limit(Limit::HeaderCount)),
            (&large, HeadError::Limit(Limit::HeaderBytes)),
        ] {
            for step in [1, 2, usize::MAX / 2] {
                assert_eq!(read(bytes.as_bytes(), step).err(), Some(error), "{bytes:?} {step}");
            }
        }
    }

    #[test]
    fn a_line_of_just_the_allowed_length_is_taken_in_both_kinds() {
        for end in ["\n\n", "\r\n\r\n"] {
            let head = format!("X: {}{end}", "y".repeat(57));
            for step in [1, 99] {
                assert!(read(head.as_bytes(), step).is_ok_and(|head| head.is_some()), "{step}");
            }
        }
    }

    proptest! {
        #[test]
        fn the_split_does_not_matter(
            text in "(Status: [0-9]{2,3}|[A-Za-z -]{0,9}:?[ -~\t\r]{0,70}|Content-Length: [0-9]{0,3})\
                     (\r?\n){0,2}[A-C:]{0,4}\n{0,2}",
            step in 1_usize..30,
        ) {
            let bytes = text.as_bytes();
            let show = |result: Result<Option<(Head, Response)>, HeadError>| {
                result.map(|found| found.map(|(head, r)| (head, format!("{r:?}"))))
            };
            prop_assert_eq!(show(read(bytes, step)), show(read(bytes, bytes.len().max(1))));
        }
    }
}
