//! Roll-outs of configurations that all nodes share: this node's part, and roll-outs that an
//! operator begins here. The state and its rules are in `cluster` ([`RollOut`]).
//!
//! There is no coordinator. Each node reads the state and applies the version that it is to run; a
//! canary watches itself for a while and then reports. A refused version must leave in force what
//! was.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use cluster::{
    Bucket, Cluster, Release, RollOut, RollOutPlan, RollOutRefusal, RollOutStage, Secret,
    SecretLookup, SecretWriteError,
};
use net::ListenerSettings;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::canary::{self, Check, Conduct};
use crate::config_bundle::ConfigBundle;
use crate::secrets::DOCUMENT;
use crate::state::Daemon;
use crate::versions::{VersionFault, Versions};

/// The entry with the state.
const STATE: &str = "configuration";
/// The pause before a failed report is repeated.
const REST: Duration = Duration::from_secs(1);
/// The longest watch.
const WATCH_MAX_MS: u64 = 24 * 3_600_000;

/// The state of the last roll-out, and its entry; `None` if it is unknown.
pub(crate) fn known(bucket: &Bucket) -> Option<(Arc<Secret>, RollOut)> {
    let SecretLookup::Accepted(secret) = bucket.read(STATE) else { return None };
    match RollOut::decode(&secret.value) {
        Some(state) => Some((secret, state)),
        None => {
            bucket.refuse(STATE, &secret, "it is no state of a roll-out");
            None
        }
    }
}

fn entry_of(release: &Release) -> String {
    format!("{DOCUMENT}{}", release.slot)
}

/// The configuration of a release; `None` until it arrives.
fn content(bucket: &Bucket, release: &Release) -> Result<Option<ConfigBundle>, String> {
    let is_it = |own: &ConfigBundle| own.version() == release.version;
    match bucket.read(&entry_of(release)) {
        SecretLookup::Accepted(secret) => Ok(ConfigBundle::decode(&secret.value).filter(is_it)),
        SecretLookup::Refused => Err("the stored entry was rejected: see the log".to_owned()),
        SecretLookup::Absent | SecretLookup::Unknown => Ok(None),
    }
}

/// A canary's watch in progress.
type CanaryWatch = Pin<Box<dyn Future<Output = Result<(), String>> + Send>>;

/// A node that follows roll-outs.
struct RolloutFollower {
    daemon: Arc<Daemon>,
    bucket: Arc<Bucket>,
    versions: Arc<Versions>,
    listeners: Arc<[ListenerSettings]>,
    name: String,
    /// The number of a roll-out, and the node's conduct before it had that version.
    before: Option<(u64, Conduct)>,
    /// The watch in that roll-out.
    canary_watch: Option<(u64, CanaryWatch)>,
    /// The outcome of the watch, until it is reported.
    report: Option<(u64, Result<(), String>)>,
}

/// Takes part in roll-outs until it is dropped. `listeners` are the node's listeners.
pub(crate) async fn run(daemon: Arc<Daemon>, listeners: Arc<[ListenerSettings]>) {
    let (cluster, bucket) = (daemon.cluster(), daemon.bucket());
    let (Some(versions), Some(cluster), Some(bucket)) = (daemon.versions.clone(), cluster, bucket)
    else {
        return std::future::pending().await;
    };
    let (mut changes, mut again) = (bucket.changes(), versions.trials());
    let name = cluster.name().to_owned();
    let (canary_watch, before, report) = (None, None, None);
    let mut own =
        RolloutFollower { daemon, bucket, versions, listeners, name, canary_watch, before, report };
    loop {
        changes.borrow_and_update();
        again.borrow_and_update();
        own.look().await;
        let is_unheard = own.report.is_some();
        tokio::select! {
            changed = changes.changed() => if changed.is_err() { return },
            _ = again.changed() => {}
            outcome = watched(&mut own.canary_watch) => own.report = Some(outcome),
            () = rt::time::sleep(REST), if is_unheard => {}
        }
    }
}

/// Waits for the end of a watch.
async fn watched(canary_watch: &mut Option<(u64, CanaryWatch)>) -> (u64, Result<(), String>) {
    let Some((number, watch)) = canary_watch else { return std::future::pending().await };
    let outcome = (*number, watch.await);
    *canary_watch = None;
    outcome
}

