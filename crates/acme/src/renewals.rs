//! The renewals: every name of the plan gets a certificate, and a new one in time, with one order
//! at a time. An authority must not be asked more often than its limits permit.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use base::HashSeed;
use instant_acme::{
    Account, AccountCredentials, CertificateIdentifier, ExternalAccountKey, NewAccount,
};
use tls::CertificateKeyPair;
use tokio::sync::watch;

use crate::certificate_peers::{CertificatePeers, SharedEntry};
use crate::challenge_responder::ChallengeResponder;
use crate::client::Client;
use crate::order::{CertificateOrder, ObtainedCertificate, obtain};
use crate::plan::{Authority, CertificatePlan};
use crate::report::{Event, OrderFailure};
use crate::schedule::{self, UnixPeriod};
use crate::storage::{FileContent, Storage};

/// The longest sleep: clocks may be set, and laptops may wake up.
const SLEEP_MAX_MS: u64 = 3_600_000;
/// The time until the next attempt while another process orders.
const LOCKED_MS: u64 = 2_000;
/// The interval between queries for renewal information, if the authority names none (RFC 9773
/// 4.3.3: six hours), and the limits of the interval that it names (4.3.2).
pub(crate) const ASK_MS: u64 = 6 * 3_600_000;
const ASK_LEAST_MS: u64 = 60_000;
const ASK_MOST_MS: u64 = 24 * 3_600_000;

/// Renews the certificates of the latest plan, until the sender of plans is dropped, with the other
/// daemons in `peers`, if any.
pub async fn run(
    mut plans: watch::Receiver<Option<Arc<CertificatePlan>>>,
    answers: Arc<dyn ChallengeResponder>,
    peers: Option<Arc<dyn CertificatePeers>>,
) {
    let (mut keeper, mut seen): (Option<Renewals>, _) = (None, false);
    let mut changes = peers.as_ref().map(|peers| peers.changes());
    loop {
        // An order that has begun is finished before a new plan is used.
        if !seen || plans.has_changed().unwrap_or(false) {
            seen = true;
            let plan = plans.borrow_and_update().clone();
            keeper = plan.map(|plan| match keeper.take() {
                Some(keeper) => keeper.adopt(plan),
                None => Renewals::new(plan, peers.clone()),
            });
        }
        if let Some(changes) = &mut changes {
            changes.borrow_and_update();
        }
        if let Some(keeper) = &mut keeper {
            keeper.share(&*answers).await;
        }
        let step = keeper.as_ref().map_or(RenewalStep::Sleep(SLEEP_MAX_MS), Renewals::next);
        match (step, &mut keeper) {
            (RenewalStep::Order(name), Some(keeper)) => keeper.order(&name, &*answers).await,
            (RenewalStep::Ask(name), Some(keeper)) => keeper.ask(&name, &*answers).await,
            (RenewalStep::Order(_) | RenewalStep::Ask(_), None) => {}
            (RenewalStep::Sleep(ms), keeper) => {
                if let Some(peers) = &peers
                    && keeper.as_ref().is_none_or(Renewals::is_done)
                {
                    peers.release().await;
                }
                tokio::select! {
                    () = rt::time::sleep(Duration::from_millis(ms)) => {}
                    () = changed(&mut changes) => {}
                    changed = plans.changed() => match changed {
                        Ok(()) => seen = false,
                        Err(_) => return,
                    },
                }
            }
        }
    }
}

/// Waits for a change of a shared entry; forever without other daemons.
async fn changed(changes: &mut Option<watch::Receiver<u64>>) {
    let has_changed = match changes {
        Some(changes) => changes.changed().await.is_ok(),
        None => false,
    };
    if !has_changed {
        std::future::pending::<()>().await;
    }
}

/// The next step.
#[derive(Debug, PartialEq, Eq)]
enum RenewalStep {
    Order(String),
    /// Query the renewal information of a certificate.
    Ask(String),
    Sleep(u64),
}

pub(crate) struct Renewals {
    plan: Arc<CertificatePlan>,
    pub(crate) storage: Storage,
    client: Client,
    account: Option<Account>,
    /// The account that the authority has lost.
    unknown_account: Option<Vec<u8>>,
    pub(crate) names: BTreeMap<String, Name>,
    /// The daemons that serve the same names.
    pub(crate) peers: Option<Arc<dyn CertificatePeers>>,
}

