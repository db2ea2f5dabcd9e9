//! Draft: a page with instructions before its assembly.

use std::rc::Rc;

use crate::state::core::CoreState;
use crate::state::reply::Reply;
use crate::state::request_context::RequestConnection;

/// A page before its assembly. Only [`Draft::begin`] and [`Draft::run`] may turn it into a reply.
pub(crate) trait Draft {
    /// The reply so far, for notes. Its body is not the page yet.
    fn reply(&mut self) -> &mut Reply;

    /// Assembles the page as far as possible without waiting.
    ///
    /// # Errors
    /// The draft itself, if it must wait for pieces, which have started.
    fn begin(self: Box<Self>, core: &Rc<CoreState>) -> Result<Reply, Box<dyn Draft>>;

    /// Bytes that the started pieces take, about, beside their bodies.
    fn memory(&self) -> u64;

    /// Assembles the rest and returns the reply, whose body the pieces become.
    fn run(self: Box<Self>, core: &Rc<CoreState>, connection: RequestConnection<'_>) -> Reply;
}
