//! Spans for a collector (OTLP over HTTP, as JSON): what the log ring has of sampled transactions.
//!
//! It reads the ring as every other reader does and never holds a core up. What it cannot hand on
//! in time is dropped and counted.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use base::{Counter, Counters, Limit};
use flow::tracing::Tracing;
use message::trace_context::TraceContext;
use observe::record::SENT;
use observe::ring::{Follower, From};
use observe::{Flags, Record};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::state::Daemon;
use crate::tended::keep_running;

/// The interval at which the ring is looked at.
const LOOK: Duration = Duration::from_millis(500);

/// Bytes that are read of an answer beyond its first line, at most.
const REST: u64 = 64 << 10;

/// Where a collector is, and what goes there.
struct Exporter {
    daemon: Arc<Daemon>,
    config: config::Tracing,
    counters: Arc<Counters>,
    /// The last delivery failed, which has been said.
    fails: bool,
}

/// Exports what is written to the log ring from now on.
pub(crate) fn start(daemon: &Arc<Daemon>, config: Option<&config::Tracing>) {
    let Some(config) = config.cloned() else { return };
    let Some(ring) = &daemon.ring else {
        base::tell!(
            Warn,
            "larder: no traces: they are made of what is in the log ring, which is off"
        );
        return;
    };
    // At once, so that nothing is left out that clients ask for.
    let follower = match Follower::open(ring.folder(), From::Now) {
        Ok(follower) => follower,
        Err(e) => return base::tell!(Error, "larder: no traces: {}: {e}", ring.folder().display()),
    };
    let (counters, own) = (daemon.shared.counters.register(), Arc::clone(daemon));
    let (folder, mut first) = (ring.folder().to_owned(), Some(follower));
    keep_running(&daemon.shared, move || {
        let (daemon, counters) = (Arc::clone(&own), Arc::clone(&counters));
        let exporter = Exporter { daemon, config: config.clone(), counters, fails: false };
        let follower = first.take().map_or_else(|| Follower::open(&folder, From::Now), Ok);
        async move {
            match follower {
                Ok(follower) => exporter.run(follower).await,
                Err(e) => base::tell!(Error, "larder: no traces any more: {e}"),
            }
        }
    });
}

/// The result of one look at the ring.
#[derive(Default)]
struct Found {
    spans: Vec<Value>,
    dropped: u64,
}

impl Exporter {
    async fn run(mut self, mut follower: Follower) {
        let mut look = rt::time::interval(LOOK);
        look.set_missed_tick_behavior(rt::time::MissedTickBehavior::Delay);
        loop {
            look.tick().await;
            let live = self.daemon.shared.live();
            let Some(tracing) = live.tracing.clone() else { continue };
            let most = live.limits.trace_spans as usize;
            let read = rt::beside(move || {
                let found = found(&mut follower, &tracing, most);
                (follower, found)
            });
            let (back, found) = read.await;
            follower = back;
            match found {
                Ok(found) => self.deliver(found).await,
                Err(e) => return base::tell!(Error, "larder: no more traces: the log ring: {e}"),
            }
        }
    }

    async fn deliver(&mut self, found: Found) {
        self.counters.add(Counter::TraceDropped, found.dropped);
        if found.dropped > 0 {
            self.counters.limit(Limit::TraceSpans);
        }
        if found.spans.is_empty() {
            return;
        }
        let count = found.spans.len() as u64;
        let wait = Duration::from_millis(self.daemon.shared.live().limits.trace_timeout);
        let sent = rt::time::timeout(wait, self.post(body(found.spans))).await;
        let result = sent.unwrap_or_else(|_| {
            self.counters.limit(Limit::TraceTimeout);
            Err(io::ErrorKind::TimedOut.into())
        });
        match result {
            Ok(()) => self.counters.add(Counter::TraceSpans, count),
            Err(_) => self.counters.add(Counter::TraceDropped, count),
        }
        if let Err(error) = &result
            && !self.fails
        {
            let config::Tracing { host, port, .. } = &self.config;
            base::tell!(Warn, "larder: traces do not reach {host}:{port}: {error}");
        }
        self.fails = result.is_err();
    }

