//! The cluster in the configuration: its nodes, and neighbours.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use purge::Level;
use purge::neighbour::NeighbourProfile;

use super::location::PlacedPath;

/// One `[[neighbour]]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NeighbourConfig {
    /// The transport to it.
    pub transport: NeighbourTransport,
    /// If it is asked for stored responses: the index in `origins` of the origin to fetch them
    /// from, which has one server. The neighbour then has one address for datagrams.
    pub ask: Option<usize>,
    /// The dialect and scope of its purges.
    pub profile: NeighbourProfile,
}

/// The transport to a neighbour.
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
    /// The node's name; made from the host's if absent.
    pub name: Option<String>,
    /// The prefix of subjects and streams; `larder` if absent.
    pub prefix: Option<String>,
    /// The address at which the node serves peers; `None` if it shares nothing.
    pub peer: Option<SocketAddr>,
    /// The node fetches from origins for peers that do not shield.
    pub shields: bool,
    /// The consistency level of a purge's response.
    pub acknowledge: Level,
    /// Milliseconds without contact after which stored responses are revalidated.
    pub max_isolation_ms: u64,
    /// The behaviour in isolation.
    pub isolation: Isolation,
    /// Copies of the streams.
    pub replicas: usize,
    /// Milliseconds that the stream keeps invalidations.
    pub keep_ms: u64,
    /// The node's authentication to the servers.
    pub credentials: ClusterCredentials,
    /// The file of trusted authorities.
    pub ca: Option<PathBuf>,
    /// Files of the node's own certificate and its key.
    pub certificate: Option<(PathBuf, PathBuf)>,
    /// The files of the secrets that seal shared keys and certificates: the current one, and the
    /// previous one. If empty, nothing is shared; `None` if not configured.
    pub secret_files: Option<Vec<PlacedPath>>,
    /// The node uses the shared configuration, besides its own file.
    pub shares_configuration: bool,
    /// The folder for state between two starts.
    pub storage: Option<PathBuf>,
}

/// The behaviour of a node in isolation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// It revalidates everything.
    Revalidate,
    /// It revalidates everything, and its health checks fail.
    NotReady,
}

/// The authentication of a node to NATS.
#[derive(Clone, PartialEq, Eq)]
pub enum ClusterCredentials {
    /// None.
    None,
    /// By user and password.
    Password(String, String),
    /// By a token.
    Token(String),
    /// By an nkey, whose seed is in this file.
    Nkey(PlacedPath),
    /// By a JWT and a seed in this file.
    File(PlacedPath),
}

impl fmt::Debug for ClusterCredentials {
    /// Omits secrets.
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
