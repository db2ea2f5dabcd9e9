//! Explanations: what would happen to a request now, and what happened to the last requests for its
//! URL.
//!
//! The result is a list of steps: what was looked at, the outcome, the place of the rule, further
//! facts. All of it is text, so that a client needs no knowledge of this program.

mod question;
mod request_history;
mod step;

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use admin::AdminResponse;
use flow::explain::{
    Application, Explanation, ForecastOutcome, OF_MARK, explain, not_stored_advice,
};
use flow::{ForwardReason, SharedState};
use http::StatusCode;
use policy::ConnectionPeer;
use serde_json::{Value, json};

use self::question::ExplainQuestion;
use self::request_history::{Row, past};
use self::step::{fact, step};
use crate::state::Daemon;

/// Default number of rows of past requests.
const LAST: usize = 5;
/// Most rows of past requests.
const LAST_MAX: u64 = 100;

/// The body of a request to explain.
struct ExplainRequest {
    url: String,
    method: String,
    fields: Vec<String>,
    client: IpAddr,
    last: usize,
}

/// Answers the body of `POST /api/v1/explain`.
pub(crate) async fn answer(daemon: &Daemon, body: &Value) -> AdminResponse {
    let asked = match ExplainRequest::read(body) {
        Ok(asked) => asked,
        Err(why) => return AdminResponse::refusal(StatusCode::BAD_REQUEST, &why),
    };
    let shared = Arc::clone(&daemon.shared);
    let folder = daemon.ring.as_ref().map(|ring| ring.folder().to_owned());
    let applications = daemon.with_config(applications);
    // The work reads megabytes of the ring, and may look for files.
    match rt::run_blocking(move || build(&shared, folder.as_deref(), &applications, &asked)).await {
        Ok(told) => AdminResponse::json(&told),
        Err(why) => AdminResponse::refusal(StatusCode::BAD_REQUEST, &why),
    }
}

impl ExplainRequest {
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

/// Sites, by their first hosts, with the application that their preset is for.
type Applications = Vec<(String, Application)>;

fn applications(config: &config::Config) -> Applications {
    let of = |site: &config::SiteConfig| {
        let application = site.presets.iter().find_map(|preset| Application::of(preset))?;
        Some((site.hosts.first()?.clone(), application))
    };
    config.sites.iter().filter_map(of).collect()
}

fn build(
    shared: &Arc<SharedState>,
    ring: Option<&Path>,
    applications: &Applications,
    asked: &ExplainRequest,
) -> Result<Value, String> {
    let live = shared.live();
    let ExplainRequest { url, method, fields, client, last } = asked;
    let url = &question::with_scheme(url, live.connections.tls.is_some());
    let question = ExplainQuestion { url, method, fields };
    let request =
        question.request(&live.connections.head_limits).map_err(|error| error.to_string())?;
    let target = request.target.clone();
    let now = rt::now();
    let told = explain(shared, &live, request, ConnectionPeer::Host(*client), now);
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
    let application = applications.iter().find(|(site, _)| Some(site) == told.site.as_ref());
    let advice = advice(&told, &past, application.map(|(_, application)| *application));
    let past: Vec<Value> = past.into_iter().map(|row| row.told).collect();
    let mut steps: Vec<Value> = told.steps.iter().map(step).collect();
    add_response_of_mark(&mut steps, &past);
    let Explanation { outcome, summary, .. } = &told;
    Ok(json!({
        "url": url,
        "method": method,
        "client": client.to_string(),
        "outcome": { "served": outcome.word(), "summary": summary },
        "steps": steps,
        "past": past,
        "past_note": note,
        "advice": advice,
    }))
}

/// Advice on what would change the outcome, or why nothing should: from the deciding steps, or else
/// from earlier responses.
fn advice(told: &Explanation, past: &[Row], application: Option<Application>) -> Vec<String> {
    let decided = || told.steps.iter().filter(|step| step.decided);
    let own: Vec<String> = decided().filter_map(|step| step.advice.clone()).collect();
    if !own.is_empty() {
        return own;
    }
    let of_row = |row: &Row| {
        let (token, evidence) = &row.not_stored;
        not_stored_advice(token, evidence, application)
    };
    let place = decided().find_map(|step| step.place.as_deref());
    let is_passed = |reason| matches!(reason, ForwardReason::Bypass | ForwardReason::Method);
    let sentence = match (told.outcome, place) {
        (ForecastOutcome::Answer { served, .. }, _) if served.outcome().is_hit() => {
            "Nothing: the cache answers.".to_owned()
        }
        (ForecastOutcome::Fetch { reason, .. }, _) if !is_passed(reason) => {
            match past.iter().take_while(|row| !row.stored).find_map(of_row) {
                Some(advice) => advice,
                None => {
                    "Nothing: the next request finds it stored, unless the answer forbids that."
                        .to_owned()
                }
            }
        }
        (_, Some(place)) if place.starts_with('<') => {
            "A `return` of the program's own goes before the built-in subroutine's.".to_owned()
        }
        (_, Some(place)) => format!("The setting at {place} decides: change it there."),
        _ => "Nothing: it is no matter of the cache.".to_owned(),
    };
    match told.outcome {
        ForecastOutcome::Fetch { reason: ForwardReason::HitForMiss, .. } => {
            vec![sentence, OF_MARK.to_owned()]
        }
        _ => vec![sentence],
    }
}

/// Adds to a hit-for-miss mark's step the response that it comes from, if that is still known.
fn add_response_of_mark(steps: &mut [Value], past: &[Value]) {
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
            let error = ExplainRequest::read(&body).err().expect("a refusal");
            assert!(error.starts_with(expected), "{body}: {error}");
        }
        let asked = ExplainRequest::read(&json!({ "url": "http://a/", "method": null })).ok();
        let asked = asked.expect("a question");
        assert_eq!((asked.method.as_str(), asked.last), ("GET", LAST));
    }
}
