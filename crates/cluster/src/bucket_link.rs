//! The link that brings shared secrets, and tells who waits that they were taken. It lives as long
//! as a session of the cluster, over the same connection, and holds that up in nothing.

use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::Context;
use async_nats::jetstream::Message;
use async_nats::jetstream::consumer::DeliverPolicy;
use bytes::Bytes;
use futures_util::StreamExt;

use crate::bucket::{Bucket, REST};
use crate::connect::first;
use crate::error::Error;
use crate::members::Word;
use crate::session::{ordered, taken, told_to};
use crate::streams;

impl Bucket {
    /// Does its part for as long as the node runs, or until the cluster is told to end.
    pub async fn run(self: Arc<Self>) {
        let mut ending = self.cluster.ending.subscribe();
        tokio::select! {
            () = self.sessions() => {}
            () = told_to(&mut ending) => {}
        }
    }

    async fn sessions(&self) {
        let mut changes = self.cluster.changes();
        let mut told = None;
        loop {
            changes.borrow_and_update();
            let Some((context, session)) = self.cluster.in_touch() else {
                if changes.changed().await.is_err() {
                    return;
                }
                continue;
            };
            let ended = tokio::select! {
                ended = self.session(&context, &mut told) => ended,
                () = self.is_over(session) => Ok(()),
            };
            self.state.lock().context = None;
            self.note_change();
            let Err(error) = ended else { continue };
            if told.as_ref() != Some(&error) {
                self.host.say(&format!("secrets are not shared: {error}"));
                told = Some(error.clone());
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

    async fn session(&self, context: &Context, told: &mut Option<Error>) -> Result<(), Error> {
        let settings = &self.cluster.settings;
        let name = settings.secrets_stream();
        first(|| streams::answers(context, &name)).await?;
        let stream = streams::have(context, streams::secrets(settings)).await?;
        let info = stream.get_info().await.map_err(Error::link)?;
        let (last, is_empty) = (info.state.last_sequence, info.state.messages == 0);
        let client = context.client();
        let subject = settings.secret_subject(">");
        let latest = DeliverPolicy::LastPerSubject;
        let mut entries = first(|| ordered(&client, &stream, subject.clone(), latest)).await?;
        self.state.lock().shelf.begin();
        if is_empty {
            self.has_all(context, told);
        }
        let mut renewals =
            rt::time::interval(Duration::from_millis((self.bounds.lease_ms / 3).max(1)));
        loop {
            tokio::select! {
                entry = entries.next() => {
                    let sequence = self.entry(&client, &taken(entry)?).await?;
                    if sequence >= last && self.state.lock().context.is_none() {
                        self.has_all(context, told);
                    }
                }
                _ = renewals.tick() => self.renew().await,
            }
        }
    }

    /// All that is there has come.
    fn has_all(&self, context: &Context, told: &mut Option<Error>) {
        let mut state = self.state.lock();
        state.shelf.settle();
        (state.context, state.problem) = (Some(context.clone()), None);
        drop(state);
        if told.take().is_some() {
            self.host.say("secrets are shared again");
        }
        self.note_change();
    }

    /// Takes an entry. The result is its place.
    async fn entry(&self, client: &async_nats::Client, message: &Message) -> Result<u64, Error> {
        let settings = &self.cluster.settings;
        let sequence = message.info().map_err(Error::link)?.stream_sequence;
        let subject = message.subject.as_str();
        let name = subject.strip_prefix(settings.secret_subject("").as_str()).unwrap_or_default();
        if let Some((run, number)) = self.take(name, sequence, &message.payload) {
            let word = Word { name: settings.name.clone(), run: self.cluster.run, number };
            let to = settings.word_subject(run);
            // What is lost on the way is missing, and named.
            _ = client.publish(to, Bytes::from(word.encode())).await;
        }
        Ok(sequence)
    }
}
