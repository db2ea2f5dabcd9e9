//! Reference pages made from the tables in the code, so that neither can drift from the other.

use std::fs;
use std::path::Path;

/// A page's path, and what makes it.
type Page = (&'static str, fn() -> String);

/// All pages.
const PAGES: &[Page] = &[
    ("docs/reference/configuration.md", config::reference_markdown),
    ("docs/reference/vcl-variables.md", vcl::reference::variables_markdown),
    ("docs/reference/vcl-vmods.md", vcl::reference::modules_markdown),
];

/// Writes the pages.
pub(crate) fn write(root: &Path) -> Result<String, String> {
    for (page, make) in PAGES {
        let file = root.join(page);
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder).map_err(|error| format!("{page}: {error}"))?;
        }
        fs::write(&file, make()).map_err(|error| format!("{page}: {error}"))?;
    }
    Ok(format!("wrote {}", names()))
}

/// Compares the pages in the tree with what the code says today.
pub(crate) fn check(root: &Path) -> Result<String, String> {
    for (page, make) in PAGES {
        let written =
            fs::read_to_string(root.join(page)).map_err(|error| format!("{page}: {error}"))?;
        let current = make();
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
