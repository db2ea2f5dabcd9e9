//! Questions about what nginx itself knows of a request (`$uri`, `$http_x`, `$remote_addr`), as
//! predicates.

use super::conditions::{cookies, field_name};
use super::predicate::{Atom, NameKind, Predicate};

/// The value that nginx takes for yes: neither empty nor a single zero.
const TRUE: &str = "~ [^0]|00";

/// Any value but the empty one.
const ANY: &str = "~ .";

/// A question: an operator of `if`, and a value. A bare variable has no operator.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Test<'t> {
    pub(crate) operator: &'t str,
    pub(crate) value: &'t str,
    /// Texts are compared without regard to case, as in `map`.
    pub(crate) ignores_case: bool,
}

/// Facts of a server that answer questions before there is a request.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ServerFacts<'s> {
    /// Its hosts, if no other can be asked for.
    pub(crate) hosts: &'s [String],
    pub(crate) has_tls: bool,
    pub(crate) has_plain: bool,
    /// A server for plain HTTP redirects to it, so it is asked over TLS only.
    pub(crate) is_secure: bool,
}

impl Test<'_> {
    /// The answer for a value that is known; `None` for an operator that is not.
    pub(crate) fn holds_for(&self, text: &str) -> Option<bool> {
        Some(match self.operator {
            "" => !matches!(text, "" | "0"),
            "=" if self.ignores_case => text.eq_ignore_ascii_case(self.value),
            "=" => text == self.value,
            "!=" => text != self.value,
            "~" | "~*" => self.regex()?.is_match(text.as_bytes()),
            "!~" | "!~*" => !self.regex()?.is_match(text.as_bytes()),
            _ => return None,
        })
    }

    fn regex(&self) -> Option<linear::Regex> {
        let ignore_case = self.operator.ends_with('*');
        let options = linear::Options { ignore_case, dot_is_any: true, ..Default::default() };
        linear::Regex::new(self.value, options).ok()
    }

    /// The question without its negation.
    fn positive(&self) -> Option<Self> {
        let operator = match self.operator {
            "!=" => "=",
            "!~" => "~",
            "!~*" => "~*",
            _ => return None,
        };
        Some(Self { operator, ..*self })
    }

    /// The pattern of values for which it holds; `None` for an expression that is not understood.
    fn pattern(&self) -> Option<String> {
        Some(match self.operator {
            "" => TRUE.to_owned(),
            "=" => {
                let is_plain = !self.value.contains('*') && !self.value.starts_with('~');
                let has_case = self.value.bytes().any(|b| b.is_ascii_alphabetic());
                match (self.ignores_case && has_case, is_plain) {
                    (true, _) => format!("~* ^{}$", linear::escape(self.value)),
                    (false, true) => self.value.to_owned(),
                    (false, false) => format!("~ ^{}$", linear::escape(self.value)),
                }
            }
            "~" | "~*" => {
                self.regex()?;
                format!("{} {}", self.operator, self.value)
            }
            _ => return None,
        })
    }
}

/// The predicate of a question about `$name`; `None` for a variable that is not nginx's own, or
/// that no condition looks at.
pub(crate) fn builtin(name: &str, test: Test<'_>, server: ServerFacts<'_>) -> Option<Predicate> {
    if let Some(positive) = test.positive() {
        return builtin(name, positive, server).map(|predicate| predicate.not());
    }
    Some(match name {
        "request_method" => method(test),
        "uri" | "document_uri" => path(test),
        "request_uri" => request_uri(test),
        "args" | "query_string" => query(test),
        "is_args" => named(NameKind::Query, "*", Test { operator: "!=", value: "", ..test }),
        "http_user_agent" => user_agent(test),
        "http_cookie" => cookie(test),
        "http_host" | "host" => host(test, server),
        "scheme" => scheme(test, server),
        "https" => {
            // It is `on`, or empty.
            let is_secure = scheme(Test { operator: "=", value: "https", ..test }, server);
            either(&is_secure, test, ["on", ""])
        }
        "remote_addr" | "realip_remote_addr" | "binary_remote_addr" => address(test),
        "content_type" => named(NameKind::Header, "Content-Type", test),
        _ => {
            let of = |prefix: &str| name.strip_prefix(prefix).filter(|rest| !rest.is_empty());
            if let Some(cookie) = of("cookie_") {
                named(NameKind::Cookie, cookie, test)
            } else if let Some(parameter) = of("arg_") {
                named(NameKind::Query, parameter, test)
            } else if let Some(field) = of("http_") {
                field_of(field, test)
            } else {
                return None;
            }
        }
    })
}

