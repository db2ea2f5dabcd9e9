//! Fuzzing entry point of the CLI's reader and parser. Only fuzz targets and tests call it.

use crate::command;
use crate::reader::{Reader, Words};

/// Longest request in bytes.
const LIMIT: usize = 64;

/// All requests in `data`, fed in pieces of `piece` bytes; the flag is true if a request was too
/// long.
fn requests(data: &[u8], piece: usize, here_documents: bool) -> (Vec<Words>, bool) {
    let mut reader = Reader::new(LIMIT);
    let mut found = Vec::new();
    for piece in data.chunks(piece.max(1)) {
        reader.feed(piece);
        loop {
            match reader.next(here_documents) {
                Ok(Some(words)) => found.push(words),
                Ok(None) => break,
                Err(_) => return (found, true),
            }
        }
    }
    (found, false)
}

/// Requests do not depend on how their bytes are cut. Each request is parsed, or rejected with a
/// reply that can be sent.
pub fn session(data: &[u8]) {
    let Some((first, data)) = data.split_first() else { return };
    let (here_documents, piece) = (first & 1 != 0, usize::from(first >> 1));
    let (found, too_long) = requests(data, data.len(), here_documents);
    assert_eq!(requests(data, piece, here_documents), (found.clone(), too_long));
    for words in found.into_iter().flatten() {
        assert!(!words.is_empty(), "lines of blanks are no requests");
        assert!(words.iter().map(Vec::len).sum::<usize>() <= 2 * LIMIT);
        match command::read(words, here_documents) {
            Ok(call) => assert!(call.arguments.len() < call.words.len()),
            Err(reply) => assert!(reply.to_wire().len() == reply.text.len() + 14),
        }
    }
}
