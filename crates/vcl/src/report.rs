//! Report of a compilation: findings with positions and advice, gathered while a program is parsed
//! and checked, printed at the end. It never stops the compiler; the caller decides.

use std::ops::Range;

use annotate_snippets::{
    Annotation, AnnotationKind, Element, Group, Level, Origin, Renderer, Snippet,
};

use crate::source::{SourceSpan, Sources};

/// Most findings that are stored: more are repetitions of one mistake.
pub const MAX_ENTRIES: usize = 100;

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The program is rejected.
    Error,
    /// The program is accepted, but probably not meant so. Varnish warns too.
    Warning,
    /// A warning of Larder's that Varnish does not give.
    Advice,
}

/// A finding.
#[derive(Clone, Debug)]
pub struct Finding {
    severity: Severity,
    message: String,
    span: Option<SourceSpan>,
    here: Option<String>,
    labels: Vec<(SourceSpan, String)>,
    notes: Vec<String>,
    helps: Vec<String>,
}

impl Finding {
    /// Adds text at the finding's position.
    pub fn here(&mut self, text: impl Into<String>) -> &mut Self {
        self.here = Some(text.into());
        self
    }

    /// Adds what was expected at the finding's position.
    pub fn expected(&mut self, what: impl AsRef<str>) -> &mut Self {
        self.here(format!("expected {}", what.as_ref()))
    }

    /// Adds text at another position, possibly in another file.
    pub fn label(&mut self, span: SourceSpan, text: impl Into<String>) -> &mut Self {
        self.labels.push((span, text.into()));
        self
    }

    /// Adds an explanation.
    pub fn note(&mut self, text: impl Into<String>) -> &mut Self {
        self.notes.push(text.into());
        self
    }

    /// Adds advice.
    pub fn help(&mut self, text: impl Into<String>) -> &mut Self {
        self.helps.push(text.into());
        self
    }

    /// Advises the nearest of `candidates`, if one is near enough to `word`.
    pub fn did_you_mean<'a>(
        &mut self,
        word: &str,
        candidates: impl IntoIterator<Item = &'a str>,
    ) -> &mut Self {
        match nearest(word, candidates) {
            Some(near) => self.help(format!("did you mean `{near}`?")),
            None => self,
        }
    }
}

/// All findings about a program.
#[derive(Clone, Debug, Default)]
pub struct Report {
    entries: Vec<Finding>,
    errors: usize,
    dropped: usize,
    /// Receives findings beyond the limit.
    spare: Option<Box<Finding>>,
}

impl Report {
    /// Adds an error at `span`.
    pub fn error(&mut self, span: SourceSpan, message: impl Into<String>) -> &mut Finding {
        self.add(Severity::Error, Some(span), message.into())
    }

    /// Adds an error without a position: something is missing.
    pub fn error_nowhere(&mut self, message: impl Into<String>) -> &mut Finding {
        self.add(Severity::Error, None, message.into())
    }

    /// Adds a warning at `span`.
    pub fn warning(&mut self, span: SourceSpan, message: impl Into<String>) -> &mut Finding {
        self.add(Severity::Warning, Some(span), message.into())
    }

    /// Adds advice at `span`, about which Varnish is silent.
    pub fn advice(&mut self, span: SourceSpan, message: impl Into<String>) -> &mut Finding {
        self.add(Severity::Advice, Some(span), message.into())
    }

    /// The last finding, for additions.
    pub fn last(&mut self) -> Option<&mut Finding> {
        self.spare.as_deref_mut().or_else(|| self.entries.last_mut())
    }

    /// Returns true if the program is rejected.
    pub fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// Number of errors.
    pub fn errors(&self) -> usize {
        self.errors
    }

    /// Returns true if there are no findings.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn add(
        &mut self,
        severity: Severity,
        span: Option<SourceSpan>,
        message: String,
    ) -> &mut Finding {
        let entry = Finding {
            severity,
            message,
            span,
            here: None,
            labels: Vec::new(),
            notes: Vec::new(),
            helps: Vec::new(),
        };
        self.errors += usize::from(severity == Severity::Error);
        if self.entries.len() >= MAX_ENTRIES {
            self.dropped += 1;
            return self.spare.insert(Box::new(entry));
        }
        self.entries.push(entry);
        self.entries.last_mut().expect("it was pushed just now")
    }

    /// Renders all findings in the order of the sources, separated by empty lines. No colours; the
    /// output is deterministic.
    pub fn render(&self, sources: &Sources) -> String {
        self.render_those(sources, |_| true)
    }

    /// Renders the findings whose severity `is` accepts.
    pub fn render_those(&self, sources: &Sources, is: impl Fn(Severity) -> bool) -> String {
        let mut order: Vec<&Finding> = self.entries.iter().filter(|e| is(e.severity)).collect();
        order.sort_by_key(|e| e.span.map_or((u32::MAX, 0), |s| (s.file, s.start)));
        let mut texts: Vec<String> = order.iter().map(|e| e.render(sources)).collect();
        if self.dropped > 0 {
            texts.push(format!("... and {} more", self.dropped));
        }
        texts.join("\n\n")
    }
}

