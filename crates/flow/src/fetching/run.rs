//! The machine of a fetch: try, judge, and carry out the fate of the response.

use message::Request;
use message::store::Permit;

use crate::carry::drain;
use crate::fetch::collect;
use crate::fetch::send::{Sent, send_to};
use crate::fetch::{Attempt, Body, Fate, Fetched, Job, Judge};
use crate::peers::PeerRecord;
use crate::state::peers::Asking;
use crate::state::slices::Edition;

impl<J: Judge> Job<J> {
    /// Runs the fetch to its end.
    pub(crate) async fn run(mut self: Box<Self>) {
        let mut fate = Fate::Try;
        loop {
            fate = match fate {
                Fate::Try => match self.attempt_while_wanted().await {
                    Some(fate) => fate,
                    None => return,
                },
                Fate::Collect { exchange, recode, pending } => {
                    let body = collect::whole(&self.fetch, *exchange, recode).await;
                    self.judge.collected(&mut self.fetch, *pending, body)
                }
                Fate::Recode { whole, recode, pending } => {
                    let body = collect::coded(&self.fetch, &whole.bytes, recode).await;
                    self.judge.collected(&mut self.fetch, *pending, body)
                }
                Fate::Store(body, plan) => return self.keep(body, *plan).await,
                Fate::Confirm(exchange, plan) => return self.confirm(exchange, *plan).await,
                Fate::ConfirmOnce(exchange, once) => {
                    return self.confirm_once(*exchange, *once).await;
                }
                Fate::Pass(body, left, unstored) => return self.pass(body, left, *unstored).await,
                Fate::Instead(instead, unread) => {
                    // The client may be gone; the store has what it needs.
                    self.tell(Fetched::Instead(instead));
                    if let Some(exchange) = unread {
                        drain(*exchange).await;
                    }
                    return;
                }
            };
        }
    }

    /// One try, given up when the client of a fetch that is for it alone has left.
    async fn attempt_while_wanted(&mut self) -> Option<Fate<J>> {
        if !self.judge.ends_with_client(&self.fetch) {
            return Some(self.attempt().await);
        }
        let mut tell = self.tell.take()?;
        let fate = tokio::select! {
            biased;
            fate = self.attempt() => fate,
            () = tell.closed() => return None,
        };
        self.tell = Some(tell);
        Some(fate)
    }

    async fn attempt(&mut self) -> Fate<J> {
        if let Some(asking) = self.fetch.asking.take()
            && let Some(found) = asking.ask(&self.fetch).await
            && let Ok(permit) = self.judge.judge_again(&self.fetch, &found.record)
        {
            return self.found_there(asking, found, permit);
        }
        let target = match self.judge.ask(&mut self.fetch) {
            Attempt::Send(target) => target,
            Attempt::Fate(fate) => return fate,
        };
        let sent = send_to(&mut self.fetch, target).await;
        let recorded = self.fetch.core.recorded();
        let fate = self.judge_sent(sent);
        // Whoever is answered knows that what is untrue will not come back.
        if self.fetch.core.recorded() != recorded {
            self.fetch.core.shared.door.wait_for_records().await;
        }
        fate
    }

    /// Stores what the key's owner has. Of what is in slices more will be asked for: the owner, or
    /// the origin.
    fn found_there(&mut self, asking: Box<Asking>, found: PeerRecord, permit: Permit) -> Fate<J> {
        let plan = found.plan(permit, self.fetch.old.clone(), self.judge.sinks());
        if found.edition.is_some() {
            match self.judge.ask(&mut self.fetch) {
                Attempt::Send(target) => self.fetch.asked = Some(target.origin),
                Attempt::Fate(fate) => return fate,
            }
            (self.fetch.edition, self.fetch.part) = (found.edition, found.part);
            self.fetch.asking = Some(asking);
        }
        Fate::Store(Body::Exchange(found.exchange), plan)
    }

    fn judge_sent(&mut self, sent: Result<Sent, origin::Error>) -> Fate<J> {
        match sent {
            Ok(Sent::Answered(exchange)) => {
                // Before a policy changes its fields.
                self.fetch.edition = Edition::of(&exchange, &self.fetch.live.limits);
                self.fetch.part = None;
                self.judge.answered(&mut self.fetch, exchange)
            }
            Ok(Sent::File(name)) => self.judge.found_file(&mut self.fetch, name),
            Err(error) => self.judge.unanswered(&mut self.fetch, &error),
        }
    }

    /// Tells the request that caused the fetch; false when nobody waits for the result.
    pub(crate) fn tell(&mut self, fetched: Fetched<J>) -> bool {
        let report = self.judge.report();
        // While a body passes, nobody needs the request any more.
        self.fetch.request = Request::new();
        if let Some(background) = &mut self.fetch.background {
            background.told = self.judge.told(report);
            return false;
        }
        self.tell.take().is_none_or(|tell| tell.send((fetched, report)).is_ok())
    }
}
