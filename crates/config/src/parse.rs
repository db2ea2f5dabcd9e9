//! Parsing: from the text of `larder.toml` to a [`Config`], or to everything that is wrong with it.

mod acme;
mod admin;
mod answers;
mod authentication;
mod bypass;
mod cache;
mod certificates;
mod cluster;
mod compression;
mod conditions;
mod cookies;
mod crawlers;
mod disk;
mod error_pages;
mod files;
mod headers;
mod health;
mod hsts;
mod ignored_fields;
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
mod response_rules;
mod rewrites;
mod routes;
mod scripts;
mod setting_locations;
mod settings;
mod sites;
mod sticky;
mod syntax;
mod throttle;
mod times;
mod tls;
mod top;
mod tracing;
mod vary;
mod warm;
mod webhook;

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

/// Problems reported of one file.
const PROBLEMS_MAX: usize = 100;

/// Lines with syntax errors reported of one file, if one of them invalidates others.
const SYNTAX_MAX: usize = 3;

/// Attempts to parse a file without the lines that have syntax errors.
const MENDS_MAX: usize = 8;

/// Reads the configuration in `text`. `file_name` is its name in messages.
///
/// # Errors
/// Every error and warning, in the order of the file. Beside syntax errors, others are reported
/// only if they are certain, and nothing is reported as missing.
pub fn load_str(text: &str, file_name: &str) -> Result<(Config, Vec<Diagnostic>), Vec<Diagnostic>> {
    let source = Arc::new(SourceText { name: file_name.to_owned(), text: text.to_owned() });
    let mut reader = Reader::new(source, &TOP);
    let document = document(&mut reader, text);
    let config = document.map(|document| read(&mut reader, &document));
    finish(reader, config)
}

/// Parses the document in `text`; a syntax error is noted and gives `None`.
pub(crate) fn document<'a>(reader: &mut Reader, text: &'a str) -> Option<Spanned<DeTable<'a>>> {
    let (document, syntax) = DeTable::parse_recoverable(text);
    // Spans over several files do not fit this text.
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

/// Reads the configuration of a document, as far as it can be read.
pub(crate) fn read(reader: &mut Reader, document: &Spanned<DeTable<'_>>) -> Config {
    top::config(reader, document)
}

/// All diagnostics, in the order of the files.
pub(crate) fn faults(reader: Reader) -> Vec<Diagnostic> {
    let mut found = reader.found_in_places();
    found.truncate(PROBLEMS_MAX);
    found
}

/// Notes the lines with syntax errors, each once, and the faults of the other lines if each bad
/// line is a single value. An unclosed bracket or quote makes every line wrong: then only the first
/// few are noted.
fn faulty(reader: &mut Reader, mut errors: Vec<toml::de::Error>) {
    let mut text = reader.source.text.clone();
    if format_detection::is_program(&text) == Some(true) {
        let name = reader.source.name.clone();
        reader.error(0..0, "this is a program in VCL").help = Some(format!(
            "`larder check {name}` checks it; `larder serve -f {name} -a :80` runs it, or \
             `vcl = \"{name}\"` at the top of larder.toml"
        ));
        return;
    }
    if let Some((server, page)) = format_detection::foreign_server(&text) {
        let name = reader.source.name.clone();
        let found = reader.error(0..0, format!("this is a configuration of {server}"));
        found.help = Some(if matches!(server, "nginx" | "Caddy" | "Squid") {
            format!(
                "`larder import {name} -o larder.toml` translates it; the guide has a page, `{page}`"
            )
        } else {
            format!(
                "Larder's own is TOML: the guide has a page, `{page}`; begin with \
                 `larder serve --origin URL`"
            )
        });
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
            // A missing key may be in an unreadable line.
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
