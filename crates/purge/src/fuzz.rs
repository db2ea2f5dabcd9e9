//! The entry points of the fuzz targets.

use crate::Invalidation;
use crate::htcp::{Error, HtcpRequest, Operation, cleared, tested};

/// Reads or rejects any bytes, as a request and as the response to each operation. What is read
/// must lie within them, and a response must not be a request.
pub fn htcp_datagram(data: &[u8]) {
    assert!(cleared(data).is_none() || tested(data).is_none());
    if let Ok(clear) = HtcpRequest::read(data) {
        assert!(clear.method.len() + clear.url.len() < data.len());
        for was_there in [true, false] {
            let answer = clear.answer(was_there);
            assert_eq!(HtcpRequest::read(&answer), Err(Error::Other));
            let read = match clear.operation {
                Operation::Test => tested(&answer).map(|read| (read, was_there)),
                Operation::Clear => cleared(&answer).map(|read| (read, true)),
            };
            let (read, expected) = read.expect("its own answer");
            assert_eq!(read, (clear.transaction, expected));
        }
    }
}

/// Decodes or rejects any bytes. A decoded invalidation must survive encoding and decoding.
pub fn invalidation(data: &[u8]) {
    match Invalidation::decode(data) {
        Ok(read) => {
            let written = read.encode();
            let again = Invalidation::decode(&written).expect("what was written is read");
            assert_eq!(again.encode(), written);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