impl RolloutFollower {
    /// Does what the current state wants of this node.
    async fn look(&mut self) {
        let Some((secret, state)) = known(&self.bucket) else {
            return self.act_without_state().await;
        };
        let is_awaited = state.awaits(&self.name);
        let is_of = |number: u64| is_awaited && number == state.number;
        self.canary_watch.take_if(|(number, _)| !is_of(*number));
        self.report.take_if(|(number, _)| !is_of(*number));
        if is_awaited {
            // A refusal of another roll-out's version says nothing about this one.
            self.versions.set_fault(None);
        }
        self.take_wanted(&state).await;
        let is_tried = self.report.is_some() || self.canary_watch.is_some();
        let has_it = self.versions.version() == state.version;
        if is_awaited && has_it && !is_tried {
            let (daemon, listeners) = (Arc::clone(&self.daemon), Arc::clone(&self.listeners));
            let before = self.before.filter(|(number, _)| *number == state.number);
            let before = before.map_or_else(|| Conduct::of(&daemon), |(_, before)| before);
            let (checks, watch_ms) = (state.checks.clone(), state.watch_ms);
            let watch = canary::watch(daemon, listeners, before, checks, watch_ms);
            self.canary_watch = Some((state.number, Box::pin(watch)));
        }
        if let Some((number, report)) = &self.report
            && let Some(next) = state.canary_reported(&self.name, *number, report)
        {
            let failed = report.as_ref().err().cloned();
            if self.bucket.write_over(STATE, Some(&secret), &next.encode()).await.is_ok() {
                self.report = None;
                self.log_report(&next, failed.as_deref());
            }
        }
    }

    /// Acts while the state is unknown: a version that failed here does not stay, nor does a
    /// canary's without a known roll-out.
    async fn act_without_state(&mut self) {
        let has_failed = matches!(&self.report, Some((_, Err(_))));
        if has_failed || self.bucket.read(STATE) == SecretLookup::Absent {
            self.canary_watch = None;
            go_back(&self.daemon, &self.versions).await;
        }
    }

    /// Applies the version that this node is to run, if it is another.
    async fn take_wanted(&mut self, state: &RollOut) {
        let has_failed = matches!(&self.report, Some((_, Err(_))));
        let wanted = match has_failed {
            // Regardless of the roll-out's stage.
            true => state.good.as_ref().and_then(|good| state.release(good)),
            false => state.wanted(&self.name),
        };
        let Some(release) = wanted else { return go_back(&self.daemon, &self.versions).await };
        let version = &release.version;
        if self.versions.version() != *version {
            let is_refused = |fault: &VersionFault| fault.was_tried && fault.version == *version;
            if self.versions.fault().as_ref().is_some_and(is_refused) {
                return;
            }
            let is_canary = state.awaits(&self.name) && !has_failed;
            if is_canary {
                self.before = Some((state.number, Conduct::of(&self.daemon)));
            }
            let taken =
                apply_release(&self.daemon, &self.versions, release, &self.bucket, state.stage)
                    .await;
            match taken {
                ReleaseOutcome::Done => {}
                // A canary waits for it, and its peers see that it is missing.
                ReleaseOutcome::Missing if is_canary => return,
                ReleaseOutcome::Unreadable(why) | ReleaseOutcome::Refused(why) if is_canary => {
                    self.report = Some((state.number, Err(why)));
                    // The roll-back follows at once, if the version was applied.
                    return Box::pin(self.take_wanted(state)).await;
                }
                ReleaseOutcome::Missing => {
                    return self.note_fault(version, "its content is not there".to_owned(), false);
                }
                ReleaseOutcome::Unreadable(why) => return self.note_fault(version, why, false),
                ReleaseOutcome::Refused(why) => return self.note_fault(version, why, true),
            }
        }
        if state.good.as_ref() == Some(version)
            && let Err(why) = self.versions.is_good()
        {
            log_failure(&format!("configuration {version} is in force and cannot be saved: {why}"));
        }
    }

    fn note_fault(&self, version: &str, why: String, was_tried: bool) {
        let line = format!("configuration {version} is not applied: {why}");
        let fault = VersionFault { version: version.to_owned(), why, was_tried };
        if self.versions.set_fault(Some(fault)) && was_tried {
            say(&line);
        }
    }