impl Finding {
    fn render(&self, sources: &Sources) -> String {
        let excerpts = self.excerpts(sources);
        let level = match self.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning | Severity::Advice => Level::WARNING,
        };
        let elements: Vec<Element<'_>> = match (excerpts.is_empty(), sources.files().first()) {
            (true, Some(file)) => vec![Origin::path(&*file.name).into()],
            _ => excerpts.iter().map(|e| e.snippet().into()).collect(),
        };
        let mut group: Group<'_> = level.primary_title(&self.message).elements(elements);
        let from = self.inclusions(sources);
        for text in from.iter().chain(&self.notes) {
            group = group.element(Level::NOTE.message(text));
        }
        for text in &self.helps {
            group = group.element(Level::HELP.message(text));
        }
        Renderer::plain().render(&[group])
    }

    /// Excerpts of the files, that of the finding first.
    fn excerpts(&self, sources: &Sources) -> Vec<Excerpt> {
        let Some(span) = self.span else { return Vec::new() };
        let mut files = vec![span.file];
        for (other, _) in &self.labels {
            if !files.contains(&other.file) {
                files.push(other.file);
            }
        }
        files.into_iter().map(|file| self.excerpt(sources, file)).collect()
    }

    fn excerpt(&self, sources: &Sources, file: u32) -> Excerpt {
        let primary = self.span.filter(|span| span.file == file);
        let marks = primary
            .map(|span| Mark { span, kind: AnnotationKind::Primary, label: self.here.as_deref() })
            .into_iter()
            .chain(self.labels.iter().filter(|(span, _)| span.file == file).map(|(span, text)| {
                Mark { span: *span, kind: AnnotationKind::Context, label: Some(text) }
            }))
            .collect::<Vec<_>>();
        Excerpt::new(sources, file, &marks)
    }

    /// The chain of includes that leads to the file.
    fn inclusions(&self, sources: &Sources) -> Vec<String> {
        let first = self.span.and_then(|span| sources.file(span.file).included_at);
        std::iter::successors(first, |at| sources.file(at.file).included_at)
            .map(|at| {
                let (line, column) = sources.position(at);
                format!("included at {}:{line}:{column}", sources.file(at.file).name)
            })
            .collect()
    }
}

/// A position of a finding, marked in an excerpt.
struct Mark<'a> {
    span: SourceSpan,
    kind: AnnotationKind,
    label: Option<&'a str>,
}

/// The shown lines of a file as text; VCL itself is bytes.
struct Excerpt {
    name: String,
    text: String,
    first_line: usize,
    places: Vec<(Range<usize>, AnnotationKind, Option<String>)>,
}

