//! Explanations by `POST /api/v1/explain`, and their parts.

use serde_json::Value;
use testkit::larder::Daemon;
use testkit::reply::Reply;

use super::console::{self, Ask};

/// The response of the admin socket to a question.
pub(crate) async fn put(daemon: &Daemon, question: &Value) -> Reply {
    Ask::post("/api/v1/explain", question).send_locally(daemon).await
}

/// The explanation for a question.
pub(crate) async fn explain(daemon: &Daemon, question: &Value) -> Value {
    let reply = put(daemon, question).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    console::json(&reply)
}

/// The first step called `what`.
pub(crate) fn step<'t>(told: &'t Value, what: &str) -> &'t Value {
    let steps = told["steps"].as_array().expect("steps");
    steps.iter().find(|step| step["what"] == what).unwrap_or(&Value::Null)
}

/// The value of the fact `name`; empty if the step has no such fact.
pub(crate) fn fact<'t>(step: &'t Value, name: &str) -> &'t str {
    let mut facts = step["facts"].as_array().into_iter().flatten();
    let fact = facts.find(|fact| fact["name"] == name);
    fact.and_then(|fact| fact["value"].as_str()).unwrap_or_default()
}
