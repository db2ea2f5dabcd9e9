//! The secrets that nodes share: what a node reads of them, writes, and may do alone. The link that
//! brings them is in `bucket_link`.
//!
//! They lie in a stream of their own, sealed, the last entry of each name; whoever writes names the
//! entry that he writes over. Nothing here holds up what the cluster is for otherwise: a bucket
//! that cannot be used is said, and the node goes on with what it has.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde::Serialize;
use tokio::sync::watch;

use crate::Cluster;
use crate::error::{Error, SecretWriteError};
use crate::link::{self, Context};
use crate::seal::{SEALED_MORE, SealKeyring};
use crate::secret_store::{
    Bound, ByteBounds, LEASE, LeaseState, ReceiptOutcome, ReceivedSecret, Secret, SecretStore,
};

/// Bounds of what is shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SecretBounds {
    /// Most entries.
    pub entries: usize,
    /// Most bytes of one.
    pub bytes: ByteBounds,
    /// Milliseconds of silence after which another may do what only one may.
    pub lease_ms: u64,
}

/// The users of the secrets, as the bucket needs them. No method waits.
pub trait SecretsHost: Send + Sync + 'static {
    /// Takes an entry that another run has written.
    fn took(&self, name: &str, secret: &Secret);

    /// Counts an entry that reaches a bound.
    fn bounded(&self, bound: Bound);

    /// Counts that the right was taken from somebody who was silent.
    fn expired(&self);

    /// Tells operators something.
    fn say(&self, text: &str);
}

/// The secrets of a cluster.
pub struct Bucket {
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) host: Arc<dyn SecretsHost>,
    pub(crate) seal: SealKeyring,
    pub(crate) bounds: SecretBounds,
    pub(crate) state: Mutex<BucketState>,
    /// Grows whenever something of it has changed.
    pub(crate) changed: watch::Sender<u64>,
    /// One writes at a time: the next has to know what the one before has written over.
    writing: tokio::sync::Mutex<()>,
}

pub(crate) struct BucketState {
    pub(crate) shelf: SecretStore,
    /// In touch, and all that is there has come.
    pub(crate) context: Option<Context>,
    pub(crate) problem: Option<Error>,
    pub(crate) counts: SecretCounts,
}

/// Figures since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SecretCounts {
    /// Entries of other nodes that were applied.
    pub taken: u64,
    /// Entries that were not, as they cannot be used.
    pub refused: u64,
    /// Entries of this node that the bucket has taken.
    pub written: u64,
}

/// A shared secret, as operators see it.
#[derive(Clone, Debug, Serialize)]
pub struct SecretStatus {
    /// Its name.
    pub name: String,
    /// The node that has written the one that is used; empty where none can be.
    pub node: String,
    /// Its place in the stream.
    pub revision: u64,
    /// The seconds since it was written, by the clocks of who wrote it and of this node.
    pub age_secs: u64,
    /// The reason for which the one that is there is not used.
    pub refused: Option<String>,
}

/// The secrets that nodes share, as operators see them.
#[derive(Clone, Debug, Serialize)]
pub struct BucketStatus {
    /// The bucket is in touch, and all that is there has come.
    pub connected: bool,
    /// The reason for which it cannot be used.
    pub problem: Option<String>,
    /// The node that orders certificates, or has ordered the last one.
    pub orders: Option<String>,
    /// It does so now.
    pub is_ordering: bool,
    /// Figures.
    pub counts: SecretCounts,
    /// The entries that are there, by name.
    pub secrets: Vec<SecretStatus>,
}

/// A secret as it is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretLookup {
    /// It is not known what is there.
    Unknown,
    /// It is known that nothing is there.
    Absent,
    /// It is there, and cannot be used.
    Refused,
    /// This is there, or was when the node was in touch.
    Taken(Arc<Secret>),
}

/// The answer to a node that wants the right to do what only one may.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claim {
    /// It has it.
    Own,
    /// Another has it.
    Others(String),
    /// It is not known who has.
    OutOfTouch,
}

impl Bucket {
    /// The secrets of a cluster, none of them known yet. It does nothing by itself:
    /// [`Bucket::run`] does.
    pub fn new(
        cluster: &Arc<Cluster>,
        seal: SealKeyring,
        bounds: SecretBounds,
        host: Arc<dyn SecretsHost>,
    ) -> Arc<Self> {
        let name = cluster.settings.name.clone();
        let shelf = SecretStore::new(name, cluster.run, bounds.entries, bounds.bytes);
        let counts = SecretCounts::default();
        let state = BucketState { shelf, context: None, problem: None, counts };
        Arc::new(Self {
            cluster: Arc::clone(cluster),
            host,
            seal,
            bounds,
            state: Mutex::new(state),
            changed: watch::Sender::new(0),
            writing: tokio::sync::Mutex::new(()),
        })
    }

