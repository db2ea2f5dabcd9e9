//! The manual: man pages and shell completions, made from the programs' own tables: the verbs as
//! clap defines them, and the keys of `larder.toml`.
//!
//! Begin reading at [`documents`], which makes all files from a [`ProgramDescription`]. Nothing
//! here may name a verb or a key itself. Equal tables give equal bytes: no page may depend on a
//! folder, user or time.

mod document;
mod settings;
mod verbs;

#[cfg(test)]
mod tests;

use std::fs;
use std::io;
use std::path::Path;

use clap::Command;
pub use clap_complete::Shell;
use tools::ProgramDescription;

pub use document::Document;
use document::Edition;

/// Shells that get completions, each with its file's place below [`write()`]'s folder: the name by
/// which that shell finds it.
const SHELLS: [(Shell, &str); 3] = [
    (Shell::Bash, "completions/larder"),
    (Shell::Zsh, "completions/_larder"),
    (Shell::Fish, "completions/larder.fish"),
];

/// Returns all files: a page of section 1 for every verb that is shown, larder.toml(5), and the
/// completions for each shell. `date` is that of the pages, such as `2026-11-27`.
///
/// # Errors
/// Those of a writer into memory, that is, none.
pub fn documents(program: &ProgramDescription, date: &str) -> io::Result<Vec<Document>> {
    let command = program.verb.command();
    let version = command.get_version().unwrap_or_default();
    let source = format!("{} {version}", command.get_name());
    let edition = Edition { date, source: &source };
    let mut all = verbs::pages(&command, edition)?;
    all.push(Document {
        path: "man5/larder.toml.5".to_owned(),
        bytes: settings::page(&program.settings, edition).into_bytes(),
    });
    for (shell, path) in SHELLS {
        all.push(Document { path: path.to_owned(), bytes: completions(&command, shell) });
    }
    Ok(all)
}

/// Returns the completions of the verbs that are shown, for a shell.
pub fn completions(command: &Command, shell: Shell) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut own = command.clone();
    clap_complete::generate(shell, &mut own, command.get_name(), &mut bytes);
    bytes
}

/// Writes [`documents`] below `folder`.
///
/// # Errors
/// The file system's.
pub fn write(program: &ProgramDescription, date: &str, folder: &Path) -> io::Result<()> {
    for document in documents(program, date)? {
        let file = folder.join(&document.path);
        if let Some(above) = file.parent() {
            fs::create_dir_all(above)?;
        }
        fs::write(file, &document.bytes)?;
    }
    Ok(())
}
