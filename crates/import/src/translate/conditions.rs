//! Reasons for which a request goes past the cache: variables that `set`, `if` and `map` fill, back
//! to the cookies, fields, parameters and paths that they look at.

use super::chain::Chain;
use super::state::World;
use crate::syntax::Directive;

/// Variables behind variables that are followed.
const DEPTH_MAX: u32 = 8;

/// One thing that a request is looked at for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    /// Cookies, as `bypass.cookie` names them.
    Cookies(Vec<String>),
    /// A pattern of paths.
    Path(String),
    /// Any query.
    Query,
    /// A parameter of the query.
    Parameter(String),
    /// A request field.
    Field(String),
    /// It is so by itself here: other methods are never stored, for example.
    Always,
}

/// A condition and the directives that say it.
#[derive(Clone, Debug)]
pub(crate) struct Reason {
    pub(crate) condition: Condition,
    pub(crate) from: Vec<usize>,
}

/// A question of an `if`: a variable, an operator and a value; a bare variable has no operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Question<'d> {
    pub(crate) variable: &'d str,
    pub(crate) operator: &'d str,
    pub(crate) value: &'d str,
}

/// The question of an `if`, whose parentheses may stand close to the words or alone.
pub(crate) fn question(directive: &Directive) -> Option<Question<'_>> {
    let mut words: Vec<&str> = directive.args.iter().map(String::as_str).collect();
    let first = words.first_mut()?;
    *first = first.strip_prefix('(')?;
    let last = words.last_mut()?;
    *last = last.strip_suffix(')')?;
    let end = words.len() - 1;
    let is_mark = |at: usize, word: &str| word.is_empty() && (at == 0 || at == end);
    let words: Vec<&str> = words
        .iter()
        .enumerate()
        .filter(|(at, word)| !is_mark(*at, word))
        .map(|(_, w)| *w)
        .collect();
    match words.as_slice() {
        [variable] => Some(Question { variable, operator: "", value: "" }),
        [operator, value] if operator.starts_with(['-', '!']) => {
            Some(Question { variable: value, operator, value: "" })
        }
        // An empty value leaves no word where a quote is all that it has.
        [variable, operator] => Some(Question { variable, operator, value: "" }),
        [variable, operator, value] => Some(Question { variable, operator, value }),
        _ => None,
    }
}

/// The reasons that the variables in `text` stand for; `None` if one of them is not understood.
pub(crate) fn reasons(world: &World<'_>, chain: &Chain<'_>, text: &str) -> Option<Vec<Reason>> {
    Search { world, chain }.of_text(text, DEPTH_MAX)
}

struct Search<'s, 'd> {
    world: &'s World<'d>,
    chain: &'s Chain<'d>,
}

impl Search<'_, '_> {
    fn of_text(&self, text: &str, depth: u32) -> Option<Vec<Reason>> {
        let mut reasons = Vec::new();
        for part in text.split('$').skip(1) {
            let end = |c: char| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '{' | '}');
            let name = part.split(end).next().unwrap_or(part).trim_matches(['{', '}']);
            reasons.extend(self.of_variable(name, depth)?);
        }
        Some(reasons)
    }

    fn of_variable(&self, name: &str, depth: u32) -> Option<Vec<Reason>> {
        let depth = depth.checked_sub(1)?;
        if let Some(condition) = of_builtin(name) {
            return Some(vec![Reason { condition, from: Vec::new() }]);
        }
        if let Some(map) = self.world.maps.get(name).filter(|map| map.name == "map") {
            return self.of_map(map, depth);
        }
        self.of_sets(name, depth)
    }

    /// Follows `set`, by itself and in every `if`.
    fn of_sets(&self, name: &str, depth: u32) -> Option<Vec<Reason>> {
        let (mut reasons, mut is_known) = (Vec::new(), false);
        let is_own =
            |set: &&Directive| set.name == "set" && set.arg(0).trim_start_matches('$') == name;
        for set in self.chain.every("set").into_iter().filter(is_own) {
            is_known = true;
            reasons.push(Reason { condition: Condition::Always, from: vec![set.id] });
            if !is_off(set.arg(1)) {
                reasons.extend(with(self.of_text(set.arg(1), depth)?, set.id));
            }
        }
        for block in self.chain.every("if") {
            for set in block.children().iter().filter(is_own) {
                is_known = true;
                let from = [block.id, set.id];
                if is_off(set.arg(1)) {
                    return None;
                }
                let own = self.of_question(&question(block)?, depth)?;
                reasons.extend(own.into_iter().map(|reason| with_all(reason, &from)));
            }
        }
        is_known.then_some(reasons)
    }

    fn of_map(&self, map: &Directive, depth: u32) -> Option<Vec<Reason>> {
        let mut reasons = vec![Reason { condition: Condition::Always, from: vec![map.id] }];
        for entry in map.children() {
            let (key, value) = (entry.name.as_str(), entry.arg(0));
            if is_off(value) || matches!(key, "hostnames" | "volatile") {
                reasons.push(Reason { condition: Condition::Always, from: vec![entry.id] });
                continue;
            }
            if key == "default" {
                return None;
            }
            let (operator, value) = match key {
                key if key.starts_with("~*") => ("~*", &key[2..]),
                key if key.starts_with('~') => ("~", &key[1..]),
                key => ("=", key.trim_start_matches('\\')),
            };
            let question = Question { variable: map.arg(0), operator, value };
            reasons.extend(with(self.of_question(&question, depth)?, entry.id));
        }
        Some(reasons)
    }

    fn of_question(&self, question: &Question<'_>, depth: u32) -> Option<Vec<Reason>> {
        let Question { variable, operator, value } = *question;
        let name = variable.strip_prefix('$')?.trim_matches(['{', '}']);
        let one = |condition| Some(vec![Reason { condition, from: Vec::new() }]);
        match (name, operator) {
            ("request_method", _) if !admits_get(operator, value) => one(Condition::Always),
            ("args" | "query_string", "!=") if value.is_empty() => one(Condition::Query),
            ("args" | "query_string", "~" | "~*") => one(Condition::Query),
            ("request_uri" | "uri" | "document_uri", "=") if value.starts_with('/') => {
                one(Condition::Path(value.to_owned()))
            }
            ("request_uri" | "uri" | "document_uri", "~" | "~*") if !value.contains(r"\?") => {
                one(Condition::Path(format!("{operator} {value}")))
            }
            ("http_cookie", "~" | "~*") => one(Condition::Cookies(cookies(value)?)),
            (_, "" | "=" | "~" | "~*") if !is_off(value) || operator.is_empty() => {
                self.of_variable(name, depth)
            }
            (_, "!=") if is_off(value) => self.of_variable(name, depth),
            _ => None,
        }
    }
}

