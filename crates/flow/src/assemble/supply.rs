//! Where the pieces of a page come from.

use std::sync::Arc;

use cache::Reader;

use super::begin::{ComingBody, Slot, Slots, Text};
use crate::state::assemble::ReadPage;
use crate::state::body::ReplyBody;

/// Where the pieces come from.
pub(super) enum Supply {
    /// Of a page that is there.
    Slots(Slots, Text),
    /// The same, some of whose fragments decide what follows them.
    Nodes(Arc<ReadPage>, Text),
    /// Of a page that still comes.
    Stream(Reader),
}

impl Supply {
    /// All of a page as it is.
    pub(super) fn verbatim(body: ReplyBody) -> Self {
        let slot = match body {
            ReplyBody::Parts(parts) => Slots::from_iter(parts.map(Slot::Part)),
            ReplyBody::Stream { reader, .. } => {
                vec![Slot::Body(ComingBody::own(reader))]
            }
            _ => Slots::new(),
        };
        Self::Slots(slot, Text::None)
    }
}
