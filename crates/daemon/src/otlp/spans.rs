//! Spans: made from records of the log ring, and encoded in batches.

use std::io;
use std::net::IpAddr;

use bytes::Bytes;
use codec::{Coding, EncodeSettings, Encoder, FlushMode, STEP_BYTES};
use flow::tracing::Tracing;
use message::trace_context::TraceContext;
use observe::record::SENT;
use observe::ring::RingFollower;
use observe::{Flags, Record};
use prost::Message;

use super::messages::{
    AnyValue, AnyValueKind, ExportTraceServiceRequest, InstrumentationScope, KeyValue, OtlpSpan,
    Resource, ResourceSpans, ScopeSpans, SpanKind, SpanStatus, StatusCode,
};

/// Spans of one request: the default of OpenTelemetry's exporters
/// (`OTEL_BSP_MAX_EXPORT_BATCH_SIZE`).
const BATCH: usize = 512;
/// Level of gzip: names repeat, and a higher level saves little.
const LEVEL: u8 = 4;

/// The result of one poll of the ring.
#[derive(Default)]
pub(super) struct RingSpans {
    pub(super) spans: Vec<OtlpSpan>,
    pub(super) dropped: u64,
}

/// Spans of one request, encoded.
pub(super) struct SpanBatch {
    pub(super) body: Bytes,
    /// The body is gzip-coded.
    pub(super) is_gzip: bool,
    pub(super) spans: u64,
    /// The time of the poll, in milliseconds of the monotonic clock.
    pub(super) since_ms: u64,
}

/// Encodes spans for as many requests as they need.
pub(super) fn batches(mut spans: Vec<OtlpSpan>, gzip: bool, since_ms: u64) -> Vec<SpanBatch> {
    let mut batches = Vec::new();
    while !spans.is_empty() {
        let rest = spans.split_off(spans.len().min(BATCH));
        let some = std::mem::replace(&mut spans, rest);
        let count = some.len() as u64;
        let plain = export(some).encode_to_vec();
        let coded = gzip.then(|| coded(&plain)).flatten();
        let is_gzip = coded.is_some();
        let body = coded.unwrap_or(plain).into();
        batches.push(SpanBatch { body, is_gzip, spans: count, since_ms });
    }
    batches
}

/// `plain` gzip-coded; `None` without memory for that.
fn coded(plain: &[u8]) -> Option<Vec<u8>> {
    let settings = EncodeSettings::new(Coding::Gzip, LEVEL)?.for_length(plain.len() as u64);
    let mut encoder = Encoder::new(&settings).ok()?;
    let (mut coded, mut room, mut at) = (Vec::new(), vec![0; STEP_BYTES], 0);
    loop {
        let step = encoder.step(&plain[at..], &mut room, FlushMode::Finish).ok()?;
        at += step.taken;
        coded.extend_from_slice(&room[..step.made]);
        if step.done {
            return Some(coded);
        }
    }
}

fn export(spans: Vec<OtlpSpan>) -> ExportTraceServiceRequest {
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let attributes = vec![
        text_attribute("service.name", "larder".to_owned()),
        text_attribute("service.version", version.clone()),
    ];
    let scope = Some(InstrumentationScope { name: "larder".to_owned(), version });
    ExportTraceServiceRequest {
        resource_spans: vec![ResourceSpans {
            resource: Some(Resource { attributes }),
            scope_spans: vec![ScopeSpans { scope, spans }],
        }],
    }
}

/// Reads what was written since the last poll, at most `most` spans.
pub(super) fn found(
    follower: &mut RingFollower,
    tracing: &Tracing,
    most: u64,
) -> io::Result<RingSpans> {
    let mut found = RingSpans::default();
    let at = |name: &str| follower.names().iter().position(|own| own.eq_ignore_ascii_case(name));
    let (brought, state, sent) = (at("traceparent"), at("tracestate"), at(SENT));
    let polled = follower.poll(&mut |record| {
        // A background fetch is in no client's trace.
        if !record.is_client() {
            return;
        }
        let value = |at: Option<usize>| record.values.iter().nth(at?)??.to_vec().into();
        let parse = |value: Option<Vec<u8>>| TraceContext::parse(&value?);
        let (brought, sent) = (parse(value(brought)), parse(value(sent)));
        let Some((mut server, mut client)) = of_record(record, brought, sent, tracing) else {
            return;
        };
        // It belongs to the trace of its request's header.
        if brought.is_some()
            && let Some(state) = value(state)
        {
            for span in [Some(&mut server), client.as_mut()].into_iter().flatten() {
                span.trace_state = text(&state);
            }
        }
        if found.spans.len() as u64 + 2 > most {
            found.dropped += 1 + u64::from(client.is_some());
            return;
        }
        found.spans.push(server);
        found.spans.extend(client);
    })?;
    found.dropped += polled.lost;
    Ok(found)
}

