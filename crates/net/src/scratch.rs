//! Memory that requests are read and answered in, one after the other.

use h1::RequestReader;
use message::Request;

/// Memory the fast way works in; only ever borrowed within one poll.
pub(crate) struct Scratch {
    pub(crate) input: Box<[u8]>,
    pub(crate) work: Work,
}

/// Memory that the fast way works in, reused from request to request.
#[derive(Default)]
pub(crate) struct Work {
    pub(crate) reader: RequestReader,
    pub(crate) request: Request,
    pub(crate) output: Vec<u8>,
}

impl Work {
    pub(crate) fn fresh(&mut self) -> (&mut RequestReader, &mut Request) {
        self.reader.reset();
        self.request.clear();
        (&mut self.reader, &mut self.request)
    }
}
