//! List of crawlers as text: a class, a name and a pattern in each line.
//!
//! A line that cannot be read is an error with its number; nothing is passed over in silence.

use std::fmt;

use message::ClientClass;

/// The list of the project.
const BUILT_IN: &str = include_str!("crawlers.txt");

/// Most names: they have numbers of 16 bits.
const NAMES_MAX: usize = 4096;
/// Most patterns.
const PATTERNS_MAX: usize = 16_384;
/// Longest name.
pub(crate) const NAME_MAX: usize = 64;
/// Longest pattern.
const PATTERN_MAX: usize = 200;
/// Shortest pattern: a shorter one would be in most User-Agents.
const PATTERN_MIN: usize = 3;
/// Most domains of a name.
const DOMAINS_MAX: usize = 16;

/// Crawlers with their patterns, in the order of the list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CrawlerList {
    pub(crate) names: Vec<ListedName>,
    /// Patterns, each with the index of its name; the first that matches counts.
    pub(crate) patterns: Vec<(String, usize)>,
}

/// A name of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListedName {
    pub(crate) name: String,
    pub(crate) class: ClientClass,
    /// The domains that names of the crawler's addresses end with.
    pub(crate) domains: Vec<String>,
}

/// The fault of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListFault {
    /// The first word is no class.
    Class,
    /// The name is missing, too long, or has other bytes than letters, digits, `-`, `_` and `.`.
    Name,
    /// The pattern is shorter than three bytes, too long, or not printable ASCII.
    Pattern,
    /// An earlier line gives the name another class.
    OtherClass,
    /// A `dns` line has no domain, too many, or a malformed one.
    Domain,
    /// A `dns` line is for a name that no line before has.
    UnknownName,
    /// There are more names or patterns than a list may have.
    TooMany,
}

/// A list that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListError {
    /// The line, from 1.
    pub line: usize,
    /// Its fault.
    pub fault: ListFault,
}

impl fmt::Display for ListError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = match self.fault {
            ListFault::Class => "the first word is human, search, ai, tool, unknown or dns",
            ListFault::Name => {
                "the second word is a name of letters, digits, `-`, `_` and `.`, at most 64"
            }
            ListFault::Pattern => "a pattern has 3 to 200 printable characters of ASCII",
            ListFault::OtherClass => "an earlier line gives the name another class",
            ListFault::Domain => "`dns NAME` is followed by 1 to 16 domains such as example.com",
            ListFault::UnknownName => "no line before has this name",
            ListFault::TooMany => "a list has at most 4096 names and 16384 patterns",
        };
        write!(f, "line {}: {why}", self.line)
    }
}

impl CrawlerList {
    /// The list of the project.
    pub fn built_in() -> Self {
        // A test reads it; a list that could not be read would have no crawlers.
        Self::parse(BUILT_IN).unwrap_or_default()
    }

    /// Reads a list. Empty lines, and those that begin with `#`, are left out.
    ///
    /// # Errors
    /// The first line that cannot be read.
    pub fn parse(text: &str) -> Result<Self, ListError> {
        let mut list = Self::default();
        for (at, line) in text.lines().enumerate() {
            list.read(line.trim()).map_err(|fault| ListError { line: at + 1, fault })?;
        }
        Ok(list)
    }

    /// This list, then `other`: patterns of this list come first, and a name of both lists has the
    /// class and the domains that this one gives it.
    ///
    /// # Errors
    /// Both together have too many names or patterns.
    pub fn before(mut self, other: Self) -> Result<Self, ListFault> {
        let mut places = Vec::with_capacity(other.names.len());
        for listed in other.names {
            let same = self.names.iter().position(|own| own.name == listed.name);
            places.push(same.unwrap_or(self.names.len()));
            match same.map(|at| &mut self.names[at]) {
                Some(own) if own.domains.is_empty() => own.domains = listed.domains,
                Some(_) => {}
                None => self.names.push(listed),
            }
        }
        self.patterns.extend(other.patterns.into_iter().map(|(text, name)| (text, places[name])));
        self.within_bounds()?;
        Ok(self)
    }

    /// Returns true if the list has this name.
    pub fn has(&self, name: &str) -> bool {
        self.names.iter().any(|own| own.name == name)
    }

