//! `rewrite`, `strip_prefix` and `add_prefix`: the URL that an origin is asked for.

use policy::answer::ConfiguredResponse;
use policy::pattern::PathPattern;
use policy::rewrite::Rewrite;
use policy::rules::{RouteRules, Settings};

use crate::reader::{Reader, SettingValue, TextRange};

/// The whole URL.
pub(super) fn whole(r: &mut Reader, item: &SettingValue<'_>) -> Option<Rewrite> {
    let text = r.text(item)?;
    r.check(item, Rewrite::parse(text))
}

/// The prefix that goes.
pub(super) fn strip(r: &mut Reader, item: &SettingValue<'_>, to: &mut Option<Rewrite>) {
    if let Some(strip) = prefix(r, item) {
        *to = of(strip, prefixes(to).1);
    }
}

/// The prefix that comes.
pub(super) fn add(r: &mut Reader, item: &SettingValue<'_>, to: &mut Option<Rewrite>) {
    if let Some(add) = prefix(r, item) {
        *to = of(prefixes(to).0, add);
    }
}

/// A prefix; empty for none.
fn prefix(r: &mut Reader, item: &SettingValue<'_>) -> Option<Box<str>> {
    if item.is_off() {
        return Some(Box::default());
    }
    let text = r.text(item)?;
    r.check(item, Rewrite::prefix(text))
}

/// The prefixes so far: the one that goes, and the one that comes.
fn prefixes(rewrite: &Option<Rewrite>) -> (Box<str>, Box<str>) {
    match rewrite {
        Some(Rewrite::Prefix { strip, add }) => (strip.clone(), add.clone()),
        Some(Rewrite::To(_)) | None => (Box::default(), Box::default()),
    }
}

fn of(strip: Box<str>, add: Box<str>) -> Option<Rewrite> {
    (!strip.is_empty() || !add.is_empty()).then_some(Rewrite::Prefix { strip, add })
}

/// The highest capture that settings name, by their keys.
fn needed(settings: &Settings) -> [(&'static str, usize); 4] {
    let rewrite = settings.rewrite.as_ref().map_or(0, Rewrite::captures);
    let redirect = match &settings.answer {
        Some(ConfiguredResponse::Redirect(redirect)) => redirect.captures(),
        Some(ConfiguredResponse::Fixed(_)) | None => 0,
    };
    let responses = settings.response_captures();
    let requests = settings.request_headers.captures();
    [
        ("rewrite", rewrite),
        ("redirect", redirect),
        ("request_headers", requests),
        ("response_headers", responses),
    ]
}

/// Says which settings of a site name a capture: a site has no path.
pub(super) fn check_site(r: &mut Reader, settings: &Settings, span: &TextRange) {
    for (key, needed) in needed(settings) {
        if needed > 0 {
            let message = format!("`{key}` has `${needed}`, and a site has no `path`");
            r.error(span.clone(), message).help = Some("write it in a [[site.route]]".to_owned());
        }
    }
}

/// Says which settings of a route name a capture that not all of its paths have.
pub(super) fn check_route(r: &mut Reader, route: &RouteRules, span: &TextRange) {
    let least = route.scope.paths.iter().map(PathPattern::groups).min().unwrap_or(0);
    for (key, needed) in needed(&route.settings) {
        if needed > least {
            let message = format!("`{key}` of `{}` has `${needed}`", route.name);
            r.error(span.clone(), message).help = Some(format!(
                "`path` has {least} of the stars or groups `( )` that `$1` and so on stand for"
            ));
        }
    }
}
