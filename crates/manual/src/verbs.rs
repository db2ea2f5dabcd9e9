//! Pages of section 1, one for the program and one for each verb.

use std::io;

use clap::Command;
use clap_mangen::Man;
use roff::{Roff, bold, roman};

use crate::document::{BOOK, Document, Edition};

/// Makes the page of `command` and those of all verbs below it.
pub(crate) fn pages(command: &Command, edition: Edition<'_>) -> io::Result<Vec<Document>> {
    let mut built = command.clone().disable_help_subcommand(true);
    built.build();
    let mut all = Vec::new();
    add(&built, &[], edition, &mut all)?;
    Ok(all)
}

/// Adds the page of `command`, whose parents' pages are `above`.
fn add(
    command: &Command,
    above: &[String],
    edition: Edition<'_>,
    all: &mut Vec<Document>,
) -> io::Result<()> {
    let name = display_name(command);
    let man = Man::new(command.clone()).title(&name).date(edition.date);
    let man = man.source(edition.source).manual(BOOK);
    let mut bytes = Vec::new();
    man.render_title(&mut bytes)?;
    man.render_name_section(&mut bytes)?;
    man.render_synopsis_section(&mut bytes)?;
    man.render_description_section(&mut bytes)?;
    man.render_options_section(&mut bytes)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut bytes)?;
    }
    if let Some(text) = command.get_after_help() {
        notes(&text.to_string()).to_writer(&mut bytes)?;
    }
    see_also(command, above).to_writer(&mut bytes)?;
    all.push(Document { path: format!("man1/{name}.1"), bytes });
    let mut chain = above.to_vec();
    chain.push(name);
    for verb in command.get_subcommands() {
        add(verb, &chain, edition, all)?;
    }
    Ok(())
}

fn display_name(command: &Command) -> String {
    command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned()
}

/// Section of what follows a verb's options in its help: indented lines stay as they are, others
/// are text.
fn notes(text: &str) -> Roff {
    let mut page = Roff::new();
    page.control("SH", ["NOTES"]);
    let mut verbatim = false;
    for line in text.lines() {
        let indented = line.starts_with(' ');
        if indented != verbatim {
            page.control(if indented { "nf" } else { "fi" }, []);
            verbatim = indented;
        }
        if line.is_empty() {
            page.control("PP", []);
        } else {
            page.text([roman(line)]);
        }
    }
    if verbatim {
        page.control("fi", []);
    }
    page
}

/// Names the pages above, beside the file's that configures all.
fn see_also(command: &Command, above: &[String]) -> Roff {
    let below = command.get_subcommands().map(display_name);
    let mut line = Vec::new();
    for name in above.iter().cloned().chain(below) {
        line.extend([bold(name), roman("(1), ")]);
    }
    line.extend([bold("larder.toml"), roman("(5)")]);
    let mut page = Roff::new();
    page.control("SH", ["SEE ALSO"]).text(line);
    page
}
