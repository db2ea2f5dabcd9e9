//! Input of the compiler: sources and settings. It never reads files itself.

use crate::source::Loader;

/// Source of a program, with the settings for compiling it.
pub struct Input<'a> {
    /// Name of the file in errors and `vcl.show`.
    pub name: &'a str,
    /// Text of the file.
    pub text: &'a [u8],
    /// Loader of included files.
    pub loader: &'a dyn Loader,
    /// Settings.
    pub rules: CompileSettings<'a>,
}

/// The part that a program has in a site.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProgramRole {
    /// It decides about every request, with the builtin VCL behind it.
    #[default]
    Whole,
    /// Its subroutines run before and after the steps of the site's declared settings, which go on
    /// where a subroutine does not return.
    Extra,
}

/// Parameters of compiling.
#[derive(Clone, Copy, Debug)]
pub struct CompileSettings<'a> {
    /// Names of the configured storages, for `storage.*`.
    pub storages: &'a [&'a str],
    /// Labels that `return (vcl(...))` may name.
    pub labels: &'a [&'a str],
    /// Most nested includes.
    pub include_depth: u32,
    /// True if an unused declaration is an error (`vcc_err_unref`), not a warning.
    pub unused_is_error: bool,
    /// The program's part in its site.
    pub role: ProgramRole,
}
