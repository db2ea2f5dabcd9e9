//! The request that a page is resolved for.

use std::borrow::Cow;
use std::ops::Range;

/// The text of a page that does not stay: its bytes take the place of ranges.
pub trait PageText {
    /// The bytes of a range.
    fn take(&self, range: &Range<u64>) -> Vec<u8>;
}

/// The view of a request that variables are read from.
pub trait Environment {
    /// The host that was asked, without its port.
    fn host(&self) -> &[u8];

    /// The path of the request, as it was sent, without its query.
    fn path(&self) -> &[u8];

    /// The query of the request, without its `?`.
    fn query(&self) -> &[u8];

    /// The value of the request's field of that name, in any case; several are joined as RFC 9110
    /// 5.3 says (cookies with `; `).
    fn header(&self, name: &[u8]) -> Option<Cow<'_, [u8]>>;

    /// The page's text, where ranges would not be enough for whoever gets the operations.
    fn text(&self) -> Option<&dyn PageText> {
        None
    }

    /// The time, for SSI's dates.
    fn unix_seconds(&self) -> u64;

    /// Any other variable, by the name that nginx gives it (`remote_addr`, `scheme`).
    fn variable(&self, name: &[u8]) -> Option<Cow<'_, [u8]>> {
        _ = name;
        None
    }
}

/// One of a query's values, as it was sent.
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

/// One of a request's cookies.
pub(crate) fn of_cookies(cookies: &[u8], name: &[u8]) -> Option<Vec<u8>> {
    cookies.split(|byte| *byte == b';').find_map(|pair| {
        let pair = pair.trim_ascii();
        let equals = memchr::memchr(b'=', pair)?;
        (&pair[..equals] == name).then(|| pair[equals + 1..].to_vec())
    })
}
