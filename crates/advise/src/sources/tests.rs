//! Lines of logs as their servers write them.

use observe::record::Served;

use super::*;

fn read(line: &str) -> Visit {
    parse_line(line).unwrap_or_else(|| panic!("{line}"))
}

#[test]
fn common_and_combined_lines_of_apache_and_nginx_are_read() {
    let visit =
        read("203.0.113.9 - frank [10/Oct/2000:13:55:36 -0700] \"GET /a?b=c HTTP/1.0\" 200 5");
    assert_eq!(visit.at_ms, 971_211_336_000);
    assert_eq!((&visit.method[..], &visit.target[..]), ("GET", &b"/a?b=c"[..]));
    assert_eq!((visit.status, visit.body_bytes), (200, 5));
    assert_eq!(visit.client, "203.0.113.9".parse().ok());
    let visit = read(
        "shop.test:443 203.0.113.9 - - [10/Oct/2000:13:55:36 +0000] \"GET / HTTP/1.1\" 304 - \"-\" \
         \"Moz \\\"x\\\" \\x22\"",
    );
    assert_eq!((&visit.host[..], visit.status, visit.body_bytes), ("shop.test", 304, 0));
    assert_eq!(visit.field("user-agent"), Some(&b"Moz \"x\" \""[..]));
    assert_eq!(visit.field("referer"), None);
}

#[test]
fn values_behind_the_combined_format_are_told_apart_by_their_form() {
    let start = "192.0.2.1 - - [10/Oct/2000:13:55:36 +0000] \"GET / HTTP/1.1\" 200 5 \"-\" \"M\" ";
    let visit = read(&format!("{start}0.120 0.118 HIT \"a=1; b=2\" shop.test"));
    assert_eq!((visit.served, visit.fetch_us), (Some(Served::Hit), None));
    assert_eq!(visit.field("cookie"), Some(&b"a=1; b=2"[..]));
    assert_eq!(visit.host, "shop.test");
    let visit = read(&format!("{start}rt=0.120 urt=\"0.100, 0.050\" ucs=MISS host=a.test:8080"));
    assert_eq!((visit.served, visit.fetch_us), (Some(Served::Miss), Some(50_000)));
    assert_eq!(visit.host, "a.test");
}

#[test]
fn json_lines_name_their_values_as_their_servers_do() {
    let visit = read(concat!(
        r#"{"time_iso8601":"2026-12-01T01:00:00+01:00","remote_addr":"192.0.2.1","#,
        r#""request":"GET /x HTTP/2.0","status":"200","body_bytes_sent":"7","#,
        r#""request_time":"0.5","upstream_response_time":"0.25","http_host":"A.test","#,
        r#""http_cookie":"s=1","upstream_http_vary":"User-Agent"}"#,
    ));
    assert_eq!((visit.at_ms, visit.fetch_us), (1_796_083_200_000, Some(250_000)));
    assert_eq!((&visit.host[..], visit.body_bytes), ("a.test", 7));
    assert_eq!(visit.field("cookie"), Some(&b"s=1"[..]));
    assert_eq!(visit.response_field("vary"), Some(&b"User-Agent"[..]));
    let caddy = read(concat!(
        r#"{"level":"info","ts":1646861401.5,"request":{"remote_ip":"::1","#,
        r#""method":"GET","host":"c.test","uri":"/a?b","#,
        r#""headers":{"User-Agent":["curl"]},"tls":{"version":772}},"duration":0.001,"#,
        r#""size":10,"status":200,"resp_headers":{"Etag":["\"x\""]}}"#,
    ));
    assert!(caddy.is_tls);
    assert_eq!((caddy.at_ms, &caddy.target[..]), (1_646_861_401_500, &b"/a?b"[..]));
    assert_eq!(caddy.response_field("etag"), Some(&b"\"x\""[..]));
    let own = read(concat!(
        r#"{"time":1646861401.500,"client":"127.0.0.1","status":200,"bytes":3,"#,
        r#""ms":2.5,"ttfb_ms":2.0,"cache":"MISS","method":"GET","host":"l.test","#,
        r#""target":"/","not_stored":"private","class":"ai"}"#,
    ));
    assert_eq!((own.served, own.fetch_us), (Some(Served::Miss), Some(2_000)));
    assert_eq!((&own.not_stored[..], &own.class[..]), ("private", "ai"));
}

#[test]
fn lines_of_haproxy_and_varnishncsa_are_read() {
    let visit = read(
        "Feb  6 12:14:14 h haproxy[1]: 192.0.2.1:33317 [06/Feb/2009:12:14:14.655] web~ s/srv1 \
         10/0/30/69/109 200 2750 - - ---- 1/1/1/1/0 0/0 {shop.test|x} {} \"GET /i.html HTTP/1.1\"",
    );
    assert_eq!((visit.at_ms, visit.fetch_us), (1_233_922_454_655, Some(99_000)));
    assert_eq!((&visit.host[..], visit.is_tls), ("shop.test", true));
    let visit = read(
        "192.0.2.1 - - [10/Oct/2000:13:55:36 +0000] \"GET http://V.test/a HTTP/1.1\" 200 5 \"-\" \"M\"",
    );
    assert_eq!((&visit.host[..], &visit.target[..]), ("v.test", &b"/a"[..]));
}

#[test]
fn a_log_is_read_to_its_end_and_its_last_visits_are_kept() {
    let line =
        |n| format!("192.0.2.1 - - [10/Oct/2000:13:55:36 +0000] \"GET /{n} HTTP/1.1\" 200 5\n");
    let text = format!("#comment\n{}nonsense\n{}{}", line(1), line(2), line(3));
    let log = read_log(text.as_bytes(), 2).expect("text");
    let targets: Vec<_> = log.visits.iter().map(|visit| &visit.target[..]).collect();
    assert_eq!(targets, [b"/2", b"/3"]);
    assert_eq!((log.unread, log.first_unread), (1, Some((3, "nonsense".to_owned()))));
}

#[test]
fn requests_that_could_not_be_read_are_no_visits() {
    for line in [
        "192.0.2.1 - - [10/Oct/2000:13:55:36 +0000] \"-\" 400 0",
        "192.0.2.1 - - [10/Oct/2000:13:55:36 +0000] \"\\x16\\x03\" 400 0",
        "{}",
        "{\"time\":1}",
        "",
    ] {
        assert_eq!(parse_line(line), None, "{line}");
    }
}

#[test]
fn an_offset_that_is_none_makes_no_visit_and_no_failure() {
    for zone in ["\u{fffd}0100", "+00999999999999999999", "+", "-", "\u{20ac}"] {
        let line =
            format!("192.0.2.1 - - [10/Oct/2026:13:55:36 {zone}] \"GET / HTTP/1.1\" 200 5\n");
        let read = read_log(line.as_bytes(), 10).expect("it is read");
        assert_eq!(read.visits.len() + usize::from(read.first_unread.is_some()), 1, "{zone}");
    }
}
