//! Locations of settings in the file, and the files that settings name.

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use crate::diagnostic::{Diagnostic, Severity, SourceText};

/// A location in the file, for faults that show only in use.
#[derive(Clone, Debug)]
pub struct ConfigLocation {
    /// The file.
    pub file: Arc<SourceText>,
    /// The span in it, in bytes.
    pub span: Range<usize>,
}

impl PartialEq for ConfigLocation {
    /// A setting's value does not depend on its location.
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for ConfigLocation {}

impl ConfigLocation {
    /// No location: the command line's.
    pub(crate) fn nowhere() -> Self {
        let file = SourceText { name: String::new(), text: String::new() };
        Self { file: Arc::new(file), span: 0..0 }
    }

    /// An error at the location.
    pub fn error(&self, message: String) -> Diagnostic {
        self.say(Severity::Error, message)
    }

    /// A warning at the location.
    pub fn warning(&self, message: String) -> Diagnostic {
        self.say(Severity::Warning, message)
    }

    fn say(&self, severity: Severity, message: String) -> Diagnostic {
        let is_in_file = !self.file.name.is_empty();
        let (file, span) = (Arc::clone(&self.file), is_in_file.then(|| self.span.clone()));
        Diagnostic { severity, message, span, related: None, help: None, file }
    }
}

/// A file that a setting names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedPath {
    /// Its path.
    pub path: PathBuf,
    /// The location of the setting.
    pub place: ConfigLocation,
}

impl PlacedPath {
    /// An error at the setting: the reason why the file cannot be used.
    pub fn error(&self, why: impl fmt::Display) -> Diagnostic {
        self.place.error(format!("{}: {why}", self.path.display()))
    }
}
