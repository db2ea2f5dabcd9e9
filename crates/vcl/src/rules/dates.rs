//! Dates in fields. With the feature `http_date_postel` a day may have one digit, as in Varnish; no
//! other spelling is added.

use std::borrow::Cow;

use message::date::parse_http_date;
use message::{HeaderId, Request};

use crate::params::Params;
use crate::text::calendar;

/// The flag of `feature`.
pub const POSTEL: &str = "http_date_postel";

/// Request fields with a date as condition.
const CONDITIONS: [HeaderId; 2] = [HeaderId::IfModifiedSince, HeaderId::IfRange];

/// A date in seconds since 1970, read at `now_s`.
pub fn read(value: &[u8], now_s: u64, params: &Params) -> Option<u64> {
    parse_http_date(value, now_s).or_else(|| {
        let secs = params.has_feature(POSTEL).then(|| calendar::read(value, true))??;
        Some(secs.max(0.0) as u64)
    })
}

/// `req` with the dates of its conditions in HTTP's spelling.
pub fn conditions<'r>(req: &'r Request, now_s: u64, params: &Params) -> Cow<'r, Request> {
    let mut req = Cow::Borrowed(req);
    for id in CONDITIONS {
        let Some(value) = req.headers.value(id) else { continue };
        if parse_http_date(value, now_s).is_some() {
            continue;
        }
        if let Some(secs) = read(value, now_s, params) {
            let mut date = Vec::new();
            calendar::append_http_date(secs as f64, &mut date);
            req.to_mut().headers.set(id, &date);
        }
    }
    req
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: &[u8] = b"Sun, 6 Nov 1994 08:49:37 GMT";
    const LONG: &[u8] = b"Sun, 06 Nov 1994 08:49:37 GMT";

    #[test]
    fn a_day_of_one_digit_is_read_where_that_is_switched_on() {
        let mut params = Params::default();
        assert_eq!(read(LONG, 0, &params), Some(784_111_777));
        assert_eq!(read(SHORT, 0, &params), None);
        params.set("feature", "+http_date_postel").expect("a switch");
        assert_eq!(read(SHORT, 0, &params), Some(784_111_777));
        assert_eq!(read(b"Mon, 6 Nov 1994 08:49:37 GMT", 0, &params), None, "no Monday");
    }

    #[test]
    fn conditions_are_rewritten_only_where_that_makes_them_readable() {
        let mut params = Params::default();
        let mut req = Request::new();
        for (id, value) in [(HeaderId::IfModifiedSince, SHORT), (HeaderId::IfRange, b"\"tag\"")] {
            req.headers.set(id, value);
        }
        assert!(matches!(conditions(&req, 0, &params), Cow::Borrowed(_)));
        params.set("feature", "+http_date_postel").expect("a switch");
        let made = conditions(&req, 0, &params);
        assert_eq!(made.headers.value(HeaderId::IfModifiedSince), Some(LONG));
        assert_eq!(made.headers.value(HeaderId::IfRange), Some(&b"\"tag\""[..]));
        req.headers.set(HeaderId::IfModifiedSince, LONG);
        assert!(matches!(conditions(&req, 0, &params), Cow::Borrowed(_)));
    }
}
