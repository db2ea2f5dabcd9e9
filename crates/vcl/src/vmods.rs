//! The VMODs there are. A new one is a file with a table, and a line here.

mod args;
pub mod proxy;
pub mod purge;
pub mod std;
pub mod str;
pub mod unix;
pub mod var;
pub mod vsthrottle;

use crate::vmod::Module;

/// Every module, sorted by name.
static MODULES: &[&Module] = &[
    &proxy::MODULE,
    &purge::MODULE,
    &self::std::MODULE,
    &str::MODULE,
    &unix::MODULE,
    &var::MODULE,
    &vsthrottle::MODULE,
];

/// The module that `import name` means.
pub fn find(name: &str) -> Option<&'static Module> {
    all().iter().copied().find(|module| module.name == name)
}

/// All of them, sorted by name.
pub fn all() -> &'static [&'static Module] {
    MODULES
}