/// The predicate of a variable with two values: the first where `is_first` holds.
pub(crate) fn either(is_first: &Predicate, test: Test<'_>, values: [&str; 2]) -> Predicate {
    match values.map(|value| test.holds_for(value)) {
        [Some(true), Some(true)] => Predicate::always(),
        [Some(true), Some(false)] => is_first.clone(),
        [Some(false), Some(true)] => is_first.not(),
        [Some(false), Some(false)] => Predicate::never(),
        _ => Predicate::unknown(),
    }
}

/// Fields that Larder removes or sets itself are no conditions.
fn field_of(variable: &str, test: Test<'_>) -> Predicate {
    const FORGED: [&str; 17] = [
        "connection",
        "content_length",
        "expect",
        "keep_alive",
        "proxy_connection",
        "te",
        "trailer",
        "transfer_encoding",
        "upgrade",
        "x_forwarded_for",
        "x_forwarded_proto",
        "x_forwarded_host",
        "x_forwarded_port",
        "x_real_ip",
        "forwarded",
        "authorization",
        "proxy_authorization",
    ];
    if FORGED.contains(&variable) {
        return Predicate::unknown();
    }
    named(NameKind::Header, &field_name(variable), test)
}

fn named(kind: NameKind, name: &str, test: Test<'_>) -> Predicate {
    if let Some(positive) = test.positive() {
        return named(kind, name, positive).not();
    }
    if test.operator == "=" && test.value.is_empty() {
        return Predicate::named(kind, name, vec![ANY.to_owned()]).not();
    }
    let Some(pattern) = test.pattern() else { return Predicate::unknown() };
    let is_like = Predicate::named(kind, name, vec![pattern]);
    // A name that is not there is an empty text.
    match test.holds_for("") {
        Some(false) => is_like,
        Some(true) => is_like.or(&Predicate::absent(kind, name)),
        None => Predicate::unknown(),
    }
}

/// The words of an expression that is a list of them: `^(GET|HEAD)$`, `a|b`.
fn words(expression: &str) -> Option<Vec<String>> {
    let inner = expression.trim_start_matches('^').trim_end_matches('$');
    let inner = inner.strip_prefix("(?:").or_else(|| inner.strip_prefix('('));
    let inner = match inner {
        Some(inner) => inner.strip_suffix(')')?,
        None => expression.trim_start_matches('^').trim_end_matches('$'),
    };
    let words = inner.split('|').map(|word| {
        let mut text = String::new();
        let mut letters = word.chars();
        while let Some(letter) = letters.next() {
            match letter {
                '\\' => text.push(letters.next().filter(char::is_ascii_punctuation)?),
                letter
                    if letter.is_ascii_alphanumeric() || " -_/:!@%,;=~<>&'\"#".contains(letter) =>
                {
                    text.push(letter);
                }
                _ => return None,
            }
        }
        Some(text).filter(|text| !text.is_empty())
    });
    words.collect()
}

fn method(test: Test<'_>) -> Predicate {
    let list = match test.operator {
        "=" => Some(vec![test.value.to_owned()]),
        "~" | "~*" => words(test.value),
        _ => return Predicate::always(),
    };
    match list {
        // A method is in capitals.
        Some(names)
            if test.operator == "="
                && names.iter().any(|own| own.bytes().any(|b| !b.is_ascii_uppercase())) =>
        {
            Predicate::never()
        }
        Some(names) => Predicate::methods(names),
        None => Predicate::unknown(),
    }
}

