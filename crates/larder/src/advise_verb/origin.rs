//! An origin that is asked what a log does not tell: few requests, one after the other, at a
//! bounded rate, with GET alone.

use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use advise::{BodyPrint, Question, Visit};
use base::{HashSeed, Limits};
use fingerprint::{BodyFingerprint, BodyHasher};
use h1::{HeadLimits, ReadProgress, ResponseHead, ResponseReader};
use message::{Framing, HeaderId, Method, Response, Status};

/// Time for one exchange.
const PATIENCE: Duration = Duration::from_secs(10);
/// Largest response that is read; of a larger one, nothing is known.
const RESPONSE_MAX: u64 = 8 << 20;
/// Failures in a row after which the origin is left alone.
const FAILURES_MAX: usize = 3;
/// Any fixed seed: fingerprints are compared within one run.
const SEED: u64 = 0;

/// The address in an origin's URL, `http://host:port`.
pub(super) fn address(url: &str) -> Result<String, String> {
    let rest = url.strip_prefix("http://").map(|rest| rest.trim_end_matches('/'));
    let rest = rest.filter(|rest| !rest.is_empty() && !rest.contains('/'));
    let rest = rest.ok_or_else(|| {
        format!("`{url}` is not the URL of an origin: it is http://HOST or http://HOST:PORT")
    })?;
    let has_port = rest.rsplit(':').next().is_some_and(|port| port.parse::<u16>().is_ok());
    Ok(if has_port { rest.to_owned() } else { format!("{rest}:80") })
}

/// Asks the questions, `rate` a second. Returns the answers as visits, and the number of failures.
pub(super) fn ask(address: &str, questions: &[Question], rate: u32) -> Result<Vec<Visit>, String> {
    let gap = Duration::from_secs(1) / rate.max(1);
    let (mut answers, mut failures) = (Vec::new(), 0);
    for question in questions {
        let began = Instant::now();
        match exchange(address, question) {
            Ok(visit) => {
                failures = 0;
                answers.push(visit);
            }
            Err(why) => {
                failures += 1;
                if failures == FAILURES_MAX {
                    return Err(format!("larder: the origin at {address} does not answer: {why}"));
                }
            }
        }
        thread::sleep(gap.saturating_sub(began.elapsed()));
    }
    Ok(answers)
}

fn exchange(address: &str, question: &Question) -> Result<Visit, String> {
    let failed = |error: std::io::Error| error.to_string();
    let found = address.to_socket_addrs().map_err(failed)?.next().ok_or("it has no address")?;
    let mut stream = TcpStream::connect_timeout(&found, PATIENCE).map_err(failed)?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
    stream.set_write_timeout(Some(PATIENCE)).map_err(failed)?;
    let host = if question.host.is_empty() { address } else { &question.host };
    // A client of HTTP/1.0 gets a body without chunks, up to the end of the connection.
    let mut request = b"GET ".to_vec();
    request.extend_from_slice(&question.target);
    let fields = format!(
        " HTTP/1.0\r\nHost: {host}\r\nUser-Agent: larder-advise\r\nAccept: */*\r\n\
         Connection: close\r\n\r\n"
    );
    request.extend_from_slice(fields.as_bytes());
    stream.write_all(&request).map_err(failed)?;
    let bytes = receive(stream).map_err(failed)?;
    read(&bytes, question).ok_or_else(|| "its response cannot be read".to_owned())
}

/// Receives a response up to its declared length, or the end of the connection.
fn receive(mut stream: impl Read) -> std::io::Result<Vec<u8>> {
    let (mut bytes, mut piece) = (Vec::new(), [0; 16 * 1024]);
    loop {
        let count = stream.read(&mut piece)?;
        bytes.extend_from_slice(&piece[..count]);
        let is_whole = head(&bytes).is_some_and(|(_, head)| {
            let body = (bytes.len() - head.consumed) as u64;
            head.framing.length().is_some_and(|length| body >= length)
        });
        if count == 0 || is_whole || bytes.len() as u64 > RESPONSE_MAX {
            return Ok(bytes);
        }
    }
}

/// The head at the start of `bytes`, if it is whole.
fn head(bytes: &[u8]) -> Option<(Response, ResponseHead)> {
    let mut response = Response::new(Status::OK);
    let limits = HeadLimits::from(&Limits::default());
    match ResponseReader::new().read(bytes, &limits, &Method::Get, &mut response) {
        Ok(ReadProgress::Complete(head)) => Some((response, head)),
        _ => None,
    }
}

/// The answer in a complete response.
fn read(bytes: &[u8], question: &Question) -> Option<Visit> {
    let (response, head) = head(bytes)?;
    let body = &bytes[head.consumed..];
    let is_whole = match head.framing {
        Framing::None => body.is_empty(),
        Framing::Length(length) => body.len() as u64 == length,
        Framing::UntilClose => bytes.len() as u64 <= RESPONSE_MAX,
        Framing::Chunked => false,
    };
    let value = |id| response.headers.value(id).unwrap_or_default();
    let [kind, coding] = [HeaderId::ContentType, HeaderId::ContentEncoding].map(value);
    // Equal bodies of other heads are no equal responses.
    let status = response.status.code().to_be_bytes();
    let parts = [&status[..], value(HeaderId::Location), coding, kind];
    let mut hasher = BodyHasher::new(HashSeed::from_u64(SEED), &parts);
    hasher.push(body);
    let BodyFingerprint(hash) = hasher.finish();
    let print = BodyPrint { exact: hash };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let name = |name: &[u8]| String::from_utf8_lossy(name).to_ascii_lowercase();
    let fields = response.headers.iter().map(|field| (name(field.name), field.value.to_vec()));
    let (status, length) = (response.status.code(), body.len() as u64);
    let answer =
        || question.answered(now.as_millis() as u64, status, fields.collect(), length, print);
    is_whole.then(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_a_host_with_or_without_a_port() {
        assert_eq!(address("http://127.0.0.1:8080/"), Ok("127.0.0.1:8080".to_owned()));
        assert_eq!(address("http://a.test"), Ok("a.test:80".to_owned()));
        for wrong in ["https://a.test", "a.test", "http://", "http://a.test/x"] {
            assert!(address(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn responses_that_are_not_whole_are_no_answers() {
        let question = Question { host: "a".to_owned(), target: b"/".to_vec() };
        let of = |text: &str| read(text.as_bytes(), &question);
        assert!(of("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab").is_some());
        assert!(of("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab").is_none());
        assert!(of("HTTP/1.1 200 OK\r\nEtag: \"x\"\r\n\r\nab").is_some());
        assert!(of("HTTP/1.1 200 OK\r\n").is_none());
    }

    #[test]
    fn redirects_to_other_places_are_no_equal_responses() {
        let question = Question { host: "a".to_owned(), target: b"/".to_vec() };
        let of = |place: &str| {
            let text =
                format!("HTTP/1.1 302 Found\r\nLocation: {place}\r\nContent-Length: 0\r\n\r\n");
            read(text.as_bytes(), &question).and_then(|visit| visit.body).expect("an answer").exact
        };
        assert!(of("/a") == of("/a") && of("/a") != of("/b"));
    }
}
