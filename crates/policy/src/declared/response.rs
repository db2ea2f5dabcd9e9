//! Response rules: does an origin's response belong to the key, and may browsers store it.

use message::cache_control::{CacheControl, DirectiveScope};
use message::store::{JudgedHead, NotStored};
use message::{HeaderBlock, HeaderId, Request, Response, cookie};

use super::plan::RoutePlan;

/// Directives for clients that may not store a response (as in Magento's VCL; the redundant ones
/// are for old caches).
const NEVER_STORE: &[u8] = b"no-store, no-cache, must-revalidate, max-age=0";

/// Fields by which scripts of a framework ask for another form of a page. Its servers name them in
/// Vary, which an intermediary may have removed: Next.js, Inertia, PJAX.
const OTHER_FORM: [&[u8]; 8] = [
    b"next-action",
    b"next-router-prefetch",
    b"next-router-segment-prefetch",
    b"next-router-state-tree",
    b"rsc",
    b"x-inertia",
    b"x-nextjs-data",
    b"x-pjax",
];
/// The path prefix of Next.js' pages as data, with that field or without it.
const DATA_PATH: &[u8] = b"/_next/data/";

/// Returns true if the request asks for another form of the page at its URL, and neither the key
/// nor the Vary that counts contains the form: every client would get it.
fn is_unnamed_form(plan: &RoutePlan, request: &Request, judged: &JudgedHead<'_>) -> bool {
    let is_named = |name: &[u8]| {
        let mut varying = message::list::members(judged.headers.values(HeaderId::Vary));
        plan.has_in_key(name) || varying.any(|own| own.eq_ignore_ascii_case(name))
    };
    let is_asked = |name: &[u8]| OTHER_FORM.iter().any(|known| name.eq_ignore_ascii_case(known));
    let is_data = || memchr::memmem::find(request.path(), DATA_PATH).is_some();
    request.headers.contains(HeaderId::Other)
        && request.headers.iter().any(|field| {
            field.id == HeaderId::Other && is_asked(field.name) && !is_named(field.name)
        })
        && !is_data()
}

/// Returns true if the request has a field, other than cookies, that may tell of its visitor, by
/// which the response varies, and which neither the key nor the Vary that counts contains.
fn is_of_visitor(plan: &RoutePlan, request: &Request, judged: &JudgedHead<'_>) -> bool {
    judged.visitors_fields().any(|name| {
        let has_it = request.headers.values_named(name).next().is_some();
        has_it && HeaderId::of(name) != HeaderId::Cookie && !plan.has_in_key(name)
    })
}

/// Returns true if the response varies by a field that Larder writes for the origin with more of
/// the request than its URL. It is added after the store, so no variant can be selected by it.
pub(super) fn is_varied_by_changes(plan: &RoutePlan, headers: &HeaderBlock) -> bool {
    let mut varying = message::list::members(headers.values(HeaderId::Vary));
    !plan.request_headers.is_empty() && varying.any(|name| plan.request_headers.tell_visitor(name))
}

/// Returns the reason why a response does not belong to the key of its request: it sets a cookie of
/// the key to another value, has another value of a field that must match, or has a form that is
/// not in the key.
pub(super) fn other_key(
    plan: &RoutePlan,
    request: &Request,
    response: &Response,
    judged: &JudgedHead<'_>,
) -> Option<NotStored> {
    if is_unnamed_form(plan, request, judged) || is_of_visitor(plan, request, judged) {
        return Some(NotStored::OtherKey);
    }
    if plan.cookie_key.is_empty() && plan.match_headers.is_empty() {
        return None;
    }
    let is_other = sets_other_cookie(&plan.cookie_key, request, response)
        || plan.match_headers.iter().any(|name| {
            let mut asked = name.values(&request.headers).peekable();
            asked.peek().is_some() && !asked.eq(name.values(&response.headers))
        });
    is_other.then_some(NotStored::OtherKey)
}

/// Returns true if the response sets one of the cookies `names` to another value than in the
/// request: the page is for visitors with the new value.
fn sets_other_cookie(names: &[Box<[u8]>], request: &Request, response: &Response) -> bool {
    response.headers.values(HeaderId::SetCookie).any(|line| {
        let set = line.split(|b| *b == b';').next().unwrap_or_default();
        let Some(set) = cookie::pairs([set]).next() else { return false };
        if !names.iter().any(|name| **name == *set.name) {
            return false;
        }
        let had = cookie::pairs(request.headers.values(HeaderId::Cookie));
        let mut had = had.filter(|pair| pair.name == set.name);
        had.next() != Some(set) || had.next().is_some()
    })
}

/// Makes clients revalidate each time, unless the response is private: then its origin decides
/// about browsers.
pub(super) fn keep_from_browsers(headers: &mut HeaderBlock) {
    let control = CacheControl::parse(headers.values(HeaderId::CacheControl));
    if control.private != DirectiveScope::Absent {
        return;
    }
    headers.set(HeaderId::CacheControl, NEVER_STORE);
    headers.set(HeaderId::Pragma, b"no-cache");
    // A value that is not a date is in the past (RFC 9111 5.3).
    headers.set(HeaderId::Expires, b"-1");
}

#[cfg(test)]
mod tests {
    use message::Status;

    use super::*;

    #[test]
    fn a_page_that_sets_a_cookie_of_the_key_is_for_those_who_have_it() {
        let key: Vec<Box<[u8]>> = vec![b"vary".as_slice().into()];
        for (had, set, other) in [
            ("", "vary=a", true),
            ("", "vary=a; Path=/; HttpOnly", true),
            ("vary=a", "vary=a; Path=/", false),
            ("x=1; vary=a", "vary = a", false),
            ("vary=a", "vary=b", true),
            ("vary=a; vary=b", "vary=a", true),
            ("vary=a", "vary=deleted; Max-Age=0", true),
            ("", "other=1; vary=a", false),
            ("", "VARY=a", false),
            ("vary=a", "", false),
        ] {
            let (mut request, mut response) = (Request::new(), Response::new(Status::OK));
            request.headers.push(HeaderId::Cookie, had.as_bytes());
            response.headers.push(HeaderId::SetCookie, b"session=1");
            response.headers.push(HeaderId::SetCookie, set.as_bytes());
            assert_eq!(sets_other_cookie(&key, &request, &response), other, "{had} {set}");
        }
    }

    #[test]
    fn what_is_private_stays_in_its_visitor_s_browser() {
        for (said, kept) in [
            ("max-age=86400, public", false),
            ("", false),
            ("no-store", false),
            ("private, max-age=60", true),
            ("max-age=60, private=\"x\"", true),
        ] {
            let mut headers = HeaderBlock::new();
            headers.push(HeaderId::CacheControl, said.as_bytes());
            keep_from_browsers(&mut headers);
            let wanted = if kept { said.as_bytes() } else { NEVER_STORE };
            assert_eq!(headers.value(HeaderId::CacheControl), Some(wanted), "{said}");
            assert_eq!(headers.contains(HeaderId::Expires), !kept, "{said}");
        }
    }
}