    /// Logs this node's report.
    fn log_report(&self, next: &RollOut, failed: Option<&str>) {
        let version = &next.version;
        match (failed, next.stage) {
            (Some(why), _) => {
                log_failure(&format!("configuration {version} has failed here: {why}"));
            }
            (None, RollOutStage::All) => {
                say(&format!("configuration {version} is good, and goes to all"));
            }
            (None, _) => say(&format!("configuration {version} is good on this node")),
        }
    }
}

/// Applies the last good version, if it is another.
async fn go_back(daemon: &Arc<Daemon>, versions: &Versions) {
    let good = versions.good();
    if versions.version() != good.as_ref().map(|own| own.version()).unwrap_or_default() {
        let put = put_in_force(Arc::clone(daemon), good, "as before").await;
        put.unwrap_or_else(|why| log_failure(&why));
    }
}

/// The outcome of applying a release.
enum ReleaseOutcome {
    Done,
    /// The content is missing, and may still arrive.
    Missing,
    /// The content cannot be read, and may be stored again.
    Unreadable(String),
    /// The release cannot be used here.
    Refused(String),
}

/// Applies a release at a stage.
async fn apply_release(
    daemon: &Arc<Daemon>,
    versions: &Versions,
    release: &Release,
    bucket: &Bucket,
    stage: RollOutStage,
) -> ReleaseOutcome {
    let good = versions.good().filter(|own| own.version() == release.version);
    let bundle = match good {
        Some(good) => good,
        None => match content(bucket, release) {
            Ok(Some(bundle)) => Arc::new(bundle),
            Ok(None) => return ReleaseOutcome::Missing,
            Err(why) => return ReleaseOutcome::Unreadable(why),
        },
    };
    let of = format!("of {}, stage {}", release.node, stage.word());
    match put_in_force(Arc::clone(daemon), Some(bundle), &of).await {
        Ok(()) => ReleaseOutcome::Done,
        Err(why) => ReleaseOutcome::Refused(why),
    }
}

/// Puts a configuration in force.
async fn put_in_force(
    daemon: Arc<Daemon>,
    bundle: Option<Arc<ConfigBundle>>,
    of: &str,
) -> Result<(), String> {
    let version = bundle.as_ref().map(|own| own.version());
    // It reads files and compiles.
    let taken = rt::blocking(move || daemon.apply_shared_config(bundle)).await;
    taken.unwrap_or_else(|_| Err("it panicked, which is a bug".to_owned()))?;
    match version {
        Some(version) => say(&format!("configuration {version} is in force ({of})")),
        None => say(&format!("no shared configuration is in force ({of})")),
    }
    Ok(())
}

fn say(text: &str) {
    base::tell!(Notice, "larder: cluster: {text}");
}

fn log_failure(text: &str) {
    base::tell!(Error, "larder: cluster: {text}");
}

/// The request of an operator for a roll-out.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RolloutRequest {
    configuration: ConfigBundle,
    #[serde(default)]
    canaries: Vec<String>,
    #[serde(default)]
    watch_ms: u64,
    #[serde(default)]
    checks: Vec<String>,
    #[serde(default)]
    comment: String,
    /// Hosts that have a site now may lose it.
    #[serde(default)]
    drop_hosts: bool,
}

/// The reason why an order is not carried out.
#[derive(Debug)]
pub(crate) enum NotBegun {
    /// It conflicts with the current state.
    Conflict(String),
    /// It cannot be used.
    Bad(String),
    /// The cluster is out of touch.
    OutOfTouch(String),
}

impl From<RollOutRefusal> for NotBegun {
    fn from(why: RollOutRefusal) -> Self {
        match why {
            RollOutRefusal::Plan(_) | RollOutRefusal::Unknown(_) => Self::Bad(why.to_string()),
            RollOutRefusal::Busy { .. } | RollOutRefusal::Known(_) | RollOutRefusal::Nothing => {
                Self::Conflict(why.to_string())
            }
        }
    }
}

