//! Patterns that both engines read alike: a safe subset, recognised in one pass. A pattern in doubt
//! is never in the subset.

use regex_syntax::hir::{Hir, HirKind};

/// Facts about a pattern of the subset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PatternFacts {
    /// True with a `$`, which in PCRE2 also matches before a final newline.
    pub has_dollar: bool,
    /// Least number of bytes of a match.
    pub bytes_min: usize,
    /// A byte that every match contains and most subjects lack.
    pub needs: Option<u8>,
}

impl PatternFacts {
    /// Returns true if `subject` cannot match, without a search.
    pub(super) fn rule_out(&self, subject: &[u8]) -> bool {
        subject.len() < self.bytes_min
            || self.needs.is_some_and(|byte| memchr::memchr(byte, subject).is_none())
    }
}

/// Facts about `pattern`; `None` if it is outside of the subset.
pub(super) fn facts(pattern: &str) -> Option<PatternFacts> {
    if !pattern.is_ascii() || pattern.contains('\0') {
        return None;
    }
    let rest = pattern.as_bytes();
    let mut reader = PatternReader { rest, before: PrecedingElement::Nothing, has_dollar: false };
    reader.read()?;
    let mut parser = regex_syntax::ParserBuilder::new().unicode(false).utf8(false).build();
    let hir = parser.parse(pattern).ok()?;
    repeats_something(&hir).then(|| PatternFacts {
        has_dollar: reader.has_dollar,
        bytes_min: hir.properties().minimum_len().unwrap_or(0),
        needs: needs(&hir),
    })
}

/// A byte of all matches that is worth a search: letters, digits and slashes are too common, and a
/// plain literal is searched as fast.
fn needs(hir: &Hir) -> Option<u8> {
    let is_rare = |byte: &u8| byte.is_ascii_punctuation() && *byte != b'/';
    if matches!(hir.kind(), HirKind::Literal(_)) {
        return None;
    }
    bytes_of_all(hir).into_iter().find(is_rare)
}

/// Bytes that every match contains.
fn bytes_of_all(hir: &Hir) -> Vec<u8> {
    match hir.kind() {
        HirKind::Literal(literal) => literal.0.to_vec(),
        HirKind::Capture(capture) => bytes_of_all(&capture.sub),
        HirKind::Repetition(repetition) if repetition.min > 0 => bytes_of_all(&repetition.sub),
        HirKind::Concat(parts) => parts.iter().flat_map(bytes_of_all).collect(),
        HirKind::Alternation(parts) => {
            let mut parts = parts.iter().map(bytes_of_all);
            let first = parts.next().unwrap_or_default();
            parts.fold(first, |mut all, part| {
                all.retain(|byte| part.contains(byte));
                all
            })
        }
        HirKind::Repetition(_) | HirKind::Empty | HirKind::Class(_) | HirKind::Look(_) => {
            Vec::new()
        }
    }
}

/// Returns true if no repetition has an element that may match nothing: the engines end such loops
/// differently.
fn repeats_something(hir: &Hir) -> bool {
    match hir.kind() {
        HirKind::Repetition(repetition) => {
            repetition.sub.properties().minimum_len().is_some_and(|len| len > 0)
                && repeats_something(&repetition.sub)
        }
        HirKind::Capture(capture) => repeats_something(&capture.sub),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => parts.iter().all(repeats_something),
        HirKind::Empty | HirKind::Literal(_) | HirKind::Class(_) | HirKind::Look(_) => true,
    }
}

/// Kind of the element before the current position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PrecedingElement {
    /// Nothing that could be repeated.
    Nothing,
    /// A character, a class, a group or an assertion.
    Item,
    /// A quantifier.
    Quantifier,
}

struct PatternReader<'p> {
    rest: &'p [u8],
    before: PrecedingElement,
    has_dollar: bool,
}

