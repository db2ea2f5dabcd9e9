//! Caching over real sockets: which responses are stored, for whom, under which key, and how ranges
//! and conditions of them are answered.

use crate::support;

use support::{Setup, Stage, http_date, is_hit, sent_field};
use testkit::origin::Script;

const TEXT: &str = "0123456789abcdefghij";

#[tokio::test]
async fn a_hit_follows_a_miss_and_both_say_so() {
    let stage = Stage::new().await;
    let date = http_date(7);
    stage
        .origin
        .on("/page", Script::ok(&format!("Cache-Control: max-age=300\r\nDate: {date}\r\n"), TEXT));
    let miss = stage.get("/page").await;
    assert_eq!((miss.status, miss.text().as_str()), (200, TEXT));
    let status = miss.field("cache-status").expect("Cache-Status");
    assert!(status.starts_with("larder; fwd=uri-miss") && status.contains("; stored"), "{status}");
    let hit = stage.get("/page").await;
    assert_eq!((hit.status, hit.text().as_str()), (200, TEXT));
    let status = hit.field("cache-status").expect("Cache-Status");
    assert!(status.starts_with("larder; hit; ttl="), "{status}");
    let age: u64 = hit.field("age").and_then(|age| age.parse().ok()).expect("Age");
    assert!((7..120).contains(&age), "{age}");
    for reply in [&miss, &hit] {
        assert_eq!(reply.field("date").as_ref(), Some(&date));
        assert_eq!(reply.field("via").as_deref(), Some("1.1 larder"));
        assert_eq!(reply.field("content-length").as_deref(), Some("20"));
    }
    assert_eq!(stage.origin.seen("/page"), 1);
}

#[tokio::test]
async fn head_is_answered_from_get_and_fills_the_cache_with_it() {
    let stage = Stage::new().await;
    stage.origin.on("/page", Script::cacheable(TEXT));
    let head = stage.ask("HEAD", "/page", "").await;
    assert_eq!(head.field("content-length").as_deref(), Some("20"));
    assert_eq!(stage.sole_request("/page").method, "GET");
    let get = stage.get("/page").await;
    assert!(is_hit(&get) && get.text() == TEXT);
    let head = stage.ask("HEAD", "/page", "").await;
    assert!(is_hit(&head) && head.body.is_empty());
    assert_eq!(head.field("content-length").as_deref(), Some("20"));
    assert_eq!(stage.origin.seen("/page"), 1);
}

#[tokio::test]
async fn conditions_are_answered_from_the_store() {
    let stage = Stage::new().await;
    let modified = http_date(1000);
    let fields =
        format!("Cache-Control: max-age=300\r\nETag: \"v1\"\r\nLast-Modified: {modified}\r\n");
    stage.origin.on("/page", Script::ok(&fields, TEXT));
    stage.get("/page").await;
    for (condition, expected) in [
        ("If-None-Match: \"v1\"\r\n".to_owned(), 304),
        ("If-None-Match: \"v0\", W/\"v1\"\r\n".to_owned(), 304),
        ("If-None-Match: *\r\n".to_owned(), 304),
        ("If-None-Match: \"v2\"\r\n".to_owned(), 200),
        (format!("If-Modified-Since: {modified}\r\n"), 304),
        (format!("If-Modified-Since: {}\r\n", http_date(2000)), 200),
        // RFC 9110 13.1.3: If-None-Match counts where both are there.
        (format!("If-None-Match: \"v2\"\r\nIf-Modified-Since: {modified}\r\n"), 200),
    ] {
        let reply = stage.ask("GET", "/page", &condition).await;
        assert_eq!(reply.status, expected, "{condition}");
        assert_eq!(reply.field("etag").as_deref(), Some("\"v1\""), "{condition}");
        assert_eq!(reply.body.is_empty(), expected == 304, "{condition}");
    }
    assert_eq!(stage.origin.seen("/page"), 1);
}

