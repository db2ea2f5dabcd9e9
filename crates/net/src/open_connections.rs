//! Open connections: their numbers by kind, for the message about those that are cut off.

use std::fmt;

/// Numbers of open connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OpenConnections {
    /// A response is being made or sent.
    pub(crate) downloads: usize,
    /// A request's body is awaited.
    pub(crate) uploads: usize,
    /// Another protocol is spoken.
    pub(crate) tunnels: usize,
    /// No request is under way.
    pub(crate) others: usize,
}

impl fmt::Display for OpenConnections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { downloads, uploads, tunnels, others } = *self;
        write!(f, "{} connections open", downloads + uploads + tunnels + others)?;
        let kinds = [("downloads", downloads), ("uploads", uploads), ("tunnels", tunnels)];
        let mut between = ": ";
        for (name, count) in kinds.into_iter().filter(|(_, count)| *count > 0) {
            write!(f, "{between}{count} {name}")?;
            between = ", ";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_that_are_there_are_named() {
        let none = OpenConnections { others: 2, ..OpenConnections::default() };
        assert_eq!(none.to_string(), "2 connections open");
        let some = OpenConnections { downloads: 3, tunnels: 1, ..none };
        assert_eq!(some.to_string(), "6 connections open: 3 downloads, 1 tunnels");
    }
}
