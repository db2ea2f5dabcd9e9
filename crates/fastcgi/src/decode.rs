//! Decoder of records: separates STDOUT and STDERR, and finds the end of the request.

use std::ops::Range;

use crate::error::RecordError;
use crate::wire;

/// The most management records in one response; none is expected.
const MANAGEMENT_RECORDS: u8 = 8;

/// The result of one [`RecordReader::read`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordStep {
    /// Bytes consumed; the caller continues behind them.
    pub consumed: usize,
    /// The event of these bytes.
    pub event: Event,
}

/// An event in the stream of records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Everything was consumed; more bytes must come.
    More,
    /// These bytes of the buffer, one at least, are part of the response: head and body.
    Stdout(Range<usize>),
    /// These bytes of the buffer, one at least, are for the log.
    Stderr(Range<usize>),
    /// The request has ended. The connection sends nothing until the next one.
    End(RequestEnd),
}

/// The end of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestEnd {
    /// The application's exit status, whose meaning depends on the application; nginx ignores it.
    pub app_status: u32,
    /// The result of the request.
    pub protocol: ProtocolStatus,
}

/// The result of a request as the application server reports it (FastCGI 1.0, 5.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProtocolStatus {
    /// The request was answered.
    Complete,
    /// The connection already has a request, and accepts no second one.
    CannotMultiplex,
    /// The application is overloaded.
    Overloaded,
    /// The application is not a responder.
    UnknownRole,
    /// A value that is not in the specification.
    Other(u8),
}

impl ProtocolStatus {
    const fn of(byte: u8) -> Self {
        match byte {
            0 => Self::Complete,
            1 => Self::CannotMultiplex,
            2 => Self::Overloaded,
            3 => Self::UnknownRole,
            other => Self::Other(other),
        }
    }
}

/// Decoder of the records of one response. Consumed bytes must not be passed to it again.
#[derive(Clone, Debug, Default)]
pub struct RecordReader {
    state: State,
    /// The part of the header, or of END_REQUEST's content, received so far.
    held: [u8; wire::HEADER_BYTES],
    have: usize,
    padding: u8,
    stdout_closed: bool,
    end: Option<RequestEnd>,
    management: u8,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Header,
    Stdout(u16),
    Stderr(u16),
    /// Content that is skipped.
    Skip(u16),
    EndRequest,
    Padding(u8),
    Done(RequestEnd),
    Failed(RecordError),
}

impl RecordReader {
    /// A decoder at the start of a response.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns true if the application has closed STDOUT. Many applications only end the request.
    pub fn stdout_closed(&self) -> bool {
        self.stdout_closed
    }

    /// Consumes `buf` up to the end of the next run of data or of `buf`. After [`Event::End`] it
    /// consumes nothing.
    ///
    /// # Errors
    /// If the records are not a response to one request. Later calls return the same error.
    pub fn read(&mut self, buf: &[u8]) -> Result<RecordStep, RecordError> {
        let mut at = 0;
        loop {
            match self.state {
                State::Done(end) => return Ok(RecordStep { consumed: at, event: Event::End(end) }),
                State::Failed(error) => return Err(error),
                State::Padding(0) => {
                    self.have = 0;
                    self.state = self.end.map_or(State::Header, State::Done);
                    continue;
                }
                State::Stdout(0) | State::Stderr(0) | State::Skip(0) => {
                    self.state = State::Padding(self.padding);
                    continue;
                }
                _ if at == buf.len() => return Ok(RecordStep { consumed: at, event: Event::More }),
                _ => {}
            }
            let left = buf.len() - at;
            match self.state {
                State::Stdout(length) => {
                    let taken = usize::from(length).min(left);
                    self.state = State::Stdout(length - taken as u16);
                    return Ok(data(at, taken, Event::Stdout));
                }
                State::Stderr(length) => {
                    let taken = usize::from(length).min(left);
                    self.state = State::Stderr(length - taken as u16);
                    return Ok(data(at, taken, Event::Stderr));
                }
                State::Skip(length) => {
                    let taken = usize::from(length).min(left);
                    self.state = State::Skip(length - taken as u16);
                    at += taken;
                }
                State::Padding(length) => {
                    let taken = usize::from(length).min(left);
                    self.state = State::Padding(length - taken as u8);
                    at += taken;
                }
                _ => {
                    let taken = (wire::HEADER_BYTES - self.have).min(left);
                    self.held[self.have..self.have + taken].copy_from_slice(&buf[at..at + taken]);
                    self.have += taken;
                    at += taken;
                    if self.have == wire::HEADER_BYTES {
                        self.have = 0;
                        self.state = match self.state {
                            State::EndRequest => self.end_request(),
                            _ => self.header().unwrap_or_else(State::Failed),
                        };
                    }
                }
            }
        }
    }

