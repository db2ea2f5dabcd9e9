//! Tests of traces: W3C trace context towards origins, and spans at a collector.

use crate::support;

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;
use support::collector::{Answer, CLIENT, Collector, ERROR, SERVER, Span, attribute};
use support::console::Ask;
use support::tls::{Authority, Kind};
use support::{Setup, Stage, is_hit, sent_field};
use testkit::larder::binary;
use testkit::origin::Script;
use tokio::net::TcpListener;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN: &str = "00f067aa0ba902b7";

fn traceparent(flags: &str) -> String {
    format!("traceparent: 00-{TRACE}-{SPAN}-{flags}\r\n")
}

/// A daemon that exports a share of its traces to it.
async fn staged(collector: &Collector, sample: &str) -> Stage {
    let port = collector.port;
    let top =
        format!("tracing = {{ endpoint = \"http://127.0.0.1:{port}/otlp\", sample = {sample} }}\n");
    Setup { top: &top, ..Setup::default() }.start().await
}

#[tokio::test]
async fn a_clients_trace_continues_and_is_exported() {
    let collector = Collector::start().await;
    let stage = staged(&collector, "0").await;
    stage.origin.on("/page?a=b", Script::ok("Cache-Control: max-age=600\r\n", "a page"));
    let fields = format!("{}tracestate: vendor=value\r\n", traceparent("01"));
    stage.ask("GET", "/page?a=b", &fields).await;
    let spans = collector.spans(2).await;
    let (server, client) = (&spans[0], &spans[1]);
    assert_eq!((&*server.trace(), &*client.trace()), (TRACE, TRACE));
    assert_eq!((server.kind, client.kind), (SERVER, CLIENT));
    assert_eq!((server.parent(), client.parent()), (SPAN.to_owned(), server.id()));
    let sent = stage.sole_request("/page?a=b");
    let context = format!("00-{TRACE}-{}-01", client.id());
    assert_eq!(sent_field(&sent, "traceparent"), context);
    assert_eq!(sent_field(&sent, "tracestate"), "vendor=value");
    for (key, value) in [
        ("http.request.method", "GET"),
        ("url.path", "/page"),
        ("url.query", "a=b"),
        ("url.scheme", "http"),
        ("server.address", "larder.test"),
        ("client.address", "127.0.0.1"),
        ("http.response.status_code", "200"),
        ("network.protocol.version", "1.1"),
        ("larder.served", "MISS"),
    ] {
        assert_eq!(attribute(server, key), value, "{key}");
    }
    let port = stage.origin.addr().port().to_string();
    for (key, value) in [
        ("larder.origin", "app"),
        ("http.request.method", "GET"),
        ("http.response.status_code", "200"),
        ("url.full", "http://larder.test/page?a=b"),
        ("server.address", "127.0.0.1"),
        ("server.port", &port),
    ] {
        assert_eq!(attribute(client, key), value, "{key}");
    }
    assert_eq!((&*server.state, &*client.state), ("vendor=value", "vendor=value"));
    let times = [server.start_ns, client.start_ns, client.end_ns, server.end_ns];
    assert!(times.is_sorted() && times[0] > 1_700_000_000_000_000_000, "{times:?}");
    // A hit sends no request.
    assert!(is_hit(&stage.ask("GET", "/page?a=b", &traceparent("01")).await));
    let spans = collector.spans(3).await;
    assert_eq!(attribute(&spans[2], "larder.served"), "HIT");
    assert_eq!(spans[2].parent(), SPAN);
    stage.daemon.assert_metric("larder_trace_spans_total", 3).await;
}

#[tokio::test]
async fn an_unsampled_trace_continues_and_is_not_exported() {
    let collector = Collector::start().await;
    let stage = staged(&collector, "0.0").await;
    stage.ask("GET", "/not-sampled", &traceparent("00")).await;
    stage.get("/none").await;
    stage.ask("GET", "/malformed", "traceparent: 00-x\r\ntracestate: a=b\r\n").await;
    let sent = sent_field(&stage.sole_request("/not-sampled"), "traceparent");
    assert!(sent.starts_with(&format!("00-{TRACE}-")) && sent.ends_with("-00"), "{sent}");
    assert!(!sent.contains(SPAN));
    for target in ["/none", "/malformed"] {
        let request = stage.sole_request(target);
        assert_eq!(sent_field(&request, "traceparent"), "", "{target}");
        assert_eq!(sent_field(&request, "tracestate"), "", "{target}");
    }
    // The next request is exported, and they are not.
    stage.ask("GET", "/sampled", &traceparent("01")).await;
    for span in collector.spans(2).await {
        assert_eq!(span.trace(), TRACE);
        assert!(["/sampled", ""].contains(&attribute(&span, "url.path").as_str()), "{span:?}");
    }
}

