//! Formats are written as expected, and invalid ones are rejected.

use super::*;
use crate::heads::{Field, Heads};
use crate::record::{Phases, Served};
use crate::suite::CipherSuite;

fn heads() -> Vec<u8> {
    let mut heads = Heads::default();
    for (side, name, value) in [
        (HeadSide::Req, "Host", "Example.com:81"),
        (HeadSide::Req, "Authorization", "Basic dTpw"),
        (HeadSide::Req, "Cookie", "a=1; ab=3"),
        (HeadSide::Req, "Cookie", "b=2"),
        (HeadSide::Bereq, "X-Id", "b"),
        (HeadSide::Beresp, "X-Id", "\"1\"\n"),
        (HeadSide::Resp, "X-Cache", "HIT"),
        (HeadSide::Resp, "x-cache", "MISS"),
    ] {
        let (name, value) = (name.as_bytes(), value.as_bytes());
        heads.add(usize::MAX, Field { side, name, value });
    }
    heads.bytes().to_vec()
}

fn written(format: &str, json: bool, view: TransactionView) -> String {
    let record = Record {
        id: 0xab,
        start_unix_ms: 1_795_600_000_250,
        status: 404,
        origin_status: 500,
        version: 11,
        suite: CipherSuite(0x1301),
        served: Served::Miss,
        client: Some([192, 0, 2, 1].into()),
        method: b"GET",
        host: b"example.com",
        target: b"/a?b=c&d=\"",
        site: b"example.com",
        rule: b"images",
        route: b"/img/*",
        server: b"http://127.0.0.2:8080",
        not_stored: b"no-store",
        head_in: 100,
        head_out: 200,
        body_out: 7,
        vcl: b"VCL_Log class: one \nVCL_Log class:two\nrecv a.vcl:3 pass",
        phases: Phases {
            fetch: Some(1_000),
            head: Some(2_500),
            reply: Some(3_000),
            end: 1_234_567,
            ..Phases::default()
        },
        ..Record::default()
    };
    let mut bytes = Vec::new();
    record.with_derived_flags().write([Some(&b"curl/8"[..]), None], &mut bytes);
    crate::record::add_heads(&mut bytes, 0, &heads(), false);
    let (record, _) = Record::read(&bytes).expect("a record");
    let fields = FieldPositions::new(&["User-Agent", "Referer"].map(str::to_owned));
    let mut out = Vec::new();
    Pattern::parse(format, json).expect("a format").write(&record, &fields, view, &mut out);
    String::from_utf8(out).expect("text")
}

fn of(format: &str) -> String {
    written(format, false, TransactionView::Client).trim_end_matches('\n').to_owned()
}

#[test]
fn formatters_of_varnishncsa_say_what_they_say_there() {
    for (format, text) in [
        (
            "%h %l %u %t \"%r\" %s %b",
            "192.0.2.1 - u [25/Nov/2026:09:46:40 +0000] \"GET \
          http://Example.com:81/a?b=c&d=\\\" HTTP/1.1\" 404 7",
        ),
        ("%m %U %q %H", "GET /a ?b=c&d=\\\" HTTP/1.1"),
        ("%D %T %{ms}T %{us}T %{s}T", "1234567 1 1234 1234567 1"),
        ("%I %O", "100 207"),
        ("%{User-agent}i %{referer}i %{X-Cache}o %{nope}o", "curl/8 - MISS -"),
        ("%{Varnish:hitmiss}x %{Varnish:handling}x %{Varnish:side}x", "miss miss c"),
        ("%{Varnish:time_firstbyte}x %{Varnish:vxid}x", "0.003000 ab"),
        ("%{VCL_Log:class}x %{VCL_Log:other}x", "two -"),
        ("%{Larder:route}x", "/img/*"),
        ("%{Larder:rule}x %{Larder:not_stored}x %{Larder:limit}x", "images no-store -"),
        (
            "%{%Y-%m-%dT%H:%M:%S}t %{sec}t %{msec}t %{msec_frac}t %{usec_frac}t",
            "2026-11-25T09:46:40 1795600000 1795600000250 250 250000",
        ),
        (
            "%{%a %A %b %B %e %j %I %p %y %u %D %F %T %%}t",
            "Wed Wednesday Nov November 25 329 09 AM 26 3 11/25/26 2026-11-25 09:46:40 %",
        ),
        ("%{SSL_PROTOCOL}x %{SSL_CIPHER}x", "TLSv1.3 TLS_AES_128_GCM_SHA256"),
        ("a\\tb\\n%%", "a\tb\n%"),
    ] {
        assert_eq!(of(format), text, "{format}");
    }
}

#[test]
fn variables_of_nginx_say_what_they_say_there() {
    for (format, text) in [
        (
            "$remote_addr - $remote_user [$time_local] \"$request\" $status $body_bytes_sent",
            "192.0.2.1 - u [25/Nov/2026:09:46:41 +0000] \"GET /a?b=c&d=\\x22 HTTP/1.1\" 404 7",
        ),
        (
            "$http_user_agent|$http_referer|$sent_http_x_cache|$upstream_http_x_id",
            "curl/8|-|HIT, MISS|\\x221\\x22\\x0A",
        ),
        (
            "$request_method $request_uri $uri $args $is_args ${arg_b}x$arg_z",
            "GET /a?b=c&d=\\x22 /a b=c&d=\\x22 ? cx-",
        ),
        ("$bytes_sent $request_length $request_time", "207 100 1.234"),
        ("$upstream_addr $upstream_status $upstream_cache_status", "127.0.0.2:8080 500 MISS"),
        ("$upstream_header_time $upstream_response_time", "0.001 1.233"),
        ("$scheme $host $server_name $server_protocol", "http example.com example.com HTTP/1.1"),
        ("$ssl_protocol $ssl_cipher", "TLSv1.3 TLS_AES_128_GCM_SHA256"),
        ("$time_iso8601 $msec", "2026-11-25T09:46:41+00:00 1795600001.484"),
        ("$larder_time_total $larder_rule", "1234567 images"),
        ("$larder_route", "/img/*"),
    ] {
        assert_eq!(of(format), text, "{format}");
    }
}

