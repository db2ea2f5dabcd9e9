//! `error_pages`: files that replace the built-in error pages, and with `intercept_errors` also
//! errors of origins.
//!
//! Their content is not read here.

use message::Status;
use message::store::StatusMatch;

use super::cache::statuses;
use crate::model::{PageFile, PlacedPath};
use crate::reader::{Reader, SettingValue, TomlTable};

/// The pages of a site, each for one status.
pub(super) fn of_site(r: &mut Reader, item: &SettingValue<'_>) -> Vec<PageFile> {
    let mut pages: Vec<PageFile> = Vec::new();
    for (name, span, item) in r.pairs(item) {
        let Some(status) = error_status(name) else {
            let told = format!("`{}` is not the status of an error", name.escape_debug());
            r.error(span, told).help = Some("write a number from 400 to 599".to_owned());
            continue;
        };
        if let Some(PlacedPath { path, place }) = r.path(&item) {
            pages.push(PageFile { status, path, place });
        }
    }
    pages
}

/// The statuses of origins' errors that the pages replace.
pub(super) fn intercepted(r: &mut Reader, item: &SettingValue<'_>) -> Vec<StatusMatch> {
    if let Some(all) = item.value.as_bool() {
        return if all { [4, 5].map(StatusMatch::Class).into() } else { Vec::new() };
    }
    let found = statuses(r, item);
    let is_error = |of: &StatusMatch| match of {
        StatusMatch::Exact(status) => status.code() >= 400,
        StatusMatch::Class(class) => *class >= 4,
        StatusMatch::Any => false,
    };
    if let Some(other) = found.iter().find(|of| !is_error(of)) {
        r.error(item.span.clone(), format!("`{other}` is not the status of an error")).help =
            Some("write a number from 400 to 599, 4xx, or 5xx".to_owned());
    }
    found
}

/// Warns about statuses that `table`, a site or a route, has to be replaced and that have no page.
pub(super) fn check(
    r: &mut Reader,
    table: &TomlTable<'_>,
    intercepted: &[StatusMatch],
    pages: &[PageFile],
) {
    let Some(item) = table.known("intercept_errors") else { return };
    let has_page = |of: &StatusMatch| pages.iter().any(|page| of.matches(page.status));
    let without: Vec<_> = intercepted.iter().filter(|of| !has_page(of)).collect();
    let is_list = item.value.as_bool().is_none();
    if !without.is_empty() && (is_list || without.len() == intercepted.len()) {
        let names: Vec<_> = without.iter().map(ToString::to_string).collect();
        let message = format!("`intercept_errors` without a page for {}", names.join(", "));
        r.warning(item.span, message).help =
            Some("name the file of the page in the site's `error_pages`".to_owned());
    }
}

fn error_status(text: &str) -> Option<Status> {
    let digits = text.len() == 3 && text.bytes().all(|b| b.is_ascii_digit());
    let code = text.parse().ok().filter(|code| digits && (400..600).contains(code))?;
    Status::new(code)
}