#[tokio::test]
async fn traces_are_begun_where_none_is_brought() {
    let collector = Collector::start().await;
    let stage = staged(&collector, "1").await;
    stage.origin.on("/page", Script::ok("Cache-Control: max-age=600\r\n", "a page"));
    stage.get("/page").await;
    let spans = collector.spans(2).await;
    let (trace, span) = (spans[1].trace(), spans[1].id());
    let context = format!("00-{trace}-{span}-01");
    assert_eq!(sent_field(&stage.sole_request("/page"), "traceparent"), context);
    assert_eq!((&spans[0].trace(), &*spans[0].parent()), (&trace, ""));
    assert!(is_hit(&stage.get("/page").await));
    let hit = &collector.spans(3).await[2];
    assert_ne!(hit.trace(), trace);
    // An error is one of its span's.
    stage.origin.on("/broken", Script::respond("HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n"));
    stage.get("/broken").await;
    let spans = collector.spans(5).await;
    let broken = spans.iter().find(|span| attribute(span, "url.path") == "/broken");
    let code = |span: Option<&Span>| span.and_then(|span| Some(span.status.as_ref()?.code));
    assert_eq!(code(broken), Some(ERROR));
    let asked = spans.iter().find(|span| attribute(span, "url.full").ends_with("/broken"));
    assert_eq!((code(asked), code(spans.first())), (Some(ERROR), None));
}

#[tokio::test]
async fn two_contexts_are_none_to_the_origin_and_to_the_collector() {
    let collector = Collector::start().await;
    let stage = staged(&collector, "1").await;
    stage.origin.on("/page", Script::ok("Cache-Control: max-age=600\r\n", "a page"));
    let other = traceparent("01").replace(TRACE, "0af7651916cd43dd8448eb211c80319c");
    let fields = format!("{}{other}tracestate: a=b\r\n", traceparent("01"));
    stage.ask("GET", "/page", &fields).await;
    let sent = sent_field(&stage.sole_request("/page"), "traceparent");
    let spans = collector.spans(2).await;
    for span in &spans {
        let trace = span.trace();
        assert!(trace != TRACE && sent.contains(&trace), "{sent}: {span:#?}");
        assert_eq!(span.state, "");
    }
    assert_eq!(spans[0].parent(), "");
    assert!(sent.contains(&spans[1].id()));
    // A hit is in none of the two, either.
    assert!(is_hit(&stage.ask("GET", "/page", &fields).await));
    assert_ne!(collector.spans(3).await[2].trace(), TRACE);
}

#[tokio::test]
async fn spans_that_nobody_takes_are_dropped_and_counted() {
    // Nothing listens there.
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("bound").port();
    drop(listener);
    let top = format!("tracing = {{ endpoint = \"http://127.0.0.1:{port}\", sample = 1 }}\n");
    let setup = Setup { top: &top, limits: "trace_retry = \"1s\"\n", ..Setup::default() };
    let stage = setup.start().await;
    stage.origin.on("/page", Script::ok("Cache-Control: no-store\r\n", "a page"));
    for _ in 0..20 {
        assert_eq!(stage.get("/page").await.status, 200);
    }
    support::eventually("all are counted", async || {
        stage.metric("larder_trace_spans_dropped_total").await >= 40
    })
    .await;
    assert_eq!(stage.metric("larder_trace_spans_total").await, 0);
    stage.daemon.assert_logged("larder: traces do not reach the collector: 127.0.0.1:").await;
    assert!(stage.limit_hits("trace_retry").await >= 1);
}

