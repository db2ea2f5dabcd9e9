//! The shared configuration of a cluster's nodes: which keys it may have, and how it is read
//! together with a node's own file.
//!
//! A key belongs in exactly one of the two. Settings of the machine, and those that take effect at
//! a start only, belong in the node's own file: a shared configuration must never wait for a
//! restart, nor name what another machine lacks.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::diagnostic::{Diagnostic, SourceText};
use crate::keys::{Mark, Section};
use crate::model::Config;
use crate::parse::{self, LIMITS, TOP};
use crate::reader::{Reader, TextRange};

/// A text and its name in messages.
#[derive(Clone, Copy, Debug)]
pub struct NamedText<'a> {
    /// The name.
    pub name: &'a str,
    /// The text.
    pub text: &'a str,
}

type Problems = Vec<Diagnostic>;

/// Checks a configuration that is to be shared by itself: it is TOML, and has no key of a node's
/// own file. Returns the VCL files that it names, each once.
///
/// # Errors
/// Everything that is wrong.
pub fn check_shared(shared: NamedText<'_>) -> Result<Vec<PathBuf>, Problems> {
    let source = Arc::new(SourceText { name: shared.name.into(), text: shared.text.into() });
    let mut reader = Reader::new(source, &TOP);
    let document = parse::document(&mut reader, shared.text);
    let Some(document) = document else { return Err(parse::faults(reader)) };
    refuse_own(&mut reader, document.get_ref());
    if !reader.found.is_empty() {
        return Err(parse::faults(reader));
    }
    let path = |value: &Spanned<DeValue<'_>>| value.get_ref().as_str().map(PathBuf::from);
    let top = document.get_ref();
    let sites = top.get("site").and_then(|sites| sites.get_ref().as_array());
    let of_site = |site: &Spanned<DeValue<'_>>| path(site.get_ref().as_table()?.get("vcl")?);
    let mut all: Vec<_> = top.get("vcl").and_then(path).into_iter().collect();
    all.extend(sites.into_iter().flatten().filter_map(of_site));
    all.sort_unstable();
    all.dedup();
    Ok(all)
}

/// Reads a node's own file and the shared configuration as one, as [`crate::load_str`] reads one
/// file.
///
/// # Errors
/// As [`crate::load_str`], each with its file.
pub fn load_shared(
    own: NamedText<'_>,
    shared: NamedText<'_>,
) -> Result<(Config, Problems), Problems> {
    // If one of them cannot be parsed, nothing can be said about both.
    let source = |named: NamedText<'_>| {
        Arc::new(SourceText { name: named.name.into(), text: named.text.into() })
    };
    let mut reader = Reader::new(source(own), &TOP);
    let Some(mut document) = parse::document(&mut reader, own.text) else {
        return Err(parse::faults(reader));
    };
    let mut alone = Reader::new(source(shared), &TOP);
    if parse::document(&mut alone, shared.text).is_none() {
        return Err(parse::faults(alone));
    }
    // Its spans start behind the node's own file.
    let behind = own.text.len() + 1;
    let moved = format!("{}{}", "\n".repeat(behind), shared.text);
    reader.continue_with_file(behind, alone.source);
    let Some(added) = parse::document(&mut reader, &moved) else {
        return Err(parse::faults(reader));
    };
    refuse_own(&mut reader, added.get_ref());
    merge(&mut reader, document.get_mut(), added.into_inner());
    let config = parse::read(&mut reader, &document);
    parse::finish(reader, Some(config))
}

/// Reports keys that are not allowed in a shared configuration.
fn refuse_own(r: &mut Reader, top: &DeTable<'_>) {
    let own = |r: &mut Reader, span: TextRange, what: String| {
        r.error(span, format!("{what} is each node's own")).help =
            Some("it stands in the nodes' own files, not in what they share".to_owned());
    };
    for (name, value) in top {
        let (span, key) = (name.span(), name.get_ref().as_ref());
        if is_own(&TOP, key) {
            own(r, span, format!("`{key}`"));
        }
        let limits = (key == "limits").then(|| value.get_ref().as_table()).flatten();
        for (limit, _) in limits.into_iter().flatten() {
            let (span, key) = (limit.span(), limit.get_ref().as_ref());
            if is_own(&LIMITS, key) {
                own(r, span, format!("the limit `{key}`"));
            }
        }
    }
}

fn is_own(section: &Section, name: &str) -> bool {
    section.key(name).is_some_and(|key| key.is(Mark::Own))
}

/// Merges the shared configuration into the node's own; reports keys in both.
fn merge<'a>(r: &mut Reader, own: &mut DeTable<'a>, added: DeTable<'a>) {
    for (name, value) in added {
        let Some((there, old)) = own.get_key_value(&name) else {
            own.insert(name, value);
            continue;
        };
        let (key, there) = (name.get_ref().to_string(), there.span());
        match (old.get_ref(), value.get_ref()) {
            // Each limit is a key of its own.
            (DeValue::Table(_), DeValue::Table(_)) if key == "limits" => {}
            _ => {
                twice(r, name.span(), &format!("`{key}`"), &there);
                continue;
            }
        }
        let places: BTreeMap<String, TextRange> = old
            .get_ref()
            .as_table()
            .into_iter()
            .flatten()
            .map(|(name, _)| (name.get_ref().to_string(), name.span()))
            .collect();
        let (DeValue::Table(more), Some(old)) = (value.into_inner(), own.get_mut(&name)) else {
            continue;
        };
        let DeValue::Table(all) = old.get_mut() else { continue };
        for (limit, value) in more {
            match places.get(limit.get_ref().as_ref()) {
                Some(there) => {
                    let what = format!("the limit `{}`", limit.get_ref());
                    twice(r, limit.span(), &what, there);
                }
                None => _ = all.insert(limit, value),
            }
        }
    }
}

fn twice(r: &mut Reader, span: TextRange, what: &str, there: &TextRange) {
    let there = r.place(there);
    r.error(span, format!("{what} stands in {there}, too")).help =
        Some("a key stands in the node's own file or in what all share".to_owned());
}

#[cfg(test)]
mod tests;
