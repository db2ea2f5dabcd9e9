//! Requests out of a connection's bytes: lines, and the here-documents that follow some.

use std::fmt;

use crate::words::{self, SyntaxError, is_blank};

/// A request that is longer than it may be. What follows it cannot be told apart from it: the
/// connection must end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OversizedRequest;

impl fmt::Display for OversizedRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Request too long")
    }
}

impl std::error::Error for OversizedRequest {}

/// A here-document whose end has not come yet.
#[derive(Clone, Debug)]
struct HereDocument {
    /// The words before it.
    words: Vec<Vec<u8>>,
    /// The line that ends it.
    end: Vec<u8>,
    text: Vec<u8>,
}

/// Reads requests: [`feed`](Self::feed) it bytes, then ask for [`next`](Self::next) until there is
/// none.
#[derive(Clone, Debug)]
pub struct Reader {
    limit: usize,
    buffer: Vec<u8>,
    /// Bytes of `buffer` that were read.
    taken: usize,
    /// Bytes of `buffer` that are known to have no line's end behind `taken`.
    looked_at: usize,
    here: Option<HereDocument>,
}

/// The words of a request, or why there are none.
pub type Words = Result<Vec<Vec<u8>>, SyntaxError>;

impl Reader {
    /// Reads requests of at most `limit` bytes, here-documents included.
    pub fn new(limit: usize) -> Self {
        Self { limit, buffer: Vec::new(), taken: 0, looked_at: 0, here: None }
    }

    /// Has requests from now on at most `limit` bytes.
    pub fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// Takes what was received.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.taken);
        self.looked_at -= self.taken;
        self.taken = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// The next request, if it is there whole. Lines of blanks are none. `here_documents`: the last
    /// two words may be `<<` and a word, and what follows up to a line that is this word is the
    /// last argument; Varnish reads them of clients that know the secret.
    ///
    /// # Errors
    /// When a request is longer than it may be.
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
                // Telnet ends its lines with both.
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

    /// Where the next line is, without its end, if all of it is there.
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
