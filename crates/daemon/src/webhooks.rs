//! Webhooks: new findings of `verify` are sent to the operator's receiver, one after the other,
//! beside the cores.
//!
//! A receiver that fails must never hold more than a bounded queue, and its URL, which may have a
//! secret, is never logged.

use std::sync::Arc;
use std::time::Duration;

use acme::Webhook;
use base::{Counter, Counters};
use flow::FindingNotice;
use serde_json::{Value, json};

use crate::live::finding_row;
use crate::managed_origin::keep_running;
use crate::state::Daemon;

/// The wait before the second try; it doubles with every further one.
const WAIT_MS: u64 = 1_000;

/// Starts to send findings.
pub(crate) fn start(daemon: &Arc<Daemon>) {
    let (own, counters) = (Arc::clone(daemon), daemon.shared.counters.register());
    keep_running(&daemon.shared, move || run(Arc::clone(&own), Arc::clone(&counters)));
}

/// Sends findings for as long as the daemon runs. Without a receiver they are dropped.
async fn run(daemon: Arc<Daemon>, counters: Arc<Counters>) {
    loop {
        let notice = daemon.shared.notices.next().await;
        if let Some(hook) = daemon.webhook() {
            deliver(&daemon, &counters, &hook, &notice).await;
        }
    }
}

/// Sends one finding, with as many tries as the limits permit.
async fn deliver(daemon: &Daemon, counters: &Counters, hook: &Webhook, notice: &FindingNotice) {
    let message = message(notice).to_string();
    let limits = daemon.shared.live().limits.clone();
    let mut wait_ms = WAIT_MS;
    for left in (0..limits.webhook_tries).rev() {
        let failed = match hook.post(message.as_bytes(), limits.webhook_timeout).await {
            Ok(()) => return counters.inc(Counter::WebhooksSent),
            Err(failed) => failed,
        };
        failed.limit.into_iter().for_each(|limit| counters.limit(limit));
        if !failed.may_retry || left == 0 {
            let (receiver, why) = (hook.url.origin(), failed.why);
            base::tell!(Warn, "larder: webhook: {receiver} has not got a finding: {why}");
            break;
        }
        rt::time::sleep(Duration::from_millis(wait_ms)).await;
        wait_ms = wait_ms.saturating_mul(2);
    }
    counters.inc(Counter::WebhooksFailed);
}

/// The message about a finding.
fn message(FindingNotice { site, finding }: &FindingNotice) -> Value {
    let mut message = finding_row(finding);
    message["event"] = "page-differs".into();
    message["site"] = json!(**site);
    message
}
