//! `[site.redirect]` and `[site.respond]`: responses without an origin.

use message::Status;
use message::header::HeaderId;
use policy::Synthetic;
use policy::answer::{ConfiguredResponse, Redirect};
use policy::rules::Settings;

use super::headers::fields;
use crate::keys::COUNT;
use crate::page::SettingsPage;
use crate::reader::{Reader, SettingValue};
use crate::rows::{self, put, section};

section! {
    pub(crate) REDIRECT, REDIRECT_ROWS: RedirectDraft; "[site.redirect]",
    "A redirect. A string instead of a table sets `to`.";
    @needed("a redirect without `to`", "")
    "to", "a URL", "required", "Target URL, with `$host`, `$path`, `$query` (including the question mark), `$args` (without it), `$1` to `$9` for what the stars or groups of the route's `path` match, and `$$` for a dollar sign.",
        |r, item, to| to.to = r.string(item);
    "status", COUNT, "302", "Status of the redirect: 301, 302, 303, 307 or 308.",
        |r, item, to| put(&mut to.status, status(r, item, 301, 308));
}

section! {
    pub(crate) RESPOND, RESPOND_ROWS: Synthetic; "[site.respond]",
    "A fixed response.";
    "status", COUNT, "200", "Status of the response.",
        |r, item, to| put(&mut to.status, status(r, item, 200, 599));
    "headers", "a table of names and values", "none", "Header fields of the response. A body without Content-Type is plain text.",
        |r, item, to| {
            let fields = fields(r, item).into_iter();
            to.fields = fields.map(|(n, v)| (n.as_bytes().into(), v.as_bytes().into())).collect();
        };
    "body", "a string", "\"\"", "Body of the response.",
        |r, item, to| put(&mut to.body, r.text(item).map(str::as_bytes));
}

/// A redirect while it is read.
struct RedirectDraft {
    status: Status,
    to: Option<String>,
}

pub(super) fn redirect(r: &mut Reader, item: &SettingValue<'_>) -> Option<Redirect> {
    let mut target = RedirectDraft { status: Status::new(302).expect("three digits"), to: None };
    let mut place = item.clone();
    if item.value.is_str() {
        target.to = r.string(item);
    } else {
        let table = r.table(item, &REDIRECT)?;
        rows::read(r, &table, REDIRECT_ROWS, &mut target);
        place = table.item("to")?;
    }
    r.check(&place, Redirect::parse(target.status, &target.to?))
}

fn status(r: &mut Reader, item: &SettingValue<'_>, least: u64, most: u64) -> Option<Status> {
    r.count(item, least, most).and_then(|code| Status::new(code.try_into().ok()?))
}

/// Shows the response that is made here.
pub(super) fn show(page: &mut SettingsPage<'_>, settings: &Settings) {
    match &settings.answer {
        Some(ConfiguredResponse::Fixed(fixed)) => {
            page.line("answers", format!("{} with {} bytes", fixed.status, fixed.body.len()));
        }
        Some(ConfiguredResponse::Redirect(to)) if page.discreet => {
            page.line("answers", to.without_credentials());
        }
        Some(ConfiguredResponse::Redirect(redirect)) => page.line("answers", redirect),
        None => {}
    }
}

pub(super) fn respond(r: &mut Reader, item: &SettingValue<'_>) -> Option<Synthetic> {
    let (fields, body) = (Vec::new(), Vec::new());
    let mut answer = Synthetic { status: Status::OK, fields, body, close: false };
    rows::read_table(r, item, &RESPOND, RESPOND_ROWS, &mut answer);
    let status = answer.status;
    if status.has_no_body() && !answer.body.is_empty() {
        r.error(item.span.clone(), format!("a response of status {status} has no body"));
    }
    let typed = answer.fields.iter().any(|(name, _)| HeaderId::of(name) == HeaderId::ContentType);
    if !typed && !answer.body.is_empty() {
        answer.fields.push((b"Content-Type".to_vec(), b"text/plain; charset=utf-8".to_vec()));
    }
    Some(answer)
}
