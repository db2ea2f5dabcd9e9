//! Pages for errors, and pages that are put together.

use super::state::{Handler, Scope};
use crate::document::quote;
use crate::report::Fate;
use crate::syntax::Directive;

/// Decides about `error_page`; `server` has the locations that the pages are in.
pub(crate) fn errors(scope: &mut Scope<'_, '_>, server: &[Directive]) {
    for directive in scope.chain.all(&["error_page"]) {
        let is_own = scope.chain.own().iter().any(|own| own.id == directive.id);
        if !scope.is_site && !is_own {
            // The site has it.
            continue;
        }
        let Some((page, statuses)) = directive.args.split_last() else { continue };
        let is_changed = statuses.iter().any(|status| status.starts_with('='));
        let is_of_php = scope.handler == Handler::FastCgi && statuses == ["404"];
        if is_of_php && super::answers::is_front_controller(page) {
            scope.default(directive, "paths without a file go to the application's script");
            continue;
        }
        if is_settled(scope, directive) {
            continue;
        }
        // A script is not shown as its text.
        let is_script = page.split('?').next().is_some_and(|path| path.contains(".php"));
        if !page.starts_with('/') || page.contains(['$', '?']) || is_script || is_changed {
            let instead = "`error_pages` names a file for each status";
            scope.left(directive, "an error leads to no other location or address", instead);
            continue;
        }
        if !scope.is_site {
            let instead = "`error_pages` of the site";
            scope.left(directive, "pages for errors are those of the whole site", instead);
            continue;
        }
        let Some(file) = file_of(scope, server, page) else {
            scope.left(directive, "there is no `root` for this page", "");
            continue;
        };
        for status in statuses {
            scope.out.put(&format!("error_pages.{status}"), quote(&file), &[directive.id]);
        }
        if scope.has_application() && !intercepts(scope) {
            scope.carried(directive, "for errors of Larder itself; those of the application stay");
        }
    }
    interception(scope);
}

/// Tells whether only rules answer with a status.
pub(crate) fn is_of_rules(status: &str) -> bool {
    !matches!(status, "400" | "401" | "403" | "404" | "405" | "413" | "429")
}

/// Tells whether a rule goes where the status leads to, and nothing else has this status.
fn is_settled(scope: &Scope<'_, '_>, directive: &Directive) -> bool {
    let is_one = |status: &str| is_of_rules(status) && status.starts_with('4');
    let [status, rest @ .., page] = directive.args.as_slice() else { return false };
    let has_page_status = rest == ["="];
    let is_carried = matches!(scope.state.ledger.fate(directive.id), Some(Fate::Carried(_)));
    page.starts_with('@') && is_one(status) && has_page_status && is_carried && !intercepts(scope)
}

/// The directive that has errors of this scope's application replaced, or not.
fn interception_directive<'d>(scope: &Scope<'_, 'd>) -> Option<&'d Directive> {
    scope.chain.one(&format!("{}_intercept_errors", scope.handler.family()))
}

/// Returns true if errors of this scope's application are replaced.
fn intercepts(scope: &Scope<'_, '_>) -> bool {
    interception_directive(scope).is_some_and(|own| own.arg(0) == "on")
}

/// Decides whether the pages replace errors of this scope's application.
fn interception(scope: &mut Scope<'_, '_>) {
    if !scope.has_application() {
        return;
    }
    let Some(directive) = interception_directive(scope) else { return };
    let has_pages = !scope.chain.all(&["error_page"]).is_empty();
    match (directive.arg(0), has_pages) {
        ("on", true) => scope.out.put("intercept_errors", "true", &[directive.id]),
        ("on", false) => {}
        _ => scope.default(directive, "errors of an application pass as they are"),
    }
}

/// The file of a page: below the root of the location that has exactly this path, or of the
/// site.
fn file_of(scope: &Scope<'_, '_>, server: &[Directive], page: &str) -> Option<String> {
    let fits = |modifier: &str, path: &str| {
        let options = linear::Options { ignore_case: modifier == "~*", ..Default::default() };
        modifier.starts_with('~')
            && linear::Regex::new(path, options).is_ok_and(|regex| regex.is_match(page.as_bytes()))
    };
    let is_own = |own: &&Directive| {
        let is_it = own.args.last().is_some_and(|path| path == page);
        own.name == "location"
            && (is_it || matches!(own.args.as_slice(), [modifier, path] if fits(modifier, path)))
    };
    let own = server.iter().find(is_own).map(Directive::children).unwrap_or_default();
    let root = own.iter().find(|own| own.name == "root").or_else(|| scope.chain.one("root"))?;
    Some(format!("{}{page}", root.arg(0).trim_end_matches('/')))
}

/// Decides about server-side includes.
pub(crate) fn includes(scope: &mut Scope<'_, '_>) {
    let Some(directive) = scope.chain.one("ssi") else { return };
    match (directive.arg(0), scope.is_site) {
        ("on", true) => scope.out.put("includes.ssi", "true", &[directive.id]),
        ("on", false) => {
            let instead = "`includes = { ssi = true }` in the site";
            scope.left(directive, "a whole site has server-side includes, or none of it", instead);
        }
        _ => scope.default(directive, "there are no server-side includes unless a site says so"),
    }
    for own in scope.chain.all(&["ssi_types", "ssi_silent_errors", "ssi_last_modified"]) {
        scope.not_needed(own, "pages of the type text/html are looked into");
    }
}

/// Decides about compression that is off for a whole site.
pub(crate) fn compression(scope: &mut Scope<'_, '_>) {
    let Some(directive) = scope.chain.one("gzip").filter(|own| own.arg(0) == "off") else { return };
    let is_own = scope.chain.own().iter().any(|own| own.id == directive.id);
    if !scope.is_site && !is_own {
        // The site has it.
        return;
    }
    if scope.is_site {
        scope.out.put("compress", "\"off\"", &[directive.id]);
    } else if scope.handler == Handler::Answer {
        scope.not_needed(directive, "fixed answers are not compressed");
    } else {
        let instead = "`compress = \"off\"` in the site";
        scope.left(directive, "compression is that of the whole site", instead);
    }
}
