//! Values of variables that `set`, `if`, `map` and `geo` fill: a list of cases, each with the
//! predicate of its requests.

use std::cell::Cell;

use super::chain::Chain;
use super::conditions::Question;
use super::conditions::question;
use super::predicate::{Atom, NameKind, Predicate};
use super::questions::{ServerFacts, Test, builtin};
use super::state::World;
use crate::syntax::Directive;

/// Variables behind variables that are followed.
const DEPTH_MAX: u32 = 24;

/// Steps of one question: variables that are made of each other need as many as the powers of two.
const STEPS_MAX: u32 = 5_000;

/// Values of one variable.
const CASES_MAX: usize = 2_000;

/// A value, and the requests for which a variable has it.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) when: Predicate,
    /// The text, in which nginx's own variables may stand; `None` if it is not known.
    pub(crate) value: Option<String>,
}

/// A piece of a text with variables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TextPiece<'t> {
    Plain(&'t str),
    Variable(&'t str),
}

/// The pieces of a text.
pub(crate) fn pieces(text: &str) -> Vec<TextPiece<'_>> {
    let (mut all, mut rest) = (Vec::new(), text);
    while let Some(at) = rest.find('$') {
        if at > 0 {
            all.push(TextPiece::Plain(&rest[..at]));
        }
        let behind = &rest[at + 1..];
        let braced = behind.strip_prefix('{').and_then(|inner| inner.split_once('}'));
        let (name, after) = braced.unwrap_or_else(|| {
            let is_digit = behind.starts_with(|c: char| c.is_ascii_digit());
            let end = behind.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            behind.split_at(if is_digit { 1 } else { end.unwrap_or(behind.len()) })
        });
        all.push(TextPiece::Variable(name));
        rest = after;
    }
    if !rest.is_empty() {
        all.push(TextPiece::Plain(rest));
    }
    all
}

/// The values of variables at one place of a configuration.
#[derive(Clone, Debug)]
pub(crate) struct Evaluator<'s, 'd> {
    world: &'s World<'d>,
    chain: Chain<'d>,
    server: ServerFacts<'s>,
    /// Of the innermost block, only directives before this one count.
    before: usize,
}

/// Bounds of one question.
struct QuestionBounds<'b> {
    depth: u32,
    steps: &'b Cell<u32>,
}

impl QuestionBounds<'_> {
    fn deeper(&self) -> Option<QuestionBounds<'_>> {
        let steps = self.steps.get().checked_sub(1)?;
        self.steps.set(steps);
        Some(QuestionBounds { depth: self.depth.checked_sub(1)?, steps: self.steps })
    }
}

fn opaque() -> Vec<Case> {
    vec![Case { when: Predicate::unknown(), value: None }]
}

impl<'s, 'd> Evaluator<'s, 'd> {
    /// The place at the end of `chain`.
    pub(crate) fn new(world: &'s World<'d>, chain: &Chain<'d>, server: ServerFacts<'s>) -> Self {
        Self { world, chain: chain.clone(), server, before: usize::MAX }
    }

    /// The place before the directive of this number in the innermost block.
    pub(crate) fn before(mut self, id: usize) -> Self {
        self.before = id;
        self
    }

    /// The requests for which the answer is yes.
    pub(crate) fn question(&self, asked: &Question<'_>) -> Predicate {
        let steps = Cell::new(STEPS_MAX);
        self.asked(asked, &QuestionBounds { depth: DEPTH_MAX, steps: &steps })
    }

    /// The values of a text, the first case that holds before others.
    pub(crate) fn cases(&self, text: &str) -> Vec<Case> {
        let steps = Cell::new(STEPS_MAX);
        self.text(text, &QuestionBounds { depth: DEPTH_MAX, steps: &steps })
    }

    /// The requests for which a text is neither empty nor a zero.
    pub(crate) fn is_true(&self, text: &str) -> Predicate {
        let test = Test { operator: "", value: "", ignores_case: false };
        let steps = Cell::new(STEPS_MAX);
        let bounds = QuestionBounds { depth: DEPTH_MAX, steps: &steps };
        match pieces(text).as_slice() {
            [TextPiece::Variable(name)] => self.test(name, test, &bounds),
            _ => self.select(&self.text(text, &bounds), test),
        }
    }

    /// Tells whether a variable is one that the configuration fills.
    pub(crate) fn is_own(&self, name: &str) -> bool {
        let steps = Cell::new(STEPS_MAX);
        self.variable(name, &QuestionBounds { depth: DEPTH_MAX, steps: &steps }).is_some()
    }