fn with(reasons: Vec<Reason>, id: usize) -> Vec<Reason> {
    reasons.into_iter().map(|reason| with_all(reason, &[id])).collect()
}

fn with_all(mut reason: Reason, from: &[usize]) -> Reason {
    reason.from.extend(from);
    reason
}

/// Values that nginx takes for no.
fn is_off(value: &str) -> bool {
    matches!(value, "" | "0")
}

fn of_builtin(name: &str) -> Option<Condition> {
    match name {
        "args" | "query_string" | "is_args" => Some(Condition::Query),
        "http_cookie" => Some(Condition::Cookies(vec!["*".to_owned()])),
        _ if name.starts_with("upstream_http_set_cookie") => Some(Condition::Always),
        _ => {
            let of = |prefix| name.strip_prefix(prefix).map(str::to_owned);
            of("cookie_")
                .map(|cookie| Condition::Cookies(vec![cookie]))
                .or_else(|| of("arg_").map(Condition::Parameter))
                .or_else(|| of("http_").map(|field| Condition::Field(field_name(&field))))
        }
    }
}

/// The name of a field whose variable nginx calls `http_` and this.
pub(crate) fn field_name(variable: &str) -> String {
    let word = |word: &str| {
        let mut letters = word.chars();
        let first = letters.next().map(|letter| letter.to_ascii_uppercase());
        first.into_iter().chain(letters).collect::<String>()
    };
    variable.split('_').map(word).collect::<Vec<_>>().join("-")
}

/// Tells whether a question about the method may be answered yes for GET.
fn admits_get(operator: &str, value: &str) -> bool {
    match operator {
        "=" => matches!(value, "GET" | "HEAD"),
        "~" | "~*" => value.contains("GET"),
        "!~" | "!~*" => !value.contains("GET"),
        "!=" => value != "GET",
        _ => true,
    }
}

/// Patterns of cookies that fit at least where the expression fits a name.
pub(crate) fn cookies(expression: &str) -> Option<Vec<String>> {
    let whole = expression.strip_prefix('(').and_then(|inner| inner.strip_suffix(')'));
    let inner = whole.filter(|inner| !inner.contains(['(', ')'])).unwrap_or(expression);
    let (mut parts, mut depth, mut begin) = (Vec::new(), 0_i32, 0);
    for (at, c) in inner.char_indices() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            '|' if depth == 0 => {
                parts.push(&inner[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&inner[begin..]);
    parts.into_iter().map(cookie).collect()
}

fn cookie(alternative: &str) -> Option<String> {
    let text = alternative.trim().trim_start_matches('^');
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '-'));
    let mut literal = &text[..end.unwrap_or(text.len())];
    // A letter that may be missing is no part of what every match has.
    if end.is_some_and(|end| matches!(text.as_bytes()[end], b'*' | b'?' | b'{')) {
        literal = &literal[..literal.len().saturating_sub(1)];
    }
    (!literal.is_empty()).then(|| format!("*{literal}*"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parser::parse;

    #[test]
    fn the_variable_of_a_tutorial_is_followed_to_what_it_looks_at() {
        let text = "set $skip 0;\n\
            if ($request_method = POST) { set $skip 1; }\n\
            if ($query_string != \"\") { set $skip 1; }\n\
            if ($request_uri ~* \"/wp-admin/|/feed\") { set $skip 1; }\n\
            if ($http_cookie ~* \"comment_author|wordpress_[a-f0-9]+|colou?r\") { set $skip 1; }\n";
        let directives = parse("x", text).expect("well-formed");
        let chain = Chain::new(vec![&directives]);
        let found = reasons(&World::default(), &chain, "$skip").expect("understood");
        let conditions: Vec<_> = found.into_iter().map(|reason| reason.condition).collect();
        let cookies = ["*comment_author*", "*wordpress_*", "*colo*"].map(str::to_owned);
        assert_eq!(
            conditions,
            [
                Condition::Always,
                Condition::Always,
                Condition::Query,
                Condition::Path("~* /wp-admin/|/feed".to_owned()),
                Condition::Cookies(cookies.to_vec()),
            ]
        );
    }

    #[test]
    fn what_is_not_understood_is_no_list_of_reasons() {
        for text in ["set $skip $host;", "if ($host = a) { set $skip 1; }", "set $x 1;"] {
            let directives = parse("x", text).expect("well-formed");
            let chain = Chain::new(vec![&directives]);
            assert!(reasons(&World::default(), &chain, "$skip").is_none(), "{text}");
        }
    }
}