/// A name and its state.
#[derive(Debug, Default)]
pub(crate) struct Name {
    pub(crate) held: Option<HeldCertificate>,
    /// The certificate that the operator has removed, to be replaced.
    pub(crate) unwanted: Option<Vec<u8>>,
    /// The reason for waiting, as reported.
    pub(crate) waits_for: Option<String>,
    /// Failed orders in a row.
    failures: u32,
    /// The counter that selects the next of the plan's challenges.
    challenge: usize,
    /// The earliest time of the next order, on the monotonic clock.
    wait_until_ms: u64,
}

/// A certificate in storage.
#[derive(Debug)]
pub(crate) struct HeldCertificate {
    pub(crate) pair: Arc<CertificateKeyPair>,
    pub(crate) renew_at_secs: u64,
    /// The renewal window that the authority suggests, once queried.
    window: Option<UnixPeriod>,
    /// The time of the next query, on the monotonic clock; `None` if the authority has none.
    ask_at_ms: Option<u64>,
}

impl Name {
    /// A name with a valid certificate.
    pub(crate) fn with(held: HeldCertificate) -> Self {
        Self { held: Some(held), ..Self::default() }
    }
}

impl HeldCertificate {
    pub(crate) fn new(pair: Arc<CertificateKeyPair>, ask_at_ms: u64) -> Self {
        let renew_at_secs = schedule::renewal(validity(&pair), None, random());
        Self { pair, renew_at_secs, window: None, ask_at_ms: Some(ask_at_ms) }
    }
}

impl Renewals {
    fn new(plan: Arc<CertificatePlan>, peers: Option<Arc<dyn CertificatePeers>>) -> Self {
        let Authority { directory, storage, trust, .. } = &*plan.authority;
        let storage = Storage::new(storage, directory);
        let client = Client::new(trust, plan.bounds);
        let (account, unknown_account, names) = (None, None, BTreeMap::new());
        let mut keeper = Self { storage, client, account, unknown_account, names, peers, plan };
        keeper.look();
        keeper
    }

    /// Adopts a new plan. The state of its names is kept, unless the authority has changed.
    fn adopt(self, plan: Arc<CertificatePlan>) -> Self {
        let same = self.plan.authority == plan.authority;
        let mut next = Self::new(plan, self.peers);
        if !same {
            return next;
        }
        next.account = self.account.filter(|_| self.plan.bounds == next.plan.bounds);
        for (name, old) in self.names {
            let Some(new) = next.names.get_mut(&name) else { continue };
            (new.failures, new.challenge) = (old.failures, old.challenge);
            // An authority counts failed orders by the hour, and a configuration may change every
            // minute.
            new.wait_until_ms = old.wait_until_ms;
            new.unwanted = match &old.held {
                Some(held) if matches!(next.storage.read_pem(&name), Ok(None)) => {
                    Some(held.pair.leaf().to_vec())
                }
                _ => old.unwanted,
            };
            if let (Some(held), Some(old)) = (&mut new.held, old.held)
                && held.pair.leaf() == old.pair.leaf()
            {
                *held = old;
            }
        }
        next
    }

    /// Reads the stored certificates.
    fn look(&mut self) {
        let now_ms = rt::now().mono_ms;
        for name in &self.plan.names {
            let held = match self.storage.read_certificate(name) {
                // The queries after a restart are spread.
                Ok(FileContent::Whole(pair)) => {
                    Some(HeldCertificate::new(pair, now_ms + random() % ASK_MS))
                }
                // The error is reported when an order replaces the file.
                Ok(FileContent::Nothing | FileContent::Broken(_)) | Err(_) => None,
            };
            self.names.insert(name.clone(), Name { held, ..Name::default() });
        }
    }

    fn next(&self) -> RenewalStep {
        let now = rt::now();
        let mut sleep_ms = SLEEP_MAX_MS;
        for (name, state) in &self.names {
            let wait_ms = state.wait_until_ms.saturating_sub(now.mono_ms);
            let due_ms = state.held.as_ref().map_or(0, |held| {
                (held.renew_at_secs.saturating_mul(1000)).saturating_sub(now.unix_ms)
            });
            let order_ms = due_ms.max(wait_ms);
            if order_ms == 0 {
                return RenewalStep::Order(name.clone());
            }
            let ask_at_ms = state.held.as_ref().and_then(|held| held.ask_at_ms);
            let ask_ms = ask_at_ms.map_or(u64::MAX, |at| at.saturating_sub(now.mono_ms));
            if ask_ms == 0 {
                return RenewalStep::Ask(name.clone());
            }
            sleep_ms = sleep_ms.min(order_ms).min(ask_ms);
        }
        RenewalStep::Sleep(sleep_ms)
    }