/// Sends a request that makes two spans.
async fn traced(stage: &Stage, target: &str) {
    stage.origin.on(target, Script::ok("Cache-Control: no-store\r\n", "a page"));
    stage.ask("GET", target, &traceparent("01")).await;
}

#[tokio::test]
async fn a_collector_of_a_vendor_is_reached_over_tls_with_its_key() {
    let authority = Authority::new();
    authority.sign("collector", &["127.0.0.1"], Kind::Elliptic);
    let collector = Collector::secure(authority.acceptor("collector")).await;
    authority.put("key", "Bearer hush-hush\n");
    fs::set_permissions(authority.path("key"), Permissions::from_mode(0o600)).expect("a mode");
    let (port, ca, key) = (collector.port, authority.path("ca.pem"), authority.path("key"));
    let top = format!(
        "[tracing]\nendpoint = \"https://127.0.0.1:{port}/otlp\"\nca = \"{ca}\"\nsample = 0\n\
         headers = {{ x-team = \"web-hush\", authorization = {{ file = \"{key}\" }} }}\n"
    );
    let stage = Setup { top: &top, ..Setup::default() }.start().await;
    traced(&stage, "/one").await;
    collector.spans(2).await;
    traced(&stage, "/two").await;
    collector.spans(4).await;
    assert_eq!(collector.connections(), 1, "it is kept");
    for head in collector.heads() {
        for line in [
            "Host: 127.0.0.1",
            "Content-Encoding: gzip",
            "x-team: web-hush",
            "authorization: Bearer hush-hush",
        ] {
            assert!(head.contains(&format!("\r\n{line}")), "{line}: {head}");
        }
    }
    // A key is renewed by a reload; an unusable one changes nothing.
    let reload = async || Ask::post("/reload", &Value::Null).send_locally(&stage.daemon).await;
    authority.put("key", "Bearer hush-anew\n");
    let refused = reload().await;
    assert!(refused.status >= 400 && refused.text().contains("everyone may read it"));
    fs::set_permissions(authority.path("key"), Permissions::from_mode(0o640)).expect("a mode");
    assert_eq!(reload().await.status, 200);
    collector.answer([Answer::refusal(403, "", "not for hush-anew")]);
    traced(&stage, "/three").await;
    stage
        .daemon
        .assert_logged("traces do not reach the collector: it answers 403: not for ...")
        .await;
    traced(&stage, "/four").await;
    collector.spans(6).await;
    stage.daemon.assert_logged("larder: traces reach the collector again").await;
    let head = collector.heads().pop().expect("a head");
    assert!(head.contains("\r\nauthorization: Bearer hush-anew\r\n"), "{head}");
    stage.daemon.assert_metric("larder_trace_spans_dropped_total", 2).await;
    // It is shown to no caller.
    let shown = stage.daemon.ask_admin("GET", "/api/v1/config").await.expect("an answer").text();
    let mut check = Command::new(binary().expect("a binary"));
    let check = check.args(["check", "--show"]).arg(stage.daemon.config_file()).output();
    let check = check.expect("it runs");
    assert!(check.status.success(), "{check:?}");
    let check = String::from_utf8_lossy(&check.stdout).into_owned();
    for text in [stage.daemon.log(), refused.text(), shown, check] {
        assert!(!text.is_empty() && !text.contains("hush"), "{text}");
    }
}

#[tokio::test]
async fn an_untrusted_collector_gets_nothing() {
    let (authority, other) = (Authority::new(), Authority::new());
    authority.sign("collector", &["127.0.0.1"], Kind::Elliptic);
    let collector = Collector::secure(authority.acceptor("collector")).await;
    let (port, ca) = (collector.port, other.path("ca.pem"));
    let top = format!(
        "tracing = {{ endpoint = \"https://127.0.0.1:{port}/otlp\", ca = \"{ca}\", sample = 1 }}\n"
    );
    let stage = Setup { top: &top, ..Setup::default() }.start().await;
    stage.get("/page").await;
    let told = format!("traces do not reach the collector: 127.0.0.1:{port}: cannot connect: ");
    stage.daemon.assert_logged(&told).await;
    assert!(collector.heads().is_empty());
}