    fn asked(&self, asked: &Question<'_>, bounds: &QuestionBounds<'_>) -> Predicate {
        let Question { variable, operator, value } = *asked;
        let Some(name) = variable.strip_prefix('$').map(|name| name.trim_matches(['{', '}']))
        else {
            return Predicate::unknown();
        };
        let has_variable = matches!(operator, "=" | "!=") && value.contains('$');
        if operator.contains('-') || has_variable {
            return Predicate::unknown();
        }
        self.test(name, Test { operator, value, ignores_case: false }, bounds)
    }

    fn test(&self, name: &str, test: Test<'_>, bounds: &QuestionBounds<'_>) -> Predicate {
        match self.variable(name, bounds) {
            Some(cases) => self.select(&cases, test),
            None => builtin(name, test, self.server).unwrap_or_else(Predicate::unknown),
        }
    }

    /// The requests for which the value that counts passes the test.
    fn select(&self, cases: &[Case], test: Test<'_>) -> Predicate {
        let mut all = Predicate::never();
        let mut others = Predicate::never();
        let mut from = Vec::new();
        for Case { when, value } in cases {
            from.extend(&when.from);
            let own = when.and(&others.not());
            let answer = match value.as_deref().map(pieces).as_deref() {
                None => None,
                Some([]) => test.holds_for(""),
                Some([TextPiece::Plain(text)]) => test.holds_for(text),
                Some([TextPiece::Variable(name)]) => {
                    let inner = builtin(name, test, self.server);
                    all = all.or(&own.and(&inner.unwrap_or_else(Predicate::unknown)));
                    others = others.or(when);
                    continue;
                }
                // Beside a variable there is a text.
                Some(
                    pieces @ ([TextPiece::Plain(_), TextPiece::Variable(_)]
                    | [TextPiece::Variable(_), TextPiece::Plain(_)]),
                ) if test.operator == "=" => {
                    all = all.or(&own.and(&self.beside(pieces, test)));
                    others = others.or(when);
                    continue;
                }
                Some(pieces) => {
                    let is_text = |piece: &TextPiece<'_>| match piece {
                        TextPiece::Plain(text) => *text != "0",
                        TextPiece::Variable(_) => false,
                    };
                    let is_there =
                        test.operator.is_empty() || test.operator == "!=" && test.value.is_empty();
                    (is_there && pieces.iter().any(is_text)).then_some(true)
                }
            };
            match answer {
                Some(true) => all = all.or(&own),
                Some(false) => others = others.or(when),
                None => {
                    all = all.or(&own.inexact());
                    others = others.or(when);
                }
            }
        }
        all.with(&from)
    }

    /// The requests for which a text beside one of nginx's own variables is the value.
    fn beside(&self, pieces: &[TextPiece<'_>], test: Test<'_>) -> Predicate {
        let (name, rest) = match pieces {
            [TextPiece::Plain(text), TextPiece::Variable(name)] => {
                (name, test.value.strip_prefix(text))
            }
            [TextPiece::Variable(name), TextPiece::Plain(text)] => {
                (name, test.value.strip_suffix(text))
            }
            _ => return Predicate::unknown(),
        };
        match rest {
            Some(value) => builtin(name, Test { value, ..test }, self.server)
                .unwrap_or_else(Predicate::unknown),
            None => Predicate::never(),
        }
    }

    /// The values of a variable; `None` for one of nginx's own.
    fn variable(&self, name: &str, bounds: &QuestionBounds<'_>) -> Option<Vec<Case>> {
        let Some(bounds) = bounds.deeper() else { return Some(opaque()) };
        if let Some(map) = self.world.maps.get(name) {
            return Some(match map.name.as_str() {
                "map" => self.map(map, &bounds),
                "geo" => geo(map),
                _ => opaque(),
            });
        }
        if name == "invalid_referer" {
            return Some(self.referer());
        }
        self.sets(name, &bounds)
    }

    fn text(&self, text: &str, bounds: &QuestionBounds<'_>) -> Vec<Case> {
        let mut all = vec![Case { when: Predicate::always(), value: Some(String::new()) }];
        for piece in pieces(text) {
            let (plain, inner) = match piece {
                TextPiece::Plain(plain) => (plain.to_owned(), None),
                TextPiece::Variable(name) => (format!("${{{name}}}"), self.variable(name, bounds)),
            };
            let Some(inner) = inner else {
                for case in &mut all {
                    case.value.iter_mut().for_each(|value| value.push_str(&plain));
                }
                continue;
            };
            if all.len() * inner.len() > CASES_MAX {
                return opaque();
            }
            let both = all.iter().flat_map(|one| {
                inner.iter().map(|two| Case {
                    when: one.when.and(&two.when),
                    value: one
                        .value
                        .as_ref()
                        .zip(two.value.as_ref())
                        .map(|(a, b)| format!("{a}{b}")),
                })
            });
            all = both.collect();
        }
        all
    }

    /// Follows `set` in its order, by itself and in every `if`.
    fn sets(&self, name: &str, bounds: &QuestionBounds<'_>) -> Option<Vec<Case>> {
        let is_own = |set: &Directive| {
            set.name == "set" && set.arg(0).trim_start_matches('$').trim_matches(['{', '}']) == name
        };
        let mut cases = vec![Case { when: Predicate::always(), value: Some(String::new()) }];
        let mut is_known = false;
        let last = self.chain.blocks().len().saturating_sub(1);
        for (at, block) in self.chain.blocks().iter().enumerate() {
            for own in block.iter().take_while(|own| at < last || own.id < self.before) {
                let place = || {
                    let chain = self.chain.upto(at);
                    Self { chain, before: own.id, ..self.clone() }
                };
                if is_own(own) {
                    is_known = true;
                    cases = place().text(own.arg(1), bounds);
                    cases.iter_mut().for_each(|case| case.when.from.push(own.id));
                }
                if own.name != "if" {
                    continue;
                }
                for set in own.children().iter().filter(|set| is_own(set)) {
                    is_known = true;
                    let asked = question(own);
                    let when = match &asked {
                        Some(asked) => place().asked(asked, bounds),
                        None => Predicate::unknown(),
                    };
                    let when = when.with(&[own.id, set.id]);
                    let values = place().text(set.arg(1), bounds).into_iter();
                    let mut new: Vec<Case> = values
                        .map(|case| Case { when: when.and(&case.when), value: case.value })
                        .collect();
                    if new.len() + cases.len() > CASES_MAX {
                        return Some(opaque());
                    }
                    new.append(&mut cases);
                    cases = new;
                }
            }
        }
        is_known.then_some(cases)
    }

    fn map(&self, map: &Directive, bounds: &QuestionBounds<'_>) -> Vec<Case> {
        if map.children().len() > CASES_MAX {
            return opaque();
        }
        let source = map.arg(0);
        let has_hosts = map.children().iter().any(|own| own.name == "hostnames");
        let kind = |own: &Directive| match own.name.as_str() {
            "default" => 3,
            "hostnames" | "volatile" => 4,
            key if key.starts_with('~') => 2,
            key if has_hosts && (key.contains('*') || key.starts_with('.')) => 1,
            _ => 0,
        };
        let mut entries: Vec<&Directive> = map.children().iter().collect();
        entries.sort_by_key(|own| kind(own));
        let from: Vec<usize> = std::iter::once(map.id)
            .chain(entries.iter().filter(|own| kind(own) == 4).map(|own| own.id))
            .collect();
        let mut cases = Vec::new();
        for own in entries.iter().filter(|own| kind(own) < 4) {
            let when = if kind(own) == 3 {
                Predicate::always()
            } else {
                self.map_key(source, &own.name, kind(own) == 1, bounds)
            };
            let when = when.with(&from).with(&[own.id]);
            let values = self.text(own.arg(0), bounds);
            cases.extend(
                values
                    .into_iter()
                    .map(|case| Case { when: when.and(&case.when), value: case.value }),
            );
        }
        cases.push(Case { when: Predicate::always().with(&from), value: Some(String::new()) });
        cases
    }

    fn map_key(
        &self,
        source: &str,
        key: &str,
        is_host: bool,
        bounds: &QuestionBounds<'_>,
    ) -> Predicate {
        let expression;
        let (operator, value) = match key {
            key if is_host => {
                let name = key.trim_start_matches('*').trim_start_matches('.');
                expression = match name.strip_suffix(".*") {
                    Some(name) => format!("^{}\\.", linear::escape(name)),
                    None => format!("^(?:.*\\.)?{}$", linear::escape(name)),
                };
                ("~*", expression.as_str())
            }
            key if key.starts_with("~*") => ("~*", &key[2..]),
            key if key.starts_with('~') => ("~", &key[1..]),
            key => ("=", key.strip_prefix('\\').unwrap_or(key)),
        };
        let test = Test { operator, value, ignores_case: true };
        match pieces(source).as_slice() {
            [TextPiece::Variable(name)] => self.test(name, test, bounds),
            _ => {
                let cases = self.text(source, bounds);
                self.select(&cases, test)
            }
        }
    }

    /// `$invalid_referer`, as `valid_referers` says.
    fn referer(&self) -> Vec<Case> {
        let all = self.chain.all(&["valid_referers"]);
        let from: Vec<usize> = all.iter().map(|own| own.id).collect();
        let like = |pattern: String| Predicate::named(NameKind::Header, "Referer", vec![pattern]);
        let mut valid = Predicate::never();
        for word in all.iter().flat_map(|own| &own.args) {
            let one = match word.as_str() {
                "none" => like("~ .".to_owned()).not(),
                "blocked" => like("~* ^https?://".to_owned()).not(),
                "server_names" => self
                    .server
                    .hosts
                    .iter()
                    .filter(|host| *host != "*")
                    .fold(Predicate::never(), |all, host| all.or(&like(referer_host(host)))),
                word => match word.strip_prefix('~') {
                    Some(expression) => like(format!("~* ^https?://(?:{expression})")),
                    None => like(referer_host(word)),
                },
            };
            valid = valid.or(&one);
        }
        vec![
            Case { when: valid.with(&from), value: Some(String::new()) },
            Case { when: Predicate::always().with(&from), value: Some("1".to_owned()) },
        ]
    }
}

