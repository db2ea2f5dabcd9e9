//! Settings of a node, and what the link wants of whoever has the store.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::Level;
use crate::follower::Loss;
use crate::members::Card;
use crate::position::Position;
use crate::stance::Stance;

/// Cards that all nodes together are to show in a second: 300 nodes with one in three seconds. Each
/// node hears them all, in about 0.4 Mbit/s.
const CARDS_PER_SECOND: u64 = 100;

/// The way in which a node shows the servers who it is.
#[derive(Clone, Default, PartialEq, Eq)]
pub enum Credentials {
    /// In no way.
    #[default]
    None,
    /// By name and password.
    Password(String, String),
    /// By a token.
    Token(String),
    /// By the seed of an nkey.
    Nkey(String),
    /// By a JWT and a seed, in the form of the files that `nsc` writes.
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

/// TLS towards the servers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tls {
    /// File with the authorities that are believed; the system's without one.
    pub ca: Option<PathBuf>,
    /// Files of the node's own certificate and its key.
    pub certificate: Option<(PathBuf, PathBuf)>,
    /// Nothing is said before TLS is.
    pub is_required: bool,
}

/// Settings of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// URLs of NATS servers.
    pub servers: Vec<String>,
    /// The node's name, a word that no other node has.
    pub name: String,
    /// The word that all subjects, and the names of the streams, begin with.
    pub prefix: String,
    /// The node's identity towards the servers.
    pub credentials: Credentials,
    /// TLS.
    pub tls: Tls,
    /// The word that is waited for where a call says nothing.
    pub level: Level,
    /// The time without touch after which what is stored is not used by itself.
    pub max_isolation_ms: u64,
    /// Copies of the streams among the servers.
    pub replicas: usize,
    /// The time that the stream keeps entries for those that are away.
    pub keep_ms: u64,
    /// Entries that wait while the stream is out of reach.
    pub queue: usize,
    /// The longest time that an answer waits for its word.
    pub wait_ms: u64,
    /// The run of this name that is known to have ended; `None` if no such run is known.
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

    /// The subject of words about entries of a run.
    pub(crate) fn word_subject(&self, run: u64) -> String {
        format!("{}.applied.{run:016x}", self.prefix)
    }

    /// Milliseconds between two questions: ten in the time that trust lasts, and no fewer than one
    /// in three seconds.
    pub(crate) fn question_ms(&self) -> u64 {
        question_ms(self.max_isolation_ms, 1)
    }

    /// The longest time in which a server may answer.
    pub(crate) fn patience(&self) -> Duration {
        Duration::from_millis((self.question_ms() * 3).clamp(1_000, 5_000))
    }
}

/// Milliseconds between two questions of one node among `members`. Each of them has a card that all
/// hear, so many nodes take turns: [`CARDS_PER_SECOND`] for all of them, as far as there are five
/// questions in the time that trust lasts.
pub(crate) fn question_ms(max_isolation_ms: u64, members: usize) -> u64 {
    let alone_ms = (max_isolation_ms / 10).clamp(20, 3_000);
    let turn_ms = members as u64 * 1_000 / CARDS_PER_SECOND;
    alone_ms.max(turn_ms.min(max_isolation_ms / 5))
}

/// The store, and everything else of a node that the link uses. No method waits, but those that say
/// so.
pub trait Host: Send + Sync + 'static {
    /// Puts an invalidation in force that another node made, or this one: by its identity it is
    /// known whether it is. One for a site that is unknown here is done.
    ///
    /// # Errors
    /// It cannot be read.
    fn apply(&self, invalidation: &[u8]) -> Result<(), String>;

    /// Has everything that is stored validated before it is used again.
    fn doubt(&self, loss: Loss);

    /// Lets what is stored be used until `mono_ms` of the monotonic clock.
    fn trust_until(&self, mono_ms: u64);

    /// Waits until all that was applied will outlive the process, where it is to.
    ///
    /// # Errors
    /// Why it may not.
    fn settle(&self) -> Result<(), String>;

    /// Keeps `position` beside the disk, if there is one, behind all that was applied. May wait.
    ///
    /// # Errors
    /// Why it cannot be kept.
    fn save(&self, position: Position) -> Result<(), String>;

    /// Has health checks answer as `stance` wants it.
    fn stand(&self, stance: Stance);

    /// Writes the node's figures on its card.
    fn figures(&self, card: &mut Card);

    /// Counts that what waited to be told gave way to less.
    fn overflowed(&self);

    /// Counts an answer that did not get the word that it waited for.
    fn waited_in_vain(&self);

    /// Tells operators something.
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
