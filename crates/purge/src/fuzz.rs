//! The entry points for fuzzing; nothing else calls them but tests.

use crate::Invalidation;
use crate::htcp::{Error, Question};

/// Any bytes are read or refused; what is read lies within them, and its answer is no request.
pub fn htcp_datagram(data: &[u8]) {
    if let Ok(clear) = Question::read(data) {
        assert!(clear.method.len() + clear.url.len() < data.len());
        for was_there in [true, false] {
            assert_eq!(Question::read(&clear.answer(was_there)), Err(Error::Other));
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
