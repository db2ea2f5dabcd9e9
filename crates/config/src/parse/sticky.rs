//! `[origin.sticky]`: the cookie that brings a client back to the server that answered it before.

use std::fmt::Write as _;
use std::sync::Arc;

use message::header;
use policy::StickyCookie;
use policy::rules::SiteRules;

use crate::keys::BOOLEAN;
use crate::origin_table::{OriginEntry, Origins, StickyDraft};
use crate::reader::{Reader, SettingValue, TomlTable};
use crate::rows::{self, put, section};

section! {
    pub(crate) STICKY, STICKY_ROWS: StickyDraft; "[origin.sticky]",
    "A cookie that names the server that answered a client: its next requests go to that server, \
     while it is in use. Larder sets the cookie only on responses that are not stored, and removes \
     it from requests before the origin sees them. It does not make a request personal. A string \
     instead of a table sets `name`.";
    @needed("`sticky` without `name`", "write `sticky = \"srv\"`")
    "name", "a string", "required", "Name of the cookie.",
        |r, item, to| put(&mut to.name, name(r, item));
    "path", "a path", "\"/\"", "Attribute Path of the cookie.",
        |r, item, to| put(&mut to.path, attribute(r, item));
    "domain", "a host", "none", "Attribute Domain of the cookie, to have one cookie for several hosts.",
        |r, item, to| to.domain = attribute(r, item);
    "max_age", duration max_age_ms, "the browser's session", "Attribute Max-Age of the cookie.";
    "secure", BOOLEAN, "true over HTTPS", "Whether the cookie has the attribute Secure.",
        |r, item, to| to.secure = r.boolean(item);
    "same_site", "\"lax\", \"strict\" or \"none\"", "\"lax\"", "Attribute SameSite of the cookie. `none` needs `secure = true`.",
        |r, item, to| put(&mut to.same_site, r.word(item, &SAME_SITE));
}

/// The keywords of `same_site`.
const SAME_SITE: [(&str, &str); 3] = [("lax", "Lax"), ("strict", "Strict"), ("none", "None")];

/// Reads the cookie.
pub(super) fn sticky(r: &mut Reader, item: &SettingValue<'_>) -> Option<StickyDraft> {
    let mut draft = StickyDraft {
        name: String::new(),
        path: "/".to_owned(),
        domain: None,
        max_age_ms: None,
        secure: None,
        same_site: "Lax",
    };
    if item.value.is_str() {
        draft.name = name(r, item)?;
        return Some(draft);
    }
    if !rows::read_table(r, item, &STICKY, STICKY_ROWS, &mut draft) {
        return None;
    }
    if draft.same_site == "None" && draft.secure != Some(true) {
        r.error(item.span.clone(), "`same_site = \"none\"` without `secure = true`").help =
            Some("browsers refuse such a cookie".to_owned());
        return None;
    }
    Some(draft)
}

/// The value that stands for a server.
pub(super) fn id(r: &mut Reader, item: &SettingValue<'_>) -> Option<String> {
    word(r, item, "an `id` has at most 64 letters, digits, `-` and `_`")
}

fn name(r: &mut Reader, item: &SettingValue<'_>) -> Option<String> {
    word(r, item, "a cookie's name has at most 64 letters, digits, `-` and `_`")
}

fn word(r: &mut Reader, item: &SettingValue<'_>, message: &str) -> Option<String> {
    let text = r.text(item)?;
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if text.is_empty() || text.len() > 64 || !text.bytes().all(allowed) {
        r.error(item.span.clone(), message);
        return None;
    }
    Some(text.to_owned())
}

fn attribute(r: &mut Reader, item: &SettingValue<'_>) -> Option<String> {
    let text = r.text(item)?;
    let is_good = !text.is_empty() && header::is_value(text.as_bytes());
    if !is_good || text.contains([';', ',', ' ', '\t']) || !text.is_ascii() {
        r.error(item.span.clone(), format!("`{}` has no blanks, `;` or `,`", item.name));
        return None;
    }
    Some(text.to_owned())
}

/// Reports a cookie that cannot tell the servers of an origin apart.
pub(super) fn check(r: &mut Reader, table: &TomlTable<'_>, known: &OriginEntry) {
    let (Some(item), Some(_)) = (table.item("sticky"), &known.sticky) else { return };
    let ids = ids(known);
    let again = ids.iter().enumerate().find(|(at, id)| ids[..*at].contains(id));
    if let Some((_, id)) = again {
        r.error(item.span, format!("two servers have the `id` {id}")).help =
            Some("a server without `id` has its number in the list".to_owned());
    } else if ids.len() == 1 {
        r.warning(item.span, "`sticky` of an origin with one server does nothing");
    }
}

/// The values that stand for the servers.
fn ids(known: &OriginEntry) -> Vec<Box<str>> {
    let each = known.ids.iter().enumerate();
    each.map(|(at, id)| id.clone().unwrap_or_else(|| (at + 1).to_string()).into()).collect()
}

/// Gives the settings of a site, and of its routes, the cookies of their origins.
pub(super) fn apply(origins: &Origins, rules: &mut SiteRules) {
    let routes = rules.routes.iter_mut().map(|route| &mut route.settings);
    for settings in std::iter::once(&mut rules.settings).chain(routes) {
        let known = origins.of_site(settings.origin);
        settings.sticky = known.and_then(cookie).map(Arc::new);
    }
}

/// The cookie of an origin with several servers.
fn cookie(known: &OriginEntry) -> Option<StickyCookie> {
    let draft = known.sticky.as_ref().filter(|_| known.ids.len() > 1)?;
    let mut attributes = format!("; Path={}; SameSite={}", draft.path, draft.same_site);
    if let Some(domain) = &draft.domain {
        // Writing to a String cannot fail.
        _ = write!(attributes, "; Domain={domain}");
    }
    if let Some(ms) = draft.max_age_ms {
        _ = write!(attributes, "; Max-Age={}", ms / 1000);
    }
    Some(StickyCookie {
        name: draft.name.as_str().into(),
        servers: ids(known),
        attributes: attributes.into(),
        secure: draft.secure,
    })
}
