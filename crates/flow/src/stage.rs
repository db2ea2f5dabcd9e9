//! Stage of the row that each request passes before its site's policy receives it (`stage_row`),
//! and the clearance that the request carries from stage to stage.

use std::rc::Rc;

use base::Now;
use message::Request;
use policy::ConnectionPeer;

use crate::disposition::{Marks, RequestDisposition, Start, WaitingRequest};
use crate::forecast::outcome::Ending;
use crate::forecast::steps::ForecastSteps;
use crate::state::client::Client;
use crate::state::core::CoreState;
use crate::state::downstream::Downstream;
use crate::state::gate::SiteAdmission;
use crate::state::gate::parked_request::{ParkedRequest, StageWait};
use crate::state::site_context::SiteContext;

/// A request at its site, without the [`Request`] itself, which stages change.
#[derive(Clone, Copy)]
pub(crate) struct Entrant<'a> {
    pub(crate) site_ctx: SiteContext<'a>,
    pub(crate) client: &'a Client<'a>,
    pub(crate) now: Now,
    pub(crate) downstream: &'a Downstream,
}

/// A stage of the row.
pub(crate) trait RowStage {
    /// Returns true if the stage applies to the request.
    fn is_for(entrant: &Entrant<'_>) -> bool;

    /// Lets the request pass, ends it, or makes it wait.
    fn act(
        core: &Rc<CoreState>,
        entrant: &Entrant<'_>,
        request: &mut Request,
        clearance: &mut Clearance,
    ) -> StageResult;

    /// Forecasts the result of [`RowStage::act`]. Changes only the request and its clearance;
    /// returns the outcome if the request would end here.
    fn look(
        forecast: &mut ForecastSteps<'_>,
        entrant: &Entrant<'_>,
        request: &mut Request,
        clearance: &mut Clearance,
    ) -> Option<Ending>;
}

/// The result of a stage.
#[expect(clippy::large_enum_variant, reason = "a reply is moved, never allocated")]
pub(crate) enum StageResult {
    /// The request goes on to the next stage.
    On,
    /// The request ends here or waits. Also the client for whom it is made.
    End(Start, ConnectionPeer),
}

/// The kind of a stage's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StageOutcome {
    GoesOn,
    Answered,
    Waits,
}

impl StageResult {
    pub(crate) fn outcome(&self) -> StageOutcome {
        match self {
            Self::On => StageOutcome::GoesOn,
            Self::End(Start::Reply(_), _) => StageOutcome::Answered,
            Self::End(Start::Slow(_), _) => StageOutcome::Waits,
        }
    }
}

/// The results of the stages that a request has passed.
#[derive(Default)]
pub(crate) struct Clearance {
    pub(crate) marks: Marks,
    /// The admission by the site's gates; `None` if none applies.
    pub(crate) admission: Option<SiteAdmission>,
}

impl Clearance {
    /// Notes the admission, and removes from `request` the fields that only gates may set.
    pub(crate) fn let_in(&mut self, mut admission: Option<SiteAdmission>, request: &mut Request) {
        if let Some(admission) = &mut admission {
            admission.take_off(request);
            self.marks.user = admission.user.take();
        }
        self.admission = admission;
    }
}

impl Entrant<'_> {
    /// Parks the request, which resumes the row at this stage.
    pub(crate) fn wait(
        &self,
        request: &Request,
        wait: StageWait,
        clearance: &mut Clearance,
    ) -> Start {
        let marks = std::mem::take(&mut clearance.marks);
        let parked = ParkedRequest::new(wait, request, self.client);
        Start::Slow(Box::new(WaitingRequest {
            marks,
            ..WaitingRequest::on(self.site_ctx, RequestDisposition::Row(parked))
        }))
    }
}