#[tokio::test]
async fn what_a_collector_cannot_take_yet_is_kept_for_it() {
    let collector = Collector::start().await;
    collector.answer([
        Answer::refusal(503, "Retry-After: 2\r\n", ""),
        Answer::refusal(429, "", "slowly"),
    ]);
    let stage = staged(&collector, "0").await;
    traced(&stage, "/one").await;
    stage.daemon.assert_logged("larder: traces do not reach the collector: it answers 503").await;
    let began = Instant::now();
    traced(&stage, "/two").await;
    let spans = collector.spans(4).await;
    assert!(began.elapsed() > Duration::from_millis(1_500), "{:?}", began.elapsed());
    let asked = |path: &str| spans.iter().any(|span| attribute(span, "url.path") == path);
    assert!(asked("/one") && asked("/two"));
    stage.daemon.assert_metric("larder_trace_spans_total", 4).await;
    stage.daemon.assert_metric("larder_trace_retries_total", 2).await;
    stage.daemon.assert_metric("larder_trace_spans_dropped_total", 0).await;
    stage.daemon.assert_logged("larder: traces reach the collector again").await;
}

#[tokio::test]
async fn rejected_spans_count_as_dropped_and_are_logged_once() {
    let collector = Collector::start().await;
    let rejecting = || Answer::rejecting(1, "too old");
    collector.answer([rejecting(), rejecting()]);
    let port = collector.port;
    let top = format!(
        "tracing = {{ endpoint = \"http://127.0.0.1:{port}/otlp\", sample = 0, \
         compression = \"none\" }}\n"
    );
    let stage = Setup { top: &top, ..Setup::default() }.start().await;
    for (target, count) in [("/one", 2), ("/two", 4)] {
        traced(&stage, target).await;
        collector.spans(count).await;
    }
    stage.daemon.assert_metric("larder_trace_spans_total", 2).await;
    stage.daemon.assert_metric("larder_trace_spans_dropped_total", 2).await;
    let log = stage.daemon.assert_logged("the collector of traces rejects 1 spans: too old").await;
    assert_eq!(log.matches("rejects").count(), 1, "{log}");
    assert!(collector.heads().iter().all(|head| !head.contains("Content-Encoding")));
}

#[tokio::test]
async fn beyond_the_limit_spans_are_dropped() {
    let collector = Collector::start().await;
    let port = collector.port;
    let top = format!("tracing = {{ endpoint = \"http://127.0.0.1:{port}/otlp\", sample = 1 }}\n");
    let setup = Setup { top: &top, limits: "trace_spans = 2\n", ..Setup::default() };
    let stage = setup.start().await;
    // More than the ring is polled while they are made.
    support::eventually("some are dropped", async || {
        stage.get("/page").await;
        stage.metric("larder_trace_spans_dropped_total").await > 0
    })
    .await;
    assert!(stage.limit_hits("trace_spans").await >= 1);
}

#[tokio::test]
async fn without_the_table_trace_context_passes_through() {
    let stage = Stage::new().await;
    stage.ask("GET", "/page", &traceparent("01")).await;
    let sent = sent_field(&stage.sole_request("/page"), "traceparent");
    assert_eq!(sent, format!("00-{TRACE}-{SPAN}-01"));
}

#[tokio::test]
async fn server_timing_says_how_a_request_was_served_where_a_site_wants_it() {
    for (site, told) in [("server_timing = true\n", true), ("", false)] {
        let stage = Setup { site, ..Setup::default() }.start().await;
        stage.origin.on("/page", Script::ok("Cache-Control: max-age=600\r\n", "a page"));
        let timing = async || stage.get("/page").await.field("server-timing");
        let (first, second) = (timing().await, timing().await);
        let Some((cache, origin)) = first.as_deref().and_then(|first| first.split_once(", "))
        else {
            assert!(!told && first.is_none() && second.is_none(), "{first:?} {second:?}");
            continue;
        };
        assert_eq!((cache, second.as_deref()), ("cache;desc=\"MISS\"", Some("cache;desc=\"HIT\"")));
        let took = origin.strip_prefix("origin;dur=").expect("how long it took");
        assert!(took.parse::<f64>().is_ok_and(|ms| ms > 0.0), "{took}");
        assert!(told);
    }
}
