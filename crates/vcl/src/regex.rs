//! Regular expressions: what PCRE2 would find, by an engine that needs linear time where the
//! pattern allows it.
//!
//! Most patterns of real programs mean the same to both engines, and then the linear one is taken:
//! no subject makes it slow. What only PCRE2 has (look-around, back-references, possessive
//! quantifiers, ...), and what the two read differently, goes to PCRE2 with match limits. Which
//! pattern is which is decided once, when the program is compiled.

mod common;

use std::borrow::Cow;
use std::sync::OnceLock;

use crate::value::Failure;

/// How much PCRE2 may work on one match: Varnish's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// `pcre2_match_limit`: calls of its internal matching function.
    pub matches: u32,
    /// `pcre2_depth_limit`: backtracking points within each other.
    pub depth: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { matches: 10_000, depth: 20 }
    }
}

/// The engine that a pattern runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// Time grows linearly with the subject.
    Linear,
    /// PCRE2, which may try many ways, up to its limits.
    Pcre2,
}

/// Why a pattern is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatternError {
    /// The byte of the pattern where it goes wrong.
    pub at: usize,
    /// What is wrong.
    pub message: String,
}

/// A compiled pattern.
#[derive(Debug)]
pub struct Regex {
    pattern: Box<str>,
    limits: Limits,
    linear: Option<Linear>,
    /// PCRE2's, made when it is needed.
    pcre2: OnceLock<pcre2::bytes::Regex>,
}

/// A pattern of the common subset.
#[derive(Debug)]
struct Linear {
    regex: ::regex::bytes::Regex,
    /// It has a `$`, which to PCRE2 also means the place before a newline at the end.
    has_dollar: bool,
}

impl Regex {
    /// Compiles `pattern`, which is in PCRE2's syntax.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub fn new(pattern: &str, limits: Limits) -> Result<Self, PatternError> {
        let linear = common::facts(pattern).and_then(|facts| {
            let regex = ::regex::bytes::RegexBuilder::new(pattern).unicode(false).build().ok()?;
            Some(Linear { regex, has_dollar: facts.has_dollar })
        });
        let pcre2 = OnceLock::new();
        if linear.is_none() {
            let _ = pcre2.set(compile(pattern, limits)?);
        }
        Ok(Self { pattern: pattern.into(), limits, linear, pcre2 })
    }

    /// The pattern as written.
    pub fn as_str(&self) -> &str {
        &self.pattern
    }

    /// The engine it runs on.
    pub fn engine(&self) -> Engine {
        if self.linear.is_some() { Engine::Linear } else { Engine::Pcre2 }
    }

    /// Whether it matches somewhere in `subject`.
    ///
    /// # Errors
    /// PCRE2 has reached a limit.
    pub fn is_match(&self, subject: &[u8]) -> Result<bool, Failure> {
        match self.linear_for(subject) {
            Some(regex) => Ok(regex.is_match(subject)),
            None => self.pcre2()?.is_match(subject).map_err(|e| failed(&e)),
        }
    }

    /// `regsub`, and with `all`, `regsuball`: `subject` with the first match or all of them
    /// replaced. In `replacement`, `\0` to `\9` stand for what the groups have matched, and any
    /// other character after a backslash for itself.
    ///
    /// # Errors
    /// PCRE2 has reached a limit.
    pub fn replace<'s>(
        &self,
        subject: &'s [u8],
        replacement: &[u8],
        all: bool,
    ) -> Result<Cow<'s, [u8]>, Failure> {
        match self.linear_for(subject) {
            Some(regex) => replace(&mut LinearFinder::new(regex), subject, replacement, all),
            None => replace(&mut Pcre2Finder::new(self.pcre2()?), subject, replacement, all),
        }
    }

    /// The linear engine, where it finds what PCRE2 would in `subject`.
    fn linear_for(&self, subject: &[u8]) -> Option<&::regex::bytes::Regex> {
        let linear = self.linear.as_ref()?;
        (!linear.has_dollar || subject.last() != Some(&b'\n')).then_some(&linear.regex)
    }

    fn pcre2(&self) -> Result<&pcre2::bytes::Regex, Failure> {
        if let Some(regex) = self.pcre2.get() {
            return Ok(regex);
        }
        let regex = compile(&self.pattern, self.limits)
            .map_err(|e| Failure::new(format!("regular expression: {}", e.message)))?;
        Ok(self.pcre2.get_or_init(|| regex))
    }
}

