//! The paths and methods of a `[[site.route]]`.

use message::Method;
use policy::pattern::PathPattern;
use policy::rules::{RouteRules, Settings};

use super::lists::patterns;
use super::settings::setting_keys;
use crate::keys::{Key, Section, TEXTS, keys};
use crate::reader::{Item, Reader, Span, Table};

pub(crate) const ROUTE: Section = Section {
    title: "[[site.route]]",
    about: "Other settings for some requests of a site. The first route that matches counts, in \
            the order of the file. A route has its site's settings and changes what it names: \
            `allow`, `deny` and single values replace, `ttl` and header changes replace by status \
            and name, other lists add.",
    keys: || [scope(), setting_keys()].concat(),
    later: &[("vcl", "a VCL is a whole site's: see `[[site]]`")],
    ..Section::EMPTY
};

/// The keys that say what a route is for.
pub(super) fn scope() -> Vec<Key> {
    keys! {
        "path", TEXTS, "every path", "`/exact`, `/prefix/*`, `*.suffix`, a glob (`*` and `?` within a segment, `**` across), or `~ regex` (`~*` for any case). Matched against the path without percent-encoding and dot segments.";
        "method", TEXTS, "every method", "Methods, in capitals.";
        "name", "a string", "its path", "What logs and `larder explain` call it.";
    }
}

/// The route of `table`, and the place of its `path` or `method`.
pub(super) fn route(r: &mut Reader, table: &Table<'_>, settings: Settings) -> (RouteRules, Span) {
    let (path, method) = (table.item("path"), table.item("method"));
    let paths = path.as_ref().map(|item| patterns(r, item)).unwrap_or_default();
    let methods = method.as_ref().map(|item| methods(r, item)).unwrap_or_default();
    for item in [&path, &method].into_iter().flatten().filter(|item| item.each().is_empty()) {
        r.error(item.span.clone(), format!("`{}` is an empty list", item.name));
    }
    let span = path.or(method).map(|item| item.span).unwrap_or_else(|| {
        r.error(table.span.clone(), "a route without `path` or `method`").help =
            Some("what is for every request of the site stands in [[site]] itself".to_owned());
        table.span.clone()
    });
    let name = table.item("name").and_then(|item| r.text(&item)).map(str::to_owned);
    let own = || paths.first().map(PathPattern::to_string);
    let name = name.or_else(own).or_else(|| methods.first().map(Method::to_string));
    let mut settings = settings;
    settings.places.note("route", r.place(&span));
    (RouteRules { name: name.unwrap_or_default(), paths, methods, settings }, span)
}

fn methods(r: &mut Reader, item: &Item<'_>) -> Vec<Method> {
    let texts = r.texts(item);
    texts.iter().filter_map(|(text, item)| method(r, text, item)).collect()
}

fn method(r: &mut Reader, text: &str, item: &Item<'_>) -> Option<Method> {
    if !message::header::is_token(text.as_bytes()) {
        r.error(item.span.clone(), format!("`{text}` is not a method"));
        return None;
    }
    match Method::from_token(text.as_bytes()) {
        Method::Purge | Method::Ban | Method::Connect | Method::Trace => {
            r.error(
                item.span.clone(),
                format!("{text} requests are refused before routes are looked at"),
            );
            None
        }
        Method::Other(_) if text.bytes().any(|b| b.is_ascii_lowercase()) => {
            let capitals = text.to_ascii_uppercase();
            r.error(item.span.clone(), format!("methods are case-sensitive: `{text}`")).help =
                Some(format!("did you mean `{capitals}`?"));
            None
        }
        method => Some(method),
    }
}
