//! `[site.redirect]` and `[site.respond]`.

use message::Status;
use message::header::HeaderId;
use policy::Synthetic;
use policy::answer::Redirect;

use super::headers::fields;
use crate::keys::{COUNT, Section, keys};
use crate::reader::{Item, Reader};

pub(crate) const REDIRECT: Section = Section {
    title: "[site.redirect]",
    about: "A redirect. A string alone is its `to`.",
    keys: || {
        keys! {
            "to", "a URL", "required", "Where to, with `$host`, `$path`, `$query` (question mark included) and `$$` for a dollar sign.";
            "status", COUNT, "302", "301, 302, 303, 307 or 308.";
        }
    },
    ..Section::EMPTY
};

pub(crate) const RESPOND: Section = Section {
    title: "[site.respond]",
    about: "A fixed response.",
    keys: || {
        keys! {
            "status", COUNT, "200", "Its status.";
            "headers", "a table of names and values", "none", "Its fields; with a body and no Content-Type it is plain text.";
            "body", "a string", "\"\"", "Its body.";
        }
    },
    ..Section::EMPTY
};

pub(super) fn redirect(r: &mut Reader, item: &Item<'_>) -> Option<Redirect> {
    let found = Status::new(302).expect("three digits");
    if item.value.is_str() {
        let target = r.text(item)?;
        return r.check(item, Redirect::parse(found, target));
    }
    let table = r.table(item, &REDIRECT)?;
    let status = match table.item("status") {
        Some(item) => status(r, &item, 301, 308),
        None => Some(found),
    };
    let Some(to) = table.item("to") else {
        r.error(item.span.clone(), "a redirect without `to`");
        return None;
    };
    let target = r.text(&to)?;
    let redirect = r.check(&to, Redirect::parse(status.unwrap_or(found), target));
    status.and(redirect)
}

fn status(r: &mut Reader, item: &Item<'_>, least: u64, most: u64) -> Option<Status> {
    r.count(item, least, most).and_then(|code| Status::new(code.try_into().ok()?))
}

pub(super) fn respond(r: &mut Reader, item: &Item<'_>) -> Option<Synthetic> {
    let table = r.table(item, &RESPOND)?;
    let status = match table.item("status") {
        Some(item) => status(r, &item, 200, 599).unwrap_or(Status::OK),
        None => Status::OK,
    };
    let body = table.item("body").and_then(|item| r.text(&item)).unwrap_or_default();
    if status.has_no_body() && !body.is_empty() {
        r.error(item.span.clone(), format!("a response of status {status} has no body"));
    }
    let headers = table.item("headers").map(|item| fields(r, &item)).unwrap_or_default();
    let mut fields: Vec<(Vec<u8>, Vec<u8>)> = headers
        .iter()
        .map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec()))
        .collect();
    let typed = fields.iter().any(|(name, _)| HeaderId::of(name) == HeaderId::ContentType);
    if !typed && !body.is_empty() {
        fields.push((b"Content-Type".to_vec(), b"text/plain; charset=utf-8".to_vec()));
    }
    Some(Synthetic { status, fields, body: body.as_bytes().to_vec(), close: false })
}
