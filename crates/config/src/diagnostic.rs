//! Diagnostics: the faults of a file, with locations and remedies.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};

/// The severity of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The file cannot be used.
    Error,
    /// The file can be used, but something in it is probably a mistake.
    Warning,
}

/// A file's name and text, shared by its diagnostics.
#[derive(Debug, PartialEq, Eq)]
pub struct SourceText {
    /// Name shown to people.
    pub name: String,
    /// Its text; spans are byte ranges of it.
    pub text: String,
}

/// One problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The severity of the fault.
    pub severity: Severity,
    /// The fault, in one sentence.
    pub message: String,
    /// The location, in bytes of the file; `None` without one.
    pub span: Option<Range<usize>>,
    /// A related location, and its label.
    pub related: Option<(Range<usize>, String)>,
    /// The remedy.
    pub help: Option<String>,
    /// The file.
    pub file: Arc<SourceText>,
}

impl Diagnostic {
    /// Line and column of the start, both counted from 1, columns in characters.
    pub fn position(&self) -> Option<(usize, usize)> {
        let before = self.file.text.get(..self.span.as_ref()?.start)?;
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let line = before.bytes().filter(|b| *b == b'\n').count() + 1;
        Some((line, before[line_start..].chars().count() + 1))
    }

    /// The report: message, `file:line:column`, the source line with the location underlined, and
    /// help. `colour` adds terminal escapes.
    pub fn render(&self, colour: bool) -> String {
        let level = match self.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        let mut group = level.primary_title(&self.message).elements(self.snippet());
        if self.span.is_none() && !self.file.name.is_empty() {
            group = group.element(annotate_snippets::Origin::path(&self.file.name));
        }
        if let Some(help) = &self.help {
            group = group.element(Level::HELP.message(help));
        }
        let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
        renderer.render(&[group])
    }

    fn snippet(&self) -> Option<Snippet<'_, annotate_snippets::Annotation<'_>>> {
        let text = &self.file.text;
        let span = inside(text, self.span.as_ref()?);
        let mut snippet = Snippet::source(text)
            .path(&self.file.name)
            .annotation(AnnotationKind::Primary.span(span));
        if let Some((also, label)) = &self.related {
            snippet =
                snippet.annotation(AnnotationKind::Context.span(inside(text, also)).label(label));
        }
        Some(snippet)
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

impl std::error::Error for Diagnostic {}

/// All reports, separated by empty lines.
pub fn render(diagnostics: &[Diagnostic], colour: bool) -> String {
    let reports: Vec<_> = diagnostics.iter().map(|d| d.render(colour)).collect();
    reports.join("\n\n")
}

/// `span` clamped to `text` and its character boundaries; at most its first line, since a table is
/// long and its header suffices.
fn inside(text: &str, span: &Range<usize>) -> Range<usize> {
    let start = text.floor_char_boundary(span.start);
    let end = text.ceil_char_boundary(span.end).max(start);
    let line = text[start..end].find('\n').filter(|len| *len > 0);
    start..line.map_or(end, |len| start + len)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str, span: Range<usize>) -> Diagnostic {
        Diagnostic {
            severity: Severity::Error,
            message: "wrong".to_owned(),
            span: Some(span),
            related: None,
            help: None,
            file: Arc::new(SourceText { name: "larder.toml".to_owned(), text: text.to_owned() }),
        }
    }

    #[test]
    fn positions_count_lines_and_characters_from_one() {
        assert_eq!(at("a\néb", 4..5).position(), Some((2, 2)));
        assert_eq!(at("", 0..0).position(), Some((1, 1)));
        assert_eq!(at("é", 1..2).position(), None);
        assert_eq!(Diagnostic { span: None, ..at("a", 0..1) }.position(), None);
    }

    #[test]
    fn a_span_outside_the_text_is_shown_at_its_end() {
        for span in [0..0, 1..2, 2..9, 9..12, 0..usize::MAX] {
            assert!(at("aé\n", span).render(true).contains("wrong"));
        }
        assert!(at("", 0..0).render(false).contains("larder.toml:1:1"));
    }
}
