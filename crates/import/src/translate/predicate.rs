//! Predicates about requests, in the form that routes have: alternatives, each of conditions that
//! must all hold and of exceptions.
//!
//! A predicate that cannot be said exactly holds for more requests than it should, never for fewer:
//! what keeps clients out may keep out too many.

use crate::document::{Settings, quote, quote_key};

/// Alternatives of a predicate: more of them are no rule that a person would read.
const ALTERNATIVES_MAX: usize = 64;

/// Values that a name of a request should have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    Absent,
    /// One of these patterns.
    Like(Vec<String>),
}

/// Names of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NameKind {
    Header,
    Cookie,
    Query,
}

impl NameKind {
    fn key(self) -> &'static str {
        match self {
            Self::Header => "header",
            Self::Cookie => "cookie",
            Self::Query => "query",
        }
    }
}

/// One condition, as a key of a route or of its `when`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Atom {
    Path(Vec<String>),
    Method(Vec<String>),
    Client(Vec<String>),
    UserAgent(Vec<String>),
    Named { kind: NameKind, name: String, wanted: Wanted },
}

/// Conditions that must all hold, and what is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Conjunction {
    pub(crate) atoms: Vec<Atom>,
    /// Of each, not all may hold.
    nots: Vec<Vec<Atom>>,
}

/// A predicate about requests, and the directives that say it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Predicate {
    /// One of these holds; none for a predicate that never holds.
    pub(crate) any: Vec<Conjunction>,
    /// It holds for no more requests than it should.
    pub(crate) is_exact: bool,
    pub(crate) from: Vec<usize>,
}

impl Predicate {
    /// It holds for every request.
    pub(crate) fn always() -> Self {
        Self { any: vec![Conjunction::default()], is_exact: true, from: Vec::new() }
    }

    /// It holds for no request.
    pub(crate) fn never() -> Self {
        Self { any: Vec::new(), is_exact: true, from: Vec::new() }
    }

    /// It may hold for any request.
    pub(crate) fn unknown() -> Self {
        Self { is_exact: false, ..Self::always() }
    }

    /// It holds where `atom` does.
    pub(crate) fn of(atom: Atom) -> Self {
        Self { any: vec![Conjunction { atoms: vec![atom], nots: Vec::new() }], ..Self::always() }
    }

    /// It holds for these methods, but for those that Larder answers before it looks for a route.
    pub(crate) fn methods(names: impl IntoIterator<Item = String>) -> Self {
        let is_other = |name: &String| !["TRACE", "PURGE", "BAN", "CONNECT"].contains(&&**name);
        let names: Vec<String> = names.into_iter().filter(is_other).collect();
        let is_token = |name: &String| {
            !name.is_empty() && name.bytes().all(|b| b.is_ascii_uppercase() || b == b'-')
        };
        match () {
            () if names.is_empty() => Self::never(),
            () if names.iter().all(is_token) => Self::of(Atom::Method(names)),
            () => Self::unknown(),
        }
    }

    /// It holds where a name of a request is so.
    pub(crate) fn named(kind: NameKind, name: &str, values: Vec<String>) -> Self {
        let wanted = Wanted::Like(values);
        Self::of(Atom::Named { kind, name: name.to_owned(), wanted })
    }

    /// It holds where a name of a request is missing.
    pub(crate) fn absent(kind: NameKind, name: &str) -> Self {
        Self::of(Atom::Named { kind, name: name.to_owned(), wanted: Wanted::Absent })
    }

    /// It may hold for more requests than it says.
    pub(crate) fn inexact(mut self) -> Self {
        self.is_exact = false;
        self
    }

    pub(crate) fn with(mut self, from: &[usize]) -> Self {
        self.from.extend(from);
        self.from.sort_unstable();
        self.from.dedup();
        self
    }

    /// Tells whether it holds for every request, surely.
    pub(crate) fn is_always(&self) -> bool {
        self.is_exact && self.any.contains(&Conjunction::default())
    }

    /// Tells whether it depends on the path.
    pub(crate) fn looks_at_paths(&self) -> bool {
        let is_path = |atom: &Atom| matches!(atom, Atom::Path(_));
        self.any
            .iter()
            .any(|one| one.atoms.iter().any(is_path) || one.nots.iter().flatten().any(is_path))
    }

    /// Either of both.
    pub(crate) fn or(mut self, other: &Self) -> Self {
        for one in &other.any {
            if self.any.contains(one) || self.any.iter_mut().any(|own| own.join(one)) {
                continue;
            }
            self.any.push(one.clone());
        }
        self.is_exact &= other.is_exact;
        self.bounded().with(&other.from)
    }

