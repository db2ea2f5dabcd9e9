//! Steps of a forecast, in the order in which they are reported.

use std::sync::Arc;

use policy::DecisionStep;

use crate::forecast::outcome::{Ending, ForecastOutcome};
use crate::state::reply::Reply;
use crate::state::shared::SharedState;

/// The steps of a forecast so far.
pub(crate) struct ForecastSteps<'s> {
    pub(crate) shared: &'s Arc<SharedState>,
    pub(crate) steps: Vec<DecisionStep>,
}

/// Returns the outcome of the answer `reply`; `from` names its source.
pub(crate) fn answered(reply: &Reply, from: &str) -> Ending {
    let (served, status) = (reply.served, reply.status);
    let foreseen = ForecastOutcome::Answer { served, status: Some(status) };
    (foreseen, format!("would be answered {from}, with status {status}"))
}
