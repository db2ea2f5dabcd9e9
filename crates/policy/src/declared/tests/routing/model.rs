//! Model of rules: which route a request belongs to, and what becomes of its URL, by walking
//! through texts as the guide describes them. It shares no code with the policy.

use message::ClientClass;

/// A regular expression of the tables, and what it matches.
pub(super) struct KnownExpression {
    pub(super) text: &'static str,
    captures: fn(&str) -> Option<Vec<String>>,
}

/// The expressions of paths.
pub(super) const EXPRESSIONS: [KnownExpression; 3] = [
    KnownExpression { text: "~ ^/([ab])/([0-9]+)$", captures: letter_and_number },
    KnownExpression { text: "~* ^/A/.*D$", captures: from_a_to_d },
    KnownExpression { text: "~ b", captures: with_a_b },
];

fn letter_and_number(path: &str) -> Option<Vec<String>> {
    let (letter, number) = path.strip_prefix('/')?.split_once('/')?;
    let is_number = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
    let is_it = matches!(letter, "a" | "b") && is_number;
    is_it.then(|| vec![letter.to_owned(), number.to_owned()])
}

fn from_a_to_d(path: &str) -> Option<Vec<String>> {
    let low = path.to_ascii_lowercase();
    low.strip_prefix("/a/").is_some_and(|rest| rest.ends_with('d')).then(Vec::new)
}

fn with_a_b(path: &str) -> Option<Vec<String>> {
    path.contains('b').then(Vec::new)
}

/// The values that something should have.
#[derive(Clone, Debug)]
pub(super) enum Values {
    Any,
    None,
    Like(Vec<String>),
}

/// A name and the values that it should have.
#[derive(Clone, Debug)]
pub(super) struct Named {
    pub(super) name: String,
    pub(super) values: Values,
}

/// A key of `when`.
#[derive(Clone, Debug)]
pub(super) enum Key {
    Header(Vec<Named>),
    Cookie(Vec<Named>),
    Query(Vec<Named>),
    Client(Vec<String>),
    Country(Vec<String>),
    UserAgent(Vec<String>),
    Class(Vec<ClientClass>),
    Not(Box<Scope>),
}

/// The requests that a route is for.
#[derive(Clone, Debug)]
pub(super) struct Scope {
    pub(super) paths: Vec<String>,
    pub(super) methods: Vec<String>,
    pub(super) keys: Vec<Key>,
}

/// The action of a route.
#[derive(Clone, Debug)]
pub(super) enum Action {
    Nothing,
    NoCache,
    Deny,
    Rewrite(String),
    Redirect(String),
}

/// A route.
#[derive(Clone, Debug)]
pub(super) struct Route {
    pub(super) scope: Scope,
    pub(super) action: Action,
}

/// A name and a value of a request.
#[derive(Clone, Debug)]
pub(super) struct Pair {
    pub(super) name: String,
    pub(super) value: String,
}

/// A path as it was sent, and as origins may read it.
#[derive(Clone, Debug)]
pub(super) struct Spelling {
    pub(super) sent: String,
    pub(super) normal: String,
    pub(super) literal: String,
    /// As servers read it that know of parameters, or take an escaped backslash for a slash.
    pub(super) lenient: Option<String>,
}

/// A request.
#[derive(Clone, Debug)]
pub(super) struct Visit {
    pub(super) method: String,
    pub(super) path: Spelling,
    pub(super) query: Vec<Pair>,
    pub(super) fields: Vec<Pair>,
    pub(super) cookies: Vec<Pair>,
    pub(super) agent: Option<String>,
    pub(super) client: String,
    pub(super) class: Option<ClientClass>,
}

/// The routes of a request; 0 is the site's own settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chosen {
    pub(super) own: usize,
    pub(super) also: Option<usize>,
}

