//! Error pages of a site: they replace the plain pages of errors that arise here (nginx's
//! `error_page`).
//!
//! They must never replace an origin's response or the answer to a purge.

use message::{HeaderId, Method};

use crate::problem::ErrorPage;
use crate::state::body::ReplyBody;
use crate::state::reply::{HeadSource, Reply};

/// Replaces a plain page by the one that `pages` has for its status.
pub(crate) fn put(reply: &mut Reply, pages: &[ErrorPage], method: &Method) {
    let status = reply.status;
    let Some(page) = pages.iter().find(|page| page.status == status) else { return };
    let HeadSource::Owned(head) = &mut reply.head else { return };
    head.headers.remove(HeaderId::ContentType);
    head.headers.push(HeaderId::ContentType, page.kind.as_bytes());
    reply.body = ReplyBody::from(page.content.clone()).answering(method, status);
}
