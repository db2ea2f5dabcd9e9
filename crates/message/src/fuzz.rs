//! Fuzz targets: each passes arbitrary bytes to one parser and checks the invariants of the result.
//! They panic on a violation; only tests and fuzzers may call them.

use crate::cache_control::{CacheControl, MAX_DELTA_SECS, named_fields};
use crate::conditional;
use crate::date::{HttpDate, parse_http_date};
use crate::header::{HeaderBlock, HeaderId};
use crate::list::members;
use crate::range::{self, RangePlan};
use crate::request::{Request, Upgrade};
use crate::response::{Response, Status};
use crate::store::{self, ExchangeTimes, JudgedHead, StoreRules};
use crate::trace_context::TraceContext;
use crate::vary::{Vary, vary_signature};
use crate::{cookie, forwarded, path, query, sf, targeted_control, upgrade};

/// A fuzz target.
pub type FuzzTarget = fn(&[u8]);

/// All targets, by name.
pub const ALL: &[(&str, FuzzTarget)] = &[
    ("date", date),
    ("forwarded", forwarded_elements),
    ("list", list),
    ("cache_control", cache_control),
    ("structured_field", structured_field),
    ("store_plan", store_plan),
    ("vary", vary_key),
    ("conditional", preconditions),
    ("range", ranges),
    ("cookie", cookies),
    ("query", query_params),
    ("path", path_form),
    ("upgrade", upgrades),
    ("trace_context", trace_contexts),
];

/// A parsed trace context that is written and parsed again is unchanged.
pub fn trace_contexts(data: &[u8]) {
    if let Some(context) = TraceContext::parse(data) {
        assert_eq!(TraceContext::parse(context.to_string().as_bytes()), Some(context));
    }
}

/// The value forwarded to the origin names permitted protocols only, each once, and never HTTP. An
/// accepted 101 names one of them. The first line is the request's Upgrade, the others are the
/// 101's.
pub fn upgrades(data: &[u8]) {
    let allowed = ["websocket", "a", "b/1"].map(upgrade::Protocol::parse);
    let allowed: Vec<_> = allowed.into_iter().filter_map(Result::ok).collect();
    let mut request = Request::new();
    request.upgrade = Upgrade::Asked;
    request.headers.push_named(b"Sec-WebSocket-Key", b"dGhlIHNhbXBsZSBub25jZQ==");
    let mut lines = lines(data);
    if let Some(line) = lines.next() {
        request.headers.push(HeaderId::Upgrade, line);
    }
    let Some(value) = upgrade::admitted(&request, &allowed) else { return };
    let named: Vec<_> = members([&value[..]]).collect();
    for (at, name) in named.iter().enumerate() {
        assert!(allowed.iter().any(|known| known.as_str().as_bytes() == *name));
        assert!(!named[..at].contains(name));
    }
    request.headers.set(HeaderId::Upgrade, &value);
    request.upgrade = Upgrade::Granted;
    let mut response = Response::new(Status::OK);
    for line in lines {
        response.headers.push(HeaderId::Upgrade, line);
    }
    if let Some(chosen) = upgrade::switched(&request, &response, true) {
        // No input proves a WebSocket server.
        assert!(named.contains(&&chosen[..]) && chosen != b"websocket");
    }
}

/// A parsed date can be written and parsed again.
pub fn date(data: &[u8]) {
    if let Some(secs) = parse_http_date(data, 1_800_000_000) {
        let written = HttpDate::new(secs);
        assert_eq!(parse_http_date(written.as_bytes(), 0), Some(secs));
    }
}

/// Parsing ends, and nothing follows a malformed element.
pub fn forwarded_elements(data: &[u8]) {
    for line in lines(data) {
        let (mut elements, mut ended) = (0, false);
        for element in forwarded::elements(line) {
            assert!(!ended);
            ended = element.is_err();
            elements += 1;
        }
        assert!(elements <= line.len());
    }
}

/// Members are neither empty nor padded.
pub fn list(data: &[u8]) {
    for member in members(lines(data)) {
        let padding = [b' ', b'\t'];
        assert!(member.first().is_some_and(|b| !padding.contains(b)));
        assert!(member.last().is_some_and(|b| !padding.contains(b)));
    }
}