/// The pattern of Referer for a host, which may have a path behind it.
fn referer_host(host: &str) -> String {
    let (name, path) = match host.find('/') {
        Some(at) => host.split_at(at),
        None => (host, ""),
    };
    let name = match name.strip_prefix("*.").or_else(|| name.strip_prefix('.')) {
        Some(name) => format!("(?:[^/]*\\.)?{}", linear::escape(name)),
        None => match name.strip_suffix(".*") {
            Some(name) => format!("{}\\.[^/:]*", linear::escape(name)),
            None => linear::escape(name),
        },
    };
    let end = if path.is_empty() { "(?:[:/]|$)".to_owned() } else { linear::escape(path) };
    format!("~* ^https?://{name}{end}")
}

/// Addresses and their values, the smallest networks first.
fn geo(geo: &Directive) -> Vec<Case> {
    let is_of_client = match geo.args.as_slice() {
        [_] => true,
        [address, _] => matches!(address.as_str(), "$remote_addr" | "$realip_remote_addr"),
        _ => false,
    };
    let is_plain = |own: &Directive| {
        !matches!(own.name.as_str(), "ranges" | "delete") && !own.arg(0).contains('$')
    };
    if !is_of_client || !geo.children().iter().all(is_plain) {
        return opaque();
    }
    let mut from = vec![geo.id];
    let mut entries: Vec<(u8, &Directive)> = Vec::new();
    for own in geo.children() {
        match own.name.as_str() {
            "default" => entries.push((0, own)),
            // Behind trusted proxies, the client is another.
            "proxy" | "proxy_recursive" => from.push(own.id),
            net => match width(net) {
                Some(width) => entries.push((width, own)),
                None => return opaque(),
            },
        }
    }
    entries.sort_by_key(|(width, _)| u8::MAX - width);
    let mut cases: Vec<Case> = entries
        .iter()
        .map(|(_, own)| {
            let when = match own.name.as_str() {
                "default" => Predicate::always(),
                net => Predicate::of(Atom::Client(vec![net.to_owned()])),
            };
            Case { when: when.with(&from).with(&[own.id]), value: Some(own.arg(0).to_owned()) }
        })
        .collect();
    cases.push(Case { when: Predicate::always().with(&from), value: Some(String::new()) });
    cases
}

