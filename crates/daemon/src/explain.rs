//! Explanations: what would happen to a request now, and what happened to the last requests for its
//! URL.
//!
//! The answer is a list of steps. Each step tells what was looked at, what came of that, where that
//! is written, and further facts. All of this is in words: whoever shows the answer need not know
//! this program.

mod question;

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use admin::Answer;
use flow::Shared;
use flow::explain::{Explanation, explain, not_stored};
use http::StatusCode;
use message::date::LogDate;
use observe::ring::{Follower, From};
use observe::{Flags, Record};
use policy::told::shown;
use policy::{Peer, Step};
use serde_json::{Value, json};

use self::question::Question;
use crate::state::Daemon;

/// Transactions told of when nobody says how many.
const LAST: usize = 5;
/// Looks at the ring, each of a megabyte per core at most: more than there is in any but the very
/// largest, so that a daemon which writes as fast as it is read comes to an end.
const POLLS_MAX: usize = 1024;
/// Most that are told of.
const LAST_MAX: u64 = 100;

/// A question.
struct Asked {
    url: String,
    method: String,
    fields: Vec<String>,
    client: IpAddr,
    last: usize,
}

/// Answers a question as `POST /api/v1/explain` takes it.
pub(crate) async fn answer(daemon: &Daemon, body: &Value) -> Answer {
    let asked = match Asked::read(body) {
        Ok(asked) => asked,
        Err(why) => return Answer::refusal(StatusCode::BAD_REQUEST, &why),
    };
    let shared = Arc::clone(&daemon.shared);
    let folder = daemon.ring.as_ref().map(|ring| ring.folder().to_owned());
    // It reads a ring of megabytes, and perhaps looks for files.
    let told = rt::blocking(move || tell(&shared, folder.as_deref(), &asked));
    match told.await {
        Ok(Ok(told)) => Answer::json(&told),
        Ok(Err(why)) => Answer::refusal(StatusCode::BAD_REQUEST, &why),
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

impl Asked {
    fn read(body: &Value) -> Result<Self, String> {
        let members = body.as_object().ok_or("a JSON object is wanted, with at least a `url`")?;
        const KNOWN: [&str; 5] = ["url", "method", "headers", "client", "last"];
        if let Some(other) = members.keys().find(|key| !KNOWN.contains(&key.as_str())) {
            let known = KNOWN.join(", ");
            return Err(format!("`{}` is not known; there are {known}", other.escape_debug()));
        }
        let text = |key: &str| match members.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(format!("`{key}` is a string")),
        };
        let lines = "`headers` is a list of lines, each `Name: value`";
        let fields = match members.get("headers") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(all)) => {
                let texts = all.iter().map(|line| line.as_str().map(str::to_owned));
                texts.collect::<Option<Vec<_>>>().ok_or(lines)?
            }
            Some(_) => return Err(lines.to_owned()),
        };
        let client = match text("client")? {
            None => IpAddr::from([127, 0, 0, 1]),
            Some(text) => text.parse().map_err(|_| "`client` is an address".to_owned())?,
        };
        let last = match members.get("last") {
            None | Some(Value::Null) => LAST,
            Some(last) => last
                .as_u64()
                .filter(|last| *last <= LAST_MAX)
                .and_then(|last| usize::try_from(last).ok())
                .ok_or_else(|| format!("`last` is a whole number up to {LAST_MAX}"))?,
        };
        let url =
            text("url")?.ok_or("`url` is missing: the whole URL, such as https://a.test/x")?;
        let method = text("method")?.unwrap_or_else(|| "GET".to_owned());
        Ok(Self { url, method, fields, client, last })
    }
}

fn tell(shared: &Arc<Shared>, ring: Option<&Path>, asked: &Asked) -> Result<Value, String> {
    let live = shared.live();
    let Asked { url, method, fields, client, last } = asked;
    let url = &question::with_scheme(url, live.tls.is_some());
    let question = Question { url, method, fields };
    let request = question.request(&live.head_limits).map_err(|error| error.to_string())?;
    let target = request.target.clone();
    let now = rt::now();
    let told = explain(shared, &live, request, Peer::Host(*client), now);
    let targets = [&target[..], &told.request.target];
    let (past, note) = match ring {
        None => (Vec::new(), Some("the log ring is off: see `log_ring`".to_owned())),
        Some(_) if *last == 0 => (Vec::new(), None),
        Some(folder) => match past(folder, &told, &targets, *last) {
            Ok(past) if past.is_empty() => {
                (past, Some("no request for this URL is in the log ring any more".to_owned()))
            }
            Ok(past) => (past, None),
            Err(error) => (Vec::new(), Some(format!("the log ring cannot be read: {error}"))),
        },
    };
    let mut steps: Vec<Value> = told.steps.iter().map(step).collect();
    tell_of_mark(&mut steps, &past);
    let Explanation { foreseen, summary, .. } = &told;
    Ok(json!({
        "url": url,
        "method": method,
        "client": client.to_string(),
        "outcome": { "served": foreseen.word(), "summary": summary },
        "steps": steps,
        "past": past,
        "past_note": note,
    }))
}

