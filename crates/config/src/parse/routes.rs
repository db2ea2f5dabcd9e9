//! The paths and methods of a `[[site.route]]`.

use message::Method;
use policy::pattern::PathPattern;
use policy::rules::{RouteRules, Settings};

use super::lists::patterns;
use super::settings::SETTINGS_ROWS;
use crate::keys::TEXTS;
use crate::reader::{Reader, SettingValue, TextRange, TomlTable};
use crate::rows::{self, section};

section! {
    pub(crate) ROUTE, pub(crate) SCOPE_ROWS: RouteRules, SETTINGS_ROWS; "[[site.route]]",
    @later("vcl", "a VCL is a whole site's: see `[[site]]`")
    "Settings for some requests of a site. The first matching route applies, in the order of the \
     file. A route inherits its site's settings and changes those that it sets. `allow`, `deny` \
     and single values replace the site's; `ttl` and header changes replace by status and name; \
     other lists add.";
    "path", TEXTS, "every path", "Paths of the route: `/exact`, `/prefix/*`, `*.suffix`, a glob, or `~ regex` (`~*` ignores case). In a glob, `*` and `?` stay within a segment, `**` crosses segments. Larder decodes percent-encoding and resolves dot segments before it compares.",
        |r, item, to| to.paths = patterns(r, item)
        => |page, route| page.list("path", &route.paths);
    "method", TEXTS, "every method", "Methods of the route, in capitals.",
        |r, item, to| to.methods = methods(r, item)
        => |page, route| page.list("method", &route.methods);
    "name", string name, "its path", "Name of the route in logs and in `larder explain`.";
}

/// Reads the route of `table`, and the location of its `path` or `method`.
pub(super) fn route(
    r: &mut Reader,
    table: &TomlTable<'_>,
    settings: Settings,
) -> (RouteRules, TextRange) {
    let (name, paths, methods) = (String::new(), Vec::new(), Vec::new());
    let mut route = RouteRules { name, paths, methods, settings };
    rows::read(r, table, SCOPE_ROWS, &mut route);
    let (path, method) = (table.item("path"), table.item("method"));
    for item in [&path, &method].into_iter().flatten().filter(|item| item.each().is_empty()) {
        r.error(item.span.clone(), format!("`{}` is an empty list", item.name));
    }
    let span = path.or(method).map(|item| item.span).unwrap_or_else(|| {
        r.error(table.span.clone(), "a route without `path` or `method`").help =
            Some("what is for every request of the site stands in [[site]] itself".to_owned());
        table.span.clone()
    });
    if table.item("name").is_none() {
        let own = route.paths.first().map(PathPattern::to_string);
        let own = own.or_else(|| route.methods.first().map(Method::to_string));
        route.name = own.unwrap_or_default();
    }
    route.settings.places.note("route", r.place(&span));
    (route, span)
}

fn methods(r: &mut Reader, item: &SettingValue<'_>) -> Vec<Method> {
    let texts = r.texts(item);
    texts.iter().filter_map(|(text, item)| method(r, text, item)).collect()
}

fn method(r: &mut Reader, text: &str, item: &SettingValue<'_>) -> Option<Method> {
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
