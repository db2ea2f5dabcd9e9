//! Traces: W3C trace context towards origins, and spans at a collector.

use crate::support;

use std::sync::Arc;

use serde_json::{Value, json};
use support::collector::{Collector, attribute};
use support::{Setup, Stage, is_hit, sent_field};
use testkit::origin::Script;
use tokio::net::TcpListener;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN: &str = "00f067aa0ba902b7";

fn traceparent(flags: &str) -> String {
    format!("traceparent: 00-{TRACE}-{SPAN}-{flags}\r\n")
}

/// A daemon that tells it of a part of its traces.
async fn staged(collector: &Collector, sample: &str) -> Stage {
    let port = collector.port;
    let top =
        format!("tracing = {{ endpoint = \"http://127.0.0.1:{port}/otlp\", sample = {sample} }}\n");
    Setup { top: &top, ..Setup::default() }.start().await
}

fn time(span: &Value, name: &str) -> u128 {
    span[name].as_str().expect("a text").parse().expect("digits")
}

#[tokio::test]
async fn a_trace_that_a_client_brings_goes_on_and_is_told() {
    let collector = Collector::start().await;
    let stage = staged(&collector, "0").await;
    stage.origin.on("/page?a=b", Script::ok("Cache-Control: max-age=600\r\n", "a page"));
    let fields = format!("{}tracestate: vendor=value\r\n", traceparent("01"));
    stage.ask("GET", "/page?a=b", &fields).await;
    let spans = collector.spans(2).await;
    let (server, client) = (&spans[0], &spans[1]);
    assert_eq!(
        (server["traceId"].as_str(), client["traceId"].as_str()),
        (Some(TRACE), Some(TRACE))
    );
    assert_eq!((server["kind"].as_u64(), client["kind"].as_u64()), (Some(2), Some(3)));
    assert_eq!(server["parentSpanId"], SPAN);
    assert_eq!(client["parentSpanId"], server["spanId"]);
    let sent = stage.sole_request("/page?a=b");
    let context = format!("00-{TRACE}-{}-01", client["spanId"].as_str().expect("a span"));
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
    assert_eq!(
        (&server["traceState"], &client["traceState"]),
        (&json!("vendor=value"), &json!("vendor=value"))
    );
    let (start, end) = ("startTimeUnixNano", "endTimeUnixNano");
    assert!(time(server, start) <= time(client, start));
    assert!(time(client, start) <= time(client, end) && time(client, end) <= time(server, end));
    // A hit asks nobody.
    assert!(is_hit(&stage.ask("GET", "/page?a=b", &traceparent("01")).await));
    let spans = collector.spans(3).await;
    assert_eq!(attribute(&spans[2], "larder.served"), "HIT");
    assert_eq!(spans[2]["parentSpanId"], SPAN);
    stage.daemon.counted("larder_trace_spans_total", 3).await;
}

#[tokio::test]
async fn what_is_not_sampled_goes_on_untold() {
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
    // What comes after them is told, and they are not.
    stage.ask("GET", "/sampled", &traceparent("01")).await;
    for span in collector.spans(2).await {
        assert_eq!(span["traceId"], TRACE);
        assert!(["/sampled", ""].contains(&attribute(&span, "url.path").as_str()), "{span}");
    }
}

#[tokio::test]
async fn traces_are_begun_where_none_is_brought() {
    let collector = Collector::start().await;
    let stage = staged(&collector, "1").await;
    stage.origin.on("/page", Script::ok("Cache-Control: max-age=600\r\n", "a page"));
    stage.get("/page").await;
    let spans = collector.spans(2).await;
    let (trace, span) = (&spans[1]["traceId"], &spans[1]["spanId"]);
    let context =
        format!("00-{}-{}-01", trace.as_str().expect("a trace"), span.as_str().expect("a span"));
    assert_eq!(sent_field(&stage.sole_request("/page"), "traceparent"), context);
    assert_eq!((&spans[0]["traceId"], &spans[0]["parentSpanId"]), (trace, &Value::Null));
    assert!(is_hit(&stage.get("/page").await));
    let hit = &collector.spans(3).await[2];
    assert_ne!(&hit["traceId"], trace);
    // An error is one of its span's.
    stage.origin.on("/broken", Script::respond("HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n"));
    stage.get("/broken").await;
    let spans = collector.spans(5).await;
    let broken = spans.iter().find(|span| attribute(span, "url.path") == "/broken");
    assert_eq!(broken.expect("a span")["status"]["code"], 2);
    let asked = spans.iter().find(|span| attribute(span, "url.full").ends_with("/broken"));
    assert_eq!(asked.expect("a span")["status"]["code"], 2);
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
        let trace = span["traceId"].as_str().expect("an id");
        assert!(trace != TRACE && sent.contains(trace), "{sent}: {span:#?}");
        assert_eq!(span["traceState"], Value::Null);
    }
    assert_eq!(spans[0]["parentSpanId"], Value::Null);
    assert!(sent.contains(spans[1]["spanId"].as_str().expect("an id")));
    // A hit is in none of the two, either.
    assert!(is_hit(&stage.ask("GET", "/page", &fields).await));
    assert_ne!(collector.spans(3).await[2]["traceId"], TRACE);
}

#[tokio::test]
async fn spans_that_nobody_takes_are_dropped_and_counted() {
    // Nobody listens there.
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let collector =
        Collector { spans: Arc::default(), port: listener.local_addr().expect("bound").port() };
    drop(listener);
    let stage = staged(&collector, "1").await;
    stage.origin.on("/page", Script::ok("Cache-Control: no-store\r\n", "a page"));
    for _ in 0..20 {
        assert_eq!(stage.get("/page").await.status, 200);
    }
    support::eventually("all are counted", async || {
        stage.metric("larder_trace_spans_dropped_total").await >= 40
    })
    .await;
    assert_eq!(stage.metric("larder_trace_spans_total").await, 0);
    stage.daemon.tells("larder: traces do not reach 127.0.0.1:").await;
}

#[tokio::test]
async fn beyond_the_limit_spans_are_dropped() {
    let collector = Collector::start().await;
    let port = collector.port;
    let top = format!("tracing = {{ endpoint = \"http://127.0.0.1:{port}/otlp\", sample = 1 }}\n");
    let setup = Setup { top: &top, limits: "trace_spans = 2\n", ..Setup::default() };
    let stage = setup.start().await;
    // More than there are looks at the ring while they are made.
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
