//! `[site.redirect]` and `[site.respond]`: responses without an origin.

use std::path::PathBuf;

use message::Status;
use message::header::HeaderId;
use policy::answer::{ConfiguredResponse, Redirect};
use policy::rules::Settings;
use policy::{RedirectFile, Synthetic};

use super::headers::fields;
use crate::keys::COUNT;
use crate::page::SettingsPage;
use crate::reader::{Reader, SettingValue, TomlTable};
use crate::rows::{self, put, section};

section! {
    pub(crate) REDIRECT, REDIRECT_ROWS: RedirectDraft; "[site.redirect]",
    "A redirect. A string instead of a table sets `to`. In a route, `false` drops the file of \
     redirects of its site.";
    "to", "a URL", "none; required without `map`", "Target URL, with `$host`, `$path`, `$query` (including the question mark), `$args` (without it), `$1` to `$9` for what the stars or groups of the route's `path` match, and `$$` for a dollar sign. With `map`, for requests that no line is for.",
        |r, item, to| to.to = r.string(item);
    "map", "an absolute path", "none", "File of redirects, one per line: an old path, with or without a query, a new URL, and optionally a status. `#` begins a comment. Requests that no line is for go on as if there were no redirect. Read at the start and at each reload. Its maximum size is the limit `redirect_map_bytes`.",
        |r, item, to| to.map = map(r, item);
    "status", COUNT, "302", "Status of the redirect: 301, 302, 303, 307 or 308. With `map`, of lines without a status.",
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
    map: Option<PathBuf>,
}

/// Reads a redirect, which replaces the one so far.
pub(super) fn redirect(r: &mut Reader, item: &SettingValue<'_>, settings: &mut Settings) {
    settings.redirects = None;
    if item.is_off() {
        return;
    }
    let status = Status::new(302).expect("three digits");
    let mut target = RedirectDraft { status, to: None, map: None };
    let mut place = item.clone();
    if item.value.is_str() {
        target.to = r.string(item);
    } else {
        let Some(table) = r.table(item, &REDIRECT) else { return };
        rows::read(r, &table, REDIRECT_ROWS, &mut target);
        if table.item("to").is_none() && table.item("map").is_none() {
            r.error(item.span.clone(), "a redirect without `to` or `map`");
        }
        place = table.item("to").or_else(|| table.item("status")).unwrap_or(place);
    }
    if let Some(to) = &target.to {
        let redirect = r.check(&place, Redirect::parse(target.status, to));
        settings.answer = redirect.map(ConfiguredResponse::Redirect);
    } else if target.map.is_some() {
        // The status alone.
        r.check(&place, Redirect::parse(target.status, "/"));
    }
    settings.redirects = target.map.map(|path| RedirectFile { path, status: target.status });
}

fn map(r: &mut Reader, item: &SettingValue<'_>) -> Option<PathBuf> {
    let file = r.path(item)?;
    r.origins.site.redirect_maps.push(file.clone());
    Some(file.path)
}

/// Returns true if the settings of `table` answer every request.
pub(super) fn answers_all(table: &TomlTable<'_>) -> bool {
    table.item("respond").is_some() || redirects_all(table).is_some()
}

/// The redirect of `table`, if it is one for every request.
pub(super) fn redirects_all<'a>(table: &TomlTable<'a>) -> Option<SettingValue<'a>> {
    let redirect = table.known("redirect").filter(|redirect| !redirect.is_off())?;
    let is_map = redirect.key("map").is_some() && redirect.key("to").is_none();
    (!is_map).then_some(redirect)
}

fn status(r: &mut Reader, item: &SettingValue<'_>, least: u64, most: u64) -> Option<Status> {
    r.count(item, least, most).and_then(|code| Status::new(code.try_into().ok()?))
}

/// Shows the response that is made here.
pub(super) fn show(page: &mut SettingsPage<'_>, settings: &Settings) {
    page.list("redirects", settings.redirects.iter().map(|own| own.path.display()));
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
