//! The teller of a forecast: what it has told, and what it has found out.

use std::sync::Arc;

use cache::{Object, Peek};
use files::{Depth, Look, Root};
use policy::Notes;

use crate::files as from_files;
use crate::forecast::telling::Telling;
use crate::state::ask::Ask;
use crate::state::assemble::Dialect;
use crate::state::reply::Reply;
use crate::state::site::Site;

/// The teller of a forecast.
pub(super) struct Teller<'s> {
    pub(super) telling: Telling<'s>,
    /// Hash of the request's key; 0 as long as none is made.
    pub(super) key: u64,
    pub(super) site: Option<String>,
    pub(super) decided: Option<(Arc<Site>, Notes)>,
    /// The page that would be put together.
    pub(super) page: Option<Whole>,
    /// The findings of the lookup.
    pub(super) looked: Option<Findings>,
}

/// A stored page that would be put together.
pub(super) struct Whole {
    pub(super) object: Arc<Object>,
    pub(super) site: Arc<Site>,
    pub(super) dialect: Dialect,
}

/// The findings of a lookup.
pub(super) struct Findings {
    pub(super) peek: Peek,
    /// A mark says that a former answer could not be stored.
    pub(super) marked: bool,
    /// The disk would be read.
    pub(super) reads_disk: bool,
}

pub(super) fn look(ask: &Ask<'_>, root: &Arc<Root>) -> Look {
    let mut room = Vec::new();
    let path = from_files::normal(ask.request, &mut room);
    path.and_then(|path| root.look(path, Depth::Full).ok()).unwrap_or(Look::Missing)
}

pub(super) fn error_of(reply: &Reply) -> String {
    let trouble = reply.about.trouble.as_ref().map(|trouble| trouble.error.to_string());
    let text = trouble.unwrap_or_else(|| format!("status {}", reply.status));
    text.trim_end_matches('.').to_owned()
}
