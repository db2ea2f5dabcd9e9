//! The errors of the link, of a propagation, and of writing a secret.

use std::fmt;

use crate::Level;
use crate::secret_store::Bound;

/// The reason why a node is not connected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// No server answers in time.
    Link(String),
    /// A setting, or a file that it names, is unusable.
    Setting(String),
    /// A stream is not as required.
    Refused {
        /// Its name.
        stream: String,
        /// The reason.
        why: String,
    },
    /// Another node has this node's name.
    Name(String),
}

impl Error {
    pub(crate) fn link(error: impl fmt::Display) -> Self {
        Self::Link(error.to_string())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Link(why) => write!(f, "NATS: {why}"),
            Self::Setting(why) => f.write_str(why),
            Self::Refused { stream, why } => write!(f, "the stream `{stream}`: {why}"),
            Self::Name(name) => write!(
                f,
                "another node has the name `{name}`, too: what is stored is validated before it is \
                 used; give each node a name of its own"
            ),
        }
    }
}

impl std::error::Error for Error {}

/// The error of a propagation. The invalidation is in force here, and is sent to the others
/// nevertheless.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PropagationError {
    /// The level that was not reached.
    pub level: Level,
    /// True if the stream has it.
    pub is_stored: bool,
    /// Names of the nodes without acknowledgement.
    pub missing: Vec<String>,
    /// The reason why the node is not connected, if known.
    pub problem: Option<String>,
}

impl fmt::Display for PropagationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let problem = self.problem.iter().map(|why| format!(" ({why})")).collect::<String>();
        if !self.is_stored {
            return write!(
                f,
                "the cluster's stream has not stored it yet{problem}; it will be sent"
            );
        }
        match self.missing.as_slice() {
            [] => write!(f, "the nodes that have applied it are not known yet{problem}"),
            names => write!(f, "not applied yet by: {}", names.join(", ")),
        }
    }
}

/// The reason why a secret was not written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretWriteError {
    /// The node is not connected.
    OutOfTouch,
    /// Another entry was written first.
    Overtaken,
    /// It exceeds a limit.
    Bound(Bound),
    /// The server's error, or its silence.
    Link(String),
    /// The random source fails.
    Random,
    /// It is stored, and not all members have it.
    NotReached(PropagationError),
}

impl fmt::Display for SecretWriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfTouch => f.write_str("the cluster is out of touch"),
            Self::Overtaken => f.write_str("another node has written a newer entry"),
            Self::Bound(Bound::Entries) => f.write_str("limit: cluster_secrets"),
            Self::Bound(Bound::Bytes) => f.write_str("limit: cluster_secret_bytes"),
            Self::Bound(Bound::LargeBytes) => f.write_str("limit: cluster_configuration_bytes"),
            Self::Link(why) => write!(f, "NATS: {why}"),
            Self::Random => f.write_str("the random source fails"),
            Self::NotReached(why) => why.fmt(f),
        }
    }
}

impl std::error::Error for SecretWriteError {}