    /// Orders a certificate for `name`, and notes the result.
    async fn order(&mut self, name: &str, answers: &dyn ChallengeResponder) {
        let result = match self.is_to_order(name, answers).await {
            Some(true) => self.try_order(name, answers).await,
            Some(false) => return,
            None => Ok(Outcome::Waits),
        };
        let now_ms = rt::now().mono_ms;
        let Some(state) = self.names.get_mut(name) else { return };
        let why = match result {
            Ok(Outcome::Stored(pair)) => {
                let not_after = pair.not_after();
                *state = Name { challenge: state.challenge, ..Name::default() };
                state.held = Some(HeldCertificate::new(pair, now_ms));
                answers.note(Event::Obtained { name: name.to_owned(), not_after });
                if let Some(peers) = &self.peers {
                    self.show(&**peers, name).await;
                }
                return;
            }
            Ok(Outcome::ByOthers(pair)) => {
                let held = HeldCertificate::new(pair, now_ms + random() % ASK_MS);
                *state = Name::with(held);
                return;
            }
            Ok(Outcome::Waits) => {
                state.wait_until_ms = now_ms + LOCKED_MS;
                return;
            }
            Err(why) => why,
        };
        state.failures += 1;
        state.challenge += 1;
        let again_ms = again_ms(&self.plan, state.failures, &why, self.client.spared_ms());
        state.wait_until_ms = now_ms + again_ms;
        if why.is(NO_ACCOUNT) {
            self.forget_account(&why, answers);
        }
        // Another daemon's disk may work.
        if let (OrderFailure::Storage(_), Some(peers)) = (&why, &self.peers) {
            peers.release().await;
        }
        answers.note(Event::Failed { name: name.to_owned(), why, again_ms });
    }

    async fn try_order(
        &mut self,
        name: &str,
        answers: &dyn ChallengeResponder,
    ) -> Result<Outcome, OrderFailure> {
        let stored = |error: io::Error| OrderFailure::Storage(error.to_string());
        self.storage.prepare().map_err(stored)?;
        let Some(lock) = self.storage.lock().map_err(stored)? else { return Ok(Outcome::Waits) };
        let Some(state) = self.names.get(name) else { return Ok(Outcome::Waits) };
        let held = state.held.as_ref();
        match self.storage.read_certificate(name).map_err(stored)? {
            FileContent::Whole(pair) if held.is_none_or(|held| held.pair.leaf() != pair.leaf()) => {
                return Ok(Outcome::ByOthers(pair));
            }
            FileContent::Whole(_) | FileContent::Nothing => {}
            FileContent::Broken(why) => {
                let path = self.storage.put_certificate_aside(name).map_err(stored)?;
                answers.note(Event::Aside { path, why });
            }
        }
        self.storage.probe().map_err(stored)?;
        let challenges = &self.plan.challenges;
        let wanted = CertificateOrder {
            name,
            challenge: challenges[state.challenge % challenges.len().max(1)],
            // Only an authority with renewal information knows this field.
            replaces: held
                .filter(|held| held.window.is_some() && state.failures == 0)
                .and_then(|held| identify(&held.pair)),
            order_ms: self.plan.bounds.order_ms,
            peers: self.peers.as_deref(),
        };
        answers.note(Event::Ordering { name: name.to_owned() });
        let account = match &self.account {
            Some(account) => account.clone(),
            None => self.open_account(true, answers).await?,
        };
        let obtained = unless_lost(self.peers.as_deref(), obtain(&account, wanted, answers));
        let obtained = obtained.await?;
        self.account = Some(account);
        self.storage.write_certificate(name, obtained.pem.as_bytes()).map_err(stored)?;
        drop(lock);
        Ok(Outcome::Stored(Arc::new(obtained.pair)))
    }