    fn header(&mut self) -> Result<State, RecordError> {
        let [version, kind, id_high, id_low, high, low, padding, _] = self.held;
        let id = u16::from_be_bytes([id_high, id_low]);
        let length = u16::from_be_bytes([high, low]);
        self.padding = padding;
        if version != wire::VERSION {
            return Err(RecordError::Version(version));
        }
        match kind {
            wire::STDOUT | wire::STDERR | wire::END_REQUEST if id != wire::REQUEST_ID => {
                Err(RecordError::RequestId(id))
            }
            wire::STDOUT if self.stdout_closed && length > 0 => Err(RecordError::AfterStdout),
            wire::STDOUT => {
                self.stdout_closed |= length == 0;
                Ok(State::Stdout(length))
            }
            wire::STDERR => Ok(State::Stderr(length)),
            wire::END_REQUEST if usize::from(length) != wire::HEADER_BYTES => {
                Err(RecordError::EndRequest)
            }
            wire::END_REQUEST => Ok(State::EndRequest),
            wire::GET_VALUES_RESULT | wire::UNKNOWN_TYPE if id != wire::NULL_ID => {
                Err(RecordError::RequestId(id))
            }
            wire::GET_VALUES_RESULT | wire::UNKNOWN_TYPE => {
                self.management += 1;
                if self.management > MANAGEMENT_RECORDS {
                    return Err(RecordError::Management);
                }
                Ok(State::Skip(length))
            }
            other => Err(RecordError::Kind(other)),
        }
    }

    fn end_request(&mut self) -> State {
        let [a, b, c, d, protocol, ..] = self.held;
        self.end = Some(RequestEnd {
            app_status: u32::from_be_bytes([a, b, c, d]),
            protocol: ProtocolStatus::of(protocol),
        });
        State::Padding(self.padding)
    }
}

