//! The VMODs there are. A new one is a file with a table, and a line here.

pub mod std;

use crate::vmod::Module;

/// Every module, sorted by name.
const MODULES: &[&Module] = &[&self::std::MODULE];

/// The module that `import name` means.
pub fn find(name: &str) -> Option<&'static Module> {
    all().iter().copied().find(|module| module.name == name)
}

/// All of them, sorted by name.
pub fn all() -> &'static [&'static Module] {
    MODULES
}
