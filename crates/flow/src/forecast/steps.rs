//! The steps of a forecast as they are told, one after the other.

use std::sync::Arc;

use policy::DecisionStep;

use crate::forecast::outcome::{Ending, ForecastOutcome};
use crate::state::reply::Reply;
use crate::state::shared::SharedState;

/// The steps of a forecast, as far as it has come.
pub(crate) struct ForecastSteps<'s> {
    pub(crate) shared: &'s Arc<SharedState>,
    pub(crate) steps: Vec<DecisionStep>,
}

/// Returns the outcome that is the answer `reply`; `from` says where the answer is from.
pub(crate) fn answered(reply: &Reply, from: &str) -> Ending {
    let (served, status) = (reply.served, reply.status);
    let foreseen = ForecastOutcome::Answer { served, status: Some(status) };
    (foreseen, format!("would be answered {from}, with status {status}"))
}
