//! Tests of a policy that panics: its fetch ends, and waiters and the core go on.

use std::rc::Rc;

use base::Counter;
use cache::{DemotionPolicy, Record};
use message::store::{NotStored, Permit};
use origin::Exchange;

use super::{Attempt, CollectedBody, Fetch, Job, Judge, ResponseFate, start};
use crate::body_transfer::TransferOutcome;
use crate::state::core::CoreState;
use crate::state::request_context::RequestConnection;
use crate::vcl::tests::rig::Rig;

/// A policy with a bug.
struct Broken;

impl Judge for Broken {
    type Instead = ();
    type Facts = ();
    type Pending = ();
    type Report = ();

    const COUNTS_ON: bool = false;

    fn sinks(&self) -> DemotionPolicy {
        DemotionPolicy::Never
    }

    fn ends_with_client(&self, _: &Fetch) -> bool {
        false
    }

    fn ask(&mut self, _: &mut Fetch) -> Attempt<Self> {
        panic!("a bug of the policy")
    }

    fn answered(&mut self, _: &mut Fetch, _: Box<Exchange>) -> ResponseFate<Self> {
        ResponseFate::Try
    }

    fn unanswered(&mut self, _: &mut Fetch, _: &origin::Error) -> ResponseFate<Self> {
        ResponseFate::Try
    }

    fn collected(
        &mut self,
        _: &mut Fetch,
        (): (),
        _: Result<CollectedBody, String>,
    ) -> ResponseFate<Self> {
        ResponseFate::Try
    }

    fn judge_again(&self, _: &Fetch, _: &Record) -> Result<Permit, NotStored> {
        Err(NotStored::NoStore)
    }

    fn found_file(&mut self, _: &mut Fetch, _: Vec<u8>) -> ResponseFate<Self> {
        ResponseFate::Try
    }

    fn carried(&mut self, _: &TransferOutcome) {}

    fn report(&mut self) {}

    fn program_trace(&mut self, (): ()) -> Option<Box<vcl::trace::ProgramTrace>> {
        None
    }
}

fn broken(core: &Rc<CoreState>) -> Box<Job<Broken>> {
    Job::new(Fetch::new(core, &core.live(), &RequestConnection::of(&core.background), 0), Broken)
}

#[test]
fn a_fetch_that_panics_is_counted_and_ends_alone() {
    let rig = Rig::new("ORIGIN");
    let core = &rig.core;
    rig.run(async {
        assert!(start(broken(core)).await.is_err(), "waiters get an error");
        assert_eq!(core.counters.value(Counter::Panics), 1);
        // No client waits for a background fetch.
        drop(start(broken(core)));
        assert!(start(broken(core)).await.is_err());
    });
    assert_eq!(core.counters.value(Counter::Panics), 3);
    assert_eq!(rig.ask("GET /a").status, 200);
    assert_eq!(core.counters.value(Counter::Panics), 3);
}