/// Times are within their bounds.
pub fn cache_control(data: &[u8]) {
    let control = CacheControl::parse(lines(data));
    for secs in [control.max_age, control.s_maxage, control.max_stale].into_iter().flatten() {
        assert!(secs <= MAX_DELTA_SECS);
    }
    named_fields(lines(data)).for_each(drop);
    targeted_control::surrogate_control(lines(data));
    targeted_control::surrogate_content(lines(data), b"ESI/1.0");
}

/// Iterating a checked field again gives the same members.
pub fn structured_field(data: &[u8]) {
    let mut visited = 0;
    let result = sf::parse_dictionary(lines(data), |member| {
        visited += 1;
        member.parameters.iter().for_each(drop);
        if let sf::Value::List(list) = member.value {
            list.items().for_each(drop);
        }
    });
    assert!(result.is_err() || result == Ok(visited));
    targeted_control::dictionary(lines(data));
}

/// Lines of `name: value` as the response's head; a stored response is usable.
pub fn store_plan(data: &[u8]) {
    let request = Request::new();
    let mut response = Response::new(Status::OK);
    response.headers = block(data);
    let exchange = ExchangeTimes { request_ms: 1_800_000_000_000, response_ms: 1_800_000_000_100 };
    let mut ignoring = StoreRules::safe();
    for text in ["Cache-Control", "Vary", "Vary: *", "Set-Cookie"] {
        ignoring.ignored.add(text).expect("a field");
    }
    for rules in [StoreRules::rfc(), StoreRules::safe(), ignoring] {
        let judged = JudgedHead::of(&response, &rules);
        let plan = store::plan(&request, false, &judged, exchange, &rules);
        let revalidates = response.headers.contains(HeaderId::Etag)
            || response.headers.contains(HeaderId::LastModified);
        let lasts = plan.lifetime_ms.saturating_add(plan.grace_ms.max(plan.stale_if_error_ms));
        assert!(plan.verdict().is_err() || revalidates || (lasts > 0 && !plan.must_validate));
        assert!(plan.verdict().is_err() || plan.hit_for_miss_ms == 0);
    }
    store::strip_for_storage(&mut response.headers);
    assert!(!response.headers.contains(HeaderId::Connection));
    let stored = response.headers.clone();
    store::update_fields(&mut response.headers, &stored);
    assert_eq!(response.headers.len(), stored.len());
}

/// Lines of `name: value` as the request's head; the signature is deterministic.
pub fn vary_key(data: &[u8]) {
    let headers = block(data);
    if let Vary::Names(names) = Vary::of(&headers) {
        assert!(names.iter().is_sorted());
        let (mut one, mut other) = (Vec::new(), Vec::new());
        vary_signature(names.as_bytes(), &headers, &mut one);
        vary_signature(names.as_bytes(), &headers.clone(), &mut other);
        assert_eq!(one, other);
    }
}

/// Lines of `name: value` as the request's head.
pub fn preconditions(data: &[u8]) {
    let mut request = Request::new();
    request.headers = block(data);
    let (etag, when) = (Some(&b"\"a\""[..]), Some(784_111_777));
    conditional::evaluate(&request, etag, when, when, Status::OK);
    conditional::if_range_matches(&request.headers, etag, when, when);
    // A request that proceeds because of a named tag does not proceed for another tag.
    if request.headers.contains(HeaderId::IfMatch) {
        let (own, none) = (etag, None);
        let for_any = conditional::may_proceed(&request.headers, none, when, 784_111_777);
        let for_own = conditional::may_proceed(&request.headers, own, when, 784_111_777);
        assert!(for_own || !for_any, "only `*` lets everything go on");
    }
}

