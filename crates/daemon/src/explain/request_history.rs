//! The request history: the last requests for a URL, read from the log ring, equal ones in one row.

use std::collections::HashMap;
use std::io;
use std::path::Path;

use flow::explain::{Explanation, not_stored};
use message::date::LogDate;
use observe::ring::{FollowStart, RingFollower};
use observe::{Flags, Record};
use policy::decision_steps::shown;
use serde_json::{Value, json};

use super::step::fact;

/// Polls of the ring, each of at most a megabyte per core. It exceeds all but the very largest
/// rings, and ends the read of a ring that is written as fast as it is read.
const POLLS_MAX: usize = 1024;
/// Rows kept while the ring is read; the oldest are dropped. Only unusual traffic produces so many.
const ROWS_MAX: usize = 1000;

/// Requests that were served alike, for the same reasons.
pub(super) struct Row {
    /// The newest request, as a step.
    pub(super) told: Value,
    /// The token of the reason why the response was not stored, and the field behind it.
    pub(super) not_stored: (String, String),
    /// The response was stored then, or already.
    pub(super) stored: bool,
    /// The sort key: the end of the newest request.
    end: (u64, u64),
    times: u64,
    /// The start of the oldest request, in seconds since 1970 UTC.
    since: u64,
}

/// The last `count` rows of requests in the ring for one of `targets` at the explained host, the
/// newest first.
pub(super) fn past(
    folder: &Path,
    told: &Explanation,
    targets: &[&[u8]],
    count: usize,
) -> io::Result<Vec<Row>> {
    let mut follower = RingFollower::open(folder, FollowStart::Oldest)?;
    let mut rows: HashMap<Vec<String>, Row> = HashMap::new();
    for _ in 0..POLLS_MAX {
        let polled = follower.poll(&mut |record| {
            if record.host != told.request.host || !targets.contains(&record.target) {
                return;
            }
            let rule = shown(record.rule);
            let place = told.place(&rule).map(|place| &**place);
            add(&mut rows, record, place);
        })?;
        if polled.records == 0 {
            break;
        }
    }
    let mut rows: Vec<_> = rows.into_values().collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.end));
    rows.truncate(count);
    rows.iter_mut().for_each(Row::count);
    Ok(rows)
}

/// Adds a request to the row of its equals; `place` is the current location of the rule that
/// decided.
fn add(rows: &mut HashMap<Vec<String>, Row>, record: &Record<'_>, place: Option<&str>) {
    let (end, since) = ((record.end_us(), record.id), record.start_unix_ms / 1000);
    let new = || Row {
        told: Value::Null,
        not_stored: (shown(record.not_stored), shown(record.evidence)),
        stored: record.served.is_hit() || record.flags.has(Flags::STORED),
        end: (0, 0),
        times: 0,
        since,
    };
    let row = rows.entry(alike(record)).or_insert_with(new);
    row.times += 1;
    row.since = row.since.min(since);
    if end >= row.end {
        row.end = end;
        row.told = transaction(record, place);
    }
    if rows.len() > ROWS_MAX {
        let oldest = rows.iter().min_by_key(|(_, row)| row.end).map(|(key, _)| key.clone());
        oldest.and_then(|key| rows.remove(&key));
    }
}

impl Row {
    /// Adds the number of requests to the step, if there are several.
    fn count(&mut self) {
        self.told["times"] = self.times.into();
        if self.times > 1
            && let Some(facts) = self.told["facts"].as_array_mut()
        {
            let since = LogDate::new(self.since);
            facts.insert(0, fact("times", &format!("{} since {}", self.times, since.as_str())));
        }
    }
}

/// Everything that equal requests share. Clients, times and durations may differ.
fn alike(record: &Record<'_>) -> Vec<String> {
    let all = facts(record).into_iter().filter(|(name, _)| !OWN.contains(name));
    std::iter::once(what_happened(record)).chain(all.map(|(_, value)| value)).collect()
}

/// Facts of a single request.
const OWN: [&str; 4] = ["client", "age", "xid", "took"];

fn facts(record: &Record<'_>) -> [(&'static str, String); 14] {
    let lines = record.vcl.split(|byte| *byte == b'\n').map(shown);
    [
        ("method", shown(record.method)),
        ("client", record.client.map(|client| client.to_string()).unwrap_or_default()),
        ("rule", shown(record.rule)),
        ("not stored", shown(record.not_stored)),
        ("because of", shown(record.evidence)),
        ("dictionary", record.dictionary.to_string()),
        ("origin", shown(record.origin)),
        ("server", shown(record.server)),
        ("error", shown(record.error)),
        ("limit", shown(record.limit)),
        ("age", record.age_s.map(|age| format!("{age} s")).unwrap_or_default()),
        ("vcl", lines.collect::<Vec<_>>().join("; ")),
        ("xid", if record.xid > 0 { record.xid.to_string() } else { String::new() }),
        ("took", format!("{} ms", record.phases.end / 1000)),
    ]
}

