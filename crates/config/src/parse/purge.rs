//! `[site.purge]`, and `[purge]` of presets: who may purge, and in which dialects.

use policy::acl::{CidrSet, Net, parse_net};
use policy::{Dialect, Dialects, Purge};
use toml::de::DeValue;

use super::lists::nets;
use crate::keys::{Section, TEXTS};
use crate::reader::{Reader, SettingValue};
use crate::rows::{self, section};
use crate::suggestions;

/// This machine.
const HERE: [&str; 3] = ["127.0.0.0/8", "::1", "unix:"];

section! {
    pub(crate) PURGE, PURGE_ROWS: Purge; "[site.purge]",
    "Purges over the site's own listeners, from applications and their plugins. Purges without \
     permission get 403.";
    "allow", TEXTS, "`[\"127.0.0.0/8\", \"::1\", \"unix:\"]`; with a token from anywhere", "Addresses or networks that may purge; `unix:` for clients of a unix socket. 127.0.0.1 or ::1 also permits this machine under its own public address. If `token` is set, both address and token must match. A request that a proxy outside `trusted_proxies` passed on matches no address.",
        |r, item, to| {
            if item.each().is_empty() {
                r.error(item.span.clone(), "`allow` names no one").help =
                    Some("`purge = false` lets no one purge".to_owned());
            }
            to.allow = CidrSet::new(&nets(r, item));
        };
    #Secret "token", "a string", "none", "Token that a purge must carry, in `Authorization: Bearer`, `X-Purge-Token`, `X-Purge-Key` or `Fastly-Key`.",
        |r, item, to| to.token = token(r, item);
    "dialects", TEXTS, "the presets', or \"purge\"", "Forms of purge requests that the site accepts: `purge`, `nginx-helper`, `magento`, `drupal`, `foshttpcache`, `shopware`, `souin`, `fastly`, `squid`, `api-platform`, `typo3`, `plone`. The guide on purging explains each.",
        |r, item, to| to.dialects = named(r, item, Dialects::default());
    "group", "a string", "none", "Name of a group of sites. A purge by tag or expression, or of everything, applies to all sites of the group, as far as each accepts it.",
        |r, item, to| to.group = group(r, item);
}

/// `[purge]` of a preset.
pub(crate) const PRESET_PURGE: Section = Section {
    title: "[purge]",
    keys: || {
        let mut keys = (PURGE.keys)();
        keys.retain(|key| key.name == "dialects");
        keys
    },
    ..Section::EMPTY
};

/// Reads who may purge a site, with the presets' `dialects`.
pub(super) fn site(r: &mut Reader, item: &SettingValue<'_>, preset: Dialects) -> Option<Purge> {
    if let DeValue::Boolean(on) = item.value {
        if *on {
            r.wrong_type(item);
        }
        return None;
    }
    let table = r.table(item, &PURGE)?;
    let dialects = match preset.is_empty() {
        true => Dialects::default().with(Dialect::Purge),
        false => preset,
    };
    // With a token, from any address.
    let allow = if table.item("token").is_some() { Vec::new() } else { here() };
    let mut purge = Purge { allow: CidrSet::new(&allow), token: None, dialects, group: None };
    rows::read(r, &table, PURGE_ROWS, &mut purge);
    Some(purge)
}

/// Returns true if HTCP may purge a site: not with `purge = false`, nor if a token is required,
/// which HTCP cannot carry.
pub(super) fn by_htcp(item: &SettingValue<'_>, purge: Option<&Purge>) -> bool {
    !item.is_off() && purge.is_none_or(|purge| purge.token.is_none())
}

/// The purge rules of a site that has only presets: its applications may purge from this machine.
pub(crate) fn of_presets(dialects: Dialects) -> Option<Purge> {
    let allow = CidrSet::new(&here());
    (!dialects.is_empty()).then_some(Purge { allow, token: None, dialects, group: None })
}

/// Adds a preset's `[purge]` to `dialects`.
pub(super) fn dialects(r: &mut Reader, item: &SettingValue<'_>, dialects: Dialects) -> Dialects {
    let item = r.table(item, &PRESET_PURGE).and_then(|table| table.item("dialects"));
    item.map_or(dialects, |item| named(r, &item, dialects))
}

fn group(r: &mut Reader, item: &SettingValue<'_>) -> Option<Box<str>> {
    let text = r.text(item)?;
    if text.is_empty() {
        r.error(item.span.clone(), "a group has a name").help =
            Some("sites with the same one are purged together".to_owned());
        return None;
    }
    Some(text.into())
}

fn here() -> Vec<Net> {
    HERE.iter().filter_map(|text| parse_net(text).ok()).collect()
}

fn named(r: &mut Reader, item: &SettingValue<'_>, mut dialects: Dialects) -> Dialects {
    for (text, item) in r.texts(item) {
        match Dialect::named(text) {
            Some(dialect) => dialects = dialects.with(dialect),
            None => {
                let names = Dialect::ALL.iter().map(|(_, name, _)| *name);
                let help = match suggestions::closest(text, names.clone()) {
                    Some(close) => format!("did you mean \"{close}\"?"),
                    None => format!("dialects are {}", names.collect::<Vec<_>>().join(", ")),
                };
                r.error(item.span, format!("no dialect is called `{text}`")).help = Some(help);
            }
        }
    }
    dialects
}

/// Reads a token: a short one could be guessed, and it must consist of bytes that a field can
/// carry.
fn token(r: &mut Reader, item: &SettingValue<'_>) -> Option<Box<str>> {
    const LEAST: usize = 16;
    let text = r.text(item)?;
    if text.len() < LEAST || !text.bytes().all(|b| b.is_ascii_graphic()) {
        r.error(item.span.clone(), "not a token that is safe and can be sent").help = Some(
            format!("write {LEAST} or more visible ASCII characters, such as a random number"),
        );
        return None;
    }
    Some(text.into())
}
