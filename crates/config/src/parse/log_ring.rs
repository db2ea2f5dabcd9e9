//! `log_ring`: the ring of records.

use observe::record::VALUES_MAX;
use observe::ring::NAME_MAX;
use policy::headers::FieldName;
use toml::de::DeValue;

use super::cache::share;
use crate::keys::TEXTS;
use crate::model::LogRing;
use crate::reader::{Reader, SettingValue};
use crate::rows::{self, put, section};

/// The fields of access logs and traces need room, too.
const HEADERS_MAX: usize = VALUES_MAX - 4;

/// Largest size: the ring is in memory, so that a larger one is a mistake.
const SIZE_MAX: u64 = 64 << 30;

section! {
    pub(crate) LOG_RING, LOG_RING_ROWS: LogRing; "[log_ring]",
    "The log ring, as a table; a string instead of a table sets `size`. Larder reads this table \
     at the start; a reload does not change it.";
    "size", "a size such as \"32MiB\"", "\"32MiB\"", "Size of the rings of all cores together, at least 1MiB per core, in addition to `[memory] size`. Larder takes the memory as the rings fill.",
        |r, item, to| put(&mut to.size, size(r, item));
    "folder", bare_path folder, "a folder that goes with the admin socket", "Directory of the rings, for the daemon's user alone. Use a file system in memory (tmpfs); on a disk, writes to the ring may block. The default is beside the admin socket, or below /dev/shm if the socket is on a disk.";
    "headers", TEXTS, "[\"Referer\", \"User-Agent\"]", "Request fields whose values are recorded, at most 16.",
        |r, item, to| to.headers = headers(r, item);
    "evidence", boolean evidence, "true", "Whether the record of a request that asked an origin keeps what `larder advise` needs: some fields of the request to the origin and of its response (limit `log_evidence`). Of cookies there are names, and hashes of values with a secret key.";
    "fingerprints", "a percentage, or false", "\"20%\"", "Share of pages whose responses from origins get a fingerprint, from 0.001% to 100%, by which `larder advise` sees that different visitors got equal pages. Pages take turns, each for a minute. Without `evidence`, there are none.",
        |r, item, to| put(&mut to.fingerprint_one_in, share(r, item));
}

/// Reads the log ring; `None` if it is off.
pub(super) fn log_ring(r: &mut Reader, item: &SettingValue<'_>) -> Option<LogRing> {
    let mut ring = LogRing::default();
    match item.value {
        DeValue::Boolean(false) => return None,
        DeValue::String(text) if text == "off" => return None,
        DeValue::Table(_) => {}
        _ => {
            ring.size = size(r, item).unwrap_or(ring.size);
            return Some(ring);
        }
    }
    let table = r.table(item, &LOG_RING)?;
    rows::read(r, &table, LOG_RING_ROWS, &mut ring);
    Some(ring)
}

fn size(r: &mut Reader, item: &SettingValue<'_>) -> Option<u64> {
    let size = r.size(item)?;
    if size <= SIZE_MAX {
        return Some(size);
    }
    r.error(item.span.clone(), format!("`{}` is memory: at most 64GiB", item.name));
    None
}

fn headers(r: &mut Reader, item: &SettingValue<'_>) -> Vec<String> {
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