    /// Both.
    pub(crate) fn and(&self, other: &Self) -> Self {
        let mut all = Self { any: Vec::new(), ..self.clone() };
        all.is_exact &= other.is_exact;
        for one in &self.any {
            for two in &other.any {
                match one.and(two) {
                    Joined::Exact(both) => all.any.push(both),
                    Joined::Wider(both) => {
                        all.any.push(both);
                        all.is_exact = false;
                    }
                    Joined::Never => {}
                }
            }
        }
        all.bounded().with(&other.from)
    }

    /// The contrary.
    pub(crate) fn not(&self) -> Self {
        let mut all = Self::always().with(&self.from);
        if !self.is_exact {
            return all.inexact();
        }
        for one in &self.any {
            let mut other = Self::never();
            if !one.atoms.is_empty() {
                let nots = vec![one.atoms.clone()];
                other.any.push(Conjunction { atoms: Vec::new(), nots });
            }
            for not in &one.nots {
                other.any.push(Conjunction { atoms: not.clone(), nots: Vec::new() });
            }
            all = all.and(&other);
        }
        all
    }

    fn bounded(mut self) -> Self {
        // An alternative within another says nothing.
        let all = std::mem::take(&mut self.any);
        let is_within = |at: usize, one: &Conjunction| {
            all.iter().enumerate().any(|(other_at, other)| {
                other_at != at && one.is_within(other) && (other_at < at || !other.is_within(one))
            })
        };
        self.any = all
            .iter()
            .enumerate()
            .filter(|(at, one)| !is_within(*at, one))
            .map(|(_, one)| one.clone())
            .collect();
        if self.any.len() > ALTERNATIVES_MAX {
            return Self::unknown().with(&self.from);
        }
        self
    }
}

/// Two conjunctions as one.
enum Joined {
    Exact(Conjunction),
    /// It holds for more requests than both.
    Wider(Conjunction),
    Never,
}

/// Two conditions of one key as one.
enum JoinedAtom {
    Both,
    One(Atom),
    Wider,
    Never,
}

impl Conjunction {
    fn and(&self, other: &Self) -> Joined {
        let mut both = self.clone();
        let mut is_exact = true;
        for atom in &other.atoms {
            let mut is_done = false;
            for own in &mut both.atoms {
                match joined(own, atom) {
                    JoinedAtom::Both => {}
                    JoinedAtom::One(one) => {
                        *own = one;
                        is_done = true;
                    }
                    JoinedAtom::Wider => {
                        is_exact = false;
                        is_done = true;
                    }
                    JoinedAtom::Never => return Joined::Never,
                }
            }
            if !is_done {
                both.atoms.push(atom.clone());
            }
        }
        for not in &other.nots {
            if !both.nots.contains(not) {
                both.nots.push(not.clone());
            }
        }
        if both.nots.iter().any(|not| not.iter().all(|atom| both.atoms.contains(atom))) {
            return Joined::Never;
        }
        if is_exact { Joined::Exact(both) } else { Joined::Wider(both) }
    }

    /// Tells whether no request of it is a GET or HEAD.
    pub(crate) fn is_of_other_methods(&self) -> bool {
        self.nots.iter().any(|not| match not.as_slice() {
            [Atom::Method(names)] => {
                ["GET", "HEAD"].iter().all(|own| names.iter().any(|n| n == own))
            }
            _ => false,
        })
    }

    /// Tells whether `other` has no condition but some of these.
    fn is_within(&self, other: &Self) -> bool {
        other.atoms.iter().all(|atom| self.atoms.contains(atom))
            && other.nots.iter().all(|not| self.nots.contains(not))
    }

    /// Takes `other` in as a further value of the only key of both. Returns false if that is not
    /// what they are.
    fn join(&mut self, other: &Self) -> bool {
        let is_plain = self.nots.is_empty() && other.nots.is_empty();
        let ([own], [other]) = (self.atoms.as_mut_slice(), other.atoms.as_slice()) else {
            return false;
        };
        let (own, other) = match (own, other) {
            _ if !is_plain => return false,
            (Atom::Path(own), Atom::Path(other))
            | (Atom::Method(own), Atom::Method(other))
            | (Atom::Client(own), Atom::Client(other))
            | (Atom::UserAgent(own), Atom::UserAgent(other)) => (own, other),
            (
                Atom::Named { kind, name, wanted: Wanted::Like(own) },
                Atom::Named { kind: other_kind, name: other_name, wanted: Wanted::Like(other) },
            ) if kind == other_kind && name == other_name => (own, other),
            _ => return false,
        };
        for text in other {
            if !own.contains(text) {
                own.push(text.clone());
            }
        }
        true
    }

    /// Leaves out requests for these paths.
    pub(crate) fn except(&mut self, paths: &[String]) {
        if !paths.is_empty() {
            self.nots.push(vec![Atom::Path(paths.to_vec())]);
        }
    }