#[tokio::test]
async fn ranges_are_cut_from_the_store() {
    let stage = Stage::new().await;
    stage.origin.on("/page", Script::ok("Cache-Control: max-age=300\r\nETag: \"v1\"\r\n", TEXT));
    stage.get("/page").await;
    for (range, part, place) in [
        ("bytes=0-0", "0", "bytes 0-0/20"),
        ("bytes=10-14", "abcde", "bytes 10-14/20"),
        ("bytes=15-", "fghij", "bytes 15-19/20"),
        ("bytes=-3", "hij", "bytes 17-19/20"),
        ("bytes=18-100", "ij", "bytes 18-19/20"),
    ] {
        let reply = stage.ask("GET", "/page", &format!("Range: {range}\r\n")).await;
        assert_eq!((reply.status, reply.text().as_str()), (206, part), "{range}");
        assert_eq!(reply.field("content-range").as_deref(), Some(place), "{range}");
    }
    let beyond = stage.ask("GET", "/page", "Range: bytes=20-\r\n").await;
    assert_eq!((beyond.status, beyond.body.len()), (416, 0));
    assert_eq!(beyond.field("content-range").as_deref(), Some("bytes */20"));
    let head = stage.ask("HEAD", "/page", "Range: bytes=0-1\r\n").await;
    assert_eq!(head.status, 200, "Range is defined for GET only (RFC 9110 14.2)");
    assert_eq!(stage.origin.seen("/page"), 1);
}

#[tokio::test]
async fn several_ranges_become_one_multipart_body() {
    let stage = Stage::new().await;
    let fields = "Cache-Control: max-age=300\r\nContent-Type: text/x-digits\r\n";
    stage.origin.on("/page", Script::ok(fields, TEXT));
    stage.get("/page").await;
    let reply = stage.ask("GET", "/page", "Range: bytes=0-1,5-6,-1\r\n").await;
    assert_eq!(reply.status, 206);
    let kind = reply.field("content-type").expect("a type");
    let boundary = kind.strip_prefix("multipart/byteranges; boundary=").expect("a boundary");
    let text = reply.text();
    let parts: Vec<&str> = text.split(&format!("--{boundary}")).collect();
    // Nothing before the first part, and `--` after the last.
    assert_eq!((parts[0].trim(), parts[4].trim(), parts.len()), ("", "--", 5), "{text}");
    for (part, (place, bytes)) in
        parts[1..4].iter().zip([("0-1/20", "01"), ("5-6/20", "56"), ("19-19/20", "j")])
    {
        let (head, body) = part.split_once("\r\n\r\n").expect("a part's head");
        assert!(head.contains(&format!("Content-Range: bytes {place}")), "{head}");
        assert!(head.contains("Content-Type: text/x-digits"), "{head}");
        assert_eq!(body.strip_suffix("\r\n"), Some(bytes));
    }
    assert_eq!(reply.field("content-length"), Some(reply.body.len().to_string()));
    assert_eq!(stage.origin.seen("/page"), 1);
}

#[tokio::test]
async fn if_range_gives_the_part_only_when_the_store_has_that_version() {
    let stage = Stage::new().await;
    stage.origin.on("/page", Script::ok("Cache-Control: max-age=300\r\nETag: \"v1\"\r\n", TEXT));
    stage.get("/page").await;
    for (validator, expected) in [("\"v1\"", 206), ("\"v2\"", 200), ("W/\"v1\"", 200)] {
        let fields = format!("Range: bytes=0-4\r\nIf-Range: {validator}\r\n");
        let reply = stage.ask("GET", "/page", &fields).await;
        assert_eq!(reply.status, expected, "{validator}");
        assert_eq!(reply.body.len(), if expected == 206 { 5 } else { 20 }, "{validator}");
    }
    assert_eq!(stage.origin.seen("/page"), 1);
}

#[tokio::test]
async fn a_range_that_misses_fetches_the_whole_without_slices() {
    let stage = Setup { limits: "slices_from = 0", ..Setup::default() }.start().await;
    stage.origin.on("/page", Script::cacheable(TEXT));
    let part = stage.ask("GET", "/page", "Range: bytes=2-3\r\n").await;
    assert_eq!((part.status, part.text().as_str()), (206, "23"));
    assert_eq!(sent_field(&stage.sole_request("/page"), "range"), "");
    let rest = stage.get("/page").await;
    assert!(is_hit(&rest) && rest.text() == TEXT);
}

