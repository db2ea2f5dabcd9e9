//! The entry point for fuzzing; nothing else calls it but tests.

use crate::invalidate::Invalidation;

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
