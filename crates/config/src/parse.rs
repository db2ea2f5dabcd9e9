//! From the text of `larder.toml` to a [`Config`], or to everything that is wrong with it.

mod acme;
mod admin;
mod files;
mod limits;
mod log_ring;
mod origins;
mod ports;
mod presets;
mod purge;
mod scripts;
mod settings;
mod sites;
mod tls;
mod top;
mod tracing;

pub(crate) use self::files::defaults_beside_scripts;
pub(crate) use acme::plain as parse_acme;
pub(crate) use presets::Presets;
#[cfg(test)]
pub(crate) use presets::said_of_preset;
pub(crate) use purge::of_presets as purge_of_presets;
pub(crate) use tls::plain_origin;
pub(crate) use top::parse_memory;

use std::sync::Arc;

use toml::de::DeTable;

use crate::diagnostic::{Diagnostic, Severity, Source};
use crate::model::Config;
use crate::reader::Reader;

/// Problems reported of one file; who made more will want to see the first ones first.
const PROBLEMS_MAX: usize = 100;

/// Lines that are no TOML reported of one file.
const SYNTAX_MAX: usize = 3;

/// Reads the configuration in `text`. `file_name` is what messages call it.
///
/// # Errors
/// Everything that is wrong, warnings included, in the order of the file. Problems of syntax are
/// reported alone: what the rest means is not known before they are mended.
pub fn load_str(text: &str, file_name: &str) -> Result<(Config, Vec<Diagnostic>), Vec<Diagnostic>> {
    let source = Arc::new(Source { name: file_name.to_owned(), text: text.to_owned() });
    let mut reader = Reader::new(source);
    let (document, syntax) = DeTable::parse_recoverable(text);
    let config = if syntax.is_empty() {
        top::config(&mut reader, &document)
    } else {
        syntax_errors(&mut reader, &syntax);
        None
    };
    finish(reader, config)
}

/// Notes the first few lines that are no TOML, each once: after an unclosed bracket or quote every
/// line is wrong in several ways.
fn syntax_errors(reader: &mut Reader, errors: &[toml::de::Error]) {
    let end = reader.source.text.len();
    let mut lines = Vec::new();
    for error in errors {
        let span = error.span().unwrap_or(end..end);
        let before = &reader.source.text.as_bytes()[..span.start.min(end)];
        let line = before.iter().filter(|b| **b == b'\n').count();
        if !lines.contains(&line) && lines.len() < SYNTAX_MAX {
            lines.push(line);
            reader.error(span, error.message());
        }
    }
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
