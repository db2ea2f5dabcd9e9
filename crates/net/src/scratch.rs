//! Scratch memory of a core, in which requests are parsed and answered one after the other. It must
//! never be borrowed across an await.

use h1::RequestReader;
use message::Request;

/// Memory of the fast path; borrowed within one poll only.
pub(crate) struct Scratch {
    pub(crate) input: Box<[u8]>,
    pub(crate) work: Work,
}

/// Memory of the fast path that is reused from request to request.
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
