//! Documents made from tables in the code, so that the two cannot differ.

mod tables;

use std::fs;
use std::path::Path;

/// A page's path, and the function that makes it from the present page.
type ReferencePage = (&'static str, fn(root: &Path, page: String) -> Result<String, String>);

/// All pages.
const PAGES: &[ReferencePage] = &[
    ("docs/reference/configuration.md", |_, _| Ok(config::reference_markdown())),
    ("docs/reference/vcl-variables.md", |_, _| Ok(vcl::reference::variables_markdown())),
    ("docs/reference/vcl-vmods.md", |_, _| Ok(vcl::reference::modules_markdown())),
    ("ARCHITECTURE.md", tables::put_tables),
];

/// Writes the pages.
pub(crate) fn write(root: &Path) -> Result<String, String> {
    for (page, make) in PAGES {
        let file = root.join(page);
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder).map_err(|error| format!("{page}: {error}"))?;
        }
        // A page that is generated as a whole may be missing.
        let before = fs::read_to_string(&file).unwrap_or_default();
        fs::write(&file, make(root, before)?).map_err(|error| format!("{page}: {error}"))?;
    }
    Ok(format!("wrote {}", names()))
}

/// Compares the pages with what the code would make.
pub(crate) fn check(root: &Path) -> Result<String, String> {
    for (page, make) in PAGES {
        let written =
            fs::read_to_string(root.join(page)).map_err(|error| format!("{page}: {error}"))?;
        let current = make(root, written.clone())?;
        if written != current {
            let same = written.lines().zip(current.lines()).take_while(|(old, new)| old == new);
            let line = same.count() + 1;
            return Err(format!("{page}:{line}: out of date; run `cargo xtask docs`"));
        }
    }
    Ok(format!("{} are up to date", names()))
}

fn names() -> String {
    PAGES.iter().map(|(page, _)| *page).collect::<Vec<_>>().join(", ")
}