    /// The shared account, that of an earlier run, or a new one if `may` permits it. To be called
    /// with the lock.
    async fn open_account(
        &self,
        may: bool,
        answers: &dyn ChallengeResponder,
    ) -> Result<Account, OrderFailure> {
        let stored = |error: io::Error| OrderFailure::Storage(error.to_string());
        let builder = || Account::builder_with_http(Box::new(self.client.clone()));
        if let Some((json, credentials)) = self.common_account() {
            let account = builder().from_credentials(credentials).await?;
            if self.storage.read_account().map_err(stored)?.as_ref() != Some(&json) {
                self.storage.write_account(&json).map_err(stored)?;
            }
            return Ok(account);
        }
        if let Some(json) = self.storage.read_account().map_err(stored)? {
            match serde_json::from_slice::<AccountCredentials>(&json) {
                Ok(credentials) => {
                    let account = builder().from_credentials(credentials).await?;
                    self.show_account(&json).await;
                    return Ok(account);
                }
                Err(error) => {
                    let path = self.storage.put_account_aside().map_err(stored)?;
                    let why = format!("the account cannot be read: {error}");
                    answers.note(Event::Aside { path, why });
                }
            }
        }
        if !may {
            return Err(OrderFailure::Other("there is no account yet".to_owned()));
        }
        let Authority { directory, email, binding, .. } = &*self.plan.authority;
        let contact = email.as_ref().map(|email| format!("mailto:{email}"));
        let contact: Vec<&str> = contact.as_deref().into_iter().collect();
        let new = NewAccount {
            contact: &contact,
            terms_of_service_agreed: true,
            only_return_existing: false,
        };
        let binding = binding.as_ref();
        let binding = binding.map(|b| ExternalAccountKey::new(b.key_id.clone(), &b.hmac));
        let created = builder().create(&new, directory.clone(), binding.as_ref()).await;
        let (account, credentials) = created?;
        let json =
            serde_json::to_vec(&credentials).map_err(|e| OrderFailure::Other(e.to_string()))?;
        self.storage.write_account(&json).map_err(stored)?;
        answers.note(Event::Account { directory: directory.clone() });
        self.show_account(&json).await;
        Ok(account)
    }

    /// The shared account, if it can be used.
    fn common_account(&self) -> Option<(Vec<u8>, AccountCredentials)> {
        let peers = self.peers.as_ref()?;
        let at = self.account_entry();
        let SharedEntry::Is(json) = peers.read(&at) else { return None };
        if self.unknown_account.as_ref() == Some(&json) {
            return None;
        }
        match serde_json::from_slice(&json) {
            Ok(credentials) => Some((json, credentials)),
            Err(error) => {
                peers.refuse(&at, &json, &error.to_string());
                None
            }
        }
    }

    /// Shares the account of an earlier run, if there is one.
    pub(crate) async fn show_kept_account(&self) {
        let Ok(Some(json)) = self.storage.read_account() else { return };
        let can_be_read = serde_json::from_slice::<AccountCredentials>(&json).is_ok();
        if can_be_read && self.unknown_account.as_ref() != Some(&json) {
            self.show_account(&json).await;
        }
    }

    /// Shares this account. A failure has no effect: the others create their own.
    async fn show_account(&self, json: &[u8]) {
        if let Some(peers) = &self.peers {
            _ = peers.write(&self.account_entry(), json).await;
        }
    }

    /// Removes an account that the authority has lost. The next order creates a new one.
    fn forget_account(&mut self, why: &OrderFailure, answers: &dyn ChallengeResponder) {
        self.account = None;
        if let Some(peers) = &self.peers
            && let SharedEntry::Is(json) = peers.read(&self.account_entry())
        {
            self.unknown_account = Some(json);
        }
        if let Ok(path) = self.storage.put_account_aside() {
            answers.note(Event::Aside { path, why: format!("the account cannot be used: {why}") });
        }
    }

