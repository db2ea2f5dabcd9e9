//! The bucket: the secrets that nodes share, sealed, the last entry of each name in a stream of
//! their own. `bucket_link` delivers them. A writer names the entry that it replaces. An unusable
//! bucket must never delay invalidations: it is reported, and the node continues with the secrets
//! that it has.

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

/// The limits of the bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SecretBounds {
    /// The most entries.
    pub entries: usize,
    /// The most bytes of an entry.
    pub bytes: ByteBounds,
    /// Milliseconds of silence after which another node may take the lease.
    pub lease_ms: u64,
}

/// The user of the secrets. No method may wait.
pub trait SecretsHost: Send + Sync + 'static {
    /// Receives an entry that another run has written.
    fn took(&self, name: &str, secret: &Secret);

    /// Counts an entry that exceeds a limit.
    fn bounded(&self, bound: Bound);

    /// Counts a lease that was taken from a silent node.
    fn expired(&self);

    /// Reports a text to the operator.
    fn say(&self, text: &str);
}

/// The shared secrets of a cluster.
pub struct Bucket {
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) host: Arc<dyn SecretsHost>,
    pub(crate) seal: SealKeyring,
    pub(crate) bounds: SecretBounds,
    pub(crate) state: Mutex<BucketState>,
    /// Changes with the bucket.
    pub(crate) changed: watch::Sender<u64>,
    /// Serialises writes: each must know the revision that it replaces.
    writing: tokio::sync::Mutex<()>,
}

pub(crate) struct BucketState {
    pub(crate) store: SecretStore,
    /// Set while the bucket is connected and complete.
    pub(crate) context: Option<Context>,
    pub(crate) problem: Option<Error>,
    pub(crate) counts: SecretCounts,
}

/// Counters since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SecretCounts {
    /// Entries of other nodes that were applied.
    pub taken: u64,
    /// Entries of other nodes that were rejected.
    pub refused: u64,
    /// Entries of this node that the bucket has accepted.
    pub written: u64,
}

/// The status of a shared secret.
#[derive(Clone, Debug, Serialize)]
pub struct SecretStatus {
    /// Its name.
    pub name: String,
    /// The node that wrote the secret in use; empty without one.
    pub node: String,
    /// Its sequence in the stream.
    pub revision: u64,
    /// The seconds since it was written, by the clocks of its writer and of this node.
    pub age_secs: u64,
    /// The reason why the present entry is not used.
    pub refused: Option<String>,
}

/// The status of the bucket.
#[derive(Clone, Debug, Serialize)]
pub struct BucketStatus {
    /// True if the bucket is connected and complete.
    pub connected: bool,
    /// The reason why it cannot be used.
    pub problem: Option<String>,
    /// The node that orders certificates, or ordered the last one.
    pub orders: Option<String>,
    /// True if it orders now.
    pub is_ordering: bool,
    /// Counters.
    pub counts: SecretCounts,
    /// The present entries by name.
    pub secrets: Vec<SecretStatus>,
}

/// The result of a lookup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretLookup {
    /// The state of the entry is unknown.
    Unknown,
    /// There is no entry.
    Absent,
    /// There is an entry, but it was rejected.
    Refused,
    /// The secret, as of the last contact.
    Accepted(Arc<Secret>),
}

/// The result of a claim to the lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claim {
    /// This node holds the lease.
    Own,
    /// Another node holds it.
    Others(String),
    /// Its holder is unknown.
    OutOfTouch,
}

