//! Outcomes of a fetch in the place of a response that is stored or passes.

use std::sync::Arc;

use cache::Object;
use message::Response;
use origin::Tunnel;
use policy::Synthetic;

use crate::files::NamedFile;
use crate::problem::Problem;

/// An answer in place of an origin's response.
pub(crate) enum SubstituteAnswer {
    /// Policy's own.
    Synthetic(Arc<Synthetic>),
    /// A file beside the scripts.
    File(Vec<u8>),
    /// A file that the origin named.
    Named(Box<NamedFile>),
    /// A tunnel: the origin has changed the protocol.
    Switched(Box<UpgradedConnection>),
    /// No usable response.
    Failed(FetchFailure),
}

/// A 101, and the connection it came over.
pub(crate) struct UpgradedConnection {
    pub(crate) response: Response,
    pub(crate) tunnel: Box<Tunnel>,
}

/// The reason for having no usable response.
pub(crate) struct FetchFailure {
    pub(crate) problem: Problem,
    /// A stale object that may stand in.
    pub(crate) stale: Option<Arc<Object>>,
    /// The origin could not be reached; otherwise its response was of no use.
    pub(crate) unreachable: bool,
}