    /// Grows whenever something of it has changed.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// The secret of this name.
    pub fn read(&self, name: &str) -> SecretLookup {
        let state = self.state.lock();
        match state.shelf.get(name) {
            Some(slot) => match (&slot.taken, &slot.refused) {
                (Some(secret), None) => SecretLookup::Taken(Arc::clone(secret)),
                _ => SecretLookup::Refused,
            },
            None if state.context.is_some() => SecretLookup::Absent,
            None => SecretLookup::Unknown,
        }
    }

    /// The last secret of this name that could be used, though what is there now may be another
    /// that cannot.
    pub fn last(&self, name: &str) -> Option<Arc<Secret>> {
        self.state.lock().shelf.get(name)?.taken.clone()
    }

    /// Notes, counts and tells that what is in an entry cannot be used.
    pub fn refuse(&self, name: &str, secret: &Arc<Secret>, why: &str) {
        let is_new = self.state.lock().shelf.refuse(name, secret, why);
        if is_new {
            self.tell_refused(name, why);
        }
    }

    pub(crate) fn tell_refused(&self, name: &str, why: &str) {
        self.state.lock().counts.refused += 1;
        self.host.say(&format!("the shared `{name}` is refused: {why}"));
    }

    /// Writes a secret over what this node knows to be there.
    ///
    /// # Errors
    /// It is not there, as far as it is known.
    pub async fn write(&self, name: &str, value: &[u8]) -> Result<(), SecretWriteError> {
        self.put(name, value, 0, None).await
    }

    /// Writes a secret that was made from the `last` of its name; `None` if there was no such.
    ///
    /// # Errors
    /// It is not there, as far as it is known; [`NotWritten::Overtaken`] if another was there
    /// meanwhile.
    pub async fn write_over(
        &self,
        name: &str,
        last: Option<&Arc<Secret>>,
        value: &[u8],
    ) -> Result<(), SecretWriteError> {
        self.put(name, value, 0, Some(last)).await
    }

    /// Finds out whether a secret could be written as far as its bytes go.
    ///
    /// # Errors
    /// The bound that it reaches.
    pub fn fits(&self, name: &str, value: &[u8]) -> Result<(), SecretWriteError> {
        let (node, run) = (self.cluster.settings.name.clone(), self.cluster.run);
        let secret = Secret { node, run, number: u64::MAX, value: value.to_vec() };
        let sealed = secret.encode().len() + SEALED_MORE;
        match self.bounds.bytes.reached(name, sealed) {
            Some(bound) => {
                self.host.bounded(bound);
                Err(SecretWriteError::Bound(bound))
            }
            None => Ok(()),
        }
    }

    /// Writes a secret, and waits until all live nodes have taken it.
    ///
    /// # Errors
    /// It is not there, or not all have taken it in time: [`NotWritten::NotReached`].
    pub async fn write_for_all(&self, name: &str, value: &[u8]) -> Result<(), SecretWriteError> {
        let (number, ticket) = self.cluster.await_all();
        self.put(name, value, number, None).await?;
        ticket.wait().await.map_err(SecretWriteError::NotReached)
    }

    /// Writes a secret: over the one that is given, or over whatever is there.
    async fn put(
        &self,
        name: &str,
        value: &[u8],
        number: u64,
        over: Option<Option<&Arc<Secret>>>,
    ) -> Result<(), SecretWriteError> {
        let _writing = self.writing.lock().await;
        let settings = &self.cluster.settings;
        let (context, next) = {
            let state = self.state.lock();
            let context = state.context.clone().ok_or(SecretWriteError::OutOfTouch)?;
            let there = state.shelf.get(name).and_then(|slot| slot.taken.as_ref());
            let is_it = |over: Option<&Arc<Secret>>| match (over, there) {
                (Some(over), Some(there)) => Arc::ptr_eq(over, there),
                (None, None) => true,
                (Some(_), None) | (None, Some(_)) => false,
            };
            if !over.is_none_or(is_it) {
                return Err(SecretWriteError::Overtaken);
            }
            (context, state.shelf.next(name, rt::now().unix_ms))
        };
        let bound = |bound| {
            self.host.bounded(bound);
            SecretWriteError::Bound(bound)
        };
        let (revision, version) = next.map_err(bound)?;
        let (node, run) = (settings.name.clone(), self.cluster.run);
        let secret = Secret { node, run, number, value: value.to_vec() };
        let subject = settings.secret_subject(name);
        let sealed = self.seal.seal(&subject, version, &secret.encode());
        let sealed = sealed.ok_or(SecretWriteError::Random)?;
        if let Some(reached) = self.bounds.bytes.reached(name, sealed.len()) {
            return Err(bound(reached));
        }
        let sequence = link::put(&context, subject, revision, sealed).await?;
        let mut state = self.state.lock();
        state.counts.written += 1;
        let now_ms = rt::now().mono_ms;
        state.shelf.wrote(name, sequence, version, secret, now_ms);
        drop(state);
        self.note_change();
        Ok(())
    }