impl PatternReader<'_> {
    fn next(&mut self) -> Option<u8> {
        let (byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*byte)
    }

    /// Reads the pattern; `None` if it leaves the subset.
    fn read(&mut self) -> Option<()> {
        while let Some(byte) = self.next() {
            self.before = match byte {
                b'\\' => self.escape()?,
                b'[' => self.class()?,
                b'(' => self.open()?,
                b')' => PrecedingElement::Item,
                b'|' | b'^' => PrecedingElement::Nothing,
                b'$' => {
                    self.has_dollar = true;
                    PrecedingElement::Nothing
                }
                b'*' | b'+' | b'?' => self.quantifier()?,
                b'{' => {
                    self.counted()?;
                    self.quantifier()?
                }
                _ => PrecedingElement::Item,
            };
        }
        Some(())
    }

    /// Reads the end of a quantifier. `None` if it repeats nothing, or is possessive.
    fn quantifier(&mut self) -> Option<PrecedingElement> {
        if self.before != PrecedingElement::Item {
            return None;
        }
        if self.rest.first() == Some(&b'?') {
            self.rest = &self.rest[1..];
        }
        Some(PrecedingElement::Quantifier)
    }

    /// `n}`, `n,}`, `n,m}`
    fn counted(&mut self) -> Option<()> {
        let end = memchr::memchr(b'}', self.rest)?;
        let text = str::from_utf8(&self.rest[..end]).ok()?;
        self.rest = &self.rest[end + 1..];
        let is_number =
            |n: &str| (1..=3).contains(&n.len()) && n.bytes().all(|b| b.is_ascii_digit());
        let (min, max) = text.split_once(',').unwrap_or((text, ""));
        (is_number(min) && (max.is_empty() || is_number(max))).then_some(())
    }

    /// Reads an escape outside of classes.
    fn escape(&mut self) -> Option<PrecedingElement> {
        match self.next()? {
            b'd' | b'D' | b'w' | b'W' | b's' | b'S' | b't' | b'n' | b'r' | b'f' => {
                Some(PrecedingElement::Item)
            }
            b'b' | b'B' if self.rest.first() != Some(&b'{') => Some(PrecedingElement::Nothing),
            b'A' => Some(PrecedingElement::Nothing),
            b'<' | b'>' => None,
            other if other.is_ascii_punctuation() => Some(PrecedingElement::Item),
            _ => None,
        }
    }

    /// Reads behind `(`: a capturing group, or `?`, flags among `i`, `s` and `-`, then `:` or `)`.
    fn open(&mut self) -> Option<PrecedingElement> {
        match self.rest {
            [b'?', rest @ ..] => {
                let flags = rest.iter().take_while(|b| matches!(b, b'i' | b's' | b'-')).count();
                let (b':' | b')') = rest.get(flags)? else { return None };
                self.rest = &rest[flags + 1..];
            }
            [b'*', ..] => return None,
            _ => {}
        }
        Some(PrecedingElement::Nothing)
    }

    /// Reads a class behind `[`.
    fn class(&mut self) -> Option<PrecedingElement> {
        if self.rest.first() == Some(&b'^') {
            self.rest = &self.rest[1..];
        }
        // A bracket directly behind `[` is a member; such patterns go to PCRE2.
        if self.rest.first() == Some(&b']') {
            return None;
        }
        loop {
            match self.next()? {
                b']' => return Some(PrecedingElement::Item),
                b'[' => self.posix()?,
                b'\\' => match self.next()? {
                    b'd' | b'D' | b'w' | b'W' | b's' | b'S' | b't' | b'n' | b'r' | b'f' => {}
                    other if other.is_ascii_punctuation() && !matches!(other, b'<' | b'>') => {}
                    _ => return None,
                },
                // Only one of the engines takes these for set operators.
                op @ (b'&' | b'-' | b'~') if self.rest.first() == Some(&op) => return None,
                _ => {}
            }
        }
    }

    /// `:alpha:]`
    fn posix(&mut self) -> Option<()> {
        const NAMES: [&[u8]; 12] = [
            b":alpha:]",
            b":digit:]",
            b":alnum:]",
            b":upper:]",
            b":lower:]",
            b":space:]",
            b":punct:]",
            b":xdigit:]",
            b":blank:]",
            b":cntrl:]",
            b":graph:]",
            b":print:]",
        ];
        let name = NAMES.into_iter().find(|name| self.rest.starts_with(name))?;
        self.rest = &self.rest[name.len()..];
        Some(())
    }
}