/// Ranges are within the length and do not overlap.
pub fn ranges(data: &[u8]) {
    if let Some(part) = range::ContentRange::parse(data) {
        assert!(part.range.start < part.range.end);
        assert!(part.length.is_none_or(|length| part.range.end <= length));
    }
    if let Some(first) = range::first_wanted(data, 32) {
        let plan = range::plan(data, u64::MAX, 32);
        let RangePlan::Ranges(ranges) = plan else { panic!("ranges that can be had") };
        assert!(first == 0 || ranges.iter().any(|range| range.contains(&first)));
    }
    for length in [0, 1, 1000, u64::MAX] {
        let RangePlan::Ranges(ranges) = range::plan(data, length, 32) else { continue };
        assert!(!ranges.is_empty() && ranges.len() <= 32);
        assert!(ranges.iter().all(|r| r.start < r.end && r.end <= length));
        let mut sorted = ranges.to_vec();
        sorted.sort_unstable_by_key(|r| r.start);
        assert!(sorted.windows(2).all(|w| w[0].end <= w[1].start));
    }
}

/// Dropping no cookie changes nothing; dropping all leaves none.
pub fn cookies(data: &[u8]) {
    let mut out = Vec::new();
    assert!(!cookie::write_without(lines(data), |_| false, &mut out));
    assert_eq!(cookie::pairs([&out[..]]).count(), cookie::pairs(lines(data)).count());
    out.clear();
    cookie::write_without(lines(data), |_| true, &mut out);
    assert!(out.is_empty());
    assert!(!cookie::pairs(lines(data)).any(|p| p.name.is_empty() && cookie::is_tracking(p.name)));
}

/// Removing and sorting are idempotent.
pub fn query_params(data: &[u8]) {
    let mut target = data.to_vec();
    let tracking = query::ParamSet::tracking();
    query::remove_params(&mut target, |name| tracking.contains(name));
    query::sort_params(&mut target);
    assert!(!query::sort_params(&mut target));
    assert!(target.len() <= data.len());
}

/// A normal form is not longer than its input, and has no dot segments.
pub fn path_form(data: &[u8]) {
    let mut out = Vec::new();
    if let Ok(true) = path::normal_form(data, &mut out) {
        assert!(out.len() <= data.len());
        assert!(!out.windows(4).any(|w| w == b"/../"));
        assert!(!out.windows(2).any(|w| w == b"//"));
    }
}

fn lines(data: &[u8]) -> impl Iterator<Item = &[u8]> + Clone {
    data.split(|b| *b == b'\n')
}

/// At most a hundred lines of `name: value`.
fn block(data: &[u8]) -> HeaderBlock {
    let mut block = HeaderBlock::new();
    for line in lines(data).take(100) {
        if let Some(at) = line.iter().position(|b| *b == b':').filter(|at| *at < 256) {
            block.push_named(&line[..at], &line[at + 1..]);
        }
    }
    block
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Bytes with a meaning to parsers, in plausible order.
    fn text() -> impl Strategy<Value = Vec<u8>> {
        let words = prop::sample::select(vec![
            "max-age=",
            "no-cache",
            "private",
            "s-maxage=1",
            "stale-if-error=",
            "\"",
            "\\",
            ",",
            ";",
            "=",
            " ",
            "\n",
            "Vary: ",
            "WebSocket",
            "h2c",
            "Age: ",
            "ETag: \"a\"",
            "Expires: ",
            "Cache-Control: ",
            "Connection: ",
            "Accept-Encoding: gzip;q=0",
            "If-Range: ",
            "If-None-Match: ",
            "bytes=",
            "-",
            "0",
            "99999999999999999999",
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 ",
            "/",
            ".",
            "..",
            "%2e",
            "%",
            "?",
            "&",
            "utm_x",
            "(",
            ")",
            ":",
            "@",
            "?1",
            "W/",
            "*",
            "a",
        ]);
        let word = prop_oneof![
            8 => words.prop_map(|w| w.as_bytes().to_vec()),
            1 => prop::collection::vec(any::<u8>(), 0..4),
        ];
        prop::collection::vec(word, 0..24).prop_map(|words| words.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        #[test]
        fn no_parser_breaks_on_anything(data in text()) {
            for (_, target) in ALL {
                target(&data);
            }
        }

        #[test]
        fn no_parser_breaks_on_noise(data in prop::collection::vec(any::<u8>(), 0..300)) {
            for (_, target) in ALL {
                target(&data);
            }
        }
    }
}
