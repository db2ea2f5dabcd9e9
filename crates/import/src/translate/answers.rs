//! Answers of the configuration itself: `return` and `rewrite`.

use std::fmt::Write as _;

use super::variables::{TextPiece, pieces};
use crate::document::{Settings, quote};
use crate::report::Ledger;
use crate::syntax::Directive;

/// Names of the groups of an expression, in their order; empty for one without a name.
pub(crate) fn group_names(expression: &str) -> Vec<String> {
    let (mut names, mut rest) = (Vec::new(), expression);
    while let Some(at) = rest.find(['\\', '(', '[']) {
        let (letter, behind) = rest[at..].split_at(1);
        match letter {
            "\\" => {
                let mut letters = behind.chars();
                letters.next();
                rest = letters.as_str();
            }
            "[" => {
                let start = behind.strip_prefix('^').unwrap_or(behind);
                let end = start.char_indices().skip(1).find(|(_, c)| *c == ']');
                rest = end.map_or("", |(end, _)| &start[end + 1..]);
            }
            _ => {
                rest = behind;
                let named = ["?<", "?P<", "?'"].iter().find_map(|mark| behind.strip_prefix(mark));
                match named.filter(|name| !name.starts_with(['=', '!'])) {
                    Some(name) => {
                        names.push(name.split(['>', '\'']).next().unwrap_or(name).to_owned());
                    }
                    None if behind.starts_with('?') => {}
                    None => names.push(String::new()),
                }
            }
        }
    }
    names
}

/// A text whose variables named as groups of the expression are `$1` and so on.
fn numbered(text: &str, expression: &str) -> String {
    let names = group_names(expression);
    let mut numbered = String::new();
    for piece in pieces(text) {
        match piece {
            TextPiece::Plain(plain) => numbered.push_str(plain),
            TextPiece::Variable("") => numbered.push('$'),
            TextPiece::Variable(name) => match names.iter().position(|own| own == name) {
                Some(at) if !name.is_empty() => _ = write!(numbered, "${{{}}}", at + 1),
                _ => _ = write!(numbered, "${{{name}}}"),
            },
        }
    }
    numbered
}

/// A `return` in a location with this pattern of paths, whose groups are `$1` and so on.
pub(crate) fn numbered_return(directive: &Directive, pattern: &str) -> Directive {
    let mut own = directive.clone();
    let expression = pattern.strip_prefix("~*").or_else(|| pattern.strip_prefix('~'));
    if let Some(expression) = expression {
        own.args.iter_mut().for_each(|text| *text = numbered(text, expression.trim()));
    }
    own
}

