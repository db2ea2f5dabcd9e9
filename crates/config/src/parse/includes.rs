//! `[site.includes]`.

use policy::{EsiPages, Includes};
use toml::de::DeValue;

use crate::keys;
use crate::reader::{Item, Reader, Table};

/// Reads which pages of a site are put together of others; `of_presets` holds where it says
/// nothing.
pub(super) fn site(r: &mut Reader, site: &Table<'_>, of_presets: Includes) -> Includes {
    let Some(table) = site.item("includes").and_then(|item| r.table(&item, &keys::INCLUDES)) else {
        return of_presets;
    };
    let esi = table.item("esi").and_then(|item| esi(r, &item));
    let ssi = table.item("ssi").and_then(|item| r.boolean(&item));
    let breaks = table.item("on_error").and_then(|item| breaks(r, &item));
    let hosts = table.item("hosts").map(|item| hosts(r, &item));
    let cookies = table.item("cookies").map(|item| cookies(r, &item));
    Includes {
        esi: esi.unwrap_or(of_presets.esi),
        ssi: ssi.unwrap_or(of_presets.ssi),
        hosts: hosts.unwrap_or(of_presets.hosts),
        breaks: breaks.unwrap_or(of_presets.breaks),
        cookies: cookies.unwrap_or(of_presets.cookies),
    }
}

fn esi(r: &mut Reader, item: &Item<'_>) -> Option<EsiPages> {
    if matches!(item.value, DeValue::Boolean(false)) {
        return Some(EsiPages::Never);
    }
    match r.text(item)? {
        "announced" => Some(EsiPages::Announced),
        "html" => Some(EsiPages::Html),
        other => {
            r.error(item.span.clone(), format!("`{other}` names no pages")).help =
                Some("write \"announced\", \"html\" or false".to_owned());
            None
        }
    }
}

fn breaks(r: &mut Reader, item: &Item<'_>) -> Option<bool> {
    match r.text(item)? {
        "leave_out" => Some(false),
        "break" => Some(true),
        other => {
            r.error(item.span.clone(), format!("`{other}` is nothing that a page can do")).help =
                Some("write \"leave_out\" or \"break\"".to_owned());
            None
        }
    }
}

fn cookies(r: &mut Reader, item: &Item<'_>) -> Vec<Box<[u8]>> {
    let mut names = Vec::new();
    for (text, item) in r.texts(item) {
        // A token (RFC 6265 4.1.1).
        if message::header::is_token(text.as_bytes()) {
            names.push(text.as_bytes().into());
        } else {
            r.error(item.span, format!("`{text}` is not the name of a cookie")).help =
                Some("write each name as the application sets it, such as \"group\"".to_owned());
        }
    }
    names
}

fn hosts(r: &mut Reader, item: &Item<'_>) -> Vec<Box<[u8]>> {
    let mut hosts = Vec::new();
    for (text, item) in r.texts(item) {
        match policy::hosts::canonical(text).filter(|host| !host.contains('*')) {
            Some(host) => hosts.push(host.into_bytes().into()),
            None => {
                r.error(item.span, format!("`{text}` is not a host name")).help =
                    Some("write the host of one of the sites, such as \"shop.example\"".to_owned());
            }
        }
    }
    hosts
}