#[tokio::test]
async fn variants_by_encoding_are_kept_apart_in_normal_form_where_nothing_is_coded_here() {
    let stage = Setup { site: "compress = \"off\"\n", ..Setup::default() }.start().await;
    let variant = |coding: &str| {
        let fields = format!(
            "Cache-Control: max-age=300\r\nVary: Accept-Encoding\r\nContent-Encoding: {coding}\r\n"
        );
        Script::ok(&fields, coding)
    };
    stage.origin.on("/page", variant("gzip"));
    stage.ask("GET", "/page", "Accept-Encoding: deflate, GZIP;q=0.5\r\n").await;
    stage.origin.on("/page", variant("br"));
    stage.ask("GET", "/page", "Accept-Encoding: gzip, deflate, br\r\n").await;
    let asked: Vec<_> = stage.received().iter().map(|r| sent_field(r, "accept-encoding")).collect();
    assert!(
        asked.contains(&"gzip".to_owned()) && asked.contains(&"br, gzip".to_owned()),
        "{asked:?}"
    );
    for (accepted, coding) in [
        ("gzip", "gzip"),
        ("identity, gzip;q=0.1", "gzip"),
        ("br,gzip", "br"),
        ("gzip, br;q=0.2", "br"),
    ] {
        let reply = stage.ask("GET", "/page", &format!("Accept-Encoding: {accepted}\r\n")).await;
        assert!(is_hit(&reply), "{accepted}");
        assert_eq!(reply.text(), coding, "{accepted}");
        assert_eq!(reply.field("vary").as_deref(), Some("Accept-Encoding"));
    }
    assert_eq!(stage.origin.seen("/page"), 2);
    stage.origin.on("/page", variant("identity"));
    assert_eq!(stage.get("/page").await.text(), "identity");
    assert_eq!(stage.origin.seen("/page"), 3);
}

#[tokio::test]
async fn what_a_personal_request_stores_for_all_was_asked_for_in_normal_form_too() {
    let stage = Stage::new().await;
    let fields = "Cache-Control: public, max-age=300\r\nVary: Accept-Encoding\r\n";
    stage.origin.on("/page", Script::ok(fields, TEXT));
    let own = "Cookie: session=1\r\nAccept-Encoding: gzip, deflate\r\n";
    stage.ask("GET", "/page", own).await;
    assert_eq!(sent_field(&stage.sole_request("/page"), "accept-encoding"), "gzip");
    let other = stage.ask("GET", "/page", "Accept-Encoding: gzip\r\n").await;
    assert!(is_hit(&other));
}

#[tokio::test]
async fn vary_any_and_set_cookie_are_never_stored() {
    let stage = Stage::new().await;
    for (target, field) in [("/any", "Vary: *"), ("/cookie", "Set-Cookie: id=1; Path=/")] {
        let fields = format!("Cache-Control: max-age=300, public\r\n{field}\r\n");
        stage.origin.on(target, Script::ok(&fields, TEXT));
        for count in 1..=3 {
            let reply = stage.get(target).await;
            assert!(!is_hit(&reply) && reply.text() == TEXT, "{target}");
            assert_eq!(stage.origin.seen(target), count, "{target}");
        }
    }
    assert_eq!(stage.get("/cookie").await.field("set-cookie").as_deref(), Some("id=1; Path=/"));
}

const PERSONAL: [&str; 2] = ["Cookie: session=alice\r\n", "Authorization: Basic YTpi\r\n"];

#[tokio::test]
async fn personal_requests_and_ordinary_objects_never_meet() {
    let stage = Stage::new().await;
    for (number, field) in PERSONAL.into_iter().enumerate() {
        let target = format!("/page{number}");
        stage.origin.on(&target, Script::cacheable("for alice"));
        assert_eq!(stage.ask("GET", &target, field).await.text(), "for alice");
        stage.origin.on(&target, Script::cacheable("for all"));
        let plain = stage.get(&target).await;
        assert!(!is_hit(&plain) && plain.text() == "for all", "{field}");
        stage.origin.on(&target, Script::cacheable("for alice again"));
        let own = stage.ask("GET", &target, field).await;
        assert!(!is_hit(&own) && own.text() == "for alice again", "{field}");
        let plain = stage.get(&target).await;
        assert!(is_hit(&plain) && plain.text() == "for all", "{field}");
        let sent = stage.received().into_iter().filter(|r| r.target == target);
        let name = field.split(':').next().expect("a name");
        assert_eq!(sent.filter(|r| !r.values(name).is_empty()).count(), 2, "{field}");
    }
}