impl From<SecretWriteError> for NotBegun {
    fn from(why: SecretWriteError) -> Self {
        match why {
            SecretWriteError::Bound(_) => Self::Bad(why.to_string()),
            SecretWriteError::Overtaken => {
                let why = "another roll-out was begun at the same time: `larder cluster \
                           configuration` says which";
                Self::Conflict(why.to_owned())
            }
            _ => Self::OutOfTouch(why.to_string()),
        }
    }
}

/// Everything that a roll-out needs.
struct RolloutContext {
    versions: Arc<Versions>,
    cluster: Arc<Cluster>,
    bucket: Arc<Bucket>,
}

/// The context of a node that shares its configuration; an error for another.
fn context(daemon: &Daemon) -> Result<RolloutContext, NotBegun> {
    let (cluster, bucket) = (daemon.cluster(), daemon.bucket());
    match (daemon.versions.clone(), cluster, bucket) {
        (Some(versions), Some(cluster), Some(bucket)) => {
            Ok(RolloutContext { versions, cluster, bucket })
        }
        _ => {
            let why = "this node shares no configuration: see `[cluster] configuration`";
            Err(NotBegun::Conflict(why.to_owned()))
        }
    }
}

/// Begins a roll-out.
///
/// # Errors
/// Nothing has begun.
pub(crate) async fn begin(daemon: &Daemon, request: RolloutRequest) -> Result<RollOut, NotBegun> {
    let RolloutContext { versions, cluster, bucket } = context(daemon)?;
    let RolloutRequest { configuration, canaries, watch_ms, checks, comment, drop_hosts } = request;
    let named = config::NamedText { name: &configuration.name, text: &configuration.toml };
    let rendered = |found: Vec<config::Diagnostic>| NotBegun::Bad(config::render(&found, false));
    config::check_shared(named).map_err(rendered)?;
    let gone = daemon.check_shared(&configuration).map_err(NotBegun::Bad)?;
    if !gone.is_empty() && !drop_hosts {
        return Err(NotBegun::Conflict(format!(
            "requests for {} would find no site; with `--drop-hosts` it is rolled out all the same",
            gone.join(", ")
        )));
    }
    checks.iter().try_for_each(|text| Check::parse(text).map(drop)).map_err(NotBegun::Bad)?;
    let canaries = canaries_of(&cluster.status(), canaries)?;
    let last = bucket.last(STATE);
    let known = last.as_ref().and_then(|secret| RollOut::decode(&secret.value));
    // Without a known state, this node's configuration counts as the common one.
    let own = versions.good().filter(|_| known.is_none());
    let before = known.or_else(|| own.as_ref().map(|own| found(own, cluster.name())));
    let version = configuration.version();
    let release = Release {
        slot: RollOut::slot_for(before.as_ref(), &version),
        version,
        node: cluster.name().to_owned(),
        unix_ms: rt::now().unix_ms,
        comment,
        passed: false,
    };
    let entry = entry_of(&release);
    let plan = RollOutPlan { canaries, watch_ms: watch_ms.min(WATCH_MAX_MS), checks };
    bucket.fits(&entry, &configuration.encode())?;
    let next = match RollOut::begin(before.as_ref(), release, plan) {
        Err(known @ RollOutRefusal::Known(_)) => {
            // The content may be lost or damaged.
            store_bundle(&bucket, &entry, &configuration).await?;
            return Err(known.into());
        }
        begun => begun?,
    };
    // Only the beginner stores anything: canaries wait for it.
    bucket.write_over(STATE, last.as_ref(), &next.encode()).await?;
    let good = next.good.as_ref().and_then(|good| next.release(good));
    if let (Some(own), Some(good)) = (own, good) {
        store_bundle(&bucket, &entry_of(good), &own).await?;
    }
    if let Err(why) = store_bundle(&bucket, &entry, &configuration).await {
        // The content will not arrive: for the peers the roll-out is over.
        _ = roll_back(daemon, None).await;
        return Err(why.into());
    }
    Ok(next)
}

/// The state of a cluster whose nodes run this node's version.
fn found(own: &ConfigBundle, name: &str) -> RollOut {
    let version = own.version();
    let (slot, comment) = (RollOut::slot_for(None, &version), String::new());
    let (node, unix_ms) = (name.to_owned(), rt::now().unix_ms);
    RollOut::found(Release { version, slot, node, unix_ms, comment, passed: true })
}