    /// Writes the keys of a route; the first of them names what they come from.
    pub(crate) fn write(&self, to: &mut Settings, from: &[usize]) {
        let mut from = from;
        for (key, value) in keys(&self.atoms) {
            let is_outer = matches!(key, "path" | "method");
            let key = if is_outer { key.to_owned() } else { format!("when.{key}") };
            to.put(&key, value, std::mem::take(&mut from));
        }
        let nots: Vec<String> = self.nots.iter().map(|not| inline(not)).collect();
        match nots.as_slice() {
            [] => {}
            [one] => to.put("when.not", one.clone(), from),
            all => to.put("when.not", format!("[{}]", all.join(", ")), from),
        }
        if !to.has("path") && !to.has("method") && !to.has_any("when") {
            to.text("path", "/*", from);
        }
    }
}

fn joined(own: &Atom, other: &Atom) -> JoinedAtom {
    let one = |atom: &Atom| JoinedAtom::One(atom.clone());
    match (own, other) {
        _ if own == other => one(own),
        (Atom::Method(own), Atom::Method(other)) => {
            let both: Vec<_> = own.iter().filter(|name| other.contains(name)).cloned().collect();
            if both.is_empty() { JoinedAtom::Never } else { one(&Atom::Method(both)) }
        }
        (Atom::Path(outer), Atom::Path(inner)) => match (outer.as_slice(), inner.as_slice()) {
            ([outer], _) if inner.iter().all(|inner| is_within(inner, outer)) => one(other),
            (_, [inner]) if outer.iter().all(|outer| is_within(outer, inner)) => one(own),
            _ => JoinedAtom::Wider,
        },
        (Atom::Client(_), Atom::Client(_)) | (Atom::UserAgent(_), Atom::UserAgent(_)) => {
            JoinedAtom::Wider
        }
        (
            Atom::Named { kind, name, wanted },
            Atom::Named { kind: other_kind, name: other_name, wanted: other_wanted },
        ) if kind == other_kind && name == other_name => match (wanted, other_wanted) {
            (Wanted::Like(any), Wanted::Like(other_texts)) => match () {
                () if is_any(any) && !other_texts.iter().any(|own| admits_empty(own)) => one(other),
                () if is_any(other_texts) && !any.iter().any(|own| admits_empty(own)) => one(own),
                () => JoinedAtom::Wider,
            },
            _ => JoinedAtom::Never,
        },
        _ => JoinedAtom::Both,
    }
}

/// Tells whether values are any but the empty one.
fn is_any(texts: &[String]) -> bool {
    texts == ["~ ."]
}

/// Tells whether the empty value may fit a pattern.
fn admits_empty(text: &str) -> bool {
    let expression = text.strip_prefix("~*").or_else(|| text.strip_prefix('~'));
    match expression {
        Some(expression) => linear::Regex::new(expression.trim(), linear::Options::default())
            .map_or(true, |regex| regex.is_match(b"")),
        None => text.is_empty() || text == "*",
    }
}

/// Tells whether every path of the pattern `inner` surely is one of `outer`, a prefix.
fn is_within(inner: &str, outer: &str) -> bool {
    let plain = outer.strip_suffix('*').filter(|prefix| prefix.starts_with('/'));
    let Some(prefix) = plain.map(str::to_owned).or_else(|| anchored_prefix(outer)) else {
        return inner == outer;
    };
    if prefix == "/" {
        return true;
    }
    let start = match inner.strip_prefix("~ ^") {
        Some(expression) if !expression.contains('|') => literal_start(expression),
        Some(_) => String::new(),
        None if inner.starts_with('/') => inner.split('*').next().unwrap_or(inner).to_owned(),
        None => String::new(),
    };
    start.starts_with(&prefix)
}

/// The prefix that an expression means which is nothing else: `~ ^/api/`.
fn anchored_prefix(pattern: &str) -> Option<String> {
    let expression = pattern.strip_prefix("~ ^")?;
    let prefix = literal_start(expression);
    let plain: String = expression.split('\\').collect();
    (plain == prefix && prefix.starts_with('/')).then_some(prefix)
}

/// The text with which every match of an expression begins, which is anchored.
pub(crate) fn literal_start(expression: &str) -> String {
    let mut start = String::new();
    let mut letters = expression.chars().peekable();
    while let Some(letter) = letters.next() {
        let literal = match letter {
            '\\' => match letters.next() {
                Some(next) if next.is_ascii_punctuation() => next,
                _ => break,
            },
            '.' | '[' | '(' | ')' | '|' | '^' | '$' | '*' | '+' | '?' | '{' => break,
            letter => letter,
        };
        // A letter that may be missing is no part of it.
        if matches!(letters.peek(), Some('?' | '*' | '{')) {
            break;
        }
        start.push(literal);
    }
    start
}

