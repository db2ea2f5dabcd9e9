//! From the text of `larder.toml` to a [`Config`], or to everything that is wrong with it.

mod acme;
mod admin;
mod answers;
mod authentication;
mod bypass;
mod cache;
mod certificates;
mod cluster;
mod compression;
mod cookies;
mod disk;
mod error_pages;
mod files;
mod headers;
mod health;
mod hsts;
mod includes;
mod limits;
mod listen;
mod lists;
mod log_ring;
mod logs;
mod neighbours;
mod origins;
mod ports;
mod presets;
mod probes;
mod purge;
mod redaction;
mod routes;
mod scripts;
mod setting_locations;
mod settings;
mod sites;
mod syntax;
mod throttle;
mod tls;
mod top;
mod tracing;

pub(crate) use self::files::defaults_beside_scripts;
pub(crate) use acme::plain as parse_acme;
pub(crate) use disk::{VOLUMES_MAX, directories_overlap, volume_path, volume_size};
pub(crate) use limits::LIMITS;
#[cfg(test)]
pub(crate) use neighbours::NEIGHBOUR;
pub(crate) use presets::Presets;
#[cfg(test)]
pub(crate) use presets::preset_diagnostics;
pub(crate) use purge::of_presets as purge_of_presets;
pub(crate) use routes::SCOPE_ROWS;
pub(crate) use settings::SETTINGS_ROWS;
pub(crate) use sites::PROFILES;
pub(crate) use tls::{plain_origin, usual_redirect};
pub(crate) use top::{TOP, TOP_ROWS, WORKERS_MAX, parse_memory};

use std::sync::Arc;

use toml::Spanned;
use toml::de::DeTable;

use crate::diagnostic::{Diagnostic, Severity, SourceText};
use crate::format_detection;
use crate::model::Config;
use crate::reader::Reader;
use syntax::{blank, syntax_errors};

/// Problems reported of one file; who made more will want to see the first ones first.
const PROBLEMS_MAX: usize = 100;

/// Lines that are no TOML reported of one file, where one wrong line makes others wrong.
const SYNTAX_MAX: usize = 3;

/// Attempts to read a file without the lines that are not TOML.
const MENDS_MAX: usize = 8;

/// Reads the configuration in `text`. `file_name` is what messages call it.
///
/// # Errors
/// Everything that is wrong, warnings included, in the order of the file. Beside lines that are no
/// TOML the others are told only where it is certain what they mean, and nothing that may be in
/// those lines is missed.
pub fn load_str(text: &str, file_name: &str) -> Result<(Config, Vec<Diagnostic>), Vec<Diagnostic>> {
    let source = Arc::new(SourceText { name: file_name.to_owned(), text: text.to_owned() });
    let mut reader = Reader::new(source, &TOP);
    let document = document(&mut reader, text);
    let config = document.map(|document| read(&mut reader, &document));
    finish(reader, config)
}

/// The document in `text`, the reader's own; `None` for a text that is no TOML, which is noted.
pub(crate) fn document<'a>(reader: &mut Reader, text: &'a str) -> Option<Spanned<DeTable<'a>>> {
    let (document, syntax) = DeTable::parse_recoverable(text);
    // Places in several files are not those of a text.
    let masked =
        reader.is_one_file().then(|| redaction::masked(text, document.get_ref())).flatten();
    if let Some(text) = masked {
        reader.source = Arc::new(SourceText { name: reader.source.name.clone(), text });
    }
    if !syntax.is_empty() {
        faulty(reader, syntax);
        return None;
    }
    Some(document)
}

/// The configuration that a document says, as far as it can be read.
pub(crate) fn read(reader: &mut Reader, document: &Spanned<DeTable<'_>>) -> Config {
    top::config(reader, document)
}

/// Everything that was found, in the order of the files.
pub(crate) fn faults(reader: Reader) -> Vec<Diagnostic> {
    let mut found = reader.found_in_places();
    found.truncate(PROBLEMS_MAX);
    found
}

/// Notes the lines that are no TOML, each once, and where each of them is one value, what is wrong
/// with the others. After an unclosed bracket or quote every line is wrong in several ways: then
/// only the first few.
fn faulty(reader: &mut Reader, mut errors: Vec<toml::de::Error>) {
    let mut text = reader.source.text.clone();
    if let Some((server, page)) = format_detection::foreign_server(&text) {
        let found = reader.error(0..0, format!("this is a configuration of {server}"));
        found.help = Some(format!(
            "Larder's own is TOML: the guide has a page, `{page}`; begin with \
             `larder serve --origin URL`"
        ));
        return;
    }
    let mut lines = Vec::new();
    for _ in 0..MENDS_MAX {
        let known = lines.len();
        syntax_errors(reader, &errors, &mut lines);
        let mended = lines[known..].iter().all(|line| blank(&mut text, *line));
        if !mended || lines.len() == known {
            break;
        }
        let (document, left) = DeTable::parse_recoverable(&text);
        if left.is_empty() {
            let before = reader.found.len();
            top::config(reader, &document);
            let header = |d: &Diagnostic| {
                d.span.as_ref().is_none_or(|span| text[span.start..].starts_with('['))
            };
            // What is missing may be in a line that could not be read.
            let others = reader.found.split_off(before);
            reader.found.extend(others.into_iter().filter(|found| !header(found)));
            return;
        }
        errors = left;
    }
    reader.found.truncate(SYNTAX_MAX);
}

/// Sorts what `reader` found and decides whether `config` can be used.
pub(crate) fn finish(
    reader: Reader,
    config: Option<Config>,
) -> Result<(Config, Vec<Diagnostic>), Vec<Diagnostic>> {
    let found = faults(reader);
    match config {
        Some(config) if found.iter().all(|d| d.severity == Severity::Warning) => {
            Ok((config, found))
        }
        _ => Err(found),
    }
}
