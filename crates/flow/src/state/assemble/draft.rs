//! A page that is still to be put together, before it is a reply.

use std::rc::Rc;

use crate::state::core::CoreState;
use crate::state::reply::Reply;
use crate::state::request_context::RequestConnection;

/// A page that is still to be put together. It becomes a reply in no other way than this.
pub(crate) trait Draft {
    /// The reply as far as it is known, for what is noted on it. Its body is not the page yet.
    fn reply(&mut self) -> &mut Reply;

    /// Puts the page together, as far as that goes without waiting.
    ///
    /// # Errors
    /// The page itself, if it must wait for some of its pieces, which have begun.
    fn begin(self: Box<Self>, core: &Rc<CoreState>) -> Result<Reply, Box<dyn Draft>>;

    /// Bytes that the pieces take which have begun, about, beside what they are of.
    fn memory(&self) -> u64;

    /// Has the pieces come, and returns the reply, whose body they become.
    fn run(self: Box<Self>, core: &Rc<CoreState>, front: RequestConnection<'_>) -> Reply;
}
