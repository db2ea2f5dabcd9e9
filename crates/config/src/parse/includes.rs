//! `[site.includes]`.

use policy::{EsiPages, Includes};
use toml::de::DeValue;

use crate::keys::TEXTS;
use crate::reader::{Item, Reader};
use crate::rows::{self, put, section};

section! {
    pub(crate) INCLUDES, INCLUDES_ROWS: Includes; "[site.includes]",
    "Pages that are put together of others. A fragment is asked for as a client would: it has \
     the routes, the cache and the origins of its site, the page's cookies and header \
     fields, and a lifetime of its own.";
    "esi", "\"announced\", \"html\" or false", "\"announced\"", "Pages that are read for Edge Side Includes (`<esi:include src=\"/cart\"/>`): those of which the origin says so (`Surrogate-Control: content=\"ESI/1.0\"`), also every page in HTML, or none. Origins are told that they may say so by `Surrogate-Capability`.",
        |r, item, to| put(&mut to.esi, esi(r, item));
    "ssi", boolean ssi, "false", "Whether pages in HTML have server-side includes as nginx reads them (`<!--# include virtual=\"/cart\" -->`).";
    "hosts", TEXTS, "none", "Hosts of other sites of this configuration that a page may name. Cookies and credentials are not sent there. A server that is no site's origin is never asked.",
        |r, item, to| to.hosts = hosts(r, item);
    "cookies", TEXTS, "none", "Names of cookies that variables of a page may tell (`$(HTTP_COOKIE{group})`, SSI's `$cookie_group`), as far as the site's `cookies` leave them. No page can read any other, whoever has written it.",
        |r, item, to| to.cookies = cookies(r, item);
    "on_error", "\"leave_out\" or \"break\"", "\"leave_out\"", "Where a fragment is missing that has no `alt` and no `onerror`: the page goes on without it, or ends there, its connection with it.",
        |r, item, to| put(&mut to.breaks, breaks(r, item));
}

pub(super) fn includes(r: &mut Reader, item: &Item<'_>, to: &mut Includes) {
    rows::read_table(r, item, &INCLUDES, INCLUDES_ROWS, to);
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
