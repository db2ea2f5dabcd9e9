//! The requests that a `[[site.route]]` is for.

use message::Method;
use policy::conditions::{Condition, RouteScope};
use policy::pattern::PathPattern;
use policy::rules::{RouteRules, Settings};

use super::conditions::{self, WHEN};
use super::lists::{methods, patterns};
use super::settings::SETTINGS_ROWS;
use crate::keys::{TABLE, TEXTS};
use crate::reader::{Reader, TextRange, TomlTable};
use crate::rows::{self, section};

section! {
    pub(crate) ROUTE, pub(crate) SCOPE_ROWS: RouteRules, SETTINGS_ROWS; "[[site.route]]",
    @later("vcl", "a VCL is a whole site's: see `[[site]]`")
    "Settings for some requests of a site. The first matching route applies, in the order of the \
     file. A route inherits its site's settings and changes those that it sets. `allow`, `deny` \
     and single values replace the site's; `ttl` and header changes replace by status and name; \
     other lists add.";
    "path", TEXTS, "every path", "Paths of the route: `/exact`, `/prefix/*`, `*.suffix`, a glob, or `~ regex` (`~*` ignores case). In a glob, `*` and `?` stay within a segment, `**` crosses segments. Larder decodes percent-encoding and resolves dot segments before it compares.",
        |r, item, to| to.scope.paths = patterns(r, item)
        => |page, route| page.list("path", &route.scope.paths);
    "method", TEXTS, "every method", "Methods of the route, in capitals.",
        |r, item, to| to.scope.methods = methods(r, item)
        => |page, route| page.list("method", &route.scope.methods);
    @table(WHEN) "when", TABLE, "every request", "Conditions beside path and method, for fields, cookies, parameters and addresses: see `[site.route.when]`.",
        |r, item, to| conditions::when(r, item, &mut to.scope.when)
        => |page, route| conditions::show(page, &route.scope.when);
    "name", string name, "its path, method or condition", "Name of the route in logs and in `larder explain`.";
}

/// Reads the route of `table`, and the location of its `path`, `method` or `when`.
pub(super) fn route(
    r: &mut Reader,
    table: &TomlTable<'_>,
    settings: Settings,
) -> (RouteRules, TextRange) {
    let mut route = RouteRules { name: String::new(), scope: RouteScope::default(), settings };
    rows::read(r, table, SCOPE_ROWS, &mut route);
    let (path, method, when) = (table.item("path"), table.item("method"), table.item("when"));
    for item in [&path, &method].into_iter().flatten().filter(|item| item.each().is_empty()) {
        r.error(item.span.clone(), format!("`{}` is an empty list", item.name));
    }
    let span = path.or(method).or(when).map(|item| item.span).unwrap_or_else(|| {
        r.error(table.span.clone(), "a route without `path`, `method` or `when`").help =
            Some("what is for every request of the site stands in [[site]] itself".to_owned());
        table.span.clone()
    });
    if table.item("name").is_none() {
        let own = route.scope.paths.first().map(PathPattern::to_string);
        let own = own.or_else(|| route.scope.methods.first().map(Method::to_string));
        let own = own.or_else(|| route.scope.when.iter().next().map(Condition::told));
        route.name = own.unwrap_or_default();
    }
    route.settings.places.note("route", r.place(&span));
    (route, span)
}
