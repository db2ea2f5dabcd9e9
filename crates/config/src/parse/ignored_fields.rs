//! `cache.ignore`: fields of responses that have no say in storing, and what may come of that.

use message::store::{IgnoredField, IgnoredFields};
use policy::rules::{Profile, Settings};

use crate::reader::{Reader, SettingValue, TomlTable};

/// Adds the fields of `item`; `false` drops those of the site.
pub(super) fn ignored(r: &mut Reader, item: &SettingValue<'_>, to: &mut IgnoredFields) {
    if item.is_off() {
        *to = IgnoredFields::default();
        return;
    }
    for (text, item) in r.texts(item) {
        let added = to.add(text);
        r.check(&item, added);
    }
}

/// Ways in which an ignored field may give one visitor's response to others: the fields, and what
/// happens without them.
const DANGERS: [(&[IgnoredField], &str); 3] = [
    (
        &[
            IgnoredField::CacheControl,
            IgnoredField::CdnCacheControl,
            IgnoredField::SurrogateControl,
            IgnoredField::AccelExpires,
        ],
        "responses that the origin marks `private` or `no-store` are stored for all visitors",
    ),
    (
        &[IgnoredField::SetCookie],
        "no visitor gets a cookie of a stored page, and a token in its forms is everybody's",
    ),
    (
        &[IgnoredField::Vary, IgnoredField::VaryAny],
        "one response is stored for visitors whom the origin tells apart",
    ),
];

/// Checks what `table`, a site or a route with these settings, has to ignore.
pub(super) fn check(r: &mut Reader, table: &TomlTable<'_>, settings: &Settings, profile: Profile) {
    let item = table.known("cache").and_then(|cache| cache.key("ignore"));
    let Some(item) = item.filter(|_| !settings.ignored.is_empty()) else { return };
    if profile == Profile::Rfc && settings.ignored.may_reveal() {
        let why = "`ignore` in the profile `rfc`, where cookies do not keep a visitor's pages from \
                   others";
        r.error(item.span, why).help = Some(
            "set `profile = \"safe\"` in the site, or ignore only `Expires`, `Pragma` and names in \
             Vary that are not a visitor's, such as `Vary: User-Agent`"
                .to_owned(),
        );
        return;
    }
    if !settings.cache {
        return;
    }
    // Who has a rule for what passes has thought of sessions.
    if settings.bypass.is_empty() && !settings.match_type {
        warn_of_dangers(r, &item, &settings.ignored);
    }
    let has_lifetime = [IgnoredField::CacheControl, IgnoredField::Expires];
    if settings.ttl.is_empty() && has_lifetime.iter().any(|own| settings.ignored.has(*own)) {
        let why = "`ignore` without `ttl`: responses without their own lifetime are rarely stored";
        r.warning(item.span, why).help = Some("add `ttl = \"10m\"` beside it".to_owned());
    }
}

fn warn_of_dangers(r: &mut Reader, item: &SettingValue<'_>, ignored: &IgnoredFields) {
    let mut dangers: Vec<(String, &str)> = Vec::new();
    for (fields, danger) in DANGERS {
        if let Some(field) = fields.iter().find(|field| ignored.has(**field)) {
            dangers.push((field.name().to_owned(), danger));
        }
    }
    if dangers.is_empty() && ignored.may_reveal() {
        let name = ignored.names().find(|name| name.starts_with("Vary: ")).unwrap_or_default();
        dangers.push((name, DANGERS[2].1));
    }
    for (name, danger) in dangers {
        r.warning(item.span.clone(), format!("without `{name}`, {danger}")).help = Some(
            "only requests with cookies or Authorization are kept apart: name the paths and cookies \
             of logins, forms and accounts in `bypass`, such as `bypass = { path = \"/account/*\", \
             cookie = \"session*\" }`"
                .to_owned(),
        );
    }
}