#[test]
fn the_origins_side_has_its_own_values() {
    let format = "%h %s %D %{Varnish:time_firstbyte}x %{Varnish:side}x %{X-Id}i %{X-Id}o";
    let line = written(format, false, TransactionView::Backend);
    // The client's TLS parameters are not those of the connection to the origin.
    assert_eq!(written("$ssl_protocol $ssl_cipher", false, TransactionView::Backend), "- -\n");
    assert_eq!(line, "127.0.0.2 500 1233567 0.001500 b b \\\"1\\\"\\n\n");
}

#[test]
fn json_can_be_made_of_it() {
    let format = r#"{"size": %b, "ua": "%{User-Agent}i", "x": "%{X-Id}o", "none": "%{nope}i"}"#;
    let line = written(format, true, TransactionView::Backend);
    let read: serde_json::Value = serde_json::from_str(&line).expect("JSON");
    assert_eq!(read["x"], "\"1\"\n");
    assert_eq!((&read["size"], &read["none"]), (&7.into(), &"".into()));
}

#[test]
fn what_is_not_known_is_named() {
    for (format, part) in [
        ("%z", "`%z` is no formatter; there are %a %b"),
        ("%{Varnish:hitmis}x", "did you mean `%{Varnish:hitmiss}x`?"),
        ("%{}i", "the braces need a name"),
        ("%{X", "the `}` is missing"),
        ("%{X}z", "one of i, o, C, t, T and x"),
        ("%{Varnish:nope}x", "Varnish:vxid"),
        ("%{VSL:Bigin[2]}x", "there is no tag `Bigin`"),
        ("%{VSL:Begin[0]}x", "a field is a number from 1 on"),
        ("%{Larder:rul}x", "did you mean `rule`"),
        ("%{%Q}t", "`%Q` is no part of a date"),
        ("%", "ends with `%`"),
        ("$nope", "`$nope` is not known; there are remote_addr"),
        ("%h $remote_adr", "`$remote_adr` is not known; did you mean `$remote_addr`?"),
        ("$http_", "`$http_` is not known"),
        ("$larder_rul", "did you mean `rule`"),
        ("${status", "the `}` is missing"),
        ("$", "`$` without a name"),
    ] {
        let said = Pattern::parse(format, false).expect_err(format);
        assert!(said.to_string().contains(part), "{format}: {said}");
    }
}

#[test]
fn it_knows_which_fields_it_needs() {
    let of = |format| Pattern::parse(format, false).expect("a format").headers();
    assert_eq!(of("%h %{X-A}i %{x-a}o %{B}o"), ["x-a", "b"]);
    assert_eq!(of("$http_x_a $remote_user $status"), ["x-a", "authorization"]);
    assert_eq!(of("%r"), ["host"]);
}

#[test]
fn both_kinds_stand_in_one_line_and_each_is_escaped_as_its_own() {
    assert_eq!(
        of("%h|$remote_addr|%q|$args|$5|%%"),
        "192.0.2.1|192.0.2.1|?b=c&d=\\\"|b=c&d=\\x22|$5|%"
    );
    assert_eq!(of("%>s %a %B %v %V %S"), "404 192.0.2.1 7 example.com example.com 307");
}

#[test]
fn fields_of_one_name_are_joined_as_nginx_does_and_the_last_is_varnishncsas() {
    assert_eq!(of("$sent_http_x_cache %{X-Cache}o"), "HIT, MISS MISS");
    assert_eq!(of("$cookie_b|$cookie_z|%{a}C"), "2|-|1");
}

#[test]
fn a_mistake_says_where_it_stands() {
    for (format, wrong) in [
        ("%h %{X}z %s", "%{X}z"),
        ("%h $hos $host", "$hos"),
        ("a ${nope}b", "${nope}"),
        ("%h %\u{e9}", "%\u{e9}"),
        ("%h %", "%"),
        ("%h %{X", "%{X"),
        ("$5", "$5"),
    ] {
        let error = Pattern::parse(format, false).expect_err(format);
        assert_eq!(format.get(error.span), Some(wrong), "{format}");
    }
}

proptest::proptest! {
    #[test]
    fn text_without_signs_is_written_as_it_stands(text in "[^%$\n]{0,40}") {
        proptest::prop_assert_eq!(of(&text), text);
    }

    #[test]
    fn no_text_makes_it_fail(
        text in "([%$\\\\{}<>]|[a-zA-Z_:-]{1,12}|http_|Varnish:|\\PC){0,12}",
    ) {
        crate::fuzz::log_format(text.as_bytes());
    }

    #[test]
    fn known_parts_in_any_order_are_a_format(parts: Vec<u8>) {
        let known = ["%h", "$status", "%{X-A}i", "$http_x_a", "%{ms}T", "%%", "é", " ", "${msec}"];
        let text: String = parts.iter().map(|n| known[usize::from(*n) % known.len()]).collect();
        proptest::prop_assert!(Pattern::parse(&text, false).is_ok(), "{}", text);
    }
}