    /// Queries the renewal information for `name` (RFC 9773 4.1). A failure has no effect.
    async fn ask(&mut self, name: &str, answers: &dyn ChallengeResponder) {
        let pair = self.names.get(name).and_then(|state| state.held.as_ref());
        let Some(pair) = pair.map(|held| Arc::clone(&held.pair)) else { return };
        let asked = self.suggestion(&pair, answers).await;
        let now_ms = rt::now().mono_ms;
        let Some(held) = self.names.get_mut(name).and_then(|state| state.held.as_mut()) else {
            return;
        };
        match asked {
            Ok((window, again)) => {
                if held.window != Some(window) {
                    held.window = Some(window);
                    let at = schedule::renewal(validity(&pair), Some(window), random());
                    held.renew_at_secs = at;
                }
                let again_ms = u64::try_from(again.as_millis()).unwrap_or(ASK_MOST_MS);
                held.ask_at_ms = Some(now_ms + again_ms.clamp(ASK_LEAST_MS, ASK_MOST_MS));
            }
            Err(instant_acme::Error::Unsupported(_)) => held.ask_at_ms = None,
            Err(_) => held.ask_at_ms = Some(now_ms + ASK_MS),
        }
    }

    async fn suggestion(
        &mut self,
        pair: &CertificateKeyPair,
        answers: &dyn ChallengeResponder,
    ) -> Result<(UnixPeriod, Duration), instant_acme::Error> {
        let unsupported = instant_acme::Error::Unsupported("a certificate without issuer");
        let id = identify(pair).ok_or(unsupported)?;
        if self.account.is_none() {
            let failed = |error: io::Error| instant_acme::Error::Other(Box::new(error));
            let Some(_lock) = self.storage.lock().map_err(failed)? else {
                return Err(failed(io::ErrorKind::WouldBlock.into()));
            };
            let opened = self.open_account(self.peers.is_none(), answers).await;
            self.account = Some(opened.map_err(|e| instant_acme::Error::Other(Box::new(e)))?);
        }
        let account = self.account.as_ref().ok_or(instant_acme::Error::Str("an account"))?;
        let (info, again) = account.renewal_info(&id).await?;
        let secs = |at: i64| u64::try_from(at).unwrap_or(0);
        let window = &info.suggested_window;
        let (start, end) = (window.start.unix_timestamp(), window.end.unix_timestamp());
        Ok((UnixPeriod { start: secs(start), end: secs(end) }, again))
    }
}

/// The result of an order, unless the right to order is lost.
async fn unless_lost(
    peers: Option<&dyn CertificatePeers>,
    order: impl Future<Output = Result<ObtainedCertificate, OrderFailure>>,
) -> Result<ObtainedCertificate, OrderFailure> {
    let Some(peers) = peers else { return order.await };
    tokio::select! {
        done = order => done,
        () = peers.right_is_lost() => {
            Err(OrderFailure::Other("another node orders certificates now".to_owned()))
        }
    }
}

/// The result of an order without a failure.
enum Outcome {
    Stored(Arc<CertificateKeyPair>),
    /// Another process has renewed it.
    ByOthers(Arc<CertificateKeyPair>),
    /// Another process or daemon orders, or may do so.
    Waits,
}

/// The problem type for an unknown account (RFC 8555 6.7).
const NO_ACCOUNT: &str = "accountDoesNotExist";

/// The time after a failed order, `failures` in a row.
fn again_ms(plan: &CertificatePlan, failures: u32, why: &OrderFailure, asked_ms: u64) -> u64 {
    let others = (failures as usize) < plan.challenges.len() && is_worth_another_challenge(why);
    let new_account = failures == 1 && why.is(NO_ACCOUNT);
    if others || new_account {
        return 0;
    }
    let bounds = &plan.bounds;
    schedule::retry_ms(failures, bounds.retry_ms, bounds.retry_max_ms, asked_ms, random())
}

/// Returns true if another challenge may succeed: the authority could not reach us, or received
/// another answer.
fn is_worth_another_challenge(why: &OrderFailure) -> bool {
    let kinds = ["connection", "unauthorized", "tls", "incorrectResponse"];
    matches!(why, OrderFailure::Other(_)) || kinds.iter().any(|kind| why.is(kind))
}

fn validity(pair: &CertificateKeyPair) -> UnixPeriod {
    UnixPeriod { start: pair.not_before(), end: pair.not_after() }
}

/// The identifier of a certificate at its authority (RFC 9773 4.1); `None` without an issuer's key.
fn identify(pair: &CertificateKeyPair) -> Option<CertificateIdentifier<'static>> {
    let (key, serial) = pair.issuer_key_and_serial()?;
    Some(CertificateIdentifier::new(key.into(), serial.into()))
}

pub(crate) fn random() -> u64 {
    HashSeed::random().hash(b"")
}
