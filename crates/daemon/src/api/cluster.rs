//! The cluster as the node knows it, and an operator's word about the node's part in it.

use admin::{Answer, Asked};
use cluster::Order;
use http::StatusCode;
use serde::Deserialize;

use super::store::Refused;
use crate::node;
use crate::state::Daemon;

/// An operator's word about the node's part.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Standing {
    order: String,
}

impl Daemon {
    pub(super) fn cluster_status(&self) -> Answer {
        Answer::json(&node::json(self.cluster().as_deref(), self.bucket().as_deref()))
    }

    /// Has an operator's word count.
    pub(super) async fn stand(&self, asked: Asked) -> Result<Answer, Refused> {
        let Standing { order } = super::body(asked.body)?;
        let Some((_, order)) = Order::WORDS.into_iter().find(|(word, _)| *word == order) else {
            let words = Order::WORDS.map(|(word, _)| word).join(", ");
            return Err((StatusCode::BAD_REQUEST, format!("`order` is one of {words}")));
        };
        let Some(cluster) = self.cluster() else {
            let why = "the daemon is alone: its configuration has no `[cluster]`";
            return Err((StatusCode::CONFLICT, why.to_owned()));
        };
        let done = cluster.order(order).await;
        done.map_err(|why| (StatusCode::CONFLICT, why.to_string()))?;
        Ok(self.cluster_status())
    }
}
