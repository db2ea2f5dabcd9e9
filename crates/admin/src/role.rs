//! Roles: the rights of callers.

/// The rights of a caller. Each role has the rights of all roles before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Read access.
    Read,
    /// Also invalidation.
    Purge,
    /// Also changes of the configuration in force.
    Config,
}

impl Role {
    /// All roles, the weakest first.
    pub const ALL: [Self; 3] = [Self::Read, Self::Purge, Self::Config];

    /// The role's name in files and responses.
    pub fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Purge => "purge",
            Self::Config => "config",
        }
    }
}
