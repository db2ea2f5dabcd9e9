//! The API of the log: requests of the log ring's readers to the daemon.

use admin::{AdminRequest, AdminResponse, Role};
use base::Limit;
use http::StatusCode;
use observe::format::FieldPositions;
use observe::{FieldSubscription, Query};
use serde::Deserialize;
use serde_json::json;

use super::store::ApiRefusal;
use super::{body, said};
use crate::state::Daemon;

/// Seconds for which the cores keep fields for a reader that does not renew its request.
const LEASE_S: u64 = 10;
/// Field names of one reader.
const NAMES_MAX: usize = 100;

/// The request body: header fields that records are to keep.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Watch {
    #[serde(default, deserialize_with = "said")]
    names: Option<Vec<String>>,
    #[serde(default, deserialize_with = "said")]
    filter: Option<String>,
    #[serde(default)]
    secrets: bool,
}

impl Daemon {
    /// Makes records keep header fields for some seconds.
    pub(super) fn watch(&self, asked: AdminRequest) -> Result<AdminResponse, ApiRefusal> {
        let Watch { names, filter, secrets } = body(asked.body)?;
        if secrets && asked.caller.role < Some(Role::Config) {
            let why = "secrets need the role `config`; without `secrets` they are masked";
            return Err((StatusCode::FORBIDDEN, why.to_owned()));
        }
        let Some(ring) = &self.ring else {
            let why = "the log ring is off: see `log_ring`";
            return Err((StatusCode::NOT_FOUND, why.to_owned()));
        };
        let good = |name: &String| message::header::is_token(name.as_bytes());
        if !names.iter().flatten().all(good) || names.as_ref().is_some_and(Vec::is_empty) {
            let why = "`names` are names of header fields, one at least";
            return Err((StatusCode::BAD_REQUEST, why.to_owned()));
        }
        if names.as_ref().is_some_and(|names| names.len() > NAMES_MAX) {
            let why = format!("{NAMES_MAX} names at most");
            return Err((StatusCode::BAD_REQUEST, why));
        }
        let text = filter.unwrap_or_default();
        let query = match text.as_str() {
            "" => None,
            text => Some(
                Query::parse(text, &FieldPositions::new(ring.names()))
                    .map_err(|error| (StatusCode::UNPROCESSABLE_ENTITY, error.to_string()))?,
            ),
        };
        let want = FieldSubscription {
            names: names.unwrap_or_default(),
            query,
            text,
            secrets,
            ..FieldSubscription::default()
        };
        let now_ms = rt::now().mono_ms;
        if !self.shared.in_force.want(want, now_ms, now_ms + LEASE_S * 1000) {
            self.admin_counts.lock().limit(Limit::LogReaders);
            let why = "no more readers may ask for header fields (limit: log_readers)";
            return Err((StatusCode::SERVICE_UNAVAILABLE, why.to_owned()));
        }
        Ok(AdminResponse::json(&json!({ "seconds": LEASE_S })))
    }
}
