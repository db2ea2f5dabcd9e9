//! A page's request as its instructions may ask about it.

use std::borrow::Cow;

use base::Now;
use message::HeaderId;

use super::page::Composed;

/// The request of a page, at one moment.
pub(super) struct Question<'a> {
    page: &'a Composed,
    now: Now,
}

impl<'a> Question<'a> {
    pub(super) fn of(page: &'a Composed, now: Now) -> Self {
        Self { page, now }
    }
}

impl esi::Environment for Question<'_> {
    fn host(&self) -> &[u8] {
        &self.page.request.host
    }

    fn path(&self) -> &[u8] {
        self.page.request.path()
    }

    fn query(&self) -> &[u8] {
        self.page.request.query().unwrap_or_default()
    }

    fn header(&self, name: &[u8]) -> Option<Cow<'_, [u8]>> {
        let headers = &self.page.request.headers;
        match HeaderId::of(name) {
            HeaderId::Other => headers.value_named(name),
            id => headers.value(id),
        }
        .map(Cow::Borrowed)
    }

    fn unix_seconds(&self) -> u64 {
        self.now.unix_secs()
    }
}