    fn read(&mut self, line: &str) -> Result<(), ListFault> {
        if line.is_empty() || line.starts_with('#') {
            return Ok(());
        }
        let (first, rest) = word(line);
        let (name, rest) = word(rest);
        if !is_name(name) {
            let is_class = first == "dns" || ClientClass::of_word(first).is_some();
            return Err(if is_class { ListFault::Name } else { ListFault::Class });
        }
        let known = self.names.iter().position(|own| own.name == name);
        if first == "dns" {
            let known = known.ok_or(ListFault::UnknownName)?;
            let domains: Vec<String> = rest.split_whitespace().map(str::to_lowercase).collect();
            if domains.is_empty()
                || domains.len() > DOMAINS_MAX
                || !domains.iter().all(|domain| is_domain(domain))
            {
                return Err(ListFault::Domain);
            }
            self.names[known].domains = domains;
            return Ok(());
        }
        let class = ClientClass::of_word(first).ok_or(ListFault::Class)?;
        let at = match known {
            Some(at) if self.names[at].class != class => return Err(ListFault::OtherClass),
            Some(at) => at,
            None => {
                let name = name.to_owned();
                self.names.push(ListedName { name, class, domains: Vec::new() });
                self.names.len() - 1
            }
        };
        if !rest.is_empty() {
            let is_text = rest.bytes().all(|b| b == b' ' || b.is_ascii_graphic());
            if !(PATTERN_MIN..=PATTERN_MAX).contains(&rest.len()) || !is_text {
                return Err(ListFault::Pattern);
            }
            self.patterns.push((rest.to_ascii_lowercase(), at));
        }
        self.within_bounds()
    }

    fn within_bounds(&self) -> Result<(), ListFault> {
        let is_within = self.names.len() <= NAMES_MAX && self.patterns.len() <= PATTERNS_MAX;
        is_within.then_some(()).ok_or(ListFault::TooMany)
    }
}

/// The first word of a line, and the rest without space around it.
fn word(line: &str) -> (&str, &str) {
    let (first, rest) = line.split_once(|c: char| c.is_ascii_whitespace()).unwrap_or((line, ""));
    (first, rest.trim())
}

fn is_name(name: &str) -> bool {
    let is_of_name = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    (1..=NAME_MAX).contains(&name.len()) && name.bytes().all(is_of_name)
}

/// Returns true for a domain of two labels or more: everybody can get a name below fewer.
fn is_domain(domain: &str) -> bool {
    let is_label = |label: &str| {
        !label.is_empty()
            && label.len() < 64
            && !label.starts_with('-')
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
    };
    domain.len() < 254 && domain.contains('.') && domain.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_list_can_be_read() {
        let list = CrawlerList::parse(BUILT_IN).expect("the project's list");
        assert!(list.names.len() > 100 && list.has("Googlebot") && list.has("Google-Extended"));
        let search = list.names.iter().filter(|own| own.class == ClientClass::Search);
        assert!(search.clone().count() > 10);
        assert!(search.into_iter().all(|own| !own.domains.is_empty()), "each can be verified");
    }

    #[test]
    fn a_line_that_cannot_be_read_is_named() {
        for (text, line, fault) in [
            ("robot x xxx", 1, ListFault::Class),
            ("\n# x\nai", 3, ListFault::Name),
            ("ai na/me xxx", 1, ListFault::Name),
            ("ai name xx", 1, ListFault::Pattern),
            ("ai name caf\u{e9}", 1, ListFault::Pattern),
            ("ai name xxx\ntool name yyy", 2, ListFault::OtherClass),
            ("dns name example.com", 1, ListFault::UnknownName),
            ("search name xxx\ndns name", 2, ListFault::Domain),
            ("search name xxx\ndns name com", 2, ListFault::Domain),
            ("search name xxx\ndns name .example.com", 2, ListFault::Domain),
        ] {
            assert_eq!(CrawlerList::parse(text), Err(ListError { line, fault }), "{text:?}");
        }
    }

    #[test]
    fn a_pattern_may_have_spaces_and_a_name_several_patterns() {
        let list =
            CrawlerList::parse("tool Frog Screaming Frog \r\ntool Frog frogger\n").expect("ok");
        let patterns: Vec<_> =
            list.patterns.iter().map(|(text, at)| (text.as_str(), *at)).collect();
        assert_eq!(patterns, [("screaming frog", 0), ("frogger", 0)]);
    }

    #[test]
    fn the_first_of_two_lists_says_the_class() {
        let own = CrawlerList::parse("tool B bbb\nai C ccc").expect("a list");
        let other = CrawlerList::parse("search A aaa\nsearch B bee\ndns B b.example").expect("one");
        let both = own.before(other).expect("few names");
        let classes: Vec<_> = both.names.iter().map(|own| (own.name.as_str(), own.class)).collect();
        let (tool, ai, search) = (ClientClass::Tool, ClientClass::Ai, ClientClass::Search);
        assert_eq!(classes, [("B", tool), ("C", ai), ("A", search)]);
        let patterns: Vec<_> =
            both.patterns.iter().map(|(text, at)| (text.as_str(), *at)).collect();
        assert_eq!(patterns, [("bbb", 0), ("ccc", 1), ("aaa", 2), ("bee", 0)]);
        assert_eq!(both.names[0].domains, ["b.example"]);
    }

    #[test]
    fn a_list_has_an_end() {
        let text: String = (0..=NAMES_MAX).map(|n| format!("ai n{n} pattern{n}\n")).collect();
        let (line, fault) = (NAMES_MAX + 1, ListFault::TooMany);
        assert_eq!(CrawlerList::parse(&text), Err(ListError { line, fault }));
    }
}