/// Stores a configuration in its entry, unless it is there.
async fn store_bundle(
    bucket: &Bucket,
    entry: &str,
    bundle: &ConfigBundle,
) -> Result<(), SecretWriteError> {
    let (last, bytes) = (bucket.last(entry), bundle.encode());
    let is_there = |secret: &Arc<Secret>| secret.value == bytes;
    match bucket.read(entry) {
        SecretLookup::Accepted(secret) if is_there(&secret) => Ok(()),
        _ => bucket.write_over(entry, last.as_ref(), &bytes).await,
    }
}

/// The canaries of a roll-out: the named ones, or the node that is asked; if that wants no clients,
/// the first that does.
fn canaries_of(status: &cluster::Status, named: Vec<String>) -> Result<Vec<String>, NotBegun> {
    let takes = |own: &&cluster::MemberStatus| own.live && own.card.takes_configuration;
    let is_there =
        |name: &str| status.members.iter().filter(takes).any(|own| own.card.name == name);
    let missing: Vec<_> = named.iter().filter(|name| !is_there(name)).map(String::as_str).collect();
    if !missing.is_empty() {
        let why = "no live node with the shared configuration has this name";
        return Err(NotBegun::Bad(format!("{}: {why}", missing.join(", "))));
    }
    if !named.is_empty() {
        return Ok(named);
    }
    let serves = |own: &&cluster::MemberStatus| takes(own) && !own.card.draining;
    let own = status.members.iter().filter(serves).find(|own| own.card.name == status.name);
    let chosen = own.or_else(|| status.members.iter().find(serves));
    let none = || NotBegun::OutOfTouch("no live node is known that could be the canary".to_owned());
    chosen.map(|own| vec![own.card.name.clone()]).ok_or_else(none)
}

/// Rolls all nodes back, to a version or to the previous one.
///
/// # Errors
/// They are not rolled back.
pub(crate) async fn roll_back(daemon: &Daemon, version: Option<&str>) -> Result<RollOut, NotBegun> {
    let RolloutContext { bucket, .. } = context(daemon)?;
    let last = bucket.last(STATE);
    let state = last.as_ref().and_then(|secret| RollOut::decode(&secret.value));
    let next = state.ok_or(RollOutRefusal::Nothing)?.back(version)?;
    bucket.write_over(STATE, last.as_ref(), &next.encode()).await?;
    Ok(next)
}

/// This node's part in roll-outs, for its figures.
pub(crate) struct RolloutStatus {
    /// The version in force; empty without one.
    pub(crate) version: String,
    /// The version of the last roll-out, and its stage; `None` if unknown.
    pub(crate) stage: Option<(String, RollOutStage)>,
    /// The version that this node is to run is in force.
    pub(crate) is_wanted: bool,
    /// The reason why it is not.
    pub(crate) fault: Option<VersionFault>,
}

/// The current status; `None` for a node that shares no configuration.
pub(crate) fn status(daemon: &Daemon) -> Option<RolloutStatus> {
    let RolloutContext { versions, cluster, bucket } = context(daemon).ok()?;
    let state = known(&bucket).map(|(_, state)| state);
    let version = versions.version();
    let wanted = state.as_ref().and_then(|own| own.wanted(cluster.name()));
    let is_wanted = wanted.is_none_or(|own| own.version == version);
    let stage = state.map(|own| (own.version, own.stage));
    Some(RolloutStatus { version, stage, is_wanted, fault: versions.fault() })
}

/// The status as JSON; `null` for a node that shares no configuration.
pub(crate) fn short(daemon: &Daemon) -> Value {
    let Some(RolloutStatus { version, stage, is_wanted, fault }) = status(daemon) else {
        return Value::Null;
    };
    let (rolled, stage) = stage.unzip();
    json!({
        "in_force": version,
        "is_wanted": is_wanted,
        "version": rolled,
        "stage": stage.map(RollOutStage::word),
        "fault": fault.map(|own| format!("{}: {}", own.version, own.why)),
    })
}