/// The parts of a text that the stars of a pattern stand for, each as long as it can be. A star at
/// the pattern's start or end, and two stars, stand for parts with slashes in them, too.
fn glob(pattern: &[char], text: &[char], is_start: bool) -> Option<Vec<String>> {
    let Some((first, rest)) = pattern.split_first() else {
        return text.is_empty().then(Vec::new);
    };
    let (crosses, rest) = match (first, rest) {
        ('*', ['*', rest @ ..]) => (true, rest),
        ('*', rest) => (is_start || rest.is_empty(), rest),
        ('?', rest) => {
            let (one, after) = text.split_first()?;
            return (*one != '/').then(|| glob(rest, after, false)).flatten();
        }
        (letter, rest) => {
            let (one, after) = text.split_first()?;
            return (one == letter).then(|| glob(rest, after, false)).flatten();
        }
    };
    let longest = match crosses {
        true => text.len(),
        false => text.iter().position(|c| *c == '/').unwrap_or(text.len()),
    };
    (0..=longest).rev().find_map(|len| {
        let mut found = vec![text[..len].iter().collect()];
        found.extend(glob(rest, &text[len..], false)?);
        Some(found)
    })
}

/// The parts that the stars or groups of a pattern of paths stand for.
fn captures(pattern: &str, path: &str) -> Option<Vec<String>> {
    if let Some(known) = EXPRESSIONS.iter().find(|known| known.text == pattern) {
        return (known.captures)(path);
    }
    let chars = |text: &str| text.chars().collect::<Vec<_>>();
    glob(&chars(pattern), &chars(path), true)
}

/// Returns true if a text is like a pattern with stars.
fn is_like(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((start, rest)) => text.strip_prefix(start).is_some_and(|after| {
            (0..=after.len()).any(|at| after.is_char_boundary(at) && is_like(rest, &after[at..]))
        }),
    }
}

fn is_any_like(patterns: &[String], text: &str) -> bool {
    patterns.iter().any(|pattern| is_like(pattern, text))
}

fn is_met(named: &Named, pairs: &[Pair], is_name: impl Fn(&str, &str) -> bool) -> bool {
    let mut own = pairs.iter().filter(|pair| is_name(&named.name, &pair.name));
    match &named.values {
        Values::Any => own.next().is_some(),
        Values::None => own.next().is_none(),
        Values::Like(patterns) => own.any(|pair| is_any_like(patterns, &pair.value)),
    }
}

/// A parameter's name without the escapes that the tables have.
fn unescaped(name: &str) -> String {
    name.replace("%71", "q").replace("%72", "r")
}

/// The country of an address, as the tables' database has it.
fn country(client: &str) -> Option<&'static str> {
    match client {
        _ if client.starts_with("192.0.2.") => Some("SE"),
        _ if client.starts_with("2001:db8:") => Some("DE"),
        _ => None,
    }
}

/// Returns true if an address is in a network: one that ends at a byte or group, or one address.
fn is_in(net: &str, client: &str) -> bool {
    match net.split_once("/") {
        Some((start, _)) => client.starts_with(start.trim_end_matches(['0', ':'])),
        None => net == client,
    }
}

impl Key {
    fn holds(&self, visit: &Visit, path: &str) -> bool {
        let spelt = |name: &str| name.to_ascii_lowercase().replace('_', "-");
        match self {
            Self::Header(tests) => tests.iter().any(|test| {
                is_met(test, &visit.fields, |wanted, name| spelt(wanted) == spelt(name))
            }),
            Self::Cookie(tests) => tests.iter().any(|test| is_met(test, &visit.cookies, is_like)),
            Self::Query(tests) => tests.iter().any(|test| {
                is_met(test, &visit.query, |wanted, name| is_like(wanted, &unescaped(name)))
            }),
            Self::Client(nets) => nets.iter().any(|net| is_in(net, &visit.client)),
            Self::Country(codes) => {
                country(&visit.client).is_some_and(|own| codes.iter().any(|code| code == own))
            }
            Self::UserAgent(texts) => visit.agent.as_ref().is_some_and(|agent| {
                let agent = agent.to_ascii_lowercase();
                texts.iter().any(|text| is_like(&format!("*{}*", text.to_lowercase()), &agent))
            }),
            Self::Class(classes) => visit.class.is_some_and(|class| classes.contains(&class)),
            Self::Not(scope) => !scope.has(visit, path),
        }
    }