/// The spans of a sampled transaction: of the response, and of the request to the origin.
fn of_record(
    record: &Record<'_>,
    brought: Option<TraceContext>,
    sent: Option<TraceContext>,
    tracing: &Tracing,
) -> Option<(OtlpSpan, Option<OtlpSpan>)> {
    // The decision about a request with a fetch was made at the fetch; for others no header was
    // sent on, and it is made here.
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
    let id = |number: u64| number.to_be_bytes().to_vec();
    let (trace_id, own) = (context.trace.to_be_bytes().to_vec(), id(tracing.number()));
    let start_us = record.start_unix_ms.saturating_mul(1_000);
    let moment = |us: u64| start_us.saturating_add(us).saturating_mul(1_000);
    let server = OtlpSpan {
        trace_id: trace_id.clone(),
        span_id: own.clone(),
        parent_span_id: brought.map(|brought| id(brought.span)).unwrap_or_default(),
        trace_state: String::new(),
        name: text(record.method),
        kind: SpanKind::Server.into(),
        start_time_unix_nano: moment(0),
        end_time_unix_nano: moment(record.phases.end),
        attributes: attributes(record),
        status: status(record),
    };
    let client = sent.zip(record.phases.fetch).map(|(sent, from)| OtlpSpan {
        trace_id,
        span_id: id(sent.span),
        parent_span_id: own,
        trace_state: String::new(),
        name: text(record.method),
        kind: SpanKind::Client.into(),
        start_time_unix_nano: moment(from.into()),
        end_time_unix_nano: moment(record.phases.head.map_or(record.phases.end, u64::from)),
        attributes: client_attributes(record),
        status: client_status(record),
    });
    Some((server, client))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn text_attribute(key: &str, text: String) -> KeyValue {
    attribute(key, AnyValueKind::Text(text))
}

fn number_attribute(key: &str, number: u64) -> KeyValue {
    attribute(key, AnyValueKind::Number(i64::try_from(number).unwrap_or(i64::MAX)))
}

fn attribute(key: &str, value: AnyValueKind) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }) }
}

/// Names are those of OpenTelemetry's conventions for HTTP, and Larder's own.
fn attributes(record: &Record<'_>) -> Vec<KeyValue> {
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
        ("larder.route", text(record.route)),
        ("larder.not_stored", text(record.not_stored)),
        ("larder.limit", text(record.limit)),
        ("larder.error", text(record.error)),
    ];
    let numbers = [
        ("http.response.status_code", u64::from(record.status)),
        ("http.response.body.size", record.body_out),
    ];
    let texts = texts.into_iter().filter(|(_, text)| !text.is_empty());
    let texts = texts.map(|(key, text)| text_attribute(key, text));
    texts.chain(numbers.map(|(key, number)| number_attribute(key, number))).collect()
}

/// The attributes of the request to the origin.
fn client_attributes(record: &Record<'_>) -> Vec<KeyValue> {
    let scheme = scheme(record);
    let full = format!("{scheme}://{}{}", text(record.host), text(record.target));
    let server = text(record.server);
    let (address, port) = address_and_port(&server);
    let texts = [
        ("http.request.method", text(record.method)),
        // As in the request's Host and X-Forwarded-Proto.
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
    let texts = texts.map(|(key, text)| text_attribute(key, text));
    let numbers = numbers.into_iter().filter(|(_, number)| *number > 0);
    texts.chain(numbers.map(|(key, number)| number_attribute(key, number))).collect()
}

/// The status of the client span: an error or a missing response of the origin.
fn client_status(record: &Record<'_>) -> Option<SpanStatus> {
    matches!(record.origin_status, 0 | 500..).then(|| failed(record))
}

fn scheme(record: &Record<'_>) -> &'static str {
    if record.flags.has(Flags::TLS) { "https" } else { "http" }
}

/// A host and its port, 0 without one; IPv6 without brackets. A socket's path has no port.
fn address_and_port(text: &str) -> (&str, u16) {
    let split = text.rsplit_once(':').filter(|_| !text.starts_with("unix:"));
    let found = split.and_then(|(host, port)| Some((host, port.parse().ok()?)));
    let (host, port) = found.unwrap_or((text, 0));
    (host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host), port)
}

/// The status of the server span: errors of this server (OpenTelemetry's conventions for HTTP).
fn status(record: &Record<'_>) -> Option<SpanStatus> {
    (record.status >= 500).then(|| failed(record))
}

fn failed(record: &Record<'_>) -> SpanStatus {
    SpanStatus { message: text(record.error), code: StatusCode::Error.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_sent_in_batches_and_each_may_be_coded() {
        let span = OtlpSpan { name: "GET".to_owned(), ..OtlpSpan::default() };
        let sent = |gzip| batches(vec![span.clone(); BATCH + 1], gzip, 7);
        let plain = sent(false);
        for (batch, count) in plain.iter().zip([BATCH, 1]) {
            let request = ExportTraceServiceRequest::decode(&*batch.body).expect("a message");
            assert_eq!(request, export(vec![span.clone(); count]));
            assert_eq!((batch.spans, batch.is_gzip, batch.since_ms), (count as u64, false, 7));
        }
        let coded = sent(true);
        assert_eq!((plain.len(), coded.len()), (2, 2));
        assert!(coded.iter().all(|batch| batch.is_gzip && batch.body.starts_with(b"\x1f\x8b")));
        assert!(coded[0].body.len() < plain[0].body.len() / 10);
        assert!(batches(Vec::new(), true, 7).is_empty());
    }

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
