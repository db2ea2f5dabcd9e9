//! A site's own pages for errors that are made here, in the place of the plain ones (nginx's
//! `error_page`).
//!
//! Must never touch what an origin has answered, nor the answers to purges.

use message::{HeaderId, Method};

use crate::problem::ErrorPage;
use crate::state::body::ReplyBody;
use crate::state::reply::{HeadSource, Reply};

/// Puts the page that `pages` have for its status in the place of a plain page of ours.
pub(crate) fn put(reply: &mut Reply, pages: &[ErrorPage], method: &Method) {
    let status = reply.status;
    let Some(page) = pages.iter().find(|page| page.status == status) else { return };
    let HeadSource::Owned(head) = &mut reply.head else { return };
    head.headers.remove(HeaderId::ContentType);
    head.headers.push(HeaderId::ContentType, page.kind.as_bytes());
    reply.body = ReplyBody::from(page.content.clone()).answering(method, status);
}
