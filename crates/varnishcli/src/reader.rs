//! Reader of requests from a connection's bytes: lines and here-documents. It never touches the
//! connection.

use std::fmt;

use crate::words::{self, SyntaxError, is_blank};

/// Error: a request exceeds the limit. The end of such a request is unknown, so the connection must
/// be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OversizedRequest;

impl fmt::Display for OversizedRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Request too long")
    }
}

impl std::error::Error for OversizedRequest {}

/// A here-document whose end has not been received yet.
#[derive(Clone, Debug)]
struct HereDocument {
    /// Words of the line before the here-document.
    words: Vec<Vec<u8>>,
    /// The line that ends the here-document.
    end: Vec<u8>,
    text: Vec<u8>,
}

/// Reader of requests: [`feed`](Self::feed) it bytes, then call [`next`](Self::next) until it
/// returns `None`.
#[derive(Clone, Debug)]
pub struct Reader {
    limit: usize,
    buffer: Vec<u8>,
    /// Bytes of `buffer` that have been returned as requests.
    taken: usize,
    /// Bytes of `buffer` that have been searched for a line end.
    looked_at: usize,
    here: Option<HereDocument>,
}

/// The words of a request, or the reason why the line cannot be split.
pub type Words = Result<Vec<Vec<u8>>, SyntaxError>;

impl Reader {
    /// A reader for requests of at most `limit` bytes, here-documents included.
    pub fn new(limit: usize) -> Self {
        Self { limit, buffer: Vec::new(), taken: 0, looked_at: 0, here: None }
    }

    /// Changes the limit of the requests to come to `limit` bytes.
    pub fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// Appends received bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.taken);
        self.looked_at -= self.taken;
        self.taken = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// The next complete request; blank lines are skipped. With `here_documents`, a line may end
    /// with `<<` and a delimiter; the text up to the line that equals the delimiter is then the
    /// last argument. Varnish accepts here-documents only from authenticated clients.
    ///
    /// # Errors
    /// If a request exceeds the limit.
    pub fn next(&mut self, here_documents: bool) -> Result<Option<Words>, OversizedRequest> {
        loop {
            let before = self.here.as_ref().map_or(0, |here| here.text.len());
            let Some(line) = self.line() else {
                let waiting = self.buffer.len() - self.taken;
                return if before + waiting > self.limit {
                    Err(OversizedRequest)
                } else {
                    Ok(None)
                };
            };
            if before + line.len() > self.limit {
                return Err(OversizedRequest);
            }
            let line = self.buffer[line].to_vec();
            if let Some(here) = &mut self.here {
                // Telnet ends lines with CR LF.
                if line.strip_suffix(b"\r").unwrap_or(&line) != here.end {
                    here.text.extend_from_slice(&line);
                    here.text.push(b'\n');
                    continue;
                }
                let mut words = std::mem::take(&mut here.words);
                words.push(std::mem::take(&mut here.text));
                self.here = None;
                return Ok(Some(Ok(words)));
            }
            if line.iter().all(|byte| is_blank(*byte)) {
                continue;
            }
            let mut words = match words::split(&line) {
                Ok(words) => words,
                Err(error) => return Ok(Some(Err(error))),
            };
            let begins = matches!(&words[..], [.., mark, _] if here_documents && mark == b"<<");
            let Some(end) = words.pop_if(|_| begins) else { return Ok(Some(Ok(words))) };
            words.pop();
            self.here = Some(HereDocument { words, end, text: Vec::new() });
        }
    }

    /// The range of the next complete line, without its end.
    fn line(&mut self) -> Option<std::ops::Range<usize>> {
        let from = self.taken.max(self.looked_at);
        let Some(len) = self.buffer[from..].iter().position(|byte| *byte == b'\n') else {
            self.looked_at = self.buffer.len();
            return None;
        };
        let line = self.taken..from + len;
        self.taken = line.end + 1;
        self.looked_at = self.taken;
        Some(line)
    }
}
