//! `error_pages`: files that replace the built-in error pages.
//!
//! Their content is not read here.

use message::Status;

use crate::model::{PageFile, PlacedPath};
use crate::reader::{Reader, SettingValue};

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

fn error_status(text: &str) -> Option<Status> {
    let digits = text.len() == 3 && text.bytes().all(|b| b.is_ascii_digit());
    let code = text.parse().ok().filter(|code| digits && (400..600).contains(code))?;
    Status::new(code)
}
