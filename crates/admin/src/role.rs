//! The rights of callers.

/// The rights of a caller. Each role has the rights of all roles before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Look.
    Read,
    /// Purge, too.
    Purge,
    /// Change what is in force, too.
    Config,
}

impl Role {
    /// All of them, the least first.
    pub const ALL: [Self; 3] = [Self::Read, Self::Purge, Self::Config];

    /// Its word in files and answers.
    pub fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Purge => "purge",
            Self::Config => "config",
        }
    }
}