fn path(test: Test<'_>) -> Predicate {
    match test.operator {
        "" => Predicate::always(),
        "=" if test.value.starts_with('/') => {
            let is_plain = !test.value.contains(['*', '?']);
            let text = match (is_plain, test.ignores_case) {
                (true, false) => test.value.to_owned(),
                (_, true) if test.value.bytes().any(|b| b.is_ascii_alphabetic()) => {
                    format!("~* ^{}$", linear::escape(test.value))
                }
                _ => format!("~ ^{}$", linear::escape(test.value)),
            };
            Predicate::of(Atom::Path(vec![text]))
        }
        "=" => Predicate::never(),
        _ => match test.pattern() {
            Some(pattern) => Predicate::of(Atom::Path(vec![pattern])),
            None => Predicate::unknown(),
        },
    }
}

/// The path and the query together.
fn request_uri(test: Test<'_>) -> Predicate {
    let (before, after) = match test.operator {
        "=" => match test.value.split_once('?') {
            None => (test.value, None),
            Some((path, query)) => (path, Some(query.to_owned())),
        },
        "~" | "~*" => match test.value.split_once(r"\?") {
            None => (test.value, None),
            Some((path, query)) => (path, Some(query.to_owned())),
        },
        _ => return Predicate::always(),
    };
    let Some(query) = after else {
        let own = path(Test { value: before, ..test });
        let is_whole = match test.operator {
            "=" => true,
            _ => before.ends_with('$') && !before.ends_with(r"\$"),
        };
        // Without a query.
        let own = if is_whole { own.and(&any_parameter().not()) } else { own };
        if test.operator == "=" || before.starts_with('^') {
            return own;
        }
        // It may stand in the query as well.
        return own.or(&named(NameKind::Query, "*", Test { value: before, ..test }));
    };
    let is_exact = test.operator == "=";
    let value = if is_exact { before.to_owned() } else { format!("{before}$") };
    let first = path(Test { value: &value, ..test });
    let Some((name, value)) = query.split_once('=') else { return first.inexact() };
    let end = if is_exact { None } else { value.strip_suffix('$') };
    let is_word =
        |text: &str| text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b));
    if !is_word(name) || name.is_empty() {
        return first.inexact();
    }
    let second = match (is_exact, end) {
        (true, _) if !value.contains(['&', '%', '*']) => value.to_owned(),
        (false, Some(value)) if is_word(value) => value.to_owned(),
        (false, None) if is_word(value) => format!("{value}*"),
        _ => return first.inexact(),
    };
    first.and(&Predicate::named(NameKind::Query, name, vec![second]))
}

/// It holds where there is a query.
pub(crate) fn any_parameter() -> Predicate {
    Predicate::named(NameKind::Query, "*", vec!["*".to_owned()])
}

fn query(test: Test<'_>) -> Predicate {
    let any = any_parameter;
    match test.operator {
        "" => any(),
        "=" if test.value.is_empty() => any().not(),
        "=" | "~" | "~*" => {
            let text = test.value.trim_start_matches("(^|&)").trim_start_matches("(?:^|&)");
            let text = text.trim_start_matches('^');
            let (text, is_whole) =
                match text.strip_suffix("(&|$)").or_else(|| text.strip_suffix('$')) {
                    Some(text) => (text, true),
                    None => (text, test.operator == "="),
                };
            let is_word =
                |text: &str| text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b));
            let pair = text.split_once('=');
            match pair.filter(|(name, value)| is_word(name) && is_word(value) && !name.is_empty()) {
                Some((name, value)) if test.operator != "~*" => {
                    let value = format!("{value}{}", if is_whole { "" } else { "*" });
                    Predicate::named(NameKind::Query, name, vec![value])
                }
                _ if test.holds_for("") == Some(false) => any().inexact(),
                _ => Predicate::unknown(),
            }
        }
        _ => Predicate::unknown(),
    }
}

fn user_agent(test: Test<'_>) -> Predicate {
    let is_list =
        test.operator == "~*" && !test.value.starts_with('^') && !test.value.ends_with('$');
    let list = words(test.value).filter(|_| is_list);
    match (test.operator, list) {
        (_, Some(words)) => Predicate::of(Atom::UserAgent(words)),
        ("~" | "~*", None) if test.holds_for("") == Some(false) => {
            Predicate::of(Atom::UserAgent(vec![format!("{} {}", test.operator, test.value)]))
        }
        _ => named(NameKind::Header, "User-Agent", test),
    }
}