    /// The words by which it is told of.
    pub(super) fn words(&self) -> &'static str {
        match self {
            Self::Header(_) => "header ",
            Self::Cookie(_) => "cookie ",
            Self::Query(_) => "query ",
            Self::Client(_) => "client ",
            Self::Country(_) => "country ",
            Self::UserAgent(_) => "user_agent ",
            Self::Class(_) => "class ",
            Self::Not(_) => "not (",
        }
    }
}

impl Scope {
    /// Returns true if path and method are those of requests in it.
    pub(super) fn is_for(&self, visit: &Visit, path: &str) -> bool {
        (self.paths.is_empty() || self.captures(path).is_some())
            && (self.methods.is_empty() || self.methods.contains(&visit.method))
    }

    pub(super) fn has(&self, visit: &Visit, path: &str) -> bool {
        self.is_for(visit, path) && self.keys.iter().all(|key| key.holds(visit, path))
    }

    /// The first pattern that fits.
    pub(super) fn pattern_of(&self, path: &str) -> Option<&str> {
        let found = self.paths.iter().find(|pattern| captures(pattern, path).is_some());
        found.map(String::as_str)
    }

    /// The parts that the stars or groups of the first pattern that fits stand for.
    pub(super) fn captures(&self, path: &str) -> Option<Vec<String>> {
        self.paths.iter().find_map(|pattern| captures(pattern, path))
    }
}

/// The scripts that a path may run with the rest as its path info.
fn scripts(path: &str) -> Vec<String> {
    let ends = path.match_indices('/').map(|(at, _)| &path[..at]);
    ends.filter(|start| start.ends_with(".php")).map(str::to_owned).collect()
}

/// The route of a request in one reading of its path.
fn route_of(routes: &[Route], visit: &Visit, path: &str) -> usize {
    let found = routes.iter().position(|route| route.scope.has(visit, path));
    found.map_or(0, |at| at + 1)
}

fn is_guard(routes: &[Route], number: usize) -> bool {
    let action = number.checked_sub(1).map(|at| &routes[at].action);
    matches!(action, Some(Action::NoCache | Action::Deny | Action::Redirect(_)))
}

/// The routes of a request. `None` if its path can be read in ways that lead too far apart.
pub(super) fn chosen(routes: &[Route], visit: &Visit) -> Option<Chosen> {
    let Spelling { normal, literal, lenient, .. } = &visit.path;
    let own = route_of(routes, visit, normal);
    if own != route_of(routes, visit, literal) {
        return None;
    }
    let of_normal = scripts(normal);
    let of_lenient = lenient.iter().flat_map(|path| scripts(path));
    let others = of_normal.iter().cloned().chain(of_lenient).chain(lenient.clone());
    let mut others: Vec<_> = others.map(|path| route_of(routes, visit, &path)).collect();
    others.retain(|other| *other != own);
    others.sort_unstable();
    others.dedup();
    match others[..] {
        [] => Some(Chosen { own, also: None }),
        [other] => {
            let (own_guards, other_guards) = (is_guard(routes, own), is_guard(routes, other));
            let is_script = !of_normal.is_empty() && own_guards == other_guards;
            match other_guards && !own_guards || is_script {
                true => Some(Chosen { own: other, also: Some(own) }),
                false => Some(Chosen { own, also: Some(other) }),
            }
        }
        _ => None,
    }
}

/// A text with captures in the place of `$1` and `$2`. `None` if there are too few.
pub(super) fn filled(text: &str, captures: &[String]) -> Option<String> {
    let mut filled = text.to_owned();
    for (at, variable) in ["$1", "$2"].into_iter().enumerate() {
        if text.contains(variable) {
            filled = filled.replace(variable, captures.get(at)?);
        }
    }
    Some(filled)
}

/// Returns true if a path leads upwards.
pub(super) fn leads_upwards(path: &str) -> bool {
    path.split('/').any(|segment| segment.split(';').next() == Some(".."))
}
