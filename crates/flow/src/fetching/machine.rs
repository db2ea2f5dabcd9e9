//! Machine of a fetch: asks the sources, lets the judge decide, and carries out the fate of the
//! response.

use message::Request;
use message::store::Permit;
use origin::Exchange;

use crate::body_transfer::drain;
use crate::fetch::{
    Attempt, FetchResult, Job, Judge, ResponseBodySource, ResponseFate, collected_body, send,
};
use crate::peers::PeerRecord;
use crate::sources::{self, Search, Source, SourceAnswer};
use crate::state::peers::OwnerRequest;
use crate::state::slices::Edition;

impl<J: Judge> Job<J> {
    /// Runs the fetch to its end.
    pub(crate) async fn run(mut self: Box<Self>) {
        let mut fate = ResponseFate::Try;
        loop {
            fate = match fate {
                ResponseFate::Try => match self.attempt_while_wanted().await {
                    Some(fate) => fate,
                    None => return,
                },
                ResponseFate::Collect { exchange, recode, pending } => {
                    let body = collected_body::whole(&self.fetch, *exchange, recode).await;
                    self.judge.collected(&mut self.fetch, *pending, body)
                }
                ResponseFate::Recode { whole, recode, pending } => {
                    let body = collected_body::coded(&self.fetch, &whole.bytes, recode).await;
                    self.judge.collected(&mut self.fetch, *pending, body)
                }
                ResponseFate::Store(body, plan) => return self.keep(body, *plan).await,
                ResponseFate::Confirm(exchange, confirmation) => {
                    return self.confirm(exchange, *confirmation).await;
                }
                ResponseFate::Pass(body, effects, unstored) => {
                    return self.pass(body, effects, *unstored).await;
                }
                ResponseFate::Instead(instead, unread) => {
                    // The client may have left; the store is up to date.
                    self.tell(FetchResult::Instead(instead));
                    if let Some(exchange) = unread {
                        drain(*exchange).await;
                    }
                    return;
                }
            };
        }
    }

    /// One try. It is given up when the client leaves, if the fetch is for that client only.
    async fn attempt_while_wanted(&mut self) -> Option<ResponseFate<J>> {
        if !self.judge.ends_with_client(&self.fetch) {
            return sources::find(self, Source::Owner).await;
        }
        let mut tell = self.tell.take()?;
        let fate = tokio::select! {
            biased;
            fate = sources::find(self, Source::Owner) => fate,
            () = tell.closed() => return None,
        };
        self.tell = Some(tell);
        fate
    }

    /// Stores the response of the key's owner. Further slices of it are requested from the owner or
    /// the origin.
    fn found_there(
        &mut self,
        owner_request: Box<OwnerRequest>,
        found: PeerRecord,
        permit: Permit,
    ) -> ResponseFate<J> {
        let plan = found.plan(permit, self.fetch.old.clone(), self.judge.sinks());
        if found.edition.is_some() {
            match self.judge.ask(&mut self.fetch) {
                Attempt::Send(target) => self.fetch.asked = Some(target.origin),
                Attempt::Fate(fate) => return fate,
            }
            (self.fetch.edition, self.fetch.part) = (found.edition, found.part);
            self.fetch.owner_request = Some(owner_request);
        }
        ResponseFate::Store(ResponseBodySource::Exchange(found.exchange), plan)
    }

    /// Has the policy judge a response. A client whose response invalidates others gets it only
    /// once the invalidation is recorded.
    async fn judged(
        &mut self,
        sent: Result<Box<Exchange>, origin::Error>,
    ) -> SourceAnswer<ResponseFate<J>> {
        let (recorded, fetch) = (self.fetch.core.recorded(), &mut self.fetch);
        let fate = match sent {
            Ok(exchange) => {
                // Read before the policy changes the head.
                fetch.edition = Edition::of(&exchange, &fetch.live.limits);
                fetch.part = None;
                self.judge.answered(fetch, exchange)
            }
            Err(error) => self.judge.unanswered(fetch, &error),
        };
        if fetch.core.recorded() != recorded {
            fetch.core.shared.invalidator.wait_for_records().await;
        }
        SourceAnswer::Has(fate)
    }

    /// Sends the result to the causing request; false if its client has left.
    pub(crate) fn tell(&mut self, fetched: FetchResult<J>) -> bool {
        let report = self.judge.report();
        // The request's memory is not needed while the body passes.
        self.fetch.request = Request::new();
        if let Some(background) = &mut self.fetch.background {
            background.program_trace = self.judge.program_trace(report);
            return false;
        }
        self.tell.take().is_none_or(|tell| tell.send((fetched, report)).is_ok())
    }
}

impl<J: Judge> Search for Job<J> {
    type Found = ResponseFate<J>;

    async fn ask(&mut self, source: Source) -> SourceAnswer<ResponseFate<J>> {
        let fetch = &mut self.fetch;
        match source {
            Source::Owner => {
                if let Some(owner_request) = fetch.owner_request.take()
                    && let Some(found) = owner_request.ask(fetch).await
                    && let Ok(permit) = self.judge.judge_again(fetch, &found.record)
                {
                    return SourceAnswer::Has(self.found_there(owner_request, found, permit));
                }
            }
            Source::Policy => match self.judge.ask(fetch) {
                Attempt::Send(target) => self.target = Some(target),
                Attempt::Fate(fate) => return SourceAnswer::Has(fate),
            },
            Source::File => {
                if let Some(target) = &self.target
                    && target.beside_scripts
                    && let Some(name) = fetch.core.pool().file(&target.origin, &fetch.request).await
                {
                    return SourceAnswer::Has(self.judge.found_file(fetch, name));
                }
            }
            Source::Siblings => {
                if let Some(siblings) = fetch.siblings.take()
                    && let Some(exchange) = siblings.ask(fetch).await
                {
                    return self.judged(Ok(exchange)).await;
                }
            }
            Source::Origin => {
                if let Some(target) = self.target.take() {
                    let sent = send(fetch, target).await;
                    return self.judged(sent).await;
                }
            }
            // The causing request has read the disk.
            Source::Disk => {}
        }
        SourceAnswer::HasNot
    }
}
