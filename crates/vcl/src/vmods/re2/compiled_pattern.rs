//! Compiled pattern, and the last match of an object or function in a task.

use std::sync::Arc;

use bytes::Bytes;
use linear::{Options, Regex as Linear};

use super::pattern::{RewrittenPattern, Syntax, rewrite};
use crate::failure::ProgramFailure;
use crate::state::value::Value;
use crate::vmods::args::{Args, owned};

/// Name under which a task keeps the last matches of objects.
pub(super) const NAME_OF_KEPT: &str = "re2";

/// A compiled pattern.
pub(super) struct Pattern {
    pub(super) regex: Linear,
    names: Vec<(Box<str>, usize)>,
    pub(super) groups: usize,
    never_captures: bool,
    pub(super) utf8: bool,
}

/// Options for reading and compiling a pattern.
#[derive(Clone, Copy)]
pub(super) struct PatternOptions {
    pub(super) syntax: Syntax,
    dot_is_any: bool,
    bytes_max: Option<usize>,
}

impl PatternOptions {
    /// Reads the options from argument `at` on. With `captures`, they include `never_capture`.
    pub(super) fn of(args: &[Value], at: usize, captures: bool) -> Self {
        let is = |number: usize| args.truth(at + number).unwrap_or(false);
        let behind = if captures { 8 } else { 7 };
        Self {
            syntax: Syntax {
                utf8: is(0),
                literal: is(4),
                never_capture: captures && is(7),
                ignore_case: !args.truth(at + behind).unwrap_or(true),
            },
            dot_is_any: is(6),
            bytes_max: args.int(at + 3).and_then(|n| usize::try_from(n).ok()),
        }
    }

    /// The options of the engine.
    pub(super) fn options(&self) -> Result<Options, String> {
        let bytes_max = self.bytes_max.ok_or("max_mem must not be negative")?;
        Ok(Options {
            ignore_case: self.syntax.ignore_case,
            dot_is_any: self.dot_is_any,
            unicode: self.syntax.utf8,
            program_bytes: bytes_max,
        })
    }
}

impl Pattern {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// The reason why it is malformed.
    pub(super) fn new(text: &[u8], pattern_options: PatternOptions) -> Result<Self, String> {
        let options = pattern_options.options()?;
        let RewrittenPattern { text, names, groups } = rewrite(text, pattern_options.syntax)?;
        let regex = Linear::new(&text, options).map_err(|error| error.to_string())?;
        let (never_captures, utf8) =
            (pattern_options.syntax.never_capture, pattern_options.syntax.utf8);
        Ok(Self { regex, names, groups, never_captures, utf8 })
    }

    /// `cost`
    pub(super) fn cost(&self) -> i64 {
        i64::try_from(self.regex.bytes()).unwrap_or(i64::MAX)
    }

    /// Returns true if the pattern matches in `subject`; the match is then in `last`.
    pub(super) fn search(self: &Arc<Self>, last: &mut LastMatch, subject: Option<&Bytes>) -> bool {
        let subject = subject.cloned().unwrap_or_default();
        let is_match = if self.never_captures {
            last.groups.clear();
            self.regex.is_match(&subject)
        } else {
            let mut found = self.regex.room();
            self.regex.groups(&subject, 0, &mut found);
            let groups = (0..=self.groups).map(|n| found.get_group(n).map(|m| (m.start, m.end)));
            last.groups.clear();
            last.groups.extend(groups);
            found.is_match()
        };
        (last.pattern, last.subject) = (Some(Arc::clone(self)), subject);
        is_match
    }
}

/// Last match of an object, or of the function, in a task.
#[derive(Default)]
pub(super) struct LastMatch {
    pattern: Option<Arc<Pattern>>,
    subject: Bytes,
    /// Positions of the groups, the whole match first.
    groups: Vec<Option<(usize, usize)>>,
}

impl LastMatch {
    /// `backref`
    pub(super) fn group(&self, args: &[Value]) -> Result<Value, ProgramFailure> {
        let fallback = fallback(args, 1)?;
        let pattern = self.pattern()?;
        let number = args.int(0).and_then(|n| usize::try_from(n).ok());
        let number = number.filter(|n| *n <= pattern.groups);
        let number =
            number.ok_or_else(|| ProgramFailure::new("re2: the pattern has no such group"))?;
        Ok(self.found(number, fallback))
    }

    /// `namedref`
    pub(super) fn named(&self, args: &[Value]) -> Result<Value, ProgramFailure> {
        let fallback = fallback(args, 1)?;
        let pattern = self.pattern()?;
        let found = pattern.names.iter().find(|(name, _)| name.as_bytes() == args.bytes(0));
        let (_, number) = found.ok_or_else(|| {
            let name = args.bytes(0).escape_ascii();
            ProgramFailure::new(format!("re2: the pattern has no group of the name '{name}'"))
        })?;
        Ok(self.found(*number, fallback))
    }

    fn pattern(&self) -> Result<&Pattern, ProgramFailure> {
        match self.pattern.as_deref() {
            None => Err(ProgramFailure::new("re2: there was no match() before")),
            Some(pattern) if pattern.never_captures => {
                Err(ProgramFailure::new("re2: never_capture is true for this pattern"))
            }
            Some(pattern) => Ok(pattern),
        }
    }

    fn found(&self, number: usize, fallback: &Bytes) -> Value {
        let group = self.groups.get(number).copied().flatten();
        owned(group.map_or_else(|| fallback.clone(), |(start, end)| self.subject.slice(start..end)))
    }
}

/// The argument `fallback`.
pub(super) fn fallback(args: &[Value], at: usize) -> Result<&Bytes, ProgramFailure> {
    args.string(at).ok_or_else(|| ProgramFailure::new("re2: the fallback is undefined"))
}
