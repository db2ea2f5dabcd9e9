//! Secrets that the nodes of a cluster share: ticket keys, and the data of certificate orders.
//! Their meaning is known here, their storage to `cluster`; neither `tls` nor `acme` knows of
//! sharing.
//!
//! Sharing must never delay a request: without peers the daemon uses what it has.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use acme::{CertificatePeers, ChallengeAnswer, OrderPermission, PendingFuture, SharedEntry};
use base::{Counters, Limit};
use cluster::{
    Bound, Bucket, ByteBounds, Claim, Cluster, SealKeyring, Secret, SecretBounds, SecretLookup,
    SecretWriteError, SecretsHost,
};
use config::{Config, Diagnostic};
use flow::SharedState;
use tls::{Challenges, TicketKeys};
use tokio::sync::watch;

use crate::certificate_orders::Responder;
use crate::keeper;
use crate::versions::Versions;

/// The entry with the ticket keys.
const TICKETS: &str = "tickets";
/// The entry with an authority's pending challenge.
const CHALLENGE: &str = "challenge";
/// The prefix of the entries with configurations.
pub(crate) const DOCUMENT: &str = "configuration.";
/// The interval at which the age of the ticket keys is checked.
const LOOK: Duration = Duration::from_secs(60);

/// Warns of a secret that every user of the machine may read.
fn warn_if_public(path: &Path) {
    if std::fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o004 != 0) {
        let path = path.display();
        base::tell!(
            Warn,
            "larder: `secret_file` {path}: every user of this machine may read it; `chmod o= {path}`"
        );
    }
}

/// The key made of the operator's secrets; `None` if nothing is shared.
///
/// # Errors
/// A file cannot be used.
pub(crate) fn seal(config: &Config) -> Result<Option<SealKeyring>, Box<Diagnostic>> {
    let Some(cluster) = &config.cluster else { return Ok(None) };
    let Some(files) = cluster.secret_files.as_ref().filter(|files| !files.is_empty()) else {
        return Ok(None);
    };
    let mut secrets = Vec::new();
    for file in files {
        let secret = keeper::read(&file.path).map_err(|error| Box::new(file.error(error)))?;
        warn_if_public(&file.path);
        // One at a time, so that an error names its file.
        SealKeyring::new([secret.as_slice()], "").map_err(|bad| Box::new(file.error(bad)))?;
        secrets.push(secret);
    }
    let prefix = cluster.prefix.as_deref().unwrap_or("larder");
    let seal = SealKeyring::new(secrets.iter().map(Vec::as_slice), prefix);
    let bad = |bad: cluster::BadSecret| Box::new(files[0].place.error(bad.to_string()));
    seal.map(Some).map_err(bad)
}

/// The users of secrets.
pub(crate) struct Users {
    pub(crate) shared: Arc<SharedState>,
    pub(crate) handshakes: Arc<Challenges>,
    pub(crate) ticket_keys: Arc<TicketKeys>,
    /// The configurations that it shares, if it does.
    pub(crate) versions: Option<Arc<Versions>>,
}

/// Applies secrets from other nodes.
struct Taker {
    responder: Arc<Responder>,
    counters: Arc<Counters>,
}

impl SecretsHost for Taker {
    fn took(&self, name: &str, secret: &Secret) {
        if name != CHALLENGE {
            return;
        }
        match ChallengeAnswer::decode(&secret.value) {
            Some(Some(question)) => {
                if let Err(why) = question.show(&*self.responder) {
                    self.say(&format!("a challenge of {} is not answered: {why}", secret.node));
                }
            }
            Some(None) => acme::ChallengeResponder::withdraw(&*self.responder),
            None => self.say(&format!("a challenge of {} cannot be read", secret.node)),
        }
    }

    fn bounded(&self, bound: Bound) {
        self.counters.limit(match bound {
            Bound::Entries => Limit::ClusterSecrets,
            Bound::Bytes => Limit::ClusterSecretBytes,
            Bound::LargeBytes => Limit::ClusterConfigurationBytes,
        });
    }

    fn expired(&self) {
        self.counters.limit(Limit::ClusterLease);
    }

    fn say(&self, text: &str) {
        base::tell!(Warn, "larder: cluster: {text}");
    }
}

/// Shares the secrets of this node, from now on.
///
/// # Errors
/// The operator's secret cannot be used.
pub(crate) fn share(
    cluster: &Arc<Cluster>,
    config: &Config,
    users: &Users,
) -> Result<Option<Arc<Bucket>>, String> {
    let rendered = |fault: Box<Diagnostic>| crate::config_file::render(&[*fault]);
    let Some(seal) = seal(config).map_err(rendered)? else { return Ok(None) };
    let limits = &config.limits;
    let number = |limit: u64| usize::try_from(limit).unwrap_or(usize::MAX);
    let bounds = SecretBounds {
        entries: number(limits.cluster_secrets),
        bytes: ByteBounds {
            most: number(limits.cluster_secret_bytes),
            large: DOCUMENT,
            large_most: number(limits.cluster_configuration_bytes),
        },
        lease_ms: limits.cluster_lease,
    };
    let counters = users.shared.counters.register();
    let responder = Responder::new(&users.shared, &users.handshakes);
    let bucket = Bucket::new(cluster, seal, bounds, Arc::new(Taker { responder, counters }));
    let own = Arc::clone(&bucket);
    crate::managed_origin::keep_running(&users.shared, move || Arc::clone(&own).run());
    let (own, keys) = (Arc::clone(&bucket), Arc::clone(&users.ticket_keys));
    keys.be_led();
    crate::managed_origin::keep_running(&users.shared, move || {
        share_tickets(Arc::clone(&own), Arc::clone(&keys))
    });
    Ok(Some(bucket))
}

