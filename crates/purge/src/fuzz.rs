//! The entry point for fuzzing; nothing else calls it but tests.

use crate::htcp::{Clear, Error};

/// Any bytes are read or refused; what is read lies within them, and its answer is no request.
pub fn htcp_datagram(data: &[u8]) {
    if let Ok(clear) = Clear::read(data) {
        assert!(clear.method.len() + clear.url.len() < data.len());
        for was_there in [true, false] {
            assert_eq!(Clear::read(&clear.answer(was_there)), Err(Error::Other));
        }
    }
}
