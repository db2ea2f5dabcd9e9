//! The settings of a node, and the interface of the link to the daemon.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::Level;
use crate::follower::Loss;
use crate::members::Card;
use crate::position::Position;
use crate::stance::Stance;

/// The most cards of all nodes in a second: 300 nodes with one in three seconds. Each node gets all
/// of them, at about 0.4 Mbit/s.
const CARDS_PER_SECOND: u64 = 100;

/// The credentials of a node at the servers.
#[derive(Clone, Default, PartialEq, Eq)]
pub enum Credentials {
    /// None.
    #[default]
    None,
    /// Name and password.
    Password(String, String),
    /// A token.
    Token(String),
    /// The seed of an nkey.
    Nkey(String),
    /// A JWT and a seed, in the format of `nsc`.
    File(String),
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "None",
            Self::Password(..) => "Password(..)",
            Self::Token(_) => "Token(..)",
            Self::Nkey(_) => "Nkey(..)",
            Self::File(_) => "File(..)",
        })
    }
}

/// TLS to the servers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tls {
    /// A file with trusted authorities; those of the system without one.
    pub ca: Option<PathBuf>,
    /// The files of the node's certificate and its key.
    pub certificate: Option<(PathBuf, PathBuf)>,
    /// True if TLS begins the connection.
    pub is_required: bool,
}

/// Settings of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// URLs of NATS servers.
    pub servers: Vec<String>,
    /// The node's name, unique in the cluster.
    pub name: String,
    /// The first token of all subjects, and the prefix of the streams' names.
    pub prefix: String,
    /// The credentials.
    pub credentials: Credentials,
    /// TLS.
    pub tls: Tls,
    /// The default consistency level.
    pub level: Level,
    /// The time without contact after which stored responses are not trusted.
    pub max_isolation_ms: u64,
    /// Replicas of the streams.
    pub replicas: usize,
    /// The time for which the stream keeps entries.
    pub keep_ms: u64,
    /// The limit of the outbox.
    pub queue: usize,
    /// The longest wait for a confirmation.
    pub wait_ms: u64,
    /// The former run of this name, which has ended; `None` if unknown.
    pub before: Option<u64>,
}

impl Settings {
    pub(crate) fn entries_stream(&self) -> String {
        format!("{}-invalidations", self.prefix)
    }

    pub(crate) fn entries_subject(&self) -> String {
        format!("{}.invalidations", self.prefix)
    }

    pub(crate) fn cards_stream(&self) -> String {
        format!("{}-members", self.prefix)
    }

    /// The subject of a member's cards; `*` for all.
    pub(crate) fn card_subject(&self, name: &str) -> String {
        format!("{}.member.{name}", self.prefix)
    }

    pub(crate) fn secrets_stream(&self) -> String {
        format!("{}-secrets", self.prefix)
    }

    /// The subject of a shared secret; `>` for all.
    pub(crate) fn secret_subject(&self, name: &str) -> String {
        format!("{}.secret.{name}", self.prefix)
    }

    /// The subject of acknowledgements for a run.
    pub(crate) fn acknowledgement_subject(&self, run: u64) -> String {
        format!("{}.applied.{run:016x}", self.prefix)
    }

    /// Milliseconds between two questions: ten in `max_isolation`, and at least one in three
    /// seconds.
    pub(crate) fn question_ms(&self) -> u64 {
        question_ms(self.max_isolation_ms, 1)
    }

    /// The longest time of a server's answer.
    pub(crate) fn patience(&self) -> Duration {
        Duration::from_millis((self.question_ms() * 3).clamp(1_000, 5_000))
    }
}

/// Milliseconds between two questions of one node among `members`. Each question has a card that
/// all get, so many nodes ask less often: [`CARDS_PER_SECOND`] together, but at least five in
/// `max_isolation`.
pub(crate) fn question_ms(max_isolation_ms: u64, members: usize) -> u64 {
    let alone_ms = (max_isolation_ms / 10).clamp(20, 3_000);
    let turn_ms = members as u64 * 1_000 / CARDS_PER_SECOND;
    alone_ms.max(turn_ms.min(max_isolation_ms / 5))
}

/// The daemon as the link needs it. No method waits, except where stated.
pub trait Host: Send + Sync + 'static {
    /// Applies an invalidation of another node, or of this one, which its identity reveals. One for
    /// an unknown site has no effect.
    ///
    /// # Errors
    /// It cannot be decoded.
    fn apply(&self, invalidation: &[u8]) -> Result<(), String>;

    /// Makes all stored responses be revalidated before use.
    fn doubt(&self, loss: Loss);

    /// Permits the use of stored responses until `mono_ms` of the monotonic clock.
    fn trust_until(&self, mono_ms: u64);

    /// Waits until everything applied is durable, if it should be.
    ///
    /// # Errors
    /// The reason why it may not be.
    fn settle(&self) -> Result<(), String>;

    /// Saves `position` beside the disk, if there is one, after everything applied. May wait.
    ///
    /// # Errors
    /// The reason why it cannot be saved.
    fn save(&self, position: Position) -> Result<(), String>;

    /// Sets the health checks to `stance`.
    fn stand(&self, stance: Stance);

    /// Adds the node's figures to its card.
    fn figures(&self, card: &mut Card);

    /// Counts an overflow of the outbox.
    fn overflowed(&self);

    /// Counts a response without its confirmation.
    fn waited_in_vain(&self);

    /// Reports a text to the operator.
    fn say(&self, text: &str);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_nodes_take_turns_as_far_as_trust_lasts() {
        for (max_isolation_ms, members, pause_ms) in [
            (30_000, 1, 3_000),
            (3_000, 1, 300),
            (100, 1, 20),
            (600_000, 1, 3_000),
            (30_000, 300, 3_000),
            (30_000, 400, 4_000),
            (30_000, 1_000, 6_000),
            (60_000, 1_000, 10_000),
            (600_000, 4_096, 40_960),
            (3_000, 4_096, 600),
        ] {
            let told = question_ms(max_isolation_ms, members);
            assert_eq!(told, pause_ms, "{max_isolation_ms} {members}");
        }
    }
}
