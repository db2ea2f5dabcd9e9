//! The API of the cluster: the cluster as this node sees it, and the operator's orders for the
//! node.

use admin::{AdminPeer, AdminRequest, AdminResponse};
use cluster::MembershipOrder;
use http::StatusCode;
use serde::Deserialize;

use super::said;
use super::store::ApiRefusal;
use crate::node;
use crate::rollout::{self, NotBegun};
use crate::state::Daemon;

/// The request body of an operator's order for this node.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NodeOrderBody {
    order: String,
}

/// The request body that names the version to roll back to.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RollBack {
    #[serde(default, deserialize_with = "said")]
    version: Option<String>,
}

fn refused(why: NotBegun) -> ApiRefusal {
    match why {
        NotBegun::Conflict(why) => (StatusCode::CONFLICT, why),
        NotBegun::Bad(why) => (StatusCode::UNPROCESSABLE_ENTITY, super::plain(&why)),
        NotBegun::OutOfTouch(why) => (StatusCode::SERVICE_UNAVAILABLE, why),
    }
}

impl Daemon {
    pub(super) fn cluster_status(&self) -> AdminResponse {
        let mut all = node::json(self.cluster().as_deref(), self.bucket().as_deref());
        all["configuration"] = rollout::short(self);
        AdminResponse::json(&all)
    }

    /// Describes the configuration that all nodes share.
    pub(super) fn shared_configuration(&self) -> AdminResponse {
        AdminResponse::json(&rollout::json(self))
    }

    /// Begins a roll-out of a configuration.
    pub(super) async fn roll_out(&self, asked: AdminRequest) -> Result<AdminResponse, ApiRefusal> {
        if let AdminPeer::Address(_) = asked.caller.peer {
            let why = "a configuration is rolled out over the admin socket alone: it may have \
                       files served that no token may see";
            return Err((StatusCode::FORBIDDEN, why.to_owned()));
        }
        let request = super::body(asked.body)?;
        rollout::begin(self, request).await.map_err(refused)?;
        Ok(self.shared_configuration())
    }

    /// Rolls all nodes back.
    pub(super) async fn roll_back(&self, asked: AdminRequest) -> Result<AdminResponse, ApiRefusal> {
        let RollBack { version } = match asked.body.is_null() {
            true => RollBack { version: None },
            false => super::body(asked.body)?,
        };
        rollout::roll_back(self, version.as_deref()).await.map_err(refused)?;
        Ok(self.shared_configuration())
    }

    /// Applies an operator's order to this node.
    pub(super) async fn apply_node_order(
        &self,
        asked: AdminRequest,
    ) -> Result<AdminResponse, ApiRefusal> {
        let NodeOrderBody { order } = super::body(asked.body)?;
        let Some((_, order)) = MembershipOrder::WORDS.into_iter().find(|(word, _)| *word == order)
        else {
            let words = MembershipOrder::WORDS.map(|(word, _)| word).join(", ");
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
