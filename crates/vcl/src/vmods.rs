//! The VMODs there are. A new one is a file with a table, and a line here.

pub mod accept;
mod args;
pub mod blob;
pub mod bodyaccess;
pub mod cookie;
pub mod directors;
pub mod dynamic;
pub mod header;
pub mod proxy;
pub mod purge;
pub mod querysort;
pub mod querystring;
pub mod saintmode;
pub mod std;
pub mod str;
pub mod tcp;
pub mod unix;
pub mod var;
pub mod vsthrottle;
pub mod vtc;
pub mod xkey;

use crate::vmod::Module;

/// Every module, sorted by name.
static MODULES: &[&Module] = &[
    &accept::MODULE,
    &blob::MODULE,
    &bodyaccess::MODULE,
    &cookie::MODULE,
    &directors::MODULE,
    &dynamic::MODULE,
    &header::MODULE,
    &proxy::MODULE,
    &purge::MODULE,
    &querysort::MODULE,
    &querystring::MODULE,
    &saintmode::MODULE,
    &self::std::MODULE,
    &str::MODULE,
    &tcp::MODULE,
    &unix::MODULE,
    &var::MODULE,
    &vsthrottle::MODULE,
    &vtc::MODULE,
    &xkey::MODULE,
];

/// The module that `import name` means.
pub fn find(name: &str) -> Option<&'static Module> {
    all().iter().copied().find(|module| module.name == name)
}

/// All of them, sorted by name.
pub fn all() -> &'static [&'static Module] {
    MODULES
}

#[cfg(test)]
mod tests;
