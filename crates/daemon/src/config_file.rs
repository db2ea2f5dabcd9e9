//! The configuration file: reads `larder.toml` and renders what is wrong with it.

use std::path::Path;

use config::{Config, Diagnostic};

use crate::config_bundle::ConfigBundle;
use crate::keeper;

/// Reads a file; the second value is its rendered warnings.
pub fn load(path: &Path) -> Result<(Config, String), String> {
    // A failure to open is reported as a failure to read.
    let text = keeper::read(path).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let loaded = match text {
        Some(text) => config::load_str(&text, &path.display().to_string()),
        None => config::load_file(path),
    };
    match loaded {
        Ok((config, warnings)) => Ok((config, render(&warnings))),
        Err(problems) => Err(render(&problems)),
    }
}

/// Reads a file with the bundle that all nodes share; the second value is the rendered warnings.
pub(crate) fn load_shared(path: &Path, shared: &ConfigBundle) -> Result<(Config, String), String> {
    let bytes = keeper::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let not_text = |_| format!("{}: it is not UTF-8", path.display());
    let text = String::from_utf8(bytes).map_err(not_text)?;
    let (name, title) = (path.display().to_string(), shared.title());
    let own = config::NamedText { name: &name, text: &text };
    let shared = config::NamedText { name: &title, text: &shared.toml };
    match config::load_shared(own, shared) {
        Ok((config, warnings)) => Ok((config, render(&warnings))),
        Err(problems) => Err(render(&problems)),
    }
}

/// Renders diagnostics for standard error, with colours on a terminal.
pub fn render(diagnostics: &[Diagnostic]) -> String {
    config::render(diagnostics, std::io::IsTerminal::is_terminal(&std::io::stderr()))
}
