//! Miss: a request whose response is not stored here, for those that may have it instead of the
//! origin.

use std::sync::Arc;

use message::Request;

use crate::state::site::Site;
use crate::state::vcl::ExtraRequest;

/// A request whose response is not stored here.
#[derive(Clone, Copy)]
pub(crate) struct Miss<'a> {
    pub(crate) site: &'a Arc<Site>,
    /// The client's request.
    pub(crate) asked: &'a Request,
    /// The request after a program's changes, if `key` was made from that.
    pub(crate) changed: Option<&'a Request>,
    pub(crate) key: &'a [u8],
    /// No stored response would be confirmed or replaced.
    pub(crate) is_new: bool,
    /// The origin is asked for another URL.
    pub(crate) is_rewritten: bool,
    /// The way through the VCL beside the site's settings, if that has received the request.
    pub(crate) extra: Option<&'a ExtraRequest>,
}
