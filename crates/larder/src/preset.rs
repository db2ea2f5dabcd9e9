//! `larder preset`: lists presets, shows their files, and installs their plugins.

mod install;

use std::path::PathBuf;

use clap::Subcommand;
use config::preset::{PRESETS, Preset, find, likely_preset};

/// Actions on presets.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum PresetVerb {
    /// List every preset and its purpose.
    List,
    /// Print a preset's file, commented, to read or to copy from.
    Show {
        /// Its name.
        name: String,
    },
    /// Install a preset's plugin in the application, which then purges what it changes.
    Install {
        /// Its name: `wordpress` has a plugin.
        name: String,
        /// Folder of the application, such as /var/www/html.
        #[arg(long, required_unless_present = "print", conflicts_with = "print")]
        root: Option<PathBuf>,
        /// Replace another version of the plugin; never any other file.
        #[arg(long, conflicts_with = "print")]
        replace: bool,
        /// Print the plugin instead.
        #[arg(long)]
        print: bool,
    },
}

/// Runs the verb.
pub(crate) fn run(verb: &PresetVerb) -> Result<(), String> {
    match verb {
        PresetVerb::List => {
            let width = PRESETS.iter().map(|preset| preset.name.len()).max().unwrap_or(0);
            let line = |preset: &Preset| format!("{:width$}  {}\n", preset.name, preset.about());
            print(&PRESETS.iter().map(line).collect::<String>())
        }
        PresetVerb::Show { name } => print(named(name)?.text),
        PresetVerb::Install { name, root, replace, .. } => {
            let Some(plugin) = named(name)?.plugin else {
                return Err(format!("preset `{name}` has no plugin"));
            };
            match root {
                Some(root) => print(&install::install(&plugin, root, *replace)?),
                None => print(plugin.text),
            }
        }
    }
}

fn named(name: &str) -> Result<&'static Preset, String> {
    find(name).ok_or_else(|| {
        let meant = likely_preset(name).map(|close| format!("did you mean `{close}`? "));
        let meant = meant.unwrap_or_default();
        format!("no preset is called `{name}`: {meant}`larder preset list` names them")
    })
}

/// Prints `text`; a closed pipe (`| head`) is no failure.
pub(crate) fn print(text: &str) -> Result<(), String> {
    tools::print(text.as_bytes()).map(drop)
}
