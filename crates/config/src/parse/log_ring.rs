//! `log_ring`.

use std::path::PathBuf;

use observe::record::VALUES_MAX;
use observe::ring::NAME_MAX;
use policy::headers::FieldName;
use toml::de::DeValue;

use crate::keys;
use crate::model::LogRing;
use crate::reader::{Item, Reader, Table};

/// Those of access logs and traces have room besides.
const HEADERS_MAX: usize = VALUES_MAX - 4;

/// Beyond it a size is a mistake: it is memory.
const SIZE_MAX: u64 = 64 << 30;

/// The log ring; `None` if it is off.
pub(super) fn log_ring(r: &mut Reader, top: &Table<'_>) -> Option<LogRing> {
    let Some(item) = top.item("log_ring") else { return Some(LogRing::default()) };
    let mut ring = LogRing::default();
    match item.value {
        DeValue::Boolean(false) => return None,
        DeValue::String(text) if text == "off" => return None,
        DeValue::Table(_) => {}
        _ => {
            ring.size = size(r, &item).unwrap_or(ring.size);
            return Some(ring);
        }
    }
    let table = r.table(&item, &keys::LOG_RING)?;
    if let Some(size) = table.item("size").and_then(|item| size(r, &item)) {
        ring.size = size;
    }
    ring.folder = table.item("folder").and_then(|item| folder(r, &item));
    if let Some(item) = table.item("headers") {
        ring.headers = headers(r, &item);
    }
    Some(ring)
}

fn size(r: &mut Reader, item: &Item<'_>) -> Option<u64> {
    let size = r.size(item)?;
    if size <= SIZE_MAX {
        return Some(size);
    }
    r.error(item.span.clone(), format!("`{}` is memory: at most 64GiB", item.name));
    None
}

fn folder(r: &mut Reader, item: &Item<'_>) -> Option<PathBuf> {
    let path = r.text(item)?;
    // A relative path would depend on where the daemon was started from.
    if path.starts_with('/') && !path.contains('\0') {
        return Some(PathBuf::from(path));
    }
    r.error(item.span.clone(), format!("`{}` takes an absolute path", item.name));
    None
}

fn headers(r: &mut Reader, item: &Item<'_>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (text, item) in r.texts(item) {
        if names.iter().any(|own| own.eq_ignore_ascii_case(text)) {
            continue;
        }
        let fits = match FieldName::parse(text) {
            Ok(_) if text.len() > NAME_MAX => Err("the name is too long".to_owned()),
            Ok(_) => Ok(()),
            Err(why) => Err(why.to_string()),
        };
        if r.check(&item, fits).is_some() {
            names.push(text.to_owned());
        }
    }
    if names.len() > HEADERS_MAX {
        r.error(item.span.clone(), format!("`{}` names at most {HEADERS_MAX} fields", item.name));
    }
    names
}
