//! Authentication: `basic_auth` and `forward_auth` of sites and routes.

use std::path::PathBuf;
use std::sync::Arc;

use policy::headers::FieldName;
use policy::rules::Settings;
use policy::{BasicAuth, ForwardAuth};

use super::lists::field_names;
use super::origins::find;
use crate::keys::TEXTS;
use crate::page::SettingsPage;
use crate::reader::{Reader, SettingValue, TomlTable};
use crate::rows::{self, put, section};

section! {
    pub(crate) BASIC_AUTH, BASIC_AUTH_ROWS: BasicAuth; "[site.basic_auth]",
    "Passwords (RFC 7617), checked before all other rules of the site; also in a route, where \
     `false` gives everybody access. Larder remembers a right password for the time \
     `password_keep` (in `[limits]`), so that hits stay fast.";
    @needed("`basic_auth` without `file`", "`htpasswd -B -c FILE USER` makes one")
    "file", "an absolute path", "required", "File of users, one per line, as `htpasswd -B` writes them: bcrypt, apr1 or SHA-1. Read at the start and at each reload. Its maximum size is the limit `users_bytes`.",
        |r, item, to| put(&mut to.file, users(r, item));
    "realm", "a string", "\"restricted\"", "Realm that clients show when they ask for the password.",
        |r, item, to| put(&mut to.realm, realm(r, item));
    "forward", boolean forward, "false", "Whether the site's origin also gets the password. Its responses are then for one user alone.";
    "user_field", "a field name", "none", "Request field that tells the origin the user's name, such as `Remote-User`. Larder removes the client's own field. Responses are then for one user alone, unless `[site.cache] key_headers` contains the field.",
        |r, item, to| to.user_field = field(r, item);
}

section! {
    pub(crate) FORWARD_AUTH, FORWARD_AUTH_ROWS: ForwardAuth; "[site.forward_auth]",
    "An authentication server that decides about each request, like nginx's `auth_request` and \
     the `forward_auth` of Caddy and Traefik. Also in a route, where `false` gives everybody \
     access. The server gets a GET with the client's fields and X-Forwarded-Method, -Proto, \
     -Host, -Uri and -For. A 2xx admits the request; the client gets any other answer. If the \
     server cannot be asked, requests get 502, 503 or 504.";
    @needed("`forward_auth` without `origin`", "")
    "origin", "the name of an origin, or a URL", "required", "The authentication server.",
        |r, item, to| put(&mut to.origin, find_server(r, item));
    @needed("`forward_auth` without `path`", "")
    "path", "a path", "required", "Path that Larder requests from the server, such as `/verify`.",
        |r, item, to| put(&mut to.path, target(r, item));
    "copy", TEXTS, "none", "Fields of the server's answer that the site's origin gets with the request, such as `Remote-User`. Larder removes the client's own fields of these names. Responses are then for one user alone, unless `[site.cache] key_headers` contains all of them. Not available beside a VCL that decides alone.",
        |r, item, to| to.copy = field_names(r, item);
    "keep", duration keep_ms, "\"0s\"", "Time for which each core remembers that a request was admitted. `0s`: Larder asks the server about every request, also about hits.";
    "keep_for", "\"url\" or \"site\"", "\"url\"", "Scope of a remembered admission. `url`: the same URL and method. `site`: the whole site or route.",
        |r, item, to| put(&mut to.whole_site, r.word(item, &[("url", false), ("site", true)]));
    "by", TEXTS, "[\"Cookie\", \"Authorization\"]", "Request fields that must have the same values for a remembered admission to apply. Name all fields on which the server bases its decision. The client's address must always be the same.",
        |r, item, to| to.by = field_names(r, item);
}

