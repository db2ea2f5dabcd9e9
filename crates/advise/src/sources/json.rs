//! Lines of JSON: Larder's own, Caddy's, and those that nginx, HAProxy or Apache write by a format
//! with their variables' names.

use serde_json::{Map, Value};

use super::words::{set, set_request};
use crate::visit::Visit;

pub(super) fn parse(line: &str) -> Option<Visit> {
    let Value::Object(object) = serde_json::from_str(line).ok()? else { return None };
    let mut visit = Visit::default();
    // A query completes a target, and the request as it was sent is better than the one that a
    // policy made of it: wherever they stand, they come last.
    let (late, early): (Vec<_>, Vec<_>) = object
        .iter()
        .partition(|(name, _)| matches!(&name[..], "query" | "args" | "query_string" | "req"));
    for (name, value) in early.into_iter().chain(late) {
        match (&name[..], value) {
            ("request", Value::Object(request)) => caddy_request(&mut visit, request),
            ("resp_headers", Value::Object(fields)) => {
                each_field(fields, |name, value| visit.set_response_field(name, value));
            }
            ("headers", Value::Object(fields)) => {
                each_field(fields, |name, value| visit.set_field(name, value));
            }
            ("req", Value::Object(side)) => sent_request(&mut visit, side),
            ("beresp", Value::Object(side)) => {
                visit.response.get_or_insert_default();
                each_pair(side, |name, value| visit.set_response_field(name, value));
            }
            ("phases_us", Value::Object(phases)) => visit.fetch_us = fetch_us(phases),
            (name, Value::String(text)) => set(&mut visit, name, text),
            (name, Value::Number(number)) => set(&mut visit, name, &number.to_string()),
            (name, Value::Bool(is)) => set(&mut visit, name, &is.to_string()),
            _ => {}
        }
    }
    let ttfb_ms = object.get("ttfb_ms").and_then(Value::as_f64);
    visit.fetch_us =
        visit.fetch_us.or_else(|| ttfb_ms.map(|ms| (ms.clamp(0.0, 1e9) * 1000.0) as u64));
    (visit.at_ms > 0).then_some(visit)
}

/// The request in a line of Caddy's.
fn caddy_request(visit: &mut Visit, request: &Map<String, Value>) {
    for name in ["remote_ip", "client_ip", "method", "uri", "host"] {
        if let Some(text) = request.get(name).and_then(Value::as_str) {
            set(visit, name, text);
        }
    }
    visit.is_tls = request.contains_key("tls");
    if let Some(Value::Object(fields)) = request.get("headers") {
        each_field(fields, |name, value| visit.set_field(name, value));
    }
}

/// The client's request in a line of `larder log --json --headers`: its target is as it was sent.
fn sent_request(visit: &mut Visit, side: &Map<String, Value>) {
    if let Some(line) = side.get("line").and_then(Value::as_str) {
        set_request(visit, line);
    }
    each_pair(side, |name, value| visit.set_field(name, value));
}

/// Passes each field of a side to `take`.
fn each_pair(side: &Map<String, Value>, mut take: impl FnMut(&str, &str)) {
    for pair in side.get("fields").and_then(Value::as_array).into_iter().flatten() {
        if let (Some(name), Some(value)) = (pair[0].as_str(), pair[1].as_str()) {
            take(name, value);
        }
    }
}

/// Passes each field to `take`, with its name in lower case. Values are texts or lists of texts.
fn each_field(fields: &Map<String, Value>, mut take: impl FnMut(&str, &str)) {
    for (name, value) in fields {
        let name = name.to_ascii_lowercase();
        match value {
            Value::String(text) => take(&name, text),
            Value::Array(texts) => {
                texts.iter().filter_map(Value::as_str).for_each(|text| take(&name, text));
            }
            _ => {}
        }
    }
}

/// The time at the origin in Larder's own lines: from the fetch to the head.
fn fetch_us(phases: &Map<String, Value>) -> Option<u64> {
    let phase = |name: &str| phases.get(name).and_then(Value::as_u64);
    phase("head")?.checked_sub(phase("fetch")?)
}
