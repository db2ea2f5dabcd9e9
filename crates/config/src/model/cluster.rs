//! Other caches: the nodes of a cluster, and neighbours.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use purge::Level;
use purge::neighbour::NeighbourProfile;

use super::PlacedPath;

/// One `[[neighbour]]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NeighbourConfig {
    /// The way to it.
    pub way: NeighbourTransport,
    /// The index in `origins` of the way to what it has stored, if it is asked for that: an origin
    /// with one server. Then it has one address for datagrams, of its own.
    pub ask: Option<usize>,
    /// The manner in which it is told.
    pub manner: NeighbourProfile,
}

/// The way to a neighbour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NeighbourTransport {
    /// Requests to each server of the origin of this index in `origins`.
    Origin(usize),
    /// Datagrams to these addresses.
    Htcp(Vec<SocketAddr>),
}

/// `[cluster]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterConfig {
    /// URLs of NATS servers, one at least.
    pub servers: Vec<String>,
    /// The node's name; made of the host's where it is absent.
    pub name: Option<String>,
    /// The word that subjects and streams begin with; `larder` where it is absent.
    pub prefix: Option<String>,
    /// Where the node answers the others about what it stores; `None` if it shares nothing.
    pub peer: Option<SocketAddr>,
    /// It asks the origins for the nodes that share and do not.
    pub shields: bool,
    /// The word that a purge's answer waits for.
    pub acknowledge: Level,
    /// Milliseconds out of touch after which what is stored is validated before it is used.
    pub max_isolation_ms: u64,
    /// The conduct then.
    pub isolation: Isolation,
    /// Copies of the streams.
    pub replicas: usize,
    /// Milliseconds that the stream keeps invalidations.
    pub keep_ms: u64,
    /// The node's identity towards the servers.
    pub credentials: ClusterCredentials,
    /// File with the authorities that are believed.
    pub ca: Option<PathBuf>,
    /// Files of the node's own certificate and its key.
    pub certificate: Option<(PathBuf, PathBuf)>,
    /// Files with the secrets by which nodes share keys and certificates: the one that seals, and
    /// the one before it. Without any none are shared; `None` if nothing was said about it.
    pub secret_files: Option<Vec<PlacedPath>>,
    /// It has the configuration that all nodes share, besides its own file.
    pub shares_configuration: bool,
    /// Folder for what it has to know when it starts again.
    pub storage: Option<PathBuf>,
}

/// The conduct of a node that is out of touch for too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// It has everything validated.
    Revalidate,
    /// It does that, and its health checks fail.
    NotReady,
}

/// The way in which a node shows NATS who it is.
#[derive(Clone, PartialEq, Eq)]
pub enum ClusterCredentials {
    /// In no way.
    None,
    /// By user and password.
    Password(String, String),
    /// By a token.
    Token(String),
    /// By the seed of an nkey in this file.
    Nkey(PlacedPath),
    /// By a JWT and a seed in this file.
    File(PlacedPath),
}

impl fmt::Debug for ClusterCredentials {
    /// Without secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "None",
            Self::Password(..) => "Password(..)",
            Self::Token(_) => "Token(..)",
            Self::Nkey(..) => "Nkey(..)",
            Self::File(..) => "File(..)",
        })
    }
}
