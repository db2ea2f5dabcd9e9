//! VMODs that Larder has. A new one is a file with a table, and a line here; none is loaded at run
//! time.

pub mod accept;
mod args;
pub mod blob;
pub mod bodyaccess;
pub mod cookie;
pub mod digest;
pub mod directors;
pub mod dynamic;
pub mod geoip2;
pub mod h2;
pub mod header;
pub mod math;
pub mod proxy;
pub mod purge;
pub mod querysort;
pub mod querystring;
pub mod re2;
pub mod saintmode;
pub mod std;
pub mod str;
pub mod tcp;
pub mod tls;
pub mod unix;
pub mod var;
pub mod vsthrottle;
pub mod vtc;
pub mod xkey;

use crate::vmod::{Class, Module, UnsupportedFunction};

/// All modules, sorted by name.
static MODULES: &[&Module] = &[
    &accept::MODULE,
    &blob::MODULE,
    &bodyaccess::MODULE,
    &cookie::MODULE,
    &digest::MODULE,
    &directors::MODULE,
    &dynamic::MODULE,
    &geoip2::MODULE,
    &h2::MODULE,
    &header::MODULE,
    &math::MODULE,
    &proxy::MODULE,
    &purge::MODULE,
    &querysort::MODULE,
    &querystring::MODULE,
    &re2::MODULE,
    &saintmode::MODULE,
    &self::std::MODULE,
    &str::MODULE,
    &tcp::MODULE,
    &tls::MODULE,
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

/// The reason why a method of Varnish's `class` is not supported.
pub(crate) fn refused_method(class: &Class, name: &str) -> Option<&'static UnsupportedFunction> {
    let module = all().iter().find(|module| module.classes.iter().any(|c| c.name == class.name))?;
    module.refused.iter().find(|refused| {
        let method = refused.name.split_once('.');
        method.is_some_and(|(of, method)| of == class.name && method.eq_ignore_ascii_case(name))
    })
}

/// All modules, sorted by name.
pub fn all() -> &'static [&'static Module] {
    MODULES
}

#[cfg(test)]
mod tests;