/// Conditions as keys and values.
fn keys(atoms: &[Atom]) -> Vec<(&'static str, String)> {
    let mut keys: Vec<(&'static str, String)> = Vec::new();
    for atom in atoms {
        let (key, texts) = match atom {
            Atom::Path(texts) => ("path", texts),
            Atom::Method(texts) => ("method", texts),
            Atom::Client(texts) => ("client", texts),
            Atom::UserAgent(texts) => ("user_agent", texts),
            Atom::Named { .. } => continue,
        };
        keys.push((key, list(texts)));
    }
    for kind in [NameKind::Header, NameKind::Cookie, NameKind::Query] {
        let pairs = atoms.iter().filter_map(|atom| match atom {
            Atom::Named { kind: own, name, wanted } if *own == kind => {
                let value = match wanted {
                    Wanted::Absent => "false".to_owned(),
                    Wanted::Like(texts) if texts.iter().any(|text| text == "*") => {
                        "true".to_owned()
                    }
                    Wanted::Like(texts) => list(texts),
                };
                Some(format!("{} = {value}", quote_key(name)))
            }
            _ => None,
        });
        let pairs: Vec<String> = pairs.collect();
        if !pairs.is_empty() {
            keys.push((kind.key(), format!("{{ {} }}", pairs.join(", "))));
        }
    }
    keys
}

fn inline(atoms: &[Atom]) -> String {
    let pairs: Vec<String> =
        keys(atoms).into_iter().map(|(key, value)| format!("{key} = {value}")).collect();
    format!("{{ {} }}", pairs.join(", "))
}

fn list(texts: &[String]) -> String {
    match texts {
        [one] => quote(one),
        all => format!("[{}]", all.iter().map(|own| quote(own)).collect::<Vec<_>>().join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(name: &str, value: &str) -> Predicate {
        Predicate::named(NameKind::Header, name, vec![value.to_owned()])
    }

    fn written(predicate: &Predicate) -> Vec<String> {
        let lines = predicate.any.iter().map(|one| {
            let mut settings = Settings::default();
            one.write(&mut settings, &[]);
            let keys = settings.0.iter();
            let keys =
                keys.map(|own| format!("{}={}", own.key, crate::document::written(&own.value)));
            keys.collect::<Vec<_>>().join(" ")
        });
        lines.collect()
    }

    #[test]
    fn alternatives_of_one_name_are_a_list_and_others_are_routes_of_their_own() {
        let same = header("A", "1").or(&header("A", "2"));
        assert_eq!(written(&same), ["when.header={ A = [\"1\", \"2\"] }"]);
        let other = header("A", "1").or(&header("B", "2"));
        assert_eq!(written(&other), ["when.header={ A = \"1\" }", "when.header={ B = \"2\" }"]);
    }

    #[test]
    fn the_contrary_leaves_out_and_its_contrary_is_the_first() {
        let both = header("A", "1").and(&header("B", "2"));
        let not = both.not();
        assert_eq!(written(&not), ["when.not={ header = { A = \"1\", B = \"2\" } }"]);
        assert_eq!(not.not().any, both.any);
        let neither = header("A", "1").or(&header("B", "2")).not();
        assert_eq!(
            written(&neither),
            ["when.not=[{ header = { A = \"1\" } }, { header = { B = \"2\" } }]"]
        );
        assert!(Predicate::always().not().any.is_empty());
        assert!(Predicate::never().not().is_always());
    }

    #[test]
    fn what_cannot_be_said_together_holds_for_more_and_says_so() {
        let both = header("A", "~ x").and(&header("A", "~ y"));
        assert!(!both.is_exact);
        assert!(!both.any.is_empty());
        let unknown = Predicate::unknown().not();
        assert_eq!(unknown.any, [Conjunction::default()]);
        assert!(!unknown.is_exact);
    }

    #[test]
    fn a_path_within_a_prefix_stands_alone() {
        let path = |text: &str| Predicate::of(Atom::Path(vec![text.to_owned()]));
        for (outer, inner, expected) in [
            ("/*", "~ \\.php$", "path='~ \\.php$'"),
            ("/a/*", "~ ^/a/(.*)$", "path=\"~ ^/a/(.*)$\""),
            ("/a/*", "/a/b", "path=\"/a/b\""),
            ("~ ^/a/", "~ ^/a/(.*)$", "path=\"~ ^/a/(.*)$\""),
        ] {
            let both = path(outer).and(&path(inner));
            assert!(both.is_exact, "{outer} {inner}");
            assert_eq!(written(&both), [expected]);
        }
        assert!(!path("/a/*").and(&path("~ b")).is_exact);
        assert!(!path("/a/*").and(&path("~ ^/a/|b")).is_exact);
    }
}