fn cookie(test: Test<'_>) -> Predicate {
    let any = || Predicate::named(NameKind::Cookie, "*", vec!["*".to_owned()]);
    match test.operator {
        "" => return any(),
        "=" if test.value.is_empty() => return any().not(),
        "~" | "~*" => {}
        _ => return Predicate::unknown(),
    }
    if let Some((name, value)) = test.value.split_once('=') {
        let name = name.trim_start_matches("(^|; )").trim_start_matches('^');
        let is_word = |text: &str| {
            !text.is_empty()
                && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b))
        };
        if is_word(name) && is_word(value) {
            let value = match test.operator {
                "~" => format!("{value}*"),
                _ => format!("~* ^{value}"),
            };
            return Predicate::named(NameKind::Cookie, &format!("*{name}"), vec![value]);
        }
        return if test.holds_for("") == Some(false) {
            any().inexact()
        } else {
            Predicate::unknown()
        };
    }
    match cookies(test.value) {
        Some(names) => {
            let predicates = names
                .iter()
                .map(|name| Predicate::named(NameKind::Cookie, name, vec!["*".to_owned()]));
            predicates.fold(Predicate::never(), |all, own| all.or(&own))
        }
        None => Predicate::unknown(),
    }
}

/// The answers for each host of a server; `None` for a host that is many.
pub(crate) fn host_answers(test: Test<'_>, hosts: &[String]) -> Vec<Option<bool>> {
    let answer = |host: &String| match host.as_str() {
        // Any that no server has.
        "*" => test.holds_for("other.invalid"),
        host if host.contains('*') => None,
        host => test.holds_for(host),
    };
    hosts.iter().map(answer).collect()
}

/// No route looks at Host: a host is a site.
fn host(test: Test<'_>, server: ServerFacts<'_>) -> Predicate {
    let answers = host_answers(test, server.hosts);
    let all = |wanted: bool| !answers.is_empty() && answers.iter().all(|own| *own == Some(wanted));
    match (all(true), all(false)) {
        (true, _) => Predicate::always(),
        (_, true) => Predicate::never(),
        _ => Predicate::unknown(),
    }
}

fn scheme(test: Test<'_>, server: ServerFacts<'_>) -> Predicate {
    let [plain, secure] = ["http", "https"].map(|scheme| test.holds_for(scheme));
    match (server.has_plain && !server.is_secure, server.has_tls) {
        _ if plain == secure && plain == Some(true) => Predicate::always(),
        (true, false) if plain == Some(true) => Predicate::always(),
        (false, true) if secure == Some(true) => Predicate::always(),
        (true, false) if plain == Some(false) => Predicate::never(),
        (false, true) if secure == Some(false) => Predicate::never(),
        _ => Predicate::unknown(),
    }
}

/// Addresses as networks: a text, or an expression of texts with dots.
fn address(test: Test<'_>) -> Predicate {
    match test.operator {
        "" => Predicate::always(),
        "=" => Predicate::of(Atom::Client(vec![test.value.to_owned()])),
        "~" | "~*" => {
            let is_anchored = test.value.starts_with('^');
            let nets = words(test.value).filter(|_| is_anchored).and_then(|words| {
                let ends = test.value.ends_with('$');
                words.iter().map(|word| network(word, ends)).collect::<Option<Vec<_>>>()
            });
            nets.map_or_else(Predicate::unknown, |nets| Predicate::of(Atom::Client(nets)))
        }
        _ => Predicate::unknown(),
    }
}

/// The network of all addresses that begin with `start`, whole numbers with dots behind them.
fn network(start: &str, is_whole: bool) -> Option<String> {
    let numbers = start.strip_suffix('.').unwrap_or(start);
    let parts: Vec<&str> = numbers.split('.').collect();
    let are_numbers = parts.iter().all(|part| part.parse::<u8>().is_ok());
    match parts.len() {
        4 if are_numbers && is_whole => Some(start.to_owned()),
        1..=3 if are_numbers && start.ends_with('.') && !is_whole => {
            let rest = ".0".repeat(4 - parts.len());
            Some(format!("{numbers}{rest}/{}", parts.len() * 8))
        }
        _ => None,
    }
}