/// The shared configuration as JSON: versions, nodes, progress.
pub(crate) fn json(daemon: &Daemon) -> Value {
    let mut all = json!({
        "node": "", "in_force": "", "problem": null, "number": 0, "version": "", "stage": null,
        "why": "", "good": null, "canaries": [], "watch_ms": 0, "checks": [], "releases": [],
        "nodes": [],
    });
    let RolloutContext { versions, cluster, bucket } = match context(daemon) {
        Ok(context) => context,
        Err(NotBegun::Conflict(why) | NotBegun::Bad(why) | NotBegun::OutOfTouch(why)) => {
            all["problem"] = why.into();
            return all;
        }
    };
    match known(&bucket).map(|(_, state)| state) {
        Some(state) => {
            let state = serde_json::to_value(state).unwrap_or_default();
            for (name, value) in state.as_object().into_iter().flatten() {
                all[name] = value.clone();
            }
        }
        None => all["problem"] = problem(&bucket).into(),
    }
    let status = cluster.status();
    let own_fault = versions.fault().map(|own| format!("{}: {}", own.version, own.why));
    let node = |own: &cluster::MemberStatus| {
        // About itself a node knows more than its last card says.
        let (version, fault) = match own.card.name == status.name {
            true => (versions.version(), own_fault.clone().unwrap_or_default()),
            false => (own.card.configuration.clone(), own.card.configuration_fault.clone()),
        };
        json!({
            "name": own.card.name, "state": own.state, "live": own.live,
            "version": version, "fault": fault,
        })
    };
    let taking = status.members.iter().filter(|own| own.card.takes_configuration);
    all["nodes"] = taking.map(node).collect::<Vec<_>>().into();
    (all["node"], all["in_force"]) = (status.name.into(), versions.version().into());
    all
}

/// The reason why the state of roll-outs is unknown; `None` if there was no roll-out.
fn problem(bucket: &Bucket) -> Option<String> {
    let status = bucket.status();
    let refused = status.secrets.iter().find(|own| own.name == STATE);
    let refused = refused.and_then(|own| own.refused.as_ref());
    let refused = refused.map(|why| format!("its entry in NATS is rejected: {why}"));
    refused.or(status.problem)
}

#[cfg(test)]
mod tests {
    use cluster::{Card, Counts, MemberStatus, Stance, Status};

    use super::*;

    fn member(name: &str, live: bool, draining: bool, takes_configuration: bool) -> MemberStatus {
        let name = name.to_owned();
        let card = Card { name, draining, takes_configuration, ..Card::default() };
        MemberStatus { card, silent_ms: 0, live, state: "ready", lag: 0 }
    }

    fn status(members: Vec<MemberStatus>) -> Status {
        Status {
            name: "n2".to_owned(),
            connected: true,
            stance: Stance::Member,
            is_shown: true,
            trusted: true,
            trusted_ms: 1,
            problem: None,
            sequence: 0,
            last: 0,
            queued: 0,
            counts: Counts::default(),
            members,
        }
    }

    #[test]
    fn the_canary_is_who_is_asked_or_the_first_that_serves() {
        let chosen = |own_drains: bool| {
            let members = vec![
                member("n0", true, false, false),
                member("n1", false, false, true),
                member("n2", true, own_drains, true),
                member("n3", true, false, true),
            ];
            canaries_of(&status(members), Vec::new()).expect("one serves")
        };
        assert_eq!(chosen(false), ["n2"]);
        assert_eq!(chosen(true), ["n3"]);
        let none = canaries_of(&status(vec![member("n2", true, true, true)]), Vec::new());
        assert!(matches!(none, Err(NotBegun::OutOfTouch(_))));
    }

    #[test]
    fn a_canary_that_is_named_has_to_be_live_and_share() {
        let members = || {
            status(vec![
                member("n1", true, true, true),
                member("n2", false, false, true),
                member("n3", true, false, false),
            ])
        };
        let named = |names: &[&str]| {
            let names = names.iter().map(|&name| name.to_owned()).collect();
            canaries_of(&members(), names)
        };
        assert_eq!(named(&["n1"]).expect("it is there"), ["n1"]);
        let refused = named(&["n1", "n2", "n3", "n4"]).expect_err("three are not there");
        assert!(matches!(refused, NotBegun::Bad(why) if why.starts_with("n2, n3, n4: ")));
    }
}
