//! Replacement of matches: `sub`, `suball`, `extract`, exactly as RE2 does it.

use linear::Captures;

use super::compiled_pattern::{Pattern, fallback};
use crate::failure::ProgramFailure;
use crate::state::ctx::Ctx;
use crate::state::value::Value;
use crate::vmods::args::{Args, owned};
use crate::workspace::Workspace;

/// The kind of change to a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReplacementMode {
    /// The first match is replaced.
    First,
    /// All matches are replaced.
    All,
    /// Only the replacement is returned.
    Extract,
}

impl Pattern {
    /// `sub`, `suball` or `extract`: text, rewrite and fallback are the first arguments.
    pub(super) fn replace(
        &self,
        ctx: &Ctx<'_>,
        args: &[Value],
        mode: ReplacementMode,
    ) -> Result<Value, ProgramFailure> {
        let (Some(text), Some(rewrite)) = (args.string(0), args.string(1)) else {
            return Err(ProgramFailure::new("re2: text or rewrite are undefined"));
        };
        let fallback = fallback(args, 2)?;
        let most = groups_named(rewrite).max();
        let made = match mode {
            _ if most.is_some_and(|most| most > self.groups) => None,
            ReplacementMode::All => self.all(text, rewrite, &ctx.task.workspace)?,
            ReplacementMode::First | ReplacementMode::Extract => self.first(text, rewrite, mode),
        };
        Ok(made.map_or_else(|| Value::String(Some(fallback.clone())), owned))
    }

    /// The text with the first match replaced; `None` without a match, or if `rewrite` is invalid.
    fn first(&self, text: &[u8], rewrite: &[u8], mode: ReplacementMode) -> Option<Vec<u8>> {
        let mut found = self.regex.room();
        self.regex.groups(text, 0, &mut found);
        let span = found.get_group(0)?;
        let mut out = Vec::new();
        if mode == ReplacementMode::First {
            out.extend_from_slice(&text[..span.start]);
        }
        if !expand(rewrite, text, &found, &mut out) {
            return None;
        }
        if mode == ReplacementMode::First {
            out.extend_from_slice(&text[span.end..]);
        }
        Some(out)
    }

    /// The text with all matches replaced; `None` without a match. An invalid `rewrite` ends each
    /// replacement.
    fn all(
        &self,
        text: &[u8],
        rewrite: &[u8],
        room: &Workspace,
    ) -> Result<Option<Vec<u8>>, ProgramFailure> {
        let mut found = self.regex.room();
        let mut out = Vec::new();
        let (mut at, mut last_end) = (0, None);
        while at <= text.len() {
            self.regex.groups(text, at, &mut found);
            let Some(span) = found.get_group(0) else { break };
            out.extend_from_slice(&text[at..span.start]);
            if span.is_empty() && last_end == Some(span.start) {
                // An empty match does not directly follow a match: a character is skipped.
                let end = (at + self.character(&text[at..])).min(text.len());
                out.extend_from_slice(&text[at..end]);
                at = end.max(at + 1);
                continue;
            }
            expand(rewrite, text, &found, &mut out);
            room.check(out.len())?;
            (at, last_end) = (span.end, Some(span.end));
        }
        if last_end.is_none() {
            return Ok(None);
        }
        out.extend_from_slice(text.get(at..).unwrap_or_default());
        Ok(Some(out))
    }

    /// Length of the first character in bytes.
    fn character(&self, text: &[u8]) -> usize {
        let start = &text[..text.len().min(4)];
        let valid = start.utf8_chunks().next().map_or("", |chunk| chunk.valid());
        match valid.chars().next() {
            Some(c) if self.utf8 => c.len_utf8(),
            _ => 1,
        }
    }
}

/// The groups that a replacement names.
fn groups_named(rewrite: &[u8]) -> impl Iterator<Item = usize> {
    let mut rest = rewrite.iter();
    std::iter::from_fn(move || {
        while let Some(byte) = rest.next() {
            if *byte == b'\\'
                && let Some(digit @ b'0'..=b'9') = rest.next()
            {
                return Some(usize::from(digit - b'0'));
            }
        }
        None
    })
}

/// Appends the replacement of a match. Returns false at an invalid part, with the text before it
/// appended.
fn expand(rewrite: &[u8], text: &[u8], found: &Captures, out: &mut Vec<u8>) -> bool {
    let mut rest = rewrite.iter();
    while let Some(byte) = rest.next() {
        match byte {
            b'\\' => match rest.next() {
                Some(digit @ b'0'..=b'9') => {
                    if let Some(span) = found.get_group(usize::from(digit - b'0')) {
                        out.extend_from_slice(&text[span.start..span.end]);
                    }
                }
                Some(b'\\') => out.push(b'\\'),
                _ => return false,
            },
            other => out.push(*other),
        }
    }
    true
}