/// One transaction as a step.
fn transaction(record: &Record<'_>, place: Option<&str>) -> Value {
    let secs = record.start_unix_ms / 1000;
    let facts = facts(record).into_iter().filter(|(_, value)| !value.is_empty());
    json!({
        "what": LogDate::new(secs).as_str(),
        "time": secs,
        "why": what_happened(record),
        "where": place,
        "facts": facts.map(|(name, value)| fact(name, &value)).collect::<Vec<_>>(),
        "decided": false,
    })
}

/// Describes how a request was served and what became of the response.
fn what_happened(record: &Record<'_>) -> String {
    use observe::Served::{Collapsed, HitForMiss, Miss, Pass};
    let served = format!("{} {}", record.served.word(), record.status);
    let token = String::from_utf8_lossy(record.not_stored);
    if token == "pass" {
        return format!("{served}, past the cache by rule `{}`", shown(record.rule));
    }
    if let Some((sentence, rule)) = not_stored(&token) {
        return format!("{served}, not stored: {} ({rule})", sentence.trim_end_matches('.'));
    }
    let fetched = matches!(record.served, Miss | HitForMiss | Collapsed | Pass);
    if record.flags.has(Flags::STORED) {
        format!("{served}, stored")
    } else if !token.is_empty() {
        format!("{served}, not stored: {token}")
    } else if fetched && record.served == Collapsed {
        format!("{served}, by another request's fetch")
    } else {
        served
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_is_reported_with_its_reason() {
        let record = Record {
            status: 200,
            served: observe::Served::Miss,
            not_stored: b"set-cookie",
            evidence: b"Set-Cookie: sid",
            ..Record::default()
        };
        let why = what_happened(&record);
        assert!(why.starts_with("MISS 200, not stored: The response sets a cookie"), "{why}");
        let told = transaction(&record, Some("larder.toml:3"));
        assert_eq!(told["where"], "larder.toml:3");
        assert!(
            told["facts"].as_array().is_some_and(|facts| {
                facts.iter().any(|fact| fact["value"] == "Set-Cookie: sid")
            })
        );
        let stored = Record { flags: Flags::STORED, not_stored: b"", ..record };
        assert_eq!(what_happened(&stored), "MISS 200, stored");
        let passed = Record { not_stored: b"pass", rule: b"method", ..record };
        assert_eq!(what_happened(&passed), "MISS 200, past the cache by rule `method`");
        let strange = Record { not_stored: b"new-token", ..record };
        assert_eq!(what_happened(&strange), "MISS 200, not stored: new-token");
    }

    #[test]
    fn equal_requests_of_all_clients_and_times_are_one_row() {
        let mut rows = HashMap::new();
        let hit = |id: u64, client: u8| Record {
            id,
            status: 200,
            served: observe::Served::Hit,
            client: Some([192, 0, 2, client].into()),
            start_unix_ms: id * 1000,
            start_us: id,
            age_s: Some(id),
            ..Record::default()
        };
        for record in [
            hit(3, 1),
            hit(1, 2),
            Record { served: observe::Served::Miss, ..hit(2, 1) },
            hit(4, 3),
            Record { rule: b"other", ..hit(5, 1) },
        ] {
            add(&mut rows, &record, None);
        }
        let mut rows: Vec<_> = rows.into_values().collect();
        rows.sort_by_key(|row| row.end);
        rows.iter_mut().for_each(Row::count);
        let times: Vec<_> = rows.iter().map(|row| row.told["times"].as_u64()).collect();
        assert_eq!(times, [Some(1), Some(3), Some(1)]);
        let [_, hits, _] = &rows[..] else { panic!("three rows") };
        let first = &hits.told["facts"][0];
        assert_eq!(first["value"], "3 since 01/Jan/1970:00:00:01 +0000", "{first}");
        let shown = hits.told["facts"].to_string();
        assert!(shown.contains("192.0.2.3") && shown.contains("4 s"), "of the newest: {shown}");
        assert_eq!(hits.told["time"], 4);
    }

    #[test]
    fn no_more_rows_are_kept_than_may() {
        let mut rows = HashMap::new();
        for number in 0..ROWS_MAX as u64 + 10 {
            let error = number.to_string();
            let record = Record { start_us: number, error: error.as_bytes(), ..Record::default() };
            add(&mut rows, &record, None);
        }
        assert_eq!(rows.len(), ROWS_MAX);
        assert!(rows.values().all(|row| row.end.0 >= 10), "the oldest are gone");
    }
}
