//! `[site.includes]`: pages with instructions.

use policy::{EsiPages, Includes};
use toml::de::DeValue;

use crate::keys::TEXTS;
use crate::reader::{Reader, SettingValue};
use crate::rows::{self, put, section};

section! {
    pub(crate) INCLUDES, INCLUDES_ROWS: Includes; "[site.includes]",
    "Pages assembled from fragments (ESI, SSI). Larder requests a fragment as a client would: \
     with the site's routes, cache and origins, and the page's cookies and header fields. Each \
     fragment has its own lifetime.";
    "esi", "\"announced\", \"html\" or false", "\"announced\"", "Pages in which Larder processes Edge Side Includes (`<esi:include src=\"/cart\"/>`). `announced`: pages whose origin announces them (`Surrogate-Control: content=\"ESI/1.0\"`). `html`: also every HTML page. `false`: none. `Surrogate-Capability` tells origins that Larder supports ESI.",
        |r, item, to| put(&mut to.esi, esi(r, item));
    "ssi", boolean ssi, "false", "Whether Larder processes server-side includes in HTML pages, as nginx does (`<!--# include virtual=\"/cart\" -->`).";
    "hosts", TEXTS, "none", "Hosts of other sites of this configuration whose fragments a page may include. Larder sends them no cookies and no credentials. Larder never requests fragments from a server that is no site's origin.",
        |r, item, to| to.hosts = hosts(r, item);
    "cookies", TEXTS, "none", "Cookies that variables of a page may read (`$(HTTP_COOKIE{group})`, SSI's `$cookie_group`), unless the site's `cookies` remove them. Pages cannot read other cookies, whoever wrote the page.",
        |r, item, to| to.cookies = cookies(r, item);
    "on_error", "\"leave_out\" or \"break\"", "\"leave_out\"", "Effect of a missing fragment without `alt` and `onerror`. `leave_out`: the page continues without it. `break`: the page ends there, and its connection closes.",
        |r, item, to| put(&mut to.breaks, breaks(r, item));
}

pub(super) fn includes(r: &mut Reader, item: &SettingValue<'_>, to: &mut Includes) {
    rows::read_table(r, item, &INCLUDES, INCLUDES_ROWS, to);
}

fn esi(r: &mut Reader, item: &SettingValue<'_>) -> Option<EsiPages> {
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

fn breaks(r: &mut Reader, item: &SettingValue<'_>) -> Option<bool> {
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

fn cookies(r: &mut Reader, item: &SettingValue<'_>) -> Vec<Box<[u8]>> {
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

fn hosts(r: &mut Reader, item: &SettingValue<'_>) -> Vec<Box<[u8]>> {
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
