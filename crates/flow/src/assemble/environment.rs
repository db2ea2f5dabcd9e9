//! Environment of a page: its request as the conditions and variables of its instructions see it.

use std::borrow::Cow;

use base::Now;
use esi::PageText;
use message::HeaderId;

use crate::state::assemble::ComposedPage;

/// The request of a page at one moment.
pub(super) struct PageEnvironment<'a> {
    page: &'a ComposedPage,
    now: Now,
    /// The text of a page that still arrives.
    text: Option<&'a dyn PageText>,
}

impl<'a> PageEnvironment<'a> {
    pub(super) fn of(page: &'a ComposedPage, now: Now, text: Option<&'a dyn PageText>) -> Self {
        Self { page, now, text }
    }

    /// The cookies that variables may reveal: those that the site permits, after the policy's
    /// changes. As a page's scripts cannot read HttpOnly cookies, its instructions must not either.
    fn cookies(&self) -> Option<Vec<u8>> {
        let names = &self.page.site.includes.cookies;
        if names.is_empty() {
            return None;
        }
        let own = || self.page.request.headers.value(HeaderId::Cookie);
        let left = self.page.cookies_left.as_deref().or_else(own)?;
        let is_told = |pair: &&[u8]| {
            let name = pair.split(|byte| *byte == b'=').next().unwrap_or_default();
            names.iter().any(|shown| **shown == *name)
        };
        let shown: Vec<_> =
            left.split(|byte| *byte == b';').map(<[u8]>::trim_ascii).filter(is_told).collect();
        (!shown.is_empty()).then(|| shown.join(&b"; "[..]))
    }
}

impl esi::Environment for PageEnvironment<'_> {
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
            HeaderId::Cookie => return self.cookies().map(Cow::Owned),
            HeaderId::Authorization | HeaderId::ProxyAuthorization => return None,
            HeaderId::Other => headers.value_named(name),
            id => headers.value(id),
        }
        .map(Cow::Borrowed)
    }

    fn text(&self) -> Option<&dyn PageText> {
        self.text
    }

    fn unix_seconds(&self) -> u64 {
        self.now.unix_secs()
    }
}
