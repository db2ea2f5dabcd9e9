//! Support for tests: passes a connection's bytes to the readers in pieces.

use base::Limits;
use h1::{
    BodyError, BodyReader, HeadLimits, ReadProgress, RequestError, RequestReader, ResponseError,
    ResponseReader,
};
use message::{Framing, Method, Request, Response, Scheme, Status};

/// Positions at which the bytes are cut.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cuts<'a> {
    /// No cut.
    None,
    /// A cut behind every byte.
    EveryByte,
    /// A cut between CR and LF.
    AfterCr,
    /// A cut behind each line.
    AfterLf,
    /// Cuts at these offsets, in order.
    At(&'a [usize]),
}

impl Cuts<'_> {
    /// The number of `bytes` received after each piece.
    fn arrivals(self, bytes: &[u8]) -> Vec<usize> {
        let behind = |byte: u8| (1..bytes.len()).filter(|at| bytes[at - 1] == byte).collect();
        let mut arrivals: Vec<usize> = match self {
            Self::None => Vec::new(),
            Self::EveryByte => (1..bytes.len()).collect(),
            Self::AfterCr => behind(b'\r'),
            Self::AfterLf => behind(b'\n'),
            Self::At(offsets) => offsets.iter().copied().filter(|at| *at <= bytes.len()).collect(),
        };
        arrivals.push(bytes.len());
        arrivals
    }
}

/// The state in which a connection's bytes ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended<E = RequestError> {
    /// Between two messages.
    Clean,
    /// Within a head.
    InHead,
    /// Within a body.
    InBody(Result<(), BodyError>),
    /// With a rejected head.
    Head(E),
    /// With a rejected body.
    Body(BodyError),
}

/// One message: its head as text, and its body.
pub(crate) type Seen = (String, Vec<u8>);

/// The messages read from a connection, and its end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Connection<E = RequestError> {
    pub(crate) messages: Vec<Seen>,
    pub(crate) ended: Ended<E>,
}

/// The parsed request, as text.
pub(crate) fn describe(request: &Request) -> String {
    let fields: Vec<String> = request
        .headers
        .iter()
        .map(|f| format!("{}={}", f.name.escape_ascii(), f.value.escape_ascii()))
        .collect();
    format!(
        "{} {:?} {:?} {} {:?} {} {fields:?} {:?} {} {} {:?}",
        request.method,
        request.version,
        request.scheme,
        request.host.escape_ascii(),
        request.port,
        request.target.escape_ascii(),
        request.framing,
        request.keep_alive,
        request.expect_continue,
        request.upgrade,
    )
}

/// Reads requests until the bytes are used up or rejected.
pub(crate) fn read_requests(bytes: &[u8], cuts: Cuts<'_>) -> Connection {
    let limits = HeadLimits::from(&Limits::default());
    let mut reader = RequestReader::new();
    let mut request = Request::new();
    read(bytes, cuts, |buf| {
        let ReadProgress::Complete(len) = reader.read(buf, &limits, Scheme::Http, &mut request)?
        else {
            return Ok(None);
        };
        let head = describe(&request);
        let body = BodyReader::new(request.framing, 8192);
        request.clear();
        Ok(Some((len, head, body)))
    })
}

/// Reads responses to `method` until the bytes are used up or rejected.
pub(crate) fn read_responses(
    bytes: &[u8],
    cuts: Cuts<'_>,
    method: &Method,
) -> Connection<ResponseError> {
    read_responses_of(ResponseReader::new(), bytes, cuts, method)
}

/// Reads responses with a reader that accepts LF alone as the end of a line.
pub(crate) fn read_lenient(
    bytes: &[u8],
    cuts: Cuts<'_>,
    method: &Method,
) -> Connection<ResponseError> {
    let mut reader = ResponseReader::new();
    reader.take_line_feeds(true);
    read_responses_of(reader, bytes, cuts, method)
}

fn read_responses_of(
    mut reader: ResponseReader,
    bytes: &[u8],
    cuts: Cuts<'_>,
    method: &Method,
) -> Connection<ResponseError> {
    let limits = HeadLimits::from(&Limits::default());
    let mut response = Response::new(Status::OK);
    read(bytes, cuts, |buf| {
        let ReadProgress::Complete(head) = reader.read(buf, &limits, method, &mut response)? else {
            return Ok(None);
        };
        let said = format!("{head:?} {response:?}");
        Ok(Some((head.consumed, said, BodyReader::for_response(head.framing, 8192))))
    })
}

/// A complete head of a message: its length, its text, and the reader of its body.
type Head = Option<(usize, String, BodyReader)>;

fn read<E>(
    bytes: &[u8],
    cuts: Cuts<'_>,
    mut head: impl FnMut(&[u8]) -> Result<Head, E>,
) -> Connection<E> {
    let mut messages: Vec<Seen> = Vec::new();
    let mut body = BodyReader::new(Framing::None, 0);
    let mut at = 0;
    for arrived in cuts.arrivals(bytes) {
        while at < arrived {
            if body.is_done() {
                match head(&bytes[at..arrived]) {
                    Err(error) => return Connection { messages, ended: Ended::Head(error) },
                    Ok(None) => break,
                    Ok(Some((len, said, next))) => {
                        at += len;
                        messages.push((said, Vec::new()));
                        body = next;
                    }
                }
                continue;
            }
            match body.read(&bytes[at..arrived]) {
                Err(error) => return Connection { messages, ended: Ended::Body(error) },
                Ok(step) => {
                    let seen = &mut messages.last_mut().expect("a body follows its head").1;
                    seen.extend_from_slice(&bytes[at..arrived][step.data]);
                    assert_eq!(step.done, body.is_done());
                    at += step.consumed;
                }
            }
        }
    }
    let ended = match body.at_eof() {
        Ok(()) if body.is_done() && at < bytes.len() => Ended::InHead,
        Ok(()) if body.is_done() => Ended::Clean,
        other => Ended::InBody(other),
    };
    Connection { messages, ended }
}
