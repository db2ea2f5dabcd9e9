//! Heads of stored responses.

use cache::Record;
use message::Response;

/// The head of a stored response, taken apart; `None` for a damaged one, which the engine that
/// wrote it never leaves.
pub(crate) fn stored_head(object: &Record) -> Option<Response> {
    let mut head = Response::new(object.status());
    h1::parse_stored_head(object.head(), &mut head).ok()?;
    Some(head)
}
