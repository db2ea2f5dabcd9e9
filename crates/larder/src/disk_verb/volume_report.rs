//! The volume report, as text and as JSON.

use std::fmt::Write as _;
use std::path::Path;

use base::units::DurationMs;
use disk::tools::{CheckReport, Flaw, Summary};
use serde_json::{Map, Value, json};

use super::inspection::{VolumeInspection, is_sound};

/// The width of the names' column.
const NAMES: usize = 14;

/// Bytes of memory for one record in a daemon's index, about: 32 for its row, and 16 for its entry,
/// with spare room.
const INDEX_BYTES: u64 = 52;

/// A volume's figures, as text. `index_most` is the limit of the index's memory.
pub(super) fn summary(summary: &Summary, now_ms: u64, index_most: Option<u64>) -> String {
    let stats = &summary.stats;
    let segment = u64::from(summary.segment_bytes).max(1);
    let state = match (summary.out, summary.trusted) {
        (Some(reason), _) => format!("taken out: {}; it begins empty", reason.word()),
        (None, false) => "its journal is damaged: it begins empty".to_owned(),
        (None, true) => "free".to_owned(),
    };
    let mut lines = vec![
        ("state", state),
        ("session", summary.session.to_string()),
        ("generation", summary.generation.map_or_else(|| "none".to_owned(), |own| own.to_string())),
        (
            "segments",
            format!(
                "{} of {}: {} free, {} failed",
                stats.bytes / segment,
                bytes(segment),
                stats.free_segments,
                stats.bad_segments
            ),
        ),
        ("records", stats.records.to_string()),
        ("index", index(stats.records, index_most)),
        ("live", bytes(stats.live_bytes)),
        ("dead", bytes(stats.dead_bytes)),
    ];
    if let Some((oldest, newest)) = summary.written_ms {
        let ago = |ms: u64| format!("{} ago", age(now_ms.saturating_sub(ms)));
        lines.push(("oldest", ago(oldest)));
        lines.push(("newest", ago(newest)));
    }
    lines.push(("invalidations", format!("{} that still count", summary.invalidations)));
    if stats.damaged_table > 0 {
        lines.push(("no table", format!("{} segments, as after a crash", stats.damaged_table)));
    }
    if stats.damaged_snapshot > 0 {
        lines.push(("damaged", format!("{} snapshots", stats.damaged_snapshot)));
    }
    let mut page = summary.volume.clone();
    for (name, value) in lines {
        write!(page, "\n  {name:NAMES$} {value}").expect("a string takes what is written to it");
    }
    page
}

/// The memory of the index, and a note if it is full.
fn index(records: u64, most: Option<u64>) -> String {
    let taken = records * INDEX_BYTES;
    let Some(most) = most else { return format!("{} of memory", bytes(taken)) };
    let full = if taken > most - most / 16 { ": full (disk_index_bytes)" } else { "" };
    format!("{} of memory, of {}{full}", bytes(taken), bytes(most))
}

/// The result of a check: a line for each fault, and one for the volume.
pub(super) fn check(checked: &CheckReport) -> String {
    let CheckReport { summary, sound, flaws } = checked;
    let (name, stats) = (&summary.volume, &summary.stats);
    let mut page = String::new();
    for Flaw { segment, offset, hash } in flaws {
        let at = format!("segment {segment}, offset {offset}, hash {hash:016x}");
        writeln!(page, "{name}: damaged: {at}").expect("a string takes what is written to it");
    }
    if stats.damaged_snapshot > 0 {
        page.push_str(&format!("{name}: damaged: {} snapshots\n", stats.damaged_snapshot));
    }
    if !summary.trusted {
        page.push_str(&format!("{name}: damaged: the journal; a start begins with nothing\n"));
    }
    let verdict = if is_sound(checked) { "sound" } else { "not sound" };
    let live = bytes(stats.live_bytes);
    page + &format!("{name}: {verdict}: {sound} records are whole, {} not, {live}", flaws.len())
}

/// A volume as JSON, inspected or not; `put` adds the result.
pub(super) fn volume<T>(
    path: &Path,
    look: &VolumeInspection<T>,
    put: impl FnOnce(&T, &mut Map<String, Value>),
) -> Value {
    let mut value = Map::new();
    value.insert("path".to_owned(), json!(path.to_string_lossy()));
    value.insert("in_use".to_owned(), json!(matches!(look, VolumeInspection::InUse)));
    match look {
        VolumeInspection::Free(found) => put(found, &mut value),
        VolumeInspection::InUse => {}
        VolumeInspection::Failed(why) => _ = value.insert("error".to_owned(), json!(why)),
    }
    Value::Object(value)
}

/// Adds a volume's figures.
pub(super) fn put_summary(summary: &Summary, value: &mut Map<String, Value>) {
    let stats = &summary.stats;
    let (oldest, newest) = summary.written_ms.unzip();
    for (name, figure) in [
        ("out", json!(summary.out.map(|reason| reason.word()))),
        ("trusted", json!(summary.trusted)),
        ("session", json!(summary.session)),
        ("generation", json!(summary.generation)),
        ("segment_bytes", json!(summary.segment_bytes)),
        ("bytes", json!(stats.bytes)),
        ("free_segments", json!(stats.free_segments)),
        ("failed_segments", json!(stats.bad_segments)),
        ("records", json!(stats.records)),
        ("live_bytes", json!(stats.live_bytes)),
        ("dead_bytes", json!(stats.dead_bytes)),
        ("oldest_ms", json!(oldest)),
        ("newest_ms", json!(newest)),
        ("invalidations", json!(summary.invalidations)),
        ("segments_without_table", json!(stats.damaged_table)),
        ("damaged_snapshots", json!(stats.damaged_snapshot)),
    ] {
        value.insert(name.to_owned(), figure);
    }
}

/// Adds the result of a check.
pub(super) fn put_check(checked: &CheckReport, value: &mut Map<String, Value>) {
    put_summary(&checked.summary, value);
    let flaw = |flaw: &Flaw| {
        let hash = format!("{:016x}", flaw.hash);
        json!({ "segment": flaw.segment, "offset": flaw.offset, "hash": hash })
    };
    value.insert("sound".to_owned(), json!(is_sound(checked)));
    value.insert("sound_records".to_owned(), json!(checked.sound));
    value.insert("damaged".to_owned(), checked.flaws.iter().map(flaw).collect());
}

/// Bytes in the unit that keeps them short.
pub(super) fn bytes(number: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let (mut value, mut unit) = (number as f64, 0);
    while value >= 1000.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    let decimals = usize::from(unit > 0 && value < 100.0 && value.fract() != 0.0);
    format!("{value:.decimals$} {}", units[unit])
}

/// A duration in its largest unit: `3d`, `5h`, `20s`.
fn age(ms: u64) -> String {
    const UNITS_MS: [u64; 4] = [86_400_000, 3_600_000, 60_000, 1000];
    let unit = UNITS_MS.into_iter().find(|unit| ms >= *unit).unwrap_or(1000);
    DurationMs(ms / unit * unit).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!(bytes(64 << 20), "64 MiB");
        assert_eq!((bytes(1500), bytes(999)), ("1.5 KiB".to_owned(), "999 B".to_owned()));
        assert_eq!(
            (age(90_000), age(172_800_001), age(3)),
            ("1m".into(), "2d".into(), "0s".into())
        );
    }
}