    /// Hands spans to the collector, on a connection of their own.
    async fn post(&self, body: String) -> io::Result<()> {
        let config::Tracing { host, port, path, .. } = &self.config;
        let name = host.trim_start_matches('[').trim_end_matches(']');
        let mut stream = TcpStream::connect((name, *port)).await?;
        let head = format!(
            "POST {path}/v1/traces HTTP/1.1\r\nHost: {host}:{port}\r\nUser-Agent: larder/{}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            env!("CARGO_PKG_VERSION"),
            body.len()
        );
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(body.as_bytes()).await?;
        let mut line = Vec::new();
        // The first line is all that matters; the rest is waited for so that nobody is cut off.
        while line.len() < 12 && stream.read_buf(&mut line).await? > 0 {}
        let (mut rest, mut nowhere) = (stream.take(REST), tokio::io::sink());
        _ = rt::time::timeout(LOOK, tokio::io::copy(&mut rest, &mut nowhere)).await;
        match line.get(..10).map(|begin| &begin[9..]) {
            Some(b"2") if line.starts_with(b"HTTP/1.") => Ok(()),
            _ => {
                let begin =
                    String::from_utf8_lossy(line.split(|b| *b == b'\r').next().unwrap_or(&[]));
                Err(io::Error::other(format!("it answers `{}`", begin.escape_debug())))
            }
        }
    }
}

/// Reads what was written since the last look, `most` spans of it.
fn found(follower: &mut Follower, tracing: &Tracing, most: usize) -> io::Result<Found> {
    let mut found = Found::default();
    let at = |name: &str| follower.names().iter().position(|own| own.eq_ignore_ascii_case(name));
    let (brought, state, sent) = (at("traceparent"), at("tracestate"), at(SENT));
    let polled = follower.poll(&mut |record| {
        // What nobody waited for is in no client's trace.
        if !record.is_client() {
            return;
        }
        let value = |at: Option<usize>| record.values.iter().nth(at?)??.to_vec().into();
        let parse = |value: Option<Vec<u8>>| TraceContext::parse(&value?);
        let (brought, sent) = (parse(value(brought)), parse(value(sent)));
        let Some((mut server, mut client)) = spans(record, brought, sent, tracing) else { return };
        // It belongs to the trace that it came with.
        if brought.is_some()
            && let Some(state) = value(state)
        {
            for span in [Some(&mut server), client.as_mut()].into_iter().flatten() {
                span["traceState"] = text(&state).into();
            }
        }
        if found.spans.len() + 2 > most {
            found.dropped += 1 + u64::from(client.is_some());
            return;
        }
        found.spans.push(server);
        found.spans.extend(client);
    })?;
    found.dropped += polled.lost;
    Ok(found)
}

