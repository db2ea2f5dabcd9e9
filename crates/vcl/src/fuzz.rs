//! The entry points for fuzzing; nothing else calls them but tests.

use crate::lex::{self, Kind};
use crate::parse;
use crate::program::{Input, Rules};
use crate::report::Report;
use crate::source::{NoFiles, SourceFile, Sources, Span};

/// Any bytes have tokens: in their order, apart from each other, within the file; a string's
/// content lies within its token. What is bad has been complained of.
pub fn lexer(data: &[u8]) {
    let file = SourceFile { name: "fuzz.vcl".into(), text: data.into(), included_at: None };
    let mut report = Report::default();
    let tokens = lex::tokens(0, &file, &mut report);
    let mut last = 0;
    for token in &tokens {
        let Span { start, end, .. } = token.span;
        assert!(last <= start && start < end && end as usize <= data.len());
        last = end;
        let bytes = &data[start as usize..end as usize];
        match token.kind {
            Kind::Str => assert!(lex::string(bytes).len() + 2 <= bytes.len()),
            Kind::Blob => assert!(lex::decode(&bytes[1..bytes.len() - 1]).is_some()),
            Kind::Bad => assert!(report.has_errors()),
            _ => {}
        }
    }
    let mut sources = Sources::default();
    sources.add(file);
    assert_eq!(report.render(&sources).is_empty(), report.is_empty());
}

/// Any program is read or refused with something said; reading it again says the same.
pub fn parser(data: &[u8]) {
    let read = || {
        let (mut sources, mut report) = (Sources::default(), Report::default());
        let rules = Rules { storages: &[], labels: &[], include_depth: 3 };
        let input = Input { name: "fuzz.vcl", text: data, loader: &NoFiles, rules };
        let ast = parse::parse(&input, &mut sources, &mut report);
        assert!(ast.is_some() || report.has_errors());
        (format!("{ast:?}"), report.render(&sources))
    };
    assert_eq!(read(), read());
}
