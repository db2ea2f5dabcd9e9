//! The API of upgrades: a new process takes the daemon's place.

use std::path::PathBuf;
use std::sync::Arc;

use admin::{AdminPeer, AdminRequest, AdminResponse};
use http::StatusCode;
use rustix::process::geteuid;
use serde::Deserialize;
use serde_json::json;

use super::said;
use super::store::ApiRefusal;
use crate::state::Daemon;
use crate::upgrade::{self, NotReplaced, Successor};

/// The request body: the program to start.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct UpgradeBody {
    #[serde(default, deserialize_with = "said")]
    binary: Option<PathBuf>,
}

/// Replaces the daemon.
pub(super) async fn answer(
    daemon: &Arc<Daemon>,
    asked: AdminRequest,
) -> Result<AdminResponse, ApiRefusal> {
    let UpgradeBody { binary } = match asked.body.is_null() {
        true => UpgradeBody::default(),
        false => super::body(asked.body)?,
    };
    if binary.is_some() && !may_name_programs(asked.caller.peer) {
        let why = "another program is named over the admin socket alone, by root or the daemon's \
                   own user: it would run with the daemon's rights";
        return Err((StatusCode::FORBIDDEN, why.to_owned()));
    }
    if binary.as_ref().is_some_and(|path| !path.is_absolute()) {
        return Err((StatusCode::UNPROCESSABLE_ENTITY, "`binary` is an absolute path".to_owned()));
    }
    let replaced = {
        let daemon = Arc::clone(daemon);
        rt::blocking(move || upgrade::replace(&daemon, binary)).await
    };
    let internal = |error| (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}"));
    match replaced.map_err(internal)? {
        Ok(Successor { pid, version }) => Ok(AdminResponse::json(&json!({
            "pid": pid,
            "version": version,
            "before": std::process::id(),
            "drain_ms": daemon.shared.live().limits.drain_time,
        }))),
        Err(NotReplaced::Conflict(why)) => Err((StatusCode::CONFLICT, why)),
        Err(NotReplaced::Failed(why)) => {
            Err((StatusCode::UNPROCESSABLE_ENTITY, super::plain(&why)))
        }
    }
}

/// Returns true if a caller may run any program as the daemon's user.
fn may_name_programs(peer: AdminPeer) -> bool {
    match peer {
        AdminPeer::Local { uid, .. } => uid == 0 || uid == geteuid().as_raw(),
        AdminPeer::Address(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_root_and_the_daemon_s_user_name_programs() {
        let own = geteuid().as_raw();
        for (peer, may) in [
            (AdminPeer::Local { uid: 0, pid: None }, true),
            (AdminPeer::Local { uid: own, pid: Some(1) }, true),
            (AdminPeer::Local { uid: own.wrapping_add(7), pid: None }, false),
            (AdminPeer::Address([127, 0, 0, 1].into()), false),
        ] {
            assert_eq!(may_name_programs(peer), may, "{peer}");
        }
    }
}