/// The spans of a transaction that is sampled: of answering it, and of asking the origin.
fn spans(
    record: &Record<'_>,
    brought: Option<TraceContext>,
    sent: Option<TraceContext>,
    tracing: &Tracing,
) -> Option<(Value, Option<Value>)> {
    // What was fetched for the client alone decides where it was fetched; of the rest nothing has
    // been sent on, and it is decided here.
    let asked = record.phases.fetch.is_some();
    let context = match (brought, sent) {
        (Some(context), _) => context,
        (None, Some(sent)) => sent,
        (None, None) if asked => return None,
        (None, None) => tracing.begin()?,
    };
    if !context.sampled {
        return None;
    }
    let trace = format!("{:032x}", context.trace);
    let own = format!("{:016x}", tracing.number());
    let moment = |us: u64| {
        let ns = u128::from(record.start_unix_ms) * 1_000_000 + u128::from(us) * 1_000;
        ns.to_string()
    };
    let mut server = json!({
        "traceId": trace,
        "spanId": own,
        "name": text(record.method),
        "kind": 2,
        "startTimeUnixNano": moment(0),
        "endTimeUnixNano": moment(record.phases.end),
        "attributes": attributes(record),
        "status": status(record),
    });
    if let Some(brought) = brought {
        server["parentSpanId"] = format!("{:016x}", brought.span).into();
    }
    let client = sent.zip(record.phases.fetch).map(|(sent, from)| {
        let until = record.phases.head.map_or(record.phases.end, u64::from);
        json!({
            "traceId": trace,
            "spanId": format!("{:016x}", sent.span),
            "parentSpanId": own,
            "name": text(record.method),
            "kind": 3,
            "startTimeUnixNano": moment(from.into()),
            "endTimeUnixNano": moment(until),
            "attributes": client_attributes(record),
            "status": client_status(record),
        })
    });
    Some((server, client))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A key and a value, which is a text or a whole number; OTLP's JSON has those as texts.
fn attribute(key: &str, value: Value) -> Value {
    match value.as_u64() {
        Some(number) => json!({ "key": key, "value": { "intValue": number.to_string() } }),
        None => json!({ "key": key, "value": { "stringValue": value } }),
    }
}

/// Names are those of OpenTelemetry's conventions for HTTP, and Larder's own.
fn attributes(record: &Record<'_>) -> Vec<Value> {
    let target = text(record.target);
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let version = match record.version {
        20 => "2".to_owned(),
        version => format!("{}.{}", version / 10, version % 10),
    };
    let texts = [
        ("http.request.method", text(record.method)),
        ("url.scheme", scheme(record).to_owned()),
        ("server.address", text(record.host)),
        ("url.path", path.to_owned()),
        ("url.query", query.to_owned()),
        ("network.protocol.version", version),
        ("client.address", record.client.as_ref().map(IpAddr::to_string).unwrap_or_default()),
        ("larder.served", record.served.word().to_owned()),
        ("larder.site", text(record.site)),
        ("larder.rule", text(record.rule)),
        ("larder.not_stored", text(record.not_stored)),
        ("larder.limit", text(record.limit)),
        ("larder.error", text(record.error)),
    ];
    let numbers = [
        ("http.response.status_code", u64::from(record.status)),
        ("http.response.body.size", record.body_out),
    ];
    let texts = texts.into_iter().filter(|(_, text)| !text.is_empty());
    let texts = texts.map(|(key, text)| attribute(key, text.into()));
    texts.chain(numbers.map(|(key, number)| attribute(key, number.into()))).collect()
}

/// The same of asking the origin.
fn client_attributes(record: &Record<'_>) -> Vec<Value> {
    let scheme = scheme(record);
    let full = format!("{scheme}://{}{}", text(record.host), text(record.target));
    let server = text(record.server);
    let (address, port) = address_and_port(&server);
    let texts = [
        ("http.request.method", text(record.method)),
        // As the origin is told it, in Host and X-Forwarded-Proto.
        ("url.full", full),
        ("server.address", address.to_owned()),
        ("larder.origin", text(record.origin)),
    ];
    let numbers = [
        ("http.response.status_code", u64::from(record.origin_status)),
        ("server.port", port.into()),
        ("larder.tries", record.tries.into()),
    ];
    let texts = texts.into_iter().filter(|(_, text)| !text.is_empty());
    let texts = texts.map(|(key, text)| attribute(key, text.into()));
    let numbers = numbers.into_iter().filter(|(_, number)| *number > 0);
    texts.chain(numbers.map(|(key, number)| attribute(key, number.into()))).collect()
}

/// An error of the origin's, or its silence, is one of the span's in which it was asked.
fn client_status(record: &Record<'_>) -> Value {
    match record.origin_status {
        0 | 500.. => json!({ "code": 2, "message": text(record.error) }),
        _ => json!({}),
    }
}

fn scheme(record: &Record<'_>) -> &'static str {
    if record.flags.has(Flags::TLS) { "https" } else { "http" }
}

/// A host and its port, 0 where it says none; IPv6 without its brackets. A socket's path has none.
fn address_and_port(text: &str) -> (&str, u16) {
    let split = text.rsplit_once(':').filter(|_| !text.starts_with("unix:"));
    let found = split.and_then(|(host, port)| Some((host, port.parse().ok()?)));
    let (host, port) = found.unwrap_or((text, 0));
    (host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host), port)
}

/// An error of this server's is one of its span's (OpenTelemetry's conventions for HTTP).
fn status(record: &Record<'_>) -> Value {
    match record.status {
        500.. => json!({ "code": 2, "message": text(record.error) }),
        _ => json!({}),
    }
}

/// An ExportTraceServiceRequest.
fn body(spans: Vec<Value>) -> String {
    let version = env!("CARGO_PKG_VERSION");
    json!({ "resourceSpans": [{
        "resource": { "attributes": [
            attribute("service.name", "larder".into()),
            attribute("service.version", version.into()),
        ] },
        "scopeSpans": [{ "scope": { "name": "larder", "version": version }, "spans": spans }],
    }] })
    .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_servers_name_is_taken_apart() {
        for (text, parts) in [
            ("127.0.0.1:8080", ("127.0.0.1", 8080)),
            ("[::1]:80", ("::1", 80)),
            ("app.test", ("app.test", 0)),
            ("unix:/run/a:80", ("unix:/run/a:80", 0)),
            ("", ("", 0)),
        ] {
            assert_eq!(address_and_port(text), parts);
        }
    }
}
