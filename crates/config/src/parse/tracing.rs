//! `[tracing]`.

use toml::de::DeValue;

use crate::keys;
use crate::model::Tracing;
use crate::reader::{Item, Reader, Table};

/// OTLP's port over HTTP.
const PORT: u16 = 4318;

pub(super) fn tracing(r: &mut Reader, top: &Table<'_>) -> Option<Tracing> {
    let item = top.item("tracing")?;
    let table = r.table(&item, &keys::TRACING)?;
    let sample = match table.item("sample") {
        Some(item) => sample(r, &item),
        None => Some(0.01),
    };
    let Some(endpoint) = table.item("endpoint") else {
        r.error(item.span, "[tracing] needs `endpoint`").help =
            Some("such as endpoint = \"http://127.0.0.1:4318\"".to_owned());
        return None;
    };
    let text = r.text(&endpoint)?;
    let Some((host, port, path)) = split(text) else {
        r.error(endpoint.span, format!("`{text}` is no collector's URL")).help =
            Some("`http://` and a host, perhaps with port and path".to_owned());
        return None;
    };
    Some(Tracing { host: host.to_owned(), port, path: path.to_owned(), sample: sample? })
}

/// Host, port and path without a slash at its end.
fn split(url: &str) -> Option<(&str, u16, &str)> {
    let rest =
        url.strip_prefix("http://").filter(|rest| rest.bytes().all(|b| b.is_ascii_graphic()))?;
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port.parse().ok()?),
        _ => (authority, PORT),
    };
    let is_plain =
        !host.is_empty() && !host.contains(['@', '?', '#']) && !path.contains(['?', '#']);
    is_plain.then_some((host, port, path.trim_end_matches('/')))
}

/// A share.
fn sample(r: &mut Reader, item: &Item<'_>) -> Option<f64> {
    let text = match item.value {
        DeValue::Float(number) => number.as_str(),
        DeValue::Integer(number) => number.as_str(),
        _ => {
            r.wrong_type(item);
            return None;
        }
    };
    let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    if share.is_none() {
        r.error(item.span.clone(), "`sample` is a share from 0 to 1");
    }
    share
}
