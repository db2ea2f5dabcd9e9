//! Reference pages made from the tables in the code, so that neither can drift from the other.

use std::fs;
use std::path::Path;

const PAGE: &str = "docs/reference/configuration.md";

/// Writes the pages.
pub(crate) fn write(root: &Path) -> Result<String, String> {
    let file = root.join(PAGE);
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder).map_err(|error| format!("{PAGE}: {error}"))?;
    }
    fs::write(&file, config::reference_markdown()).map_err(|error| format!("{PAGE}: {error}"))?;
    Ok(format!("wrote {PAGE}"))
}

/// Compares the pages in the tree with what the code says today.
pub(crate) fn check(root: &Path) -> Result<String, String> {
    let written =
        fs::read_to_string(root.join(PAGE)).map_err(|error| format!("{PAGE}: {error}"))?;
    let current = config::reference_markdown();
    let differing = written.lines().zip(current.lines()).position(|(old, new)| old != new);
    match differing {
        None if written == current => Ok(format!("{PAGE} is up to date")),
        at => {
            let line =
                at.unwrap_or_else(|| written.lines().count().min(current.lines().count())) + 1;
            Err(format!("{PAGE}:{line}: out of date; run `cargo xtask docs`"))
        }
    }
}
