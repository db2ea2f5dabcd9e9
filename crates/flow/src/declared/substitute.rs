//! Substitute answers: results of a fetch other than a response that is stored or passed.

use std::sync::Arc;

use cache::Object;
use message::Response;
use origin::Tunnel;
use policy::Synthetic;

use crate::files::NamedFile;
use crate::problem::Problem;

/// An answer that replaces the origin's response.
pub(crate) enum SubstituteAnswer {
    /// The policy's own response.
    Synthetic(Arc<Synthetic>),
    /// A file beside the scripts.
    File(Vec<u8>),
    /// A file that the origin named.
    Named(Box<NamedFile>),
    /// A tunnel: the origin has switched the protocol.
    Switched(Box<UpgradedConnection>),
    /// A failure.
    Failed(FetchFailure),
}

/// A 101 and its connection.
pub(crate) struct UpgradedConnection {
    pub(crate) response: Response,
    pub(crate) tunnel: Box<Tunnel>,
}

/// A failure to get a usable response.
pub(crate) struct FetchFailure {
    pub(crate) problem: Problem,
    /// A stale object that may answer instead.
    pub(crate) stale: Option<Arc<Object>>,
    /// The origin was unreachable; otherwise its response was unusable.
    pub(crate) unreachable: bool,
}