fn data(at: usize, taken: usize, event: fn(Range<usize>) -> Event) -> RecordStep {
    RecordStep { consumed: at + taken, event: event(at..at + taken) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn record(kind: u8, id: u16, content: &[u8], padding: u8) -> Vec<u8> {
        let mut bytes = vec![1, kind];
        bytes.extend(id.to_be_bytes());
        bytes.extend((content.len() as u16).to_be_bytes());
        bytes.extend([padding, 0]);
        bytes.extend(content);
        bytes.extend(std::iter::repeat_n(0xaa, usize::from(padding)));
        bytes
    }

    fn end(app_status: u32, protocol: u8) -> Vec<u8> {
        let mut content = app_status.to_be_bytes().to_vec();
        content.extend([protocol, 0, 0, 0]);
        record(3, 1, &content, 0)
    }

    /// The content of all records.
    #[derive(Debug, Default, PartialEq, Eq)]
    struct Heard {
        stdout: Vec<u8>,
        stderr: Vec<u8>,
        end: Option<RequestEnd>,
        left: usize,
        error: Option<RecordError>,
    }

    /// Decodes `bytes` in pieces of `size`.
    fn hear(bytes: &[u8], size: usize) -> Heard {
        let mut reader = RecordReader::new();
        let mut heard = Heard::default();
        let mut used = 0;
        'pieces: for piece in bytes.chunks(size) {
            let mut at = 0;
            loop {
                let rest = &piece[at..];
                let step = match reader.read(rest) {
                    Ok(step) => step,
                    Err(error) => {
                        heard.error = Some(error);
                        assert_eq!(reader.read(b"x"), Err(error));
                        return heard;
                    }
                };
                at += step.consumed;
                used += step.consumed;
                match step.event {
                    Event::More => {
                        assert_eq!(at, piece.len());
                        break;
                    }
                    Event::Stdout(range) => heard.stdout.extend(&rest[range]),
                    Event::Stderr(range) => heard.stderr.extend(&rest[range]),
                    Event::End(end) => {
                        heard.end = Some(end);
                        break 'pieces;
                    }
                }
            }
        }
        // The end may need no further byte.
        if let Ok(RecordStep { event: Event::End(end), .. }) = reader.read(b"") {
            heard.end = Some(end);
        }
        heard.left = bytes.len() - used;
        heard
    }

    #[test]
    fn streams_are_put_together_whatever_the_padding_and_the_split() {
        let mut bytes = record(6, 1, b"Status: 200\r\n", 3);
        bytes.extend(record(7, 1, b"warning", 255));
        bytes.extend(record(10, 0, b"values", 1));
        bytes.extend(record(6, 1, b"\r\nbody", 0));
        bytes.extend(record(6, 1, b"", 8));
        bytes.extend(record(7, 1, b"", 0));
        bytes.extend(end(7, 0));
        bytes.extend(b"more");
        for size in 1..=bytes.len() {
            let heard = hear(&bytes, size);
            assert_eq!(heard.stdout, b"Status: 200\r\n\r\nbody", "{size}");
            assert_eq!(heard.stderr, b"warning");
            assert_eq!(
                heard.end,
                Some(RequestEnd { app_status: 7, protocol: ProtocolStatus::Complete })
            );
            assert_eq!((heard.left, heard.error), (4, None), "{size}");
        }
    }

    #[test]
    fn the_largest_record_with_the_most_padding_is_read_whole() {
        let content = vec![b'x'; usize::from(u16::MAX)];
        for padding in [0, 1, 254, 255] {
            let mut bytes = record(6, 1, &content, padding);
            bytes.extend(end(0, 0));
            let heard = hear(&bytes, 1 << 14);
            assert_eq!((heard.stdout.len(), heard.left), (content.len(), 0));
            assert!(heard.end.is_some(), "{padding}");
        }
    }

    #[test]
    fn padding_of_the_last_record_belongs_to_it() {
        let mut bytes = end(0, 2);
        bytes[6] = 2;
        let heard = hear(&bytes, 64);
        assert_eq!(heard.end, None);
        bytes.extend([0, 0]);
        let heard = hear(&bytes, 64);
        assert_eq!(heard.end.map(|end| end.protocol), Some(ProtocolStatus::Overloaded));
        assert_eq!(heard.left, 0);
    }

    #[test]
    fn what_no_application_sends_is_refused() {
        let closed = [record(6, 1, b"", 0), record(6, 1, b"x", 0)].concat();
        let asked: Vec<u8> = (0..9).flat_map(|_| record(11, 0, &[0; 8], 0)).collect();
        let mut other_version = record(6, 1, b"x", 0);
        other_version[0] = 2;
        for (bytes, error) in [
            (other_version, RecordError::Version(2)),
            (record(6, 2, b"x", 0), RecordError::RequestId(2)),
            (record(7, 0, b"x", 0), RecordError::RequestId(0)),
            (record(3, 0, &[0; 8], 0), RecordError::RequestId(0)),
            (record(3, 1, &[0; 9], 0), RecordError::EndRequest),
            (record(3, 1, b"", 0), RecordError::EndRequest),
            (record(1, 1, &[0; 8], 0), RecordError::Kind(1)),
            (record(12, 0, b"", 0), RecordError::Kind(12)),
            (record(10, 1, b"", 0), RecordError::RequestId(1)),
            (b"HTTP/1.1 200 OK\r\n".to_vec(), RecordError::Version(b'H')),
            (closed, RecordError::AfterStdout),
            (asked, RecordError::Management),
        ] {
            for size in [1, bytes.len()] {
                assert_eq!(hear(&bytes, size).error, Some(error));
            }
        }
    }

    proptest! {
        #[test]
        fn the_split_does_not_matter(
            bytes in prop::collection::vec(prop_oneof![0_u8..12, any::<u8>()], 0..400),
            size in 1_usize..40,
        ) {
            prop_assert_eq!(hear(&bytes, size), hear(&bytes, bytes.len().max(1)));
        }

        #[test]
        fn what_was_sent_is_heard(
            parts in prop::collection::vec(
                (any::<bool>(), prop::collection::vec(any::<u8>(), 1..300), any::<u8>()), 0..20),
            size in 1_usize..700,
        ) {
            let (mut stdout, mut stderr, mut bytes) = (Vec::new(), Vec::new(), Vec::new());
            for (is_error, content, padding) in &parts {
                if *is_error { &mut stderr } else { &mut stdout }.extend(content);
                bytes.extend(record(if *is_error { 7 } else { 6 }, 1, content, *padding));
            }
            bytes.extend(end(0, 0));
            let heard = hear(&bytes, size);
            prop_assert_eq!((heard.stdout, heard.stderr, heard.left), (stdout, stderr, 0));
            prop_assert!(heard.end.is_some());
        }
    }
}