/// Warns where a program may store one user's response for all.
pub(super) fn check_beside_vcl(r: &mut Reader, table: &TomlTable<'_>, settings: &Settings) {
    let basic = settings.basic_auth.as_ref();
    let tells = basic.is_some_and(|basic| basic.forward || basic.user_field.is_some());
    let copies = settings.forward_auth.as_ref().is_some_and(|forward| !forward.copy.is_empty());
    for (name, is_told, keys) in
        [("basic_auth", tells, "`forward` and `user_field`"), ("forward_auth", copies, "`copy`")]
    {
        if let (Some(item), true) = (table.item(name), is_told) {
            r.error(item.span, format!("`{name}` forwards the user, beside a VCL")).help =
                Some(format!("leave out {keys}: a program may store one user's response for all"));
        }
    }
}

/// Reads users with passwords; `None` for `false`.
pub(super) fn basic(r: &mut Reader, item: &SettingValue<'_>) -> Option<Arc<BasicAuth>> {
    if item.is_off() {
        return None;
    }
    let (file, realm) = (PathBuf::new(), "restricted".into());
    let mut basic = BasicAuth { file, realm, forward: false, user_field: None };
    let is_good = rows::read_table(r, item, &BASIC_AUTH, BASIC_AUTH_ROWS, &mut basic);
    is_good.then(|| Arc::new(basic))
}

fn users(r: &mut Reader, item: &SettingValue<'_>) -> Option<PathBuf> {
    let file = r.path(item)?;
    r.origins.site.users.push(file.clone());
    Some(file.path)
}

/// Reads the realm, for a quoted string of a field.
fn realm<'a>(r: &mut Reader, item: &SettingValue<'a>) -> Option<&'a str> {
    let text = r.text(item)?;
    if text.chars().any(|c| c.is_control() || matches!(c, '"' | '\\')) {
        r.error(item.span.clone(), "a realm has no quotes, backslashes and control characters");
        return None;
    }
    Some(text)
}

/// Reads the server to ask; `None` for `false`.
pub(super) fn forward(r: &mut Reader, item: &SettingValue<'_>) -> Option<Arc<ForwardAuth>> {
    if item.is_off() {
        return None;
    }
    let mut forward = ForwardAuth {
        origin: 0,
        path: Box::default(),
        copy: Vec::new(),
        keep_ms: 0,
        whole_site: false,
        by: ["Cookie", "Authorization"].map(named).into_iter().flatten().collect(),
    };
    let is_good = rows::read_table(r, item, &FORWARD_AUTH, FORWARD_AUTH_ROWS, &mut forward);
    is_good.then(|| Arc::new(forward))
}

pub(super) fn show_forward(page: &mut SettingsPage<'_>, settings: &Settings) {
    let Some(forward) = &settings.forward_auth else { return };
    let origin = page.config.origins.get(forward.origin).map_or("", |origin| &*origin.name);
    page.line("authentication", format!("{origin}{}", forward.shown_path()));
}

/// The index among all origins of the server to ask; the site need not use it otherwise.
fn find_server(r: &mut Reader, item: &SettingValue<'_>) -> Option<usize> {
    let index = find(r, item)?;
    if r.origins.known.get(index).is_some_and(|known| known.config.scripts.is_some()) {
        r.error(item.span.clone(), "a FastCGI server answers no questions over HTTP");
        return None;
    }
    Some(index)
}

fn named(name: &str) -> Option<FieldName> {
    FieldName::parse(name).ok()
}

fn target(r: &mut Reader, item: &SettingValue<'_>) -> Option<Box<str>> {
    let text = r.text(item)?;
    if !text.starts_with('/') || text.bytes().any(|byte| !byte.is_ascii_graphic() || byte == b'#') {
        r.error(item.span.clone(), format!("`{}` is no path", text.escape_debug())).help =
            Some("it begins with `/`, and has no spaces".to_owned());
        return None;
    }
    Some(text.into())
}

fn field(r: &mut Reader, item: &SettingValue<'_>) -> Option<FieldName> {
    let text = r.text(item)?;
    r.check(item, FieldName::parse(text))
}
