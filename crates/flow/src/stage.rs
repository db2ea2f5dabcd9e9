//! A stage of the row that each request goes along before its site's policy receives it (`row`),
//! and the clearance that it carries from one stage to the next.

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

/// A request that has come to its site, without the [`Request`] itself, which stages change.
#[derive(Clone, Copy)]
pub(crate) struct Entrant<'a> {
    pub(crate) place: SiteContext<'a>,
    pub(crate) client: &'a Client<'a>,
    pub(crate) now: Now,
    pub(crate) downstream: &'a Downstream,
}

/// A stage of the row.
pub(crate) trait RowStage {
    /// Returns true if the request comes to this stage at all.
    fn is_for(entrant: &Entrant<'_>) -> bool;

    /// Has the request pass the stage, end there, or wait.
    fn act(
        core: &Rc<CoreState>,
        entrant: &Entrant<'_>,
        request: &mut Request,
        clearance: &mut Clearance,
    ) -> StageResult;

    /// Foretells what [`RowStage::act`] would do, and changes nothing but the request and what it
    /// carries; the outcome if the request would end here.
    fn look(
        telling: &mut ForecastSteps<'_>,
        entrant: &Entrant<'_>,
        request: &mut Request,
        clearance: &mut Clearance,
    ) -> Option<Ending>;
}

/// The outcome of a stage.
#[expect(clippy::large_enum_variant, reason = "a reply is moved, never allocated")]
pub(crate) enum StageResult {
    /// The request goes on to the next stage.
    On,
    /// It ends here, or waits; and on whose behalf it is made.
    End(Start, ConnectionPeer),
}

/// The kind of an outcome.
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

/// The results of the stages that a request has passed, which it carries.
#[derive(Default)]
pub(crate) struct Clearance {
    pub(crate) marks: Marks,
    /// The way in which it has entered by the gates; `None` where none has a say.
    pub(crate) entering: Option<SiteAdmission>,
}

impl Clearance {
    /// Has the gates let `request` in.
    pub(crate) fn let_in(&mut self, mut entering: Option<SiteAdmission>, request: &mut Request) {
        if let Some(entering) = &mut entering {
            entering.take_off(request);
            self.marks.user = entering.user.take();
        }
        self.entering = entering;
    }
}

impl Entrant<'_> {
    /// The request waits at a stage, and goes on along the row from there.
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
            ..WaitingRequest::on(self.place, RequestDisposition::Row(parked))
        }))
    }
}