/// A target of a redirect as `redirect.to` has it; `None` if it needs more than that knows.
pub(crate) fn target(text: &str, scheme: &str) -> Option<String> {
    let mut target = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        target.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let braced = rest.strip_prefix('{').and_then(|inner| inner.split_once('}'));
        let (name, after) = braced.unwrap_or_else(|| {
            let is_digit = rest.starts_with(|c: char| c.is_ascii_digit());
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            rest.split_at(if is_digit { 1 } else { end.unwrap_or(rest.len()) })
        });
        rest = after;
        target.push_str(match name {
            "1" => "$1",
            "2" => "$2",
            "3" => "$3",
            "4" => "$4",
            "5" => "$5",
            "6" => "$6",
            "7" => "$7",
            "8" => "$8",
            "9" => "$9",
            "args" | "query_string" => "$args",
            "scheme" => scheme,
            "host" | "http_host" | "server_name" => "$host",
            "request_uri" => "$path$query",
            "uri" | "document_uri" => "$path",
            "is_args" => {
                let ends = ["$args", "${args}", "$query_string", "${query_string}"];
                let end = ends.iter().find(|end| rest.starts_with(**end))?;
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

/// Fate of a `rewrite`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Rewritten {
    /// A redirect; `appends` if the client's query, where there is one, comes behind its own.
    Redirect { to: String, status: &'static str, appends: bool },
    /// Another URL for the application, likewise.
    Internal { to: String, ends: bool, appends: bool },
    /// The script that answers for all paths.
    Front,
    /// It needs a variable that is not there.
    Unknown,
}

/// The pattern of paths of a `rewrite`; `None` if it is for all of them.
pub(crate) fn rewritten_paths(directive: &Directive) -> Option<String> {
    let pattern = directive.arg(0);
    let is_whole = matches!(
        pattern,
        "^(.*)$"
            | "^(.*)"
            | "(.*)"
            | "^/(.*)$"
            | "^/(.*)"
            | "^"
            | "^/"
            | ".*"
            | "^.*$"
            | "^/.*$"
            | "/(.*)"
    );
    (!is_whole).then(|| format!("~ {pattern}"))
}

/// Reads a `rewrite`.
pub(crate) fn rewritten(directive: &Directive, scheme: &str) -> Rewritten {
    let (pattern, flag) = (directive.arg(0), directive.arg(2));
    let replacement = numbered(directive.arg(1), pattern);
    let is_url = replacement.contains("://") || replacement.starts_with("${scheme}");
    let status = match flag {
        "permanent" => Some("301"),
        "redirect" => Some("302"),
        _ if is_url => Some("302"),
        _ => None,
    };
    if status.is_none()
        && is_front_controller(directive.arg(1))
        && rewritten_paths(directive).is_none()
    {
        return Rewritten::Front;
    }
    // The query goes along, unless the replacement ends with a question mark.
    let (bare, keeps_query) = match replacement.strip_suffix('?') {
        Some(bare) => (bare, false),
        None => (replacement.as_str(), !replacement.contains("request_uri")),
    };
    let is_whole = rewritten_paths(directive).is_none();
    let filled = match bare.strip_suffix("${1}").filter(|_| is_whole) {
        Some(start) if pattern.contains("/(") => {
            format!("{}${{uri}}", start.strip_suffix('/').unwrap_or(start))
        }
        Some(start) => format!("{start}${{uri}}"),
        None => bare.to_owned(),
    };
    let Some(mut to) = target(&filled, scheme) else { return Rewritten::Unknown };
    if is_whole && to.contains("$1") {
        return Rewritten::Unknown;
    }
    let has_query = to.contains('?');
    let names_query = to.contains("$query") || to.contains("$args");
    let appends = keeps_query && has_query && !names_query;
    match status {
        Some(status) => {
            if keeps_query && !has_query && !names_query {
                to.push_str("$query");
            }
            Rewritten::Redirect { to, status, appends }
        }
        None => {
            if !keeps_query && !has_query {
                to.push('?');
            }
            Rewritten::Internal { to, ends: flag == "break", appends }
        }
    }
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
    fn rewrites_are_redirects_or_other_urls_for_the_application() {
        let redirect = |to: &str, status| {
            let to = to.to_owned();
            Rewritten::Redirect { to, status, appends: false }
        };
        let internal = |to: &str, ends, appends| {
            let to = to.to_owned();
            Rewritten::Internal { to, ends, appends }
        };
        for (text, expected) in [
            ("rewrite ^/a/(.*)$ /b/$1 permanent;", redirect("/b/$1$query", "301")),
            ("rewrite ^/a$ /b? redirect;", redirect("/b", "302")),
            ("rewrite ^(.*)$ https://x$1;", redirect("https://x$path$query", "302")),
            (
                "rewrite ^/(.*)$ https://x/y/$1 permanent;",
                redirect("https://x/y$path$query", "301"),
            ),
            ("rewrite ^/u/(?<id>[0-9]+)$ /p?id=$id last;", internal("/p?id=$1", false, true)),
            ("rewrite ^/a/(.*)$ /$1 break;", internal("/$1", true, false)),
            ("rewrite ^(.*)$ /index.php?q=$1 last;", Rewritten::Front),
            ("rewrite ^/a$ /b$remote_addr last;", Rewritten::Unknown),
        ] {
            let own = crate::parser::parse("x", text).expect("well-formed");
            assert_eq!(rewritten(&own[0], "https"), expected, "{text}");
        }
        assert_eq!(group_names(r"^/(?<a>x)\((?:y)([()])(?P<b>z)"), ["a", "", "b"]);
    }

    #[test]
    fn targets_have_larder_s_variables() {
        for (text, expected) in [
            ("https://$host$request_uri", Some("https://$host$path$query")),
            ("https://a.test$uri$is_args$args", Some("https://a.test$path$query")),
            ("$scheme://$host$uri/", Some("$path/")),
            ("$scheme://www.a.test$request_uri", Some("https://www.a.test$path$query")),
            ("/new", Some("/new")),
            ("/new/$1", Some("/new/$1")),
            ("/new/${2}x", Some("/new/$2x")),
            ("/new/$remote_addr", None),
        ] {
            assert_eq!(target(text, "https").as_deref(), expected, "{text}");
        }
    }
}
