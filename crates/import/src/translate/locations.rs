//! Locations of a server, in the order in which nginx chooses among them, with the paths that
//! Larder's routes have for them.

use super::chain::Chain;
use crate::syntax::Directive;

/// Ways to compare a location's path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Modifier {
    Exact,
    /// A prefix after which no expression is tried (`^~`).
    Final,
    Prefix,
    Regex {
        ignores_case: bool,
    },
    /// A name that others lead to (`@`).
    Named,
}

/// A location and the blocks around it.
#[derive(Clone, Debug)]
pub(crate) struct Location<'d> {
    pub(crate) directive: &'d Directive,
    pub(crate) modifier: Modifier,
    pub(crate) path: &'d str,
    /// The prefix of the location around it.
    outer: Option<&'d str>,
    /// All blocks, its own last.
    pub(crate) chain: Chain<'d>,
}

impl<'d> Location<'d> {
    /// The directives of its block.
    pub(crate) fn own(&self) -> &'d [Directive] {
        self.directive.children()
    }

    /// The path of the route.
    pub(crate) fn pattern(&self) -> String {
        match self.modifier {
            Modifier::Exact | Modifier::Named => self.path.to_owned(),
            Modifier::Final | Modifier::Prefix => format!("{}*", self.path),
            Modifier::Regex { ignores_case } => {
                let start = if ignores_case { "~*" } else { "~" };
                let own = self.expression();
                let own = match self.outer {
                    Some(outer) if !own.starts_with('^') => {
                        format!("^{}.*(?:{own})", linear::escape(outer))
                    }
                    _ => own,
                };
                format!("{start} {own}")
            }
        }
    }

    /// The expression, or a wider one where Larder's have not what it needs and clients are kept
    /// out.
    fn expression(&self) -> String {
        let own = without_lookahead(self.path);
        if is_regex(&own) || !self.is_guarded() {
            return own;
        }
        wider(&own).unwrap_or_default()
    }

    /// Tells whether the pattern matches more paths than the location has.
    pub(crate) fn is_wider(&self) -> bool {
        let is_expression = matches!(self.modifier, Modifier::Regex { .. });
        is_expression && self.is_guarded() && !is_regex(&without_lookahead(self.path))
    }

    /// Tells whether the location lets not all clients in.
    pub(crate) fn is_guarded(&self) -> bool {
        self.own().iter().any(|own| match own.name.as_str() {
            "deny" | "auth_request" | "internal" | "limit_except" | "auth_jwt" => true,
            "auth_basic" => own.arg(0) != "off",
            "return" => own.arg(0).starts_with('4'),
            name => name.starts_with("access_by_lua"),
        })
    }

    /// The rank among others: the lower is tried first.
    fn rank(&self) -> (u8, usize, u8) {
        let shorter = |length: usize| usize::MAX - length;
        match (self.modifier, self.outer) {
            (Modifier::Exact, _) => (0, 0, 0),
            (Modifier::Regex { .. }, Some(outer)) => (1, shorter(outer.len()), 0),
            (Modifier::Final, _) => (1, shorter(self.path.len()), 1),
            (Modifier::Regex { .. }, None) => (2, 0, 0),
            (Modifier::Prefix, _) => (3, shorter(self.path.len()), 0),
            (Modifier::Named, _) => (4, 0, 0),
        }
    }
}

fn is_regex(expression: &str) -> bool {
    linear::Regex::new(expression, linear::Options::default()).is_ok()
}

/// The locations of a server, the first that nginx would take first.
pub(crate) fn locations<'d>(server: &'d [Directive], chain: &Chain<'d>) -> Vec<Location<'d>> {
    let mut all = Vec::new();
    collect(server, chain, None, &mut all);
    all.sort_by_key(Location::rank);
    // A prefix below one after which no expression is tried goes before it.
    let finals: Vec<&str> =
        all.iter().filter(|own| own.modifier == Modifier::Final).map(|own| own.path).collect();
    for path in finals {
        let below = |own: &Location<'_>| {
            own.modifier == Modifier::Prefix
                && own.path.len() > path.len()
                && own.path.starts_with(path)
        };
        let (moved, rest): (Vec<_>, Vec<_>) = all.into_iter().partition(below);
        all = rest;
        let at = all.iter().position(|own| own.modifier == Modifier::Final && own.path == path);
        all.splice(at.unwrap_or(0)..at.unwrap_or(0), moved);
    }
    all
}

fn collect<'d>(
    block: &'d [Directive],
    chain: &Chain<'d>,
    outer: Option<&'d str>,
    to: &mut Vec<Location<'d>>,
) {
    for directive in block.iter().filter(|own| own.name == "location") {
        let (modifier, path) = match directive.args.as_slice() {
            [modifier, path] => (modifier.as_str(), path.as_str()),
            [path] => split(path),
            _ => continue,
        };
        let modifier = match modifier {
            "=" => Modifier::Exact,
            "^~" => Modifier::Final,
            "~" => Modifier::Regex { ignores_case: false },
            "~*" => Modifier::Regex { ignores_case: true },
            _ if path.starts_with('@') => Modifier::Named,
            _ => Modifier::Prefix,
        };
        let chain = chain.with(directive.children());
        let is_prefix = matches!(modifier, Modifier::Prefix | Modifier::Final);
        let own_outer = if is_prefix { Some(path).filter(|path| *path != "/") } else { outer };
        collect(directive.children(), &chain, own_outer, to);
        to.push(Location { directive, modifier, path, outer, chain });
    }
}

