//! A step of an explanation, and its JSON form.

use policy::DecisionStep;
use serde_json::{Value, json};

/// A step as JSON.
pub(super) fn step(step: &DecisionStep) -> Value {
    let facts = step.facts.iter().map(|(name, value)| fact(name, value));
    json!({
        "what": step.what,
        "why": step.why,
        "where": step.place.as_deref(),
        "facts": facts.collect::<Vec<_>>(),
        "decided": step.decided,
    })
}

/// A fact as JSON.
pub(super) fn fact(name: &str, value: &str) -> Value {
    json!({ "name": name, "value": value })
}
