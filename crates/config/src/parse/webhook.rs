//! `[webhook]`: the receiver of findings.

use message::HttpsUrl;

use crate::model::{PlacedPath, WebhookConfig};
use crate::reader::{Reader, SettingValue};
use crate::rows::{self, section};

section! {
    pub(crate) WEBHOOK, WEBHOOK_ROWS: WebhookDraft; "[webhook]",
    "Receiver of findings. When `verify` (see `[site.cache]`) sees a page differ by visitor, \
     Larder sends it a message of JSON by POST: `event`, `site`, `url`, `route`, `cause` and \
     `unix_ms`. The limits `webhook_queue`, `webhook_timeout` and `webhook_tries` apply.";
    #Secret @needed("[webhook] needs `url`", "such as url = \"https://hooks.example.com/larder\"")
    "url", "a URL", "required", "URL of the receiver, with https, such as \"https://hooks.example.com/larder?key=...\". Larder shows no more of it than its host.",
        |r, item, to| to.url = url(r, item);
    "ca", path ca, "the system's", "PEM file with the authorities that verify the receiver's certificate.";
}

/// A `[webhook]` while it is read.
#[derive(Default)]
struct WebhookDraft {
    url: Option<HttpsUrl>,
    ca: Option<PlacedPath>,
}

pub(super) fn webhook(r: &mut Reader, item: &SettingValue<'_>) -> Option<WebhookConfig> {
    let table = r.table(item, &WEBHOOK)?;
    let mut draft = WebhookDraft::default();
    rows::read(r, &table, WEBHOOK_ROWS, &mut draft);
    let place = r.location(&table.item("url")?.span);
    Some(WebhookConfig { url: draft.url?, ca: draft.ca, place })
}

/// Reads a URL. The message does not show it: it may have a secret.
fn url(r: &mut Reader, item: &SettingValue<'_>) -> Option<HttpsUrl> {
    let read = HttpsUrl::parse(r.text(item)?.as_bytes()).ok();
    if read.is_none() {
        r.error(item.span.clone(), "`url` is no URL of a receiver").help =
            Some("`https://`, a host, and perhaps port, path and query".to_owned());
    }
    read
}
