//! `larder preset`: what presets there are, and what they say.

use std::io::{self, Write as _};

use clap::Subcommand;
use config::preset::{PRESETS, find};

/// Actions on presets.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum PresetVerb {
    /// Name every preset and what it is for.
    List,
    /// Print a preset's file, commented, to read or to copy from.
    Show {
        /// Its name.
        name: String,
    },
}

/// Runs the verb.
pub(crate) fn run(verb: &PresetVerb) -> Result<(), String> {
    match verb {
        PresetVerb::List => {
            let width = PRESETS.iter().map(|preset| preset.name.len()).max().unwrap_or(0);
            let line = |preset: &config::preset::Preset| {
                format!("{:width$}  {}\n", preset.name, preset.about())
            };
            print(&PRESETS.iter().map(line).collect::<String>())
        }
        PresetVerb::Show { name } => match find(name) {
            Some(preset) => print(preset.text),
            None => Err(format!("no preset is called `{name}`: `larder preset list` names them")),
        },
    }
}

/// Prints `text`; a reader that has seen enough (`| head`) is no failure.
pub(crate) fn print(text: &str) -> Result<(), String> {
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(format!("cannot write: {error}"))
        }
        _ => Ok(()),
    }
}
