//! Environment of a page: the request that it is resolved for. It can only be read.

use std::borrow::Cow;
use std::ops::Range;

/// The text of a page whose ranges do not stay valid: its bytes replace them.
pub trait PageText {
    /// The bytes of a range.
    fn take(&self, range: &Range<u64>) -> Vec<u8>;
}

/// The request from which variables are read.
pub trait Environment {
    /// Host of the request, without its port.
    fn host(&self) -> &[u8];

    /// Path of the request as it was sent, without the query.
    fn path(&self) -> &[u8];

    /// Query of the request, without `?`.
    fn query(&self) -> &[u8];

    /// Value of the request's field `name`, compared without case. Several values are joined as in
    /// RFC 9110 5.3, cookies with `; `.
    fn header(&self, name: &[u8]) -> Option<Cow<'_, [u8]>>;

    /// The page's text, for callers that cannot use ranges of the page.
    fn text(&self) -> Option<&dyn PageText> {
        None
    }

    /// The current time, for SSI's dates.
    fn unix_seconds(&self) -> u64;

    /// Value of another variable by nginx's name (`remote_addr`, `scheme`).
    fn variable(&self, name: &[u8]) -> Option<Cow<'_, [u8]>> {
        _ = name;
        None
    }
}

/// Value of a parameter in a query, as it was sent.
pub(crate) fn of_query<'q>(query: &'q [u8], name: &[u8], is_any_case: bool) -> Option<&'q [u8]> {
    query.split(|byte| *byte == b'&').find_map(|pair| {
        let equals = memchr::memchr(b'=', pair)?;
        let is_it = match is_any_case {
            true => pair[..equals].eq_ignore_ascii_case(name),
            false => &pair[..equals] == name,
        };
        is_it.then_some(&pair[equals + 1..])
    })
}

/// Value of a cookie.
pub(crate) fn of_cookies(cookies: &[u8], name: &[u8]) -> Option<Vec<u8>> {
    cookies.split(|byte| *byte == b';').find_map(|pair| {
        let pair = pair.trim_ascii();
        let equals = memchr::memchr(b'=', pair)?;
        (&pair[..equals] == name).then(|| pair[equals + 1..].to_vec())
    })
}
