//! The entry points for fuzzing; nothing else calls them but tests.

use crate::Invalidation;
use crate::htcp::{Error, HtcpRequest, Operation, cleared, tested};

/// Any bytes are read or refused, as a request or as the answer to one operation; what is read lies
/// within them, and its answer is no request.
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

/// Any bytes are an invalidation or are refused; one that was read is written so that it is read
/// again as the same.
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