/// Keeps the ticket keys of all nodes equal, until it is dropped.
async fn share_tickets(bucket: Arc<Bucket>, keys: Arc<TicketKeys>) {
    let mut changes = bucket.changes();
    loop {
        changes.borrow_and_update();
        let now_secs = rt::now().unix_secs();
        // The loser of a race takes the winner's keys; other failures are repeated.
        match bucket.read(TICKETS) {
            SecretLookup::Accepted(secret) => {
                let next = TicketKeys::succeed(&secret.value, now_secs);
                match next.and_then(|next| keys.take(&secret.value, now_secs).map(|_| next)) {
                    Ok(Some(next)) => _ = bucket.write(TICKETS, &next).await,
                    Ok(None) => {}
                    Err(why) => bucket.refuse(TICKETS, &secret, &why.to_string()),
                }
            }
            SecretLookup::Absent => _ = bucket.write(TICKETS, &keys.encode()).await,
            SecretLookup::Refused if keys.is_old(now_secs) => {
                if let Ok(Some(next)) = TicketKeys::succeed(&keys.encode(), now_secs) {
                    _ = bucket.write(TICKETS, &next).await;
                }
            }
            SecretLookup::Refused | SecretLookup::Unknown => {}
        }
        tokio::select! {
            changed = changes.changed() => if changed.is_err() { return },
            () = rt::time::sleep(LOOK) => {}
        }
    }
}

/// The other nodes, as certificate ordering sees them.
pub(crate) struct Nodes(pub(crate) Arc<Bucket>);

impl CertificatePeers for Nodes {
    fn read(&self, name: &str) -> SharedEntry {
        match self.0.read(name) {
            SecretLookup::Unknown => SharedEntry::Unknown,
            SecretLookup::Absent => SharedEntry::Absent,
            SecretLookup::Refused => SharedEntry::Refused,
            SecretLookup::Accepted(secret) => SharedEntry::Is(secret.value.clone()),
        }
    }

    fn write<'a>(
        &'a self,
        name: &'a str,
        value: &'a [u8],
    ) -> PendingFuture<'a, Result<(), String>> {
        Box::pin(async move { self.0.write(name, value).await.map_err(|why| why.to_string()) })
    }

    fn refuse(&self, name: &str, value: &[u8], why: &str) {
        if let SecretLookup::Accepted(secret) = self.0.read(name)
            && secret.value == value
        {
            self.0.refuse(name, &secret, why);
        }
    }

    fn claim(&self) -> PendingFuture<'_, OrderPermission> {
        Box::pin(async move {
            match self.0.claim().await {
                Claim::Own => OrderPermission::Own,
                Claim::Others(node) => OrderPermission::Others(node),
                Claim::OutOfTouch => OrderPermission::OutOfTouch,
            }
        })
    }

    fn right_is_lost(&self) -> PendingFuture<'_, ()> {
        Box::pin(self.0.right_is_lost())
    }

    fn release(&self) -> PendingFuture<'_, ()> {
        Box::pin(self.0.release())
    }

    fn ask_all<'a>(
        &'a self,
        question: Option<&'a ChallengeAnswer>,
    ) -> PendingFuture<'a, Result<(), String>> {
        Box::pin(async move {
            let value = ChallengeAnswer::encode(question);
            let written = match question {
                Some(_) => self.0.write_for_all(CHALLENGE, &value).await,
                None => self.0.write(CHALLENGE, &value).await,
            };
            written.map_err(|why: SecretWriteError| why.to_string())
        })
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.0.changes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_that_cannot_be_used_is_reported_with_its_file() {
        let folder = std::env::temp_dir().join(format!("larder-secrets-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let file = |name: &str, text: &str| {
            let path = folder.join(name);
            std::fs::write(&path, text).expect("written");
            path.display().to_string()
        };
        let (good, short) = (file("good", &"x".repeat(32)), file("short", "x\n"));
        let of = |files: &[&String]| {
            let text = format!(
                "[cluster]\nservers = \"nats://127.0.0.1:1\"\nsecret_file = {files:?}\n\
                 [[site]]\nhost = \"*\"\norigin = \"http://127.0.0.1:1\"\n"
            );
            let (config, _) = config::load_str(&text, "larder.toml").expect("a configuration");
            seal(&config).map(|seal| seal.is_some()).map_err(|fault| fault.message)
        };
        assert_eq!(of(&[]), Ok(false));
        assert_eq!(of(&[&good]), Ok(true));
        assert_eq!(of(&[&good, &good]), Ok(true));
        let missing = folder.join("missing").display().to_string();
        for (wrong, why) in [(&short, "a secret of 1 bytes can be guessed"), (&missing, "No such")]
        {
            let told = of(&[&good, wrong]).expect_err("it is refused");
            assert!(told.starts_with(&format!("{wrong}: {why}")), "{told}");
        }
        std::fs::remove_dir_all(&folder).expect("removed");
    }
}