/// Adds to what is said of a hit-for-miss mark which answer it is from, if that is still known.
fn tell_of_mark(steps: &mut [Value], past: &[Value]) {
    let Some(mark) = steps.iter_mut().find(|step| step["what"] == "mark") else { return };
    let told = |one: &&Value| {
        let mut facts = one["facts"].as_array().into_iter().flatten();
        facts.any(|fact| fact["name"] == "not stored" && fact["value"] != "pass")
    };
    let Some(former) = past.iter().find(told) else { return };
    let mut facts = former["facts"].as_array().into_iter().flatten();
    let because = facts.find(|fact| fact["name"] == "because of").map(|fact| &fact["value"]);
    let because = because.and_then(Value::as_str).unwrap_or_default();
    let why = former["why"].as_str().unwrap_or_default();
    let gap = if because.is_empty() { "" } else { "; " };
    if let Some(facts) = mark["facts"].as_array_mut() {
        facts.push(fact("the former answer", &format!("{why}{gap}{because}")));
    }
}

fn step(step: &Step) -> Value {
    let facts = step.facts.iter().map(|(name, value)| fact(name, value));
    json!({
        "what": step.what,
        "why": step.why,
        "where": step.place.as_deref(),
        "facts": facts.collect::<Vec<_>>(),
        "decided": step.decided,
    })
}

fn fact(name: &str, value: &str) -> Value {
    json!({ "name": name, "value": value })
}

/// The last `count` requests in the ring for one of `targets` at the host of what is explained, the
/// newest first.
fn past(
    folder: &Path,
    told: &Explanation,
    targets: &[&[u8]],
    count: usize,
) -> io::Result<Vec<Value>> {
    let mut follower = Follower::open(folder, From::Oldest)?;
    // By their ends; one at most for each transaction that ends.
    let mut kept: BTreeMap<(u64, u64), Value> = BTreeMap::new();
    for _ in 0..POLLS_MAX {
        let polled = follower.poll(&mut |record| {
            if record.host != told.request.host || !targets.contains(&record.target) {
                return;
            }
            let rule = shown(record.rule);
            let place = told.place(&rule).map(|place| &**place);
            kept.insert((record.end_us(), record.id), transaction(record, place));
            if kept.len() > count {
                kept.pop_first();
            }
        })?;
        if polled.records == 0 {
            break;
        }
    }
    Ok(kept.into_values().rev().collect())
}

/// One transaction as a step; `place` is where the rule that decided is written now.
fn transaction(record: &Record<'_>, place: Option<&str>) -> Value {
    let secs = record.start_unix_ms / 1000;
    let mut facts = Vec::new();
    let mut add = |name: &str, value: String| {
        if !value.is_empty() {
            facts.push(fact(name, &value));
        }
    };
    add("method", shown(record.method));
    add("client", record.client.map(|client| client.to_string()).unwrap_or_default());
    add("rule", shown(record.rule));
    add("not stored", shown(record.not_stored));
    add("because of", shown(record.evidence));
    add("dictionary", record.dictionary.to_string());
    add("origin", shown(record.origin));
    add("server", shown(record.server));
    add("error", shown(record.error));
    add("limit", shown(record.limit));
    add("age", record.age_s.map(|age| format!("{age} s")).unwrap_or_default());
    let lines = record.vcl.split(|byte| *byte == b'\n').map(shown);
    add("vcl", lines.collect::<Vec<_>>().join("; "));
    add("xid", if record.xid > 0 { record.xid.to_string() } else { String::new() });
    add("took", format!("{} ms", record.phases.end / 1000));
    json!({
        "what": LogDate::new(secs).as_str(),
        "time": secs,
        "why": what_happened(record),
        "where": place,
        "facts": facts,
        "decided": false,
    })
}

/// Tells in a sentence or two how a request was served and what became of the answer.
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
    fn a_question_that_cannot_be_understood_is_told_what_is_wrong() {
        for (body, expected) in [
            (json!([]), "a JSON object is wanted"),
            (json!({}), "`url` is missing"),
            (json!({ "url": 1 }), "`url` is a string"),
            (json!({ "url": "http://a/", "header": [] }), "`header` is not known"),
            (json!({ "url": "http://a/", "headers": "X: y" }), "`headers` is a list"),
            (json!({ "url": "http://a/", "headers": [1] }), "`headers` is a list"),
            (json!({ "url": "http://a/", "client": "me" }), "`client` is an address"),
            (json!({ "url": "http://a/", "last": 101 }), "`last` is a whole number"),
            (json!({ "url": "http://a/", "last": -1 }), "`last` is a whole number"),
        ] {
            let error = Asked::read(&body).err().expect("a refusal");
            assert!(error.starts_with(expected), "{body}: {error}");
        }
        let asked = Asked::read(&json!({ "url": "http://a/", "method": null })).ok();
        let asked = asked.expect("a question");
        assert_eq!((asked.method.as_str(), asked.last), ("GET", LAST));
    }

    #[test]
    fn a_transaction_is_told_with_its_reason() {
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
}
