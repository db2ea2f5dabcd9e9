//! The bucket link: delivers shared secrets over the connection of a cluster session, and
//! acknowledges them to their writers. It must not delay the session.

use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::Context;
use async_nats::jetstream::Message;
use async_nats::jetstream::consumer::DeliverPolicy;
use bytes::Bytes;
use futures_util::StreamExt;

use crate::bucket::{Bucket, REST};
use crate::error::Error;
use crate::members::EntryAcknowledgement;
use crate::nats_connection::first;
use crate::progress::StreamProgress;
use crate::session::{ordered, taken, wait_until_set};
use crate::streams;

impl Bucket {
    /// Runs the link until the cluster ends.
    pub async fn run(self: Arc<Self>) {
        let mut ending = self.cluster.ending.subscribe();
        tokio::select! {
            () = self.sessions() => {}
            () = wait_until_set(&mut ending) => {}
        }
    }

    async fn sessions(&self) {
        let mut changes = self.cluster.changes();
        let mut reported = None;
        loop {
            changes.borrow_and_update();
            let Some((context, session)) = self.cluster.in_touch() else {
                if changes.changed().await.is_err() {
                    return;
                }
                continue;
            };
            let ended = tokio::select! {
                ended = self.session(&context, &mut reported) => ended,
                () = self.is_over(session) => Ok(()),
            };
            self.state.lock().context = None;
            self.note_change();
            let Err(error) = ended else { continue };
            if reported.as_ref() != Some(&error) {
                self.host.say(&format!("secrets are not shared: {error}"));
                reported = Some(error.clone());
            }
            self.state.lock().problem = Some(error);
            rt::time::sleep(REST).await;
        }
    }

    /// Waits until the cluster's session is another.
    async fn is_over(&self, session: u64) {
        let mut changes = self.cluster.changes();
        let is_over = |_: &u64| self.cluster.in_touch().is_none_or(|(_, own)| own != session);
        _ = changes.wait_for(is_over).await;
    }

    async fn session(&self, context: &Context, reported: &mut Option<Error>) -> Result<(), Error> {
        let settings = &self.cluster.settings;
        let name = settings.secrets_stream();
        first(|| streams::answers(context, &name)).await?;
        let stream = streams::have(context, streams::secrets(settings)).await?;
        let info = stream.get_info().await.map_err(Error::link)?;
        let (created, last) = (info.created, info.state.last_sequence);
        let is_empty = info.state.messages == 0;
        let client = context.client();
        let subject = settings.secret_subject(">");
        let latest = DeliverPolicy::LastPerSubject;
        let mut entries = first(|| ordered(&client, &stream, subject.clone(), latest)).await?;
        self.state.lock().store.begin();
        if is_empty {
            self.mark_complete(context, reported);
        }
        let question_ms = settings.question_ms();
        let mut questions = rt::time::interval(Duration::from_millis(question_ms));
        let mut progress = StreamProgress::new(rt::now().mono_ms);
        let mut renewals =
            rt::time::interval(Duration::from_millis((self.bounds.lease_ms / 3).max(1)));
        let mut seen = if is_empty { last } else { 0 };
        loop {
            tokio::select! {
                entry = entries.next() => {
                    let (sequence, pending) = self.entry(&client, &taken(entry)?).await?;
                    seen = seen.max(sequence);
                    // The stream's last entry may have been removed by hand.
                    let is_last = sequence >= last || pending == 0;
                    if is_last && self.state.lock().context.is_none() {
                        seen = seen.max(last);
                        self.mark_complete(context, reported);
                    }
                }
                _ = renewals.tick() => self.renew().await,
                _ = questions.tick() => {
                    let info = stream.get_info().await.map_err(Error::link)?;
                    if info.created != created {
                        // The consumer was recreated, and continues after its predecessor.
                        return Ok(());
                    }
                    let now_ms = rt::now().mono_ms;
                    if progress.is_stuck(seen, info.state.last_sequence, now_ms, question_ms) {
                        let why = "a server does not deliver what the bucket has";
                        return Err(Error::Link(why.to_owned()));
                    }
                }
            }
        }
    }

    /// Marks the bucket as complete.
    fn mark_complete(&self, context: &Context, reported: &mut Option<Error>) {
        let mut state = self.state.lock();
        state.store.settle();
        (state.context, state.problem) = (Some(context.clone()), None);
        drop(state);
        if reported.take().is_some() {
            self.host.say("secrets are shared again");
        }
        self.note_change();
    }

    /// Receives an entry. Returns its sequence, and the number of entries behind it.
    async fn entry(
        &self,
        client: &async_nats::Client,
        message: &Message,
    ) -> Result<(u64, u64), Error> {
        let settings = &self.cluster.settings;
        let info = message.info().map_err(Error::link)?;
        let (sequence, pending) = (info.stream_sequence, info.pending);
        let subject = message.subject.as_str();
        let name = subject.strip_prefix(settings.secret_subject("").as_str()).unwrap_or_default();
        if let Some((run, number)) = self.take(name, sequence, &message.payload) {
            let ack =
                EntryAcknowledgement { name: settings.name.clone(), run: self.cluster.run, number };
            let to = settings.acknowledgement_subject(run);
            // A lost acknowledgement is reported as missing.
            _ = client.publish(to, Bytes::from(ack.encode())).await;
        }
        Ok((sequence, pending))
    }
}
