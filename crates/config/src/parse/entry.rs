//! `basic_auth` and `forward_auth` of sites and routes.

use std::sync::Arc;

use policy::headers::FieldName;
use policy::rules::Settings;
use policy::{BasicAuth, ForwardAuth};
use toml::de::DeValue;

use super::places::note_places;
use super::site_origins::SiteOrigins;
use crate::keys;
use crate::reader::{Item, Reader, Table};

/// Changes `settings` as `table` says.
pub(super) fn read(
    r: &mut Reader,
    table: &Table<'_>,
    settings: &mut Settings,
    origins: &mut SiteOrigins<'_, '_>,
) {
    note_places(r, table, &["basic_auth", "forward_auth"], settings);
    if let Some(item) = table.item("basic_auth") {
        settings.basic_auth = is_on(&item).then(|| basic(r, &item, origins)).flatten();
    }
    if let Some(item) = table.item("forward_auth") {
        settings.forward_auth = is_on(&item).then(|| forward(r, &item, origins)).flatten();
    }
}

/// Says what a program would store for all although it is one user's.
pub(super) fn check_beside_vcl(r: &mut Reader, table: &Table<'_>, settings: &Settings) {
    let basic = settings.basic_auth.as_ref();
    let tells = basic.is_some_and(|basic| basic.forward || basic.user_field.is_some());
    let copies = settings.forward_auth.as_ref().is_some_and(|forward| !forward.copy.is_empty());
    for (name, is_told, keys) in
        [("basic_auth", tells, "`forward` and `user_field`"), ("forward_auth", copies, "`copy`")]
    {
        if let (Some(item), true) = (table.item(name), is_told) {
            r.error(item.span, format!("`{name}` tells the origin who asks, beside a VCL")).help =
                Some(format!("without {keys}: a program may store for all what is one user's"));
        }
    }
}

fn is_on(item: &Item<'_>) -> bool {
    !matches!(item.value, DeValue::Boolean(false))
}

fn basic(
    r: &mut Reader,
    item: &Item<'_>,
    origins: &mut SiteOrigins<'_, '_>,
) -> Option<Arc<BasicAuth>> {
    let table = r.table(item, &keys::BASIC_AUTH)?;
    let realm = table.item("realm").and_then(|item| realm(r, &item));
    let forward = table.item("forward").and_then(|item| r.boolean(&item)).unwrap_or(false);
    let user_field = table.item("user_field").and_then(|item| field(r, &item));
    let Some((file, place)) = super::tls::path_of(r, &table, "file") else {
        if table.item("file").is_none() {
            r.error(table.span, "`basic_auth` without `file`").help =
                Some("`htpasswd -B -c FILE USER` makes one".to_owned());
        }
        return None;
    };
    origins.note_users(file.clone(), place);
    let realm = realm.unwrap_or("restricted").into();
    Some(Arc::new(BasicAuth { file, realm, forward, user_field }))
}

/// Reads what stands in a quoted string of a field.
fn realm<'a>(r: &mut Reader, item: &Item<'a>) -> Option<&'a str> {
    let text = r.text(item)?;
    if text.chars().any(|c| c.is_control() || matches!(c, '"' | '\\')) {
        r.error(item.span.clone(), "a realm has no quotes, backslashes and control characters");
        return None;
    }
    Some(text)
}

fn forward(
    r: &mut Reader,
    item: &Item<'_>,
    origins: &mut SiteOrigins<'_, '_>,
) -> Option<Arc<ForwardAuth>> {
    let table = r.table(item, &keys::FORWARD_AUTH)?;
    let origin = table.item("origin").and_then(|item| origins.find_any(r, &item));
    let path = table.item("path").and_then(|item| target(r, &item));
    for name in ["origin", "path"] {
        if table.item(name).is_none() {
            r.error(table.span.clone(), format!("`forward_auth` without `{name}`"));
        }
    }
    let copy = table.item("copy").map(|item| fields(r, &item)).unwrap_or_default();
    let by = match table.item("by") {
        Some(item) => fields(r, &item),
        None => ["Cookie", "Authorization"].map(named).into_iter().flatten().collect(),
    };
    let keep_ms = table.item("keep").and_then(|item| r.duration(&item)).unwrap_or(0);
    let words = [("url", false), ("site", true)];
    let whole_site = table.item("keep_for").and_then(|item| r.word(&item, &words));
    let whole_site = whole_site.unwrap_or(false);
    Some(Arc::new(ForwardAuth { origin: origin?, path: path?, copy, keep_ms, whole_site, by }))
}

fn named(name: &str) -> Option<FieldName> {
    FieldName::parse(name).ok()
}

fn target(r: &mut Reader, item: &Item<'_>) -> Option<Box<str>> {
    let text = r.text(item)?;
    if !text.starts_with('/') || text.bytes().any(|byte| !byte.is_ascii_graphic() || byte == b'#') {
        r.error(item.span.clone(), format!("`{}` is no path", text.escape_debug())).help =
            Some("it begins with `/`, and has no spaces".to_owned());
        return None;
    }
    Some(text.into())
}

fn fields(r: &mut Reader, item: &Item<'_>) -> Vec<FieldName> {
    let texts = r.texts(item);
    texts.iter().filter_map(|(text, item)| r.check(item, FieldName::parse(text))).collect()
}

fn field(r: &mut Reader, item: &Item<'_>) -> Option<FieldName> {
    let text = r.text(item)?;
    r.check(item, FieldName::parse(text))
}
