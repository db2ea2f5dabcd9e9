//! From the text of `larder.toml` to a [`Config`], or to everything that is wrong with it.

mod limits;
mod origins;
mod settings;
mod sites;
mod top;

pub(crate) use top::parse_memory;

use std::sync::Arc;

use toml::de::DeTable;

use crate::diagnostic::{Diagnostic, Severity, Source};
use crate::model::Config;
use crate::reader::Reader;

/// Problems reported of one file; who made more will want to see the first ones first.
const PROBLEMS_MAX: usize = 100;

/// Reads the configuration in `text`. `file_name` is what messages call it.
///
/// # Errors
/// Everything that is wrong, warnings included, in the order of the file. Problems of syntax are reported
/// alone: what the rest means is not known before they are mended.
pub fn load_str(text: &str, file_name: &str) -> Result<(Config, Vec<Diagnostic>), Vec<Diagnostic>> {
    let source = Arc::new(Source { name: file_name.to_owned(), text: text.to_owned() });
    let mut reader = Reader::new(source);
    let (document, syntax) = DeTable::parse_recoverable(text);
    let config = if syntax.is_empty() {
        top::config(&mut reader, &document)
    } else {
        for error in &syntax {
            let end = text.len()..text.len();
            reader.error(error.span().unwrap_or(end), error.message());
        }
        None
    };
    finish(reader, config)
}

/// Sorts what `reader` found and decides whether `config` can be used.
pub(crate) fn finish(
    reader: Reader,
    config: Option<Config>,
) -> Result<(Config, Vec<Diagnostic>), Vec<Diagnostic>> {
    let mut found = reader.found;
    found.sort_by_key(|d| d.span.as_ref().map(|span| span.start));
    found.truncate(PROBLEMS_MAX);
    match config {
        Some(config) if found.iter().all(|d| d.severity == Severity::Warning) => {
            Ok((config, found))
        }
        _ => Err(found),
    }
}