impl Bucket {
    /// The empty bucket of a cluster. It becomes active in [`Bucket::run`].
    pub fn new(
        cluster: &Arc<Cluster>,
        seal: SealKeyring,
        bounds: SecretBounds,
        host: Arc<dyn SecretsHost>,
    ) -> Arc<Self> {
        let name = cluster.settings.name.clone();
        let store = SecretStore::new(name, cluster.run, bounds.entries, bounds.bytes);
        let counts = SecretCounts::default();
        let state = BucketState { store, context: None, problem: None, counts };
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

    /// Changes with the bucket.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// The secret with this name.
    pub fn read(&self, name: &str) -> SecretLookup {
        let state = self.state.lock();
        match state.store.get(name) {
            Some(slot) => match (&slot.accepted, &slot.refused) {
                (Some(secret), None) => SecretLookup::Accepted(Arc::clone(secret)),
                _ => SecretLookup::Refused,
            },
            None if state.context.is_some() => SecretLookup::Absent,
            None => SecretLookup::Unknown,
        }
    }

    /// The last valid secret with this name, even if the present entry is rejected.
    pub fn last(&self, name: &str) -> Option<Arc<Secret>> {
        self.state.lock().store.get(name)?.accepted.clone()
    }

    /// Marks, counts and reports an entry as unusable.
    pub fn refuse(&self, name: &str, secret: &Arc<Secret>, why: &str) {
        let is_new = self.state.lock().store.refuse(name, secret, why);
        if is_new {
            self.tell_refused(name, why);
        }
    }

    pub(crate) fn tell_refused(&self, name: &str, why: &str) {
        self.state.lock().counts.refused += 1;
        self.host.say(&format!("the shared `{name}` is refused: {why}"));
    }

    /// Writes a secret over the entry that this node knows.
    ///
    /// # Errors
    /// It is not stored, as far as this node knows.
    pub async fn write(&self, name: &str, value: &[u8]) -> Result<(), SecretWriteError> {
        self.put(name, value, 0, None).await
    }

    /// Writes a secret over `last`, from which it was made; `None` for the first of its name.
    ///
    /// # Errors
    /// It is not stored, as far as this node knows; [`SecretWriteError::Overtaken`] if another
    /// entry came first.
    pub async fn write_over(
        &self,
        name: &str,
        last: Option<&Arc<Secret>>,
        value: &[u8],
    ) -> Result<(), SecretWriteError> {
        self.put(name, value, 0, Some(last)).await
    }

    /// Checks the size of a secret.
    ///
    /// # Errors
    /// The limit that it exceeds.
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

    /// Writes a secret, and waits until all live nodes have it.
    ///
    /// # Errors
    /// It is not stored, or not all have it in time: [`SecretWriteError::NotReached`].
    pub async fn write_for_all(&self, name: &str, value: &[u8]) -> Result<(), SecretWriteError> {
        let (number, ticket) = self.cluster.await_all();
        self.put(name, value, number, None).await?;
        ticket.wait().await.map_err(SecretWriteError::NotReached)
    }

    /// Writes a secret over the given entry, or over the present one.
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
            let there = state.store.get(name).and_then(|slot| slot.accepted.as_ref());
            let is_it = |over: Option<&Arc<Secret>>| match (over, there) {
                (Some(over), Some(there)) => Arc::ptr_eq(over, there),
                (None, None) => true,
                (Some(_), None) | (None, Some(_)) => false,
            };
            if !over.is_none_or(is_it) {
                return Err(SecretWriteError::Overtaken);
            }
            (context, state.store.next(name, rt::now().unix_ms))
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
        state.store.wrote(name, sequence, version, secret, now_ms);
        drop(state);
        self.note_change();
        Ok(())
    }

    /// Takes or renews the lease.
    pub async fn claim(&self) -> Claim {
        let right = {
            let state = self.state.lock();
            if state.context.is_none() {
                return Claim::OutOfTouch;
            }
            state.store.right(rt::now().mono_ms, self.bounds.lease_ms)
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

    /// Returns true if this node has the lease, as far as it knows.
    pub fn has_right(&self) -> bool {
        self.state.lock().store.right(0, u64::MAX) == LeaseState::Own
    }

    /// Waits until this node loses the lease.
    pub async fn right_is_lost(&self) {
        let mut changes = self.changes();
        // The sender lives as long as this value.
        _ = changes.wait_for(|_| !self.has_right()).await;
    }

    /// Gives up the lease, if this node holds it.
    pub async fn release(&self) {
        if self.has_right() {
            // If this fails, the lease expires.
            _ = self.write(LEASE, b"").await;
        }
    }

    /// Renews the lease, if this node holds it.
    pub(crate) async fn renew(&self) {
        if self.has_right() && self.write(LEASE, b"1").await == Err(SecretWriteError::Overtaken) {
            self.host.say("another node orders certificates now");
        }
    }

    /// The status, without the values of the secrets.
    pub fn status(&self) -> BucketStatus {
        let state = self.state.lock();
        let lease = state.store.get(LEASE).and_then(|slot| slot.accepted.as_ref());
        let now_ms = rt::now().unix_ms;
        let secrets = state.store.all().filter(|(name, _)| *name != LEASE);
        let secrets = secrets.map(|(name, slot)| SecretStatus {
            name: name.clone(),
            node: slot.accepted.as_ref().map(|secret| secret.node.clone()).unwrap_or_default(),
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

    /// Receives an entry. Returns its number, if its writer waits for this node's acknowledgement.
    pub(crate) fn take(&self, name: &str, revision: u64, bytes: &[u8]) -> Option<(u64, u64)> {
        let now_ms = rt::now().mono_ms;
        let sealed_as = self.cluster.settings.secret_subject(name);
        let came = ReceivedSecret { name, sealed_as: &sealed_as, revision, bytes, now_ms };
        let heard = self.state.lock().store.receive(came, &self.seal);
        let awaited = match heard {
            ReceiptOutcome::Known => None,
            ReceiptOutcome::Accepted(secret) if secret.run == self.cluster.run => None,
            ReceiptOutcome::Accepted(secret) => {
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

/// The pause after a failed connection.
pub(crate) const REST: Duration = Duration::from_secs(1);
