//! Regular expressions with PCRE2's results. The linear engine runs where both engines agree;
//! PCRE2, with match limits, runs what only it supports (look-around, back-references, possessive
//! quantifiers) and what the two read differently. The choice is made when a program is compiled,
//! except for `$` in subjects that end with a newline. No match runs without a limit.

mod backtracking;
mod common;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::sync::OnceLock;

use backtracking::{BacktrackingRegex, CaptureBuffer, message};
pub use backtracking::{Limits, PatternError};
pub(crate) use common::PrecedingElement;
use linear::{Captures, Options, Regex as Linear, Span};

use crate::failure::ProgramFailure;
use crate::workspace::Workspace;

/// The engine of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// Linear in the subject's length.
    Linear,
    /// PCRE2, which backtracks up to its limits.
    Pcre2,
}

/// A compiled pattern.
#[derive(Debug)]
pub struct Regex {
    pattern: Box<str>,
    limits: Limits,
    linear: Option<(Linear, common::PatternFacts)>,
    /// PCRE2's pattern, compiled when needed.
    pcre2: OnceLock<BacktrackingRegex>,
    /// PCRE2's pattern without empty matches, for `regsuball`.
    not_empty: OnceLock<BacktrackingRegex>,
}

impl Regex {
    /// Compiles `pattern`, in PCRE2's syntax.
    ///
    /// # Errors
    /// The fault of the pattern and its offset.
    pub fn new(pattern: &str, limits: Limits) -> Result<Self, PatternError> {
        let linear = common::facts(pattern).and_then(|facts| {
            Linear::new(pattern, Options::default()).ok().map(|linear| (linear, facts))
        });
        let pcre2 = OnceLock::new();
        if linear.is_none() {
            let _ = pcre2.set(BacktrackingRegex::new("", pattern, limits)?);
        }
        Ok(Self { pattern: pattern.into(), limits, linear, pcre2, not_empty: OnceLock::new() })
    }

    /// The pattern as written.
    pub fn as_str(&self) -> &str {
        &self.pattern
    }

    /// The engine of the pattern.
    pub fn engine(&self) -> Engine {
        if self.linear.is_some() { Engine::Linear } else { Engine::Pcre2 }
    }

    /// Returns true if the pattern matches anywhere in `subject`.
    ///
    /// # Errors
    /// If PCRE2 reaches a limit.
    pub fn is_match(&self, subject: &[u8]) -> Result<bool, ProgramFailure> {
        if self.rules_out(subject) {
            return Ok(false);
        }
        match self.linear_for(subject) {
            Some(regex) => Ok(regex.is_match(subject)),
            None => self.pcre2()?.is_match(subject).map_err(|e| match_failed(&e)),
        }
    }

