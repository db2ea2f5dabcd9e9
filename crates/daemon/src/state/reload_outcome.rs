//! Outcome of a reload, in words.

use std::fmt;

/// The outcome of a successful reload.
#[derive(Clone, Debug)]
pub(crate) struct ReloadOutcome {
    /// Settings that were changed in the file and only take effect at a restart.
    pub(crate) stays: Vec<&'static str>,
    /// Ports that failed at the last attempt.
    pub(super) missing: Vec<String>,
}

impl fmt::Display for ReloadOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("configuration reloaded")?;
        if !self.stays.is_empty() {
            write!(f, ", but not {}: that takes a restart", self.stays.join(", "))?;
        }
        let mut missing = self.missing.iter();
        missing.try_for_each(|lack| write!(f, "\nwarning: {lack}; the daemon retries"))
    }
}
