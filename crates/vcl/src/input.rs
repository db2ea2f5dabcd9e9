//! The input of compiling.

use crate::source::Loader;

/// The source of a program, and the rules for compiling it.
pub struct Input<'a> {
    /// The file's name, as errors and `vcl.show` tell it.
    pub name: &'a str,
    /// Its text.
    pub text: &'a [u8],
    /// The loader of included files.
    pub loader: &'a dyn Loader,
    /// The rules.
    pub rules: CompileSettings<'a>,
}

/// The parameters that rule compiling.
#[derive(Clone, Copy, Debug)]
pub struct CompileSettings<'a> {
    /// Names of the storages there are, for `storage.*`.
    pub storages: &'a [&'a str],
    /// Labels that `return (vcl(...))` may name.
    pub labels: &'a [&'a str],
    /// Included files within each other.
    pub include_depth: u32,
    /// A declaration that is never used is an error (`vcc_err_unref`), not a warning.
    pub unused_is_error: bool,
}