/// A modifier may stand close to its path.
fn split(path: &str) -> (&str, &str) {
    for modifier in ["~*", "^~", "=", "~"] {
        if let Some(rest) = path.strip_prefix(modifier) {
            return (modifier, rest);
        }
    }
    ("", path)
}

/// The expression with `(?!word)` near its end as what it means: anything but what begins with the
/// word.
fn without_lookahead(expression: &str) -> String {
    let Some((before, rest)) = expression.split_once("(?!") else { return expression.to_owned() };
    let Some((word, after)) = rest.split_once(')') else { return expression.to_owned() };
    // A slash or dot is often escaped.
    let word = &word.replace("\\/", "/").replace("\\.", ".").replace("\\-", "-");
    let is_plain = word.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_/.".contains(&b));
    if word.is_empty() || !is_plain || !matches!(after, "" | ".*" | ".*$" | ").*" | ")") {
        return expression.to_owned();
    }
    let mut others = Vec::new();
    for (at, letter) in word.char_indices() {
        let start = &linear::escape(&word[..at]);
        others.push(format!("{start}[^{}{letter}]", if letter == '-' { "\\" } else { "" }));
        others.push(format!("{start}$"));
    }
    let close = if after.starts_with(')') { ")" } else { "" };
    format!("{before}(?:{}){close}", others.join("|"))
}

/// An expression without what Larder's have not (looking around, references to groups), which
/// matches at least what this one does; `None` if it is not understood.
pub(crate) fn wider(expression: &str) -> Option<String> {
    let (mut all, mut rest) = (String::new(), expression);
    while let Some(letter) = rest.chars().next() {
        let around = ["(?!", "(?=", "(?<!", "(?<="].iter().find_map(|mark| rest.strip_prefix(mark));
        if let Some(inner) = around {
            rest = behind_group(inner)?;
        } else if let Some(inner) = rest.strip_prefix("(?>") {
            all.push_str("(?:");
            rest = inner;
        } else if letter == '\\' {
            let next = rest[1..].chars().next()?;
            if next.is_ascii_digit() {
                all.push_str(".*");
            } else {
                all.push(letter);
                all.push(next);
            }
            rest = &rest[1 + next.len_utf8()..];
        } else {
            // A second plus forbids to go back.
            let is_possessive = letter == '+' && all.ends_with(['+', '*', '?']);
            if !is_possessive {
                all.push(letter);
            }
            rest = &rest[letter.len_utf8()..];
        }
    }
    linear::Regex::new(&all, linear::Options::default()).is_ok().then_some(all)
}

/// The text behind the group that was opened before `text`.
fn behind_group(text: &str) -> Option<&str> {
    let (mut depth, mut is_escaped) = (1_u32, false);
    for (at, letter) in text.char_indices() {
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(&text[at + 1..]);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parser::parse;

    #[test]
    fn locations_are_tried_in_nginx_s_order() {
        let text = "location / {} location /a/ { location ~ \\.php$ {} } location ~ x {}\n\
            location ^~ /f/ {} location /f/g/ {} location = /e {} location ~* y {} \
            location /abc/ {} location @n {}";
        let directives = parse("x", text).expect("well-formed");
        let found = locations(&directives, &Chain::new(vec![&directives]));
        let patterns: Vec<_> = found.iter().map(Location::pattern).collect();
        assert_eq!(
            patterns,
            [
                "/e",
                "~ ^/a/.*(?:\\.php$)",
                "/f/g/*",
                "/f/*",
                "~ x",
                "~* y",
                "/abc/*",
                "/a/*",
                "/*",
                "@n",
            ]
        );
    }

    #[test]
    fn a_word_that_must_not_follow_is_said_without_looking_ahead() {
        let other = without_lookahead(r"/\.(?!well-known).*");
        let regex = linear::Regex::new(&other, linear::Options::default()).expect("a pattern");
        for (path, denied) in [
            ("/.git/config", true),
            ("/.well-know", true),
            ("/.w", true),
            ("/.", true),
            ("/.well-known/x", false),
            ("/a.b", false),
        ] {
            assert_eq!(regex.is_match(path.as_bytes()), denied, "{path}");
        }
        let other = without_lookahead(r"/\.(?!well-known\/)");
        let regex = linear::Regex::new(&other, linear::Options::default()).expect("a pattern");
        for (path, denied) in [("/.git", true), ("/.well-known/x", false), ("/.well-known", true)] {
            assert_eq!(regex.is_match(path.as_bytes()), denied, "{path}");
        }
    }

    #[test]
    fn a_guard_s_expression_becomes_one_that_matches_more() {
        for (expression, path) in [
            (r"^/(?!public)", "/private"),
            (r"/(?=secret)s", "/secret"),
            (r"(a)\1", "aa"),
            (r"(?<!x)y", "y"),
            (r"(?>a|b)c", "bc"),
            (r"a++b", "ab"),
        ] {
            let wider = wider(expression).expect(expression);
            let regex = linear::Regex::new(&wider, linear::Options::default()).expect("a pattern");
            assert!(regex.is_match(path.as_bytes()), "{expression}: {wider}");
        }
        assert_eq!(wider("(?!("), None);
    }
}
