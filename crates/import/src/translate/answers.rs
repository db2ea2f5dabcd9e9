//! Answers of the configuration itself: `return` and `rewrite`.

use crate::document::{Block, Settings, quote};
use crate::report::Ledger;
use crate::syntax::Directive;

/// A target of a redirect as `redirect.to` has it; `None` if it needs more than that knows.
pub(crate) fn target(text: &str, scheme: &str) -> Option<String> {
    let mut target = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        target.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let braced = rest.strip_prefix('{').and_then(|inner| inner.split_once('}'));
        let (name, after) = braced.unwrap_or_else(|| {
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            rest.split_at(end.unwrap_or(rest.len()))
        });
        rest = after;
        target.push_str(match name {
            "scheme" => scheme,
            "host" | "http_host" | "server_name" => "$host",
            "request_uri" => "$path$query",
            "uri" | "document_uri" => "$path",
            "is_args" if rest.starts_with("$args") || rest.starts_with("$query_string") => {
                let end = if rest.starts_with("$args") { "$args" } else { "$query_string" };
                rest = &rest[end.len()..];
                "$query"
            }
            _ => return None,
        });
    }
    target.push_str(rest);
    // A redirect to the own host needs no host.
    let own = ["http://$host", "https://$host", "$host"];
    let is_own_scheme = text.starts_with("$scheme://");
    let short = own.iter().find_map(|start| target.strip_prefix(start));
    match short.filter(|rest| is_own_scheme && rest.starts_with(['/', '$'])) {
        Some(rest) => Some(rest.to_owned()),
        None => Some(target),
    }
}

/// Types of texts whose path ends so; nginx takes them before `default_type`.
const TYPES: [(&str, &str); 5] = [
    (".txt", "text/plain"),
    (".html", "text/html"),
    (".json", "application/json"),
    (".xml", "text/xml"),
    (".js", "application/javascript"),
];

/// The Content-Type of a fixed text.
#[derive(Clone, Debug)]
pub(crate) struct ContentType {
    text: String,
    from: Option<usize>,
}

impl ContentType {
    /// The type for `path`: that of its ending, or what `default_type` says.
    pub(crate) fn new(path: &str, default: Option<&Directive>) -> Option<Self> {
        let known = TYPES.iter().find(|(ending, _)| path.ends_with(ending));
        match known {
            Some((_, text)) => Some(Self { text: (*text).to_owned(), from: None }),
            None => default.map(|own| Self { text: own.arg(0).to_owned(), from: Some(own.id) }),
        }
    }
}

/// Settings of a `return`; `None` if it cannot be said.
pub(crate) fn returned(
    ledger: &mut Ledger,
    directive: &Directive,
    kind: Option<ContentType>,
    scheme: &str,
    to: &mut Settings,
) -> Option<()> {
    let (status, text) = match directive.args.as_slice() {
        [url] if url.contains("://") || url.starts_with('$') => ("302", Some(url.as_str())),
        [status] => (status.as_str(), None),
        [status, rest @ ..] => (status.as_str(), rest.first().map(String::as_str)),
        [] => return None,
    };
    let id = directive.id;
    match (status, text) {
        ("301" | "302" | "303" | "307" | "308", Some(url)) => {
            let target = target(url, scheme);
            let Some(target) = target else {
                let instead = "`redirect.to` knows $host, $path and $query";
                ledger.left(id, "the target has a variable that redirects do not know", instead);
                return None;
            };
            let value = format!("{{ to = {}, status = {status} }}", quote(&target));
            to.put("redirect", value, &[id]);
        }
        ("444", None) => {
            to.put("respond", "{ status = 403 }", &[id]);
            ledger.carried(id, "clients get 403; the connection is not closed without an answer");
        }
        (status, None) => {
            // nginx has a page of its own for errors, and nothing for the rest.
            to.put("respond", format!("{{ status = {status} }}"), &[id]);
        }
        (status, Some(text)) if !text.contains('$') => {
            let mut parts = vec![format!("status = {status}")];
            let mut from = vec![id];
            if let Some(kind) = kind {
                parts.push(format!("headers = {{ Content-Type = {} }}", quote(&kind.text)));
                from.extend(kind.from);
            }
            parts.push(format!("body = {}", quote(text)));
            to.put("respond", format!("{{ {} }}", parts.join(", ")), &from);
        }
        _ => {
            ledger.left(id, "a fixed response has no variable", "let the application answer");
            return None;
        }
    }
    Some(())
}

/// The route of a `rewrite` that redirects; `None` for any other, which is answered.
pub(crate) fn rewritten(ledger: &mut Ledger, directive: &Directive, scheme: &str) -> Option<Block> {
    let (pattern, replacement, flag) = (directive.arg(0), directive.arg(1), directive.arg(2));
    let is_url = replacement.contains("://") || replacement.starts_with("$scheme");
    let status = match flag {
        "permanent" => "301",
        "redirect" => "302",
        _ if is_url => "302",
        _ if is_front_controller(replacement) => {
            ledger.default(directive.id, "paths without a file go to the application's script");
            return None;
        }
        _ => {
            let instead = "a route with `rewrite`, which has the groups of its path as `$1`";
            ledger.left(directive.id, "rewrites are not translated yet", instead);
            return None;
        }
    };
    // The query goes along, unless the replacement ends with a question mark.
    let (bare, keeps_query) = match replacement.strip_suffix('?') {
        Some(bare) => (bare, false),
        None => (replacement, !replacement.contains("request_uri")),
    };
    let whole = matches!(pattern, "^(.*)$" | "^(.*)" | "(.*)" | "^/(.*)$" | "^/(.*)");
    let capture = if pattern.starts_with("^/(") { "/$1" } else { "$1" };
    let filled = if whole && bare.ends_with(capture) {
        format!("{}$uri", &bare[..bare.len() - capture.len()])
    } else {
        bare.to_owned()
    };
    let Some(mut target) = target(&filled, scheme) else {
        let instead = "write a redirect for each path; `redirect.to` knows $host, $path and $query";
        ledger.left(directive.id, "a redirect has no part of what a pattern caught", instead);
        return None;
    };
    if keeps_query && !target.contains('?') {
        target.push_str("$query");
    }
    let mut settings = Settings::default();
    let path = if whole || pattern == "^" { "/*".to_owned() } else { format!("~ {pattern}") };
    settings.text("path", &path, &[]);
    let value = format!("{{ to = {}, status = {status} }}", quote(&target));
    settings.put("redirect", value, &[directive.id]);
    Some(Block { settings, from: Vec::new() })
}

/// Tells whether a target is the script that answers for all paths.
pub(crate) fn is_front_controller(text: &str) -> bool {
    let path = text.split(['?', '$']).next().unwrap_or(text);
    path.ends_with("/index.php") || path == "index.php"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_have_larder_s_variables() {
        for (text, expected) in [
            ("https://$host$request_uri", Some("https://$host$path$query")),
            ("https://a.test$uri$is_args$args", Some("https://a.test$path$query")),
            ("$scheme://$host$uri/", Some("$path/")),
            ("$scheme://www.a.test$request_uri", Some("https://www.a.test$path$query")),
            ("/new", Some("/new")),
            ("/new/$1", None),
        ] {
            assert_eq!(target(text, "https").as_deref(), expected, "{text}");
        }
    }
}