/// The bits of a network, counted as those of an IPv6 address, and one more; `None` for another
/// text.
fn width(net: &str) -> Option<u8> {
    let (address, bits) = match net.split_once('/') {
        Some((address, bits)) => (address, Some(bits.parse::<u8>().ok()?)),
        None => (net, None),
    };
    let address: std::net::IpAddr = address.parse().ok()?;
    let (most, more) = if address.is_ipv4() { (32, 96) } else { (128, 0) };
    Some(bits.unwrap_or(most).min(most) + more + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{Settings, written};
    use crate::parser::parse;

    /// The routes for which an `if` of this question holds, behind these directives.
    fn routes(text: &str, condition: &str) -> (Vec<String>, bool) {
        let directives =
            parse("x", &format!("{text}\nif ({condition}) {{ }}")).expect("well-formed");
        let world = World::new(&directives);
        let chain = Chain::new(vec![&directives]);
        let asked = question(directives.last().expect("the question")).expect("a question");
        let found = Evaluator::new(&world, &chain, ServerFacts::default()).question(&asked);
        let lines = found.any.iter().map(|one| {
            let mut settings = Settings::default();
            one.write(&mut settings, &[]);
            let keys = settings.0.iter();
            let keys = keys.map(|own| format!("{}={}", own.key, written(&own.value)));
            keys.collect::<Vec<_>>().join(" ")
        });
        (lines.collect(), found.is_exact)
    }

    #[test]
    fn questions_are_what_routes_look_at() {
        for (text, condition, expected) in [
            ("", "$request_method = POST", &["method=\"POST\""][..]),
            ("", "$request_method !~ ^(GET|HEAD)$", &["when.not={ method = [\"GET\", \"HEAD\"] }"]),
            ("", "$http_user_agent ~* \"curl|wget\"", &["when.user_agent=[\"curl\", \"wget\"]"]),
            ("", "$http_user_agent = \"\"", &["when.not={ header = { User-Agent = \"~ .\" } }"]),
            ("", "$http_x_key != abc", &["when.not={ header = { X-Key = \"abc\" } }"]),
            ("", "$cookie_beta", &["when.cookie={ beta = \"~ [^0]|00\" }"]),
            ("", "$arg_debug = 1", &["when.query={ debug = \"1\" }"]),
            ("", "$remote_addr ~ ^10\\.1\\.", &["when.client=\"10.1.0.0/16\""]),
            ("", "$uri = /a", &["path=\"/a\""]),
            ("", "$request_uri ~ ^/a", &["path=\"~ ^/a\""]),
            ("", "$request_uri ~ x/y", &["path=\"~ x/y\"", "when.query={ \"*\" = \"~ x/y\" }"]),
            ("", "$request_uri = /a", &["path=\"/a\" when.not={ query = { \"*\" = true } }"]),
            (
                "map $http_user_agent $bot { default 0; ~*bot 1; \"\" 1; }",
                "$bot",
                &["when.not={ header = { User-Agent = \"~ .\" } }", "when.user_agent=\"bot\""],
            ),
            (
                "geo $in { default 0; 10.0.0.0/8 1; 10.1.0.0/16 0; }",
                "$in",
                &["when.client=\"10.0.0.0/8\" when.not={ client = \"10.1.0.0/16\" }"],
            ),
            (
                "geo $in { default 1; 10.0.0.0/8 0; }",
                "$in",
                &["when.not={ client = \"10.0.0.0/8\" }"],
            ),
            (
                "set $a 0; if ($request_method = PUT) { set $a 1; } if ($http_x) { set $a 0; }",
                "$a",
                &["method=\"PUT\" when.not={ header = { X = \"~ [^0]|00\" } }"],
            ),
            (
                "set $t A; if ($http_x = 1) { set $t \"${t}B\"; } if ($uri = /y) { set $t \"${t}C\"; }",
                "$t = ABC",
                &["path=\"/y\" when.header={ X = \"1\" }"],
            ),
            (
                "map $uri $a { /x 1; } map \"$a$request_method\" $b { 1POST yes; }",
                "$b = yes",
                &["path=\"~* ^/x$\" method=\"POST\""],
            ),
        ] {
            assert_eq!(
                routes(text, condition),
                (expected.iter().map(|s| (*s).to_owned()).collect(), true),
                "{text} {condition}"
            );
        }
    }

    #[test]
    fn what_is_not_known_may_hold_for_all_that_is_not_left_out_surely() {
        for (text, condition, expected) in [
            ("", "-f $request_filename", "path=\"/*\""),
            ("", "$ssl_client_verify != SUCCESS", "path=\"/*\""),
            ("split_clients $remote_addr $x { 50% a; * b; }", "$x = a", "path=\"/*\""),
            (
                "set $d 0; if ($uri = /a) { set $d 1; } if ($geoip_country = X) { set $d 0; }",
                "$d",
                "path=\"/a\"",
            ),
        ] {
            assert_eq!(routes(text, condition), (vec![expected.to_owned()], false), "{condition}");
        }
    }

    #[test]
    fn variables_that_are_made_of_themselves_end() {
        let mut text = String::from("set $a x;");
        for _ in 0..40 {
            text.push_str("if ($http_x = 1) { set $a \"$a$a\"; }");
        }
        assert!(!routes(&text, "$a = y").1);
        assert!(!routes("map $b $a { x x; } map $a $b { x x; }", "$a").1);
    }
}
