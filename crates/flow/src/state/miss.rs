//! A miss, whose response others than its origin may have.

use std::sync::Arc;

use message::Request;

use crate::state::site::Site;

/// A miss, whose response others than its origin may have.
#[derive(Clone, Copy)]
pub(crate) struct Miss<'a> {
    pub(crate) site: &'a Arc<Site>,
    /// The client's request.
    pub(crate) asked: &'a Request,
    /// The request as a program has changed it, where `key` was made of that.
    pub(crate) changed: Option<&'a Request>,
    pub(crate) key: &'a [u8],
    /// Nothing is stored that the response would confirm or replace.
    pub(crate) is_new: bool,
}