#[tokio::test]
async fn personal_requests_are_answered_by_what_is_public() {
    let stage = Stage::new().await;
    for (number, control) in ["public, max-age=300", "s-maxage=300"].into_iter().enumerate() {
        let target = format!("/page{number}");
        stage.origin.on(&target, Script::ok(&format!("Cache-Control: {control}\r\n"), TEXT));
        stage.get(&target).await;
        for field in PERSONAL {
            let reply = stage.ask("GET", &target, field).await;
            assert!(is_hit(&reply) && reply.text() == TEXT, "{control} {field}");
        }
        assert_eq!(stage.origin.seen(&target), 1);
    }
}

#[tokio::test]
async fn tracking_splits_nothing_and_is_not_forwarded() {
    let stage = Stage::new().await;
    stage.origin.on("/page", Script::cacheable(TEXT));
    let first = "Cookie: _ga=GA1.2.3; _fbp=fb.1\r\n";
    stage.ask("GET", "/page?a=1&utm_source=mail&fbclid=x", first).await;
    for (target, field) in [
        ("/page?a=1", ""),
        ("/page?utm_campaign=y&a=1", "Cookie: _ga=other\r\n"),
        ("/page?gclid=1&a=1&utm_medium=z", ""),
    ] {
        assert!(is_hit(&stage.ask("GET", target, field).await), "{target}");
    }
    assert_eq!(stage.origin.targets(), ["/page?a=1"]);
    assert_eq!(sent_field(&stage.sole_request("/page?a=1"), "cookie"), "");
    let other = stage.get("/page?a=2").await;
    assert!(!is_hit(&other), "parameters that mean something do split it");
}

#[tokio::test]
async fn unsafe_methods_invalidate_their_target() {
    let stage = Stage::new().await;
    for method in ["POST", "PUT", "DELETE", "PATCH"] {
        let target = format!("/{method}");
        stage.origin.on(&target, Script::cacheable("before"));
        stage.get(&target).await;
        assert!(is_hit(&stage.get(&target).await));
        stage.origin.on(&target, Script::respond("HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"));
        stage.ask(method, &target, "Content-Length: 0\r\n").await;
        assert!(is_hit(&stage.get(&target).await), "a failed {method} changes nothing");
        stage.origin.on(&target, Script::respond("HTTP/1.1 204 Done\r\n\r\n"));
        assert_eq!(stage.ask(method, &target, "Content-Length: 0\r\n").await.status, 204);
        stage.origin.on(&target, Script::cacheable("after"));
        assert_eq!(stage.get(&target).await.text(), "after", "{method}");
    }
}

#[tokio::test]
async fn unsafe_methods_invalidate_the_location_they_name_on_the_same_host() {
    let stage = Stage::new().await;
    for (number, (location, gone)) in [
        ("Location: /item", true),
        ("Location: http://larder.test/item", true),
        ("Content-Location: /item", true),
        ("Location: http://other.test/item", false),
    ]
    .into_iter()
    .enumerate()
    {
        let form = format!("/form{number}");
        stage.origin.on("/item", Script::cacheable(TEXT));
        stage.get("/item").await;
        assert!(is_hit(&stage.get("/item").await));
        let created = format!("HTTP/1.1 201 Created\r\n{location}\r\nContent-Length: 0\r\n\r\n");
        stage.origin.on(&form, Script::respond(created));
        assert_eq!(stage.ask("POST", &form, "Content-Length: 0\r\n").await.status, 201);
        assert_eq!(is_hit(&stage.get("/item").await), !gone, "{location}");
    }
}

#[tokio::test]
async fn forged_proxy_fields_never_reach_the_origin() {
    let stage = Stage::new().await;
    stage.origin.on("/page", Script::cacheable(TEXT));
    let forged = "X-Forwarded-Host: evil.example\r\nX-Forwarded-For: 203.0.113.9\r\n\
                  X-Host: evil.example\r\nForwarded: host=evil.example\r\n\
                  X-Original-URL: /evil.example\r\n";
    stage.ask("GET", "/page", forged).await;
    stage.ask("POST", "/form", &format!("{forged}Content-Length: 0\r\n")).await;
    let received = stage.received();
    assert_eq!(received.len(), 2);
    for request in received {
        assert_eq!(sent_field(&request, "x-forwarded-host"), "larder.test");
        assert_eq!(sent_field(&request, "x-forwarded-for"), "127.0.0.1");
        assert_eq!(sent_field(&request, "x-forwarded-proto"), "http");
        let evil = |value: &[u8]| value.windows(4).any(|w| w == b"evil" || w == b"203.");
        assert!(!request.fields.iter().any(|(_, value)| evil(value)), "{request:?}");
    }
    assert!(is_hit(&stage.get("/page").await));
}

