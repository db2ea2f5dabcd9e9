//! Forecast builder: the steps reported so far, and the findings of the lookup.

use std::sync::Arc;

use cache::{KeyInspection, Object};
use files::{Depth, PathLookup, Root};
use policy::{Notes, Routes};

use crate::files as from_files;
use crate::forecast::steps::ForecastSteps;
use crate::state::assemble::Dialect;
use crate::state::reply::Reply;
use crate::state::request_context::RequestContext;
use crate::state::site::Site;

/// The forecast of a request while it is built.
pub(super) struct ForecastBuilder<'s> {
    pub(super) forecast: ForecastSteps<'s>,
    /// Hash of the request's key; 0 before there is a key.
    pub(super) key: u64,
    pub(super) site: Option<String>,
    pub(super) decided: Option<(Arc<Site>, Notes)>,
    /// The page that would be assembled.
    pub(super) page: Option<ComposablePage>,
    /// The findings of the lookup.
    pub(super) findings: Option<Findings>,
}

/// A stored page that would be assembled.
pub(super) struct ComposablePage {
    pub(super) object: Arc<Object>,
    pub(super) site: Arc<Site>,
    pub(super) dialect: Dialect,
    /// The routes of its request.
    pub(super) routes: Routes,
}

/// The findings of a lookup.
pub(super) struct Findings {
    pub(super) peek: KeyInspection,
    /// A hit-for-miss mark is stored.
    pub(super) marked: bool,
    /// The disk would be read.
    pub(super) reads_disk: bool,
}

pub(super) fn look(ctx: &RequestContext<'_>, root: &Arc<Root>) -> PathLookup {
    let mut room = Vec::new();
    let path = from_files::normal(ctx.request, &mut room);
    path.and_then(|path| root.look(path, Depth::Full).ok()).unwrap_or(PathLookup::Missing)
}

pub(super) fn error_of(reply: &Reply) -> String {
    let failure = reply.about.failure.as_ref().map(|failure| failure.error.to_string());
    let text = failure.unwrap_or_else(|| format!("status {}", reply.status));
    text.trim_end_matches('.').to_owned()
}