    /// `regsub`, or `regsuball` with `all`: replaces the first or every match in `subject`. In
    /// `replacement` `\0` to `\9` are groups, and a backslash makes any other character literal. As
    /// in Varnish, only the first match may be empty. A new string is charged to `room`.
    ///
    /// # Errors
    /// If PCRE2 reaches a limit, or the workspace overflows.
    pub fn replace<'s>(
        &self,
        subject: &'s [u8],
        replacement: &[u8],
        all: bool,
        room: &Workspace,
    ) -> Result<Cow<'s, [u8]>, ProgramFailure> {
        if self.rules_out(subject) {
            return Ok(Cow::Borrowed(subject));
        }
        let mut finder = match self.linear_for(subject) {
            Some(regex) if !names_groups(replacement) => Finder::Whole(regex, None),
            // Most subjects do not match, which allocates nothing.
            Some(regex) if !regex.is_match(subject) => return Ok(Cow::Borrowed(subject)),
            Some(regex) => Finder::Groups(regex, regex.room()),
            None => Finder::pcre2(self.pcre2()?),
        };
        let mut found = finder.find(subject, 0)?;
        if found.is_none() {
            return Ok(Cow::Borrowed(subject));
        }
        let mut out = Vec::with_capacity(subject.len() + replacement.len());
        let mut copied = 0;
        let mut is_first = true;
        while let Some((start, end)) = found {
            // With `\K`, a match may begin and end anywhere.
            out.extend_from_slice(subject.get(copied..start).unwrap_or_default());
            finder.expand(subject, replacement, &mut out);
            room.check(out.len())?;
            let goes_on = all && (is_first || end > copied);
            copied = end.max(copied);
            if is_first && all && self.bytes_min() == 0 {
                finder = Finder::pcre2(self.not_empty()?);
            }
            is_first = false;
            found = if goes_on { finder.find(subject, copied)? } else { None };
        }
        out.extend_from_slice(&subject[copied..]);
        room.charge(out.len())?;
        Ok(Cow::Owned(out))
    }

    /// The linear engine, if it agrees with PCRE2 on `subject`.
    fn linear_for(&self, subject: &[u8]) -> Option<&Linear> {
        let (linear, facts) = self.linear.as_ref()?;
        (!facts.has_dollar || subject.last() != Some(&b'\n')).then_some(linear)
    }

    /// Returns true if `subject` cannot match, without a search.
    fn rules_out(&self, subject: &[u8]) -> bool {
        self.linear.as_ref().is_some_and(|(_, facts)| facts.rule_out(subject))
    }

    /// Least number of bytes of a match, as far as known.
    pub(crate) fn bytes_min(&self) -> usize {
        self.linear.as_ref().map_or(0, |(_, facts)| facts.bytes_min)
    }

    fn pcre2(&self) -> Result<&BacktrackingRegex, ProgramFailure> {
        self.made(&self.pcre2, "")
    }

    fn not_empty(&self) -> Result<&BacktrackingRegex, ProgramFailure> {
        self.made(&self.not_empty, "(*NOTEMPTY)")
    }

    /// The pattern in `cell`, compiled if the cell is empty.
    fn made<'c>(
        &self,
        cell: &'c OnceLock<BacktrackingRegex>,
        option: &str,
    ) -> Result<&'c BacktrackingRegex, ProgramFailure> {
        if let Some(regex) = cell.get() {
            return Ok(regex);
        }
        let regex = BacktrackingRegex::new(option, &self.pattern, self.limits)
            .map_err(|e| ProgramFailure::new(format!("Regexp compilation failed: {e}")))?;
        Ok(cell.get_or_init(|| regex))
    }
}

fn match_failed(error: &pcre2::Error) -> ProgramFailure {
    ProgramFailure::new(format!("Regexp matching failed: {}", message(error)))
}

fn replace_failed(error: &pcre2::Error) -> ProgramFailure {
    ProgramFailure::new(format!("regsub: Regexp matching returned {}", error.code()))
}

/// Iterator over matches.
enum Finder<'r> {
    /// Only positions of whole matches.
    Whole(&'r Linear, Option<Span>),
    Groups(&'r Linear, Captures),
    Pcre2(&'r BacktrackingRegex, CaptureBuffer<'r>),
}

impl<'r> Finder<'r> {
    fn pcre2(regex: &'r BacktrackingRegex) -> Self {
        Self::Pcre2(regex, regex.room())
    }

    /// The first match at or after byte `at`: begin and end.
    fn find(
        &mut self,
        subject: &[u8],
        at: usize,
    ) -> Result<Option<(usize, usize)>, ProgramFailure> {
        match self {
            Self::Whole(regex, found) => *found = regex.find(subject, at),
            Self::Groups(regex, groups) => regex.groups(subject, at, groups),
            Self::Pcre2(regex, room) => {
                if !regex.find(room, subject, at).map_err(|e| replace_failed(&e))? {
                    return Ok(None);
                }
            }
        }
        Ok(self.group(0))
    }

    /// Begin and end of group `number` in the last match.
    fn group(&self, number: usize) -> Option<(usize, usize)> {
        match self {
            Self::Whole(_, found) => found.filter(|_| number == 0).map(|m| (m.start, m.end)),
            Self::Groups(_, groups) => groups.get_group(number).map(|m| (m.start, m.end)),
            Self::Pcre2(_, room) => room.get(number),
        }
    }

    /// Appends the replacement of the last match.
    fn expand(&self, subject: &[u8], replacement: &[u8], out: &mut Vec<u8>) {
        let mut bytes = replacement.iter().copied();
        while let Some(byte) = bytes.next() {
            match byte {
                b'\\' => match bytes.next() {
                    Some(digit @ b'0'..=b'9') => {
                        if let Some((start, end)) = self.group(usize::from(digit - b'0')) {
                            out.extend_from_slice(subject.get(start..end).unwrap_or_default());
                        }
                    }
                    Some(other) => out.push(other),
                    None => out.push(b'\\'),
                },
                other => out.push(other),
            }
        }
    }
}

/// Returns true if a replacement names groups other than the whole match.
fn names_groups(replacement: &[u8]) -> bool {
    replacement.windows(2).any(|pair| matches!(pair, [b'\\', b'1'..=b'9']))
}