    /// Takes the right to do what only one may, or keeps it.
    pub async fn claim(&self) -> Claim {
        let right = {
            let state = self.state.lock();
            if state.context.is_none() {
                return Claim::OutOfTouch;
            }
            state.shelf.right(rt::now().mono_ms, self.bounds.lease_ms)
        };
        let expired = match right {
            LeaseState::Own => return Claim::Own,
            LeaseState::Others(node) => return Claim::Others(node),
            LeaseState::Free => None,
            LeaseState::Expired(node) => Some(node),
        };
        match self.write(LEASE, b"1").await {
            Ok(()) => {
                if let Some(node) = expired {
                    self.host.expired();
                    let say = format!("{node} is silent: this node orders certificates now");
                    self.host.say(&say);
                }
                Claim::Own
            }
            Err(SecretWriteError::Overtaken) => Claim::Others("another node".to_owned()),
            Err(_) => Claim::OutOfTouch,
        }
    }

    /// Returns true if this node has the right, as far as it knows.
    pub fn has_right(&self) -> bool {
        self.state.lock().shelf.right(0, u64::MAX) == LeaseState::Own
    }

    /// Waits until this node has not the right any more.
    pub async fn right_is_lost(&self) {
        let mut changes = self.changes();
        // The sender lives as long as this does.
        _ = changes.wait_for(|_| !self.has_right()).await;
    }

    /// Gives up the right, if this node has it.
    pub async fn release(&self) {
        if self.has_right() {
            // Unheard, it ends by itself.
            _ = self.write(LEASE, b"").await;
        }
    }

    /// Writes that this node still has the right, if it has.
    pub(crate) async fn renew(&self) {
        if self.has_right() && self.write(LEASE, b"1").await == Err(SecretWriteError::Overtaken) {
            self.host.say("another node orders certificates now");
        }
    }

    /// The secrets as operators see them, without their values.
    pub fn status(&self) -> BucketStatus {
        let state = self.state.lock();
        let lease = state.shelf.get(LEASE).and_then(|slot| slot.taken.as_ref());
        let now_ms = rt::now().unix_ms;
        let secrets = state.shelf.all().filter(|(name, _)| *name != LEASE);
        let secrets = secrets.map(|(name, slot)| SecretStatus {
            name: name.clone(),
            node: slot.taken.as_ref().map(|secret| secret.node.clone()).unwrap_or_default(),
            revision: slot.revision,
            age_secs: now_ms.saturating_sub(slot.version) / 1000,
            refused: slot.refused.clone(),
        });
        BucketStatus {
            connected: state.context.is_some(),
            problem: state.problem.as_ref().map(ToString::to_string),
            orders: lease.map(|secret| secret.node.clone()),
            is_ordering: lease.is_some_and(|secret| !secret.value.is_empty()),
            counts: state.counts,
            secrets: secrets.collect(),
        }
    }

    pub(crate) fn note_change(&self) {
        self.changed.send_modify(|count| *count += 1);
    }

    /// Takes an entry that came. The result is its number, if its maker waits for this node's word.
    pub(crate) fn take(&self, name: &str, revision: u64, bytes: &[u8]) -> Option<(u64, u64)> {
        let now_ms = rt::now().mono_ms;
        let sealed_as = self.cluster.settings.secret_subject(name);
        let came = ReceivedSecret { name, sealed_as: &sealed_as, revision, bytes, now_ms };
        let heard = self.state.lock().shelf.hear(came, &self.seal);
        let awaited = match heard {
            ReceiptOutcome::Known => None,
            ReceiptOutcome::Taken(secret) if secret.run == self.cluster.run => None,
            ReceiptOutcome::Taken(secret) => {
                self.state.lock().counts.taken += 1;
                self.host.took(name, &secret);
                (secret.number > 0).then_some((secret.run, secret.number))
            }
            ReceiptOutcome::Refused(why) => {
                self.tell_refused(name, &why);
                None
            }
            ReceiptOutcome::TooMuch(bound) => {
                self.host.bounded(bound);
                self.tell_refused(name, &SecretWriteError::Bound(bound).to_string());
                None
            }
        };
        self.note_change();
        awaited
    }
}

/// The time for which a link that failed rests.
pub(crate) const REST: Duration = Duration::from_secs(1);