#[tokio::test]
async fn spellings_of_a_host_are_one_key_and_hosts_are_many() {
    let stage = Stage::new().await;
    stage.origin.on("/page", Script::cacheable(TEXT));
    let ask = async |target: &str, host: &str| {
        let request = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n");
        stage.exchange("GET", request.as_bytes()).await
    };
    assert!(!is_hit(&ask("/page", "Shop.Example").await));
    for host in ["shop.example", "SHOP.EXAMPLE.", "shop.example:80", "Shop.example.:80"] {
        assert!(is_hit(&ask("/page", host).await), "{host}");
    }
    assert!(is_hit(&ask("http://SHOP.example/page", "shop.example").await), "absolute form");
    for host in ["other.example", "shop.example:8080", "www.shop.example"] {
        assert!(!is_hit(&ask("/page", host).await), "{host}");
        assert!(is_hit(&ask("/page", host).await), "{host}");
    }
    assert!(!is_hit(&ask("/Page", "shop.example").await), "paths keep their case");
}

#[tokio::test]
async fn errors_are_stored_only_with_explicit_freshness() {
    let stage = Stage::new().await;
    for status in [404, 410, 500, 502, 503] {
        let plain = format!("/plain{status}");
        let modified = http_date(100_000);
        let answer = |fields: &str| {
            let head = format!("HTTP/1.1 {status} Error\r\n{fields}Content-Length: 4\r\n\r\noops");
            Script::respond(head)
        };
        stage.origin.on(&plain, answer(&format!("Last-Modified: {modified}\r\n")));
        for count in 1..=2 {
            let reply = stage.get(&plain).await;
            assert_eq!((reply.status, reply.text().as_str()), (status, "oops"));
            assert_eq!(stage.origin.seen(&plain), count, "{status}");
        }
        let explicit = format!("/explicit{status}");
        stage.origin.on(&explicit, answer("Cache-Control: max-age=60\r\n"));
        stage.get(&explicit).await;
        let hit = stage.get(&explicit).await;
        assert!(is_hit(&hit) && hit.status == status, "{status}");
    }
}

#[tokio::test]
async fn only_if_cached_never_asks_the_origin() {
    let stage = Stage::new().await;
    stage.origin.on("/page", Script::cacheable(TEXT));
    let condition = "Cache-Control: only-if-cached\r\n";
    assert_eq!(stage.ask("GET", "/page", condition).await.status, 504);
    assert_eq!(stage.origin.seen("/page"), 0);
    stage.get("/page").await;
    let reply = stage.ask("GET", "/page", condition).await;
    assert_eq!((reply.status, is_hit(&reply)), (200, true));
}

#[tokio::test]
async fn an_object_larger_than_object_bytes_passes_whole_and_is_not_stored() {
    let limits = "object_bytes = \"64KiB\"\nwindow_bytes = \"16KiB\"";
    let stage = Setup { limits, ..Setup::default() }.start().await;
    let body = String::from_utf8(support::pattern(1 << 20)).expect("letters");
    stage.origin.on("/length", Script::cacheable(&body));
    let head = "HTTP/1.1 200 OK\r\nCache-Control: max-age=300\r\n";
    let chunked = Script::respond(format!("{head}Transfer-Encoding: chunked\r\n\r\n"));
    let chunks = body.as_bytes().chunks(10_000).fold(chunked, |script, chunk| {
        let text = String::from_utf8_lossy(chunk);
        script.send(format!("{:x}\r\n{text}\r\n", chunk.len()))
    });
    stage.origin.on("/chunked", chunks.send("0\r\n\r\n"));
    stage.origin.on("/close", Script::respond(format!("{head}\r\n{body}")).close());
    for target in ["/length", "/chunked", "/close"] {
        for count in 1..=2 {
            let reply = stage.get(target).await;
            assert!(reply.text() == body, "{target}: {} bytes", reply.body.len());
            assert_eq!(stage.origin.seen(target), count, "{target}");
        }
    }
}