fn compile(pattern: &str, limits: Limits) -> Result<pcre2::bytes::Regex, PatternError> {
    let head = format!("(*LIMIT_MATCH={})(*LIMIT_DEPTH={})", limits.matches, limits.depth);
    pcre2::bytes::RegexBuilder::new()
        .jit_if_available(true)
        .build(&format!("{head}{pattern}"))
        .map_err(|e| PatternError {
            at: e.offset().unwrap_or(0).saturating_sub(head.len()).min(pattern.len()),
            message: e.to_string(),
        })
}

fn failed(error: &pcre2::Error) -> Failure {
    Failure::new(format!("Regexp matching returned {}", error.code()))
}

/// Finds matches one after the other.
trait Finder {
    /// The first match at or after byte `at`: where it begins and ends.
    fn find(&mut self, subject: &[u8], at: usize) -> Result<Option<(usize, usize)>, Failure>;

    /// Where group `number` of the last match begins and ends, if it has matched.
    fn group(&self, number: usize) -> Option<(usize, usize)>;
}

struct LinearFinder<'r> {
    regex: &'r ::regex::bytes::Regex,
    places: ::regex::bytes::CaptureLocations,
}

impl<'r> LinearFinder<'r> {
    fn new(regex: &'r ::regex::bytes::Regex) -> Self {
        Self { regex, places: regex.capture_locations() }
    }
}

impl Finder for LinearFinder<'_> {
    fn find(&mut self, subject: &[u8], at: usize) -> Result<Option<(usize, usize)>, Failure> {
        let found = self.regex.captures_read_at(&mut self.places, subject, at);
        Ok(found.map(|m| (m.start(), m.end())))
    }

    fn group(&self, number: usize) -> Option<(usize, usize)> {
        self.places.get(number)
    }
}

struct Pcre2Finder<'r> {
    regex: &'r pcre2::bytes::Regex,
    places: pcre2::bytes::CaptureLocations,
}

impl<'r> Pcre2Finder<'r> {
    fn new(regex: &'r pcre2::bytes::Regex) -> Self {
        Self { regex, places: regex.capture_locations() }
    }
}

impl Finder for Pcre2Finder<'_> {
    fn find(&mut self, subject: &[u8], at: usize) -> Result<Option<(usize, usize)>, Failure> {
        let found = self.regex.captures_read_at(&mut self.places, subject, at);
        Ok(found.map_err(|e| failed(&e))?.map(|m| (m.start(), m.end())))
    }

    fn group(&self, number: usize) -> Option<(usize, usize)> {
        self.places.get(number)
    }
}

fn replace<'s>(
    finder: &mut impl Finder,
    subject: &'s [u8],
    replacement: &[u8],
    all: bool,
) -> Result<Cow<'s, [u8]>, Failure> {
    let mut out = Vec::new();
    let mut copied = 0;
    let mut at = 0;
    let mut found = finder.find(subject, at)?;
    if found.is_none() {
        return Ok(Cow::Borrowed(subject));
    }
    while let Some((start, end)) = found {
        out.extend_from_slice(&subject[copied..start]);
        expand(finder, subject, replacement, &mut out);
        copied = end;
        at = if end == start { end + 1 } else { end };
        if !all || at > subject.len() {
            break;
        }
        found = finder.find(subject, at)?;
    }
    out.extend_from_slice(&subject[copied..]);
    Ok(Cow::Owned(out))
}

/// Appends the replacement of the last match.
fn expand(finder: &impl Finder, subject: &[u8], replacement: &[u8], out: &mut Vec<u8>) {
    let mut bytes = replacement.iter().copied();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' => match bytes.next() {
                Some(digit @ b'0'..=b'9') => {
                    if let Some((start, end)) = finder.group(usize::from(digit - b'0')) {
                        out.extend_from_slice(&subject[start..end]);
                    }
                }
                Some(other) => out.push(other),
                None => out.push(b'\\'),
            },
            other => out.push(other),
        }
    }
}
