//! Servers of origins as JSON, for the API and the dashboard.

use origin::{ProbeVerdict, ServerStatus};
use serde_json::{Value, json};

/// The state of a server, as JSON.
pub(crate) fn server(status: &ServerStatus) -> Value {
    let probed = match status.probed {
        ProbeVerdict::Unknown => "unknown",
        ProbeVerdict::Healthy => "healthy",
        ProbeVerdict::Sick => "sick",
    };
    json!({
        "name": *status.name,
        "addresses": status.addresses.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "weight": status.weight,
        "backup": status.backup,
        "healthy": status.healthy,
        "order": status.order.word(),
        "probed": probed,
        "down_since_ms": status.down_since_ms,
        "ejected_ms": status.ejected_ms,
        "failures": status.failures,
        "requests": status.requests,
        "failed": status.failed,
        "in_flight": status.in_flight,
        "waiting": status.waiting,
        "answers": status.answers.0,
        "answers_us": status.answers.1,
        "last_error": status.last_error.as_ref().map(|(_, why)| why),
        "last_error_ms": status.last_error.as_ref().map(|(at, _)| at),
    })
}