impl Excerpt {
    fn new(sources: &Sources, file: u32, marks: &[Mark<'_>]) -> Self {
        let source = sources.file(file);
        let bytes: &[u8] = &source.text;
        let clip = |at: u32| (at as usize).min(bytes.len());
        let begin = marks.iter().map(|mark| clip(mark.span.start)).min().unwrap_or(0);
        let end = marks.iter().map(|mark| clip(mark.span.end)).max().unwrap_or(0).max(begin);
        let from = bytes[..begin].iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
        let to = bytes[end..].iter().position(|b| *b == b'\n').map_or(bytes.len(), |n| end + n);
        let shown = |at: u32| String::from_utf8_lossy(&bytes[from..clip(at).max(from)]).len();
        // Line ends of Windows are not shown; the length stays.
        let mut text = String::from_utf8_lossy(&bytes[from..to]).replace("\r\n", " \n");
        if text.ends_with('\r') {
            text.pop();
            text.push(' ');
        }
        let places = marks
            .iter()
            .map(|Mark { span, kind, label }| {
                let start = text.floor_char_boundary(shown(span.start));
                let end = text.ceil_char_boundary(shown(span.end)).max(start);
                (first_line_of(&text, start..end), *kind, label.map(str::to_owned))
            })
            .collect();
        Self {
            name: source.name.to_string(),
            text,
            first_line: bytes[..from].iter().filter(|b| **b == b'\n').count() + 1,
            places,
        }
    }

    fn snippet(&self) -> Snippet<'_, Annotation<'_>> {
        let mut snippet =
            Snippet::source(&*self.text).path(&*self.name).line_start(self.first_line);
        for (range, kind, label) in &self.places {
            snippet = snippet.annotation(kind.span(range.clone()).label(label.as_deref()));
        }
        snippet
    }
}

/// Of a position of several lines only the first is marked.
fn first_line_of(text: &str, range: Range<usize>) -> Range<usize> {
    match text[range.clone()].find('\n') {
        Some(length) if length > 0 => range.start..range.start + length,
        _ => range,
    }
}

/// The candidate that `word` probably means: at most a third of the letters differ, without regard
/// to case. The first of several equally near ones.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let most = word.len().div_ceil(3).min(4);
    let word = word.to_ascii_lowercase();
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates {
        if candidate.len().abs_diff(word.len()) > most {
            continue;
        }
        let distance = strsim::osa_distance(&word, &candidate.to_ascii_lowercase());
        if distance <= most && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::SourceFile;

    fn sources(texts: &[(&str, &[u8], Option<SourceSpan>)]) -> Sources {
        let mut sources = Sources::default();
        for (name, text, included_at) in texts {
            sources.add(SourceFile {
                name: (*name).into(),
                text: (*text).into(),
                included_at: *included_at,
            });
        }
        sources
    }

    #[test]
    fn an_entry_shows_file_line_column_caret_and_advice() {
        let sources = sources(&[("a.vcl", b"vcl 4.1;\nset x = 1;\n", None)]);
        let mut report = Report::default();
        report
            .error(SourceSpan { file: 0, start: 13, end: 14 }, "no variable is called `x`")
            .expected("a variable")
            .did_you_mean("req.htpp", ["beresp.ttl", "req.http"]);
        let text = report.render(&sources);
        let expected = "\
error: no variable is called `x`
 --> a.vcl:2:5
  |
2 | set x = 1;
  |     ^ expected a variable
  |
  = help: did you mean `req.http`?";
        assert_eq!(text, expected);
        assert!(report.has_errors());
    }

    #[test]
    fn an_included_file_says_where_it_was_included() {
        let at = SourceSpan { file: 0, start: 9, end: 16 };
        let sources = sources(&[
            ("a.vcl", b"vcl 4.1;\ninclude \"b.vcl\";\n", None),
            ("b.vcl", b"\xff\xff bad\n", Some(at)),
        ]);
        let mut report = Report::default();
        report
            .warning(SourceSpan { file: 1, start: 3, end: 6 }, "odd")
            .label(SourceSpan { file: 0, start: 0, end: 3 }, "because of this");
        let text = report.render(&sources);
        assert!(text.contains("b.vcl:1:4") && text.contains("a.vcl:1:1"), "{text}");
        assert!(text.contains("note: included at a.vcl:2:1"), "{text}");
        assert!(!report.has_errors());
    }

    #[test]
    fn spans_outside_of_the_text_are_shown_at_its_end() {
        let sources = sources(&[("a.vcl", b"a\xc3\xa9\n", None), ("", b"", None)]);
        for (file, start, end) in [(0, 0, 0), (0, 2, 9), (0, 9, 12), (0, 3, 1), (1, 0, 5)] {
            let mut report = Report::default();
            report.error(SourceSpan { file, start, end }, "wrong").here("here");
            assert!(report.render(&sources).contains("wrong"));
        }
    }

    #[test]
    fn too_many_entries_are_counted() {
        let sources = sources(&[("a.vcl", b"a", None)]);
        let mut report = Report::default();
        for _ in 0..MAX_ENTRIES + 3 {
            report.error(SourceSpan::default(), "wrong").note("again");
        }
        assert!(report.render(&sources).ends_with("... and 3 more"));
        assert_eq!(report.errors(), MAX_ENTRIES + 3);
    }

    #[test]
    fn nearest_takes_slips_of_the_pen_and_nothing_far() {
        let names = ["beresp.ttl", "beresp.grace", "req.url", "std"];
        assert_eq!(nearest("beresp.tll", names), Some("beresp.ttl"));
        assert_eq!(nearest("req.ulr", names), Some("req.url"));
        assert_eq!(nearest("REQ.URL", names), Some("req.url"));
        assert_eq!(nearest("stdd", names), Some("std"));
        assert_eq!(nearest("bereq.xid", names), None);
        assert_eq!(nearest("", names), None);
    }
}
