//! Downstream of a request: the party that gets its response.

use std::rc::Rc;

use crate::state::assemble::FragmentContext;

/// The party that gets a request's response.
#[derive(Clone, Debug, Default)]
pub(crate) enum Downstream {
    #[default]
    Client,
    /// Another node of the cluster, which gets the stored response itself or none.
    Node,
    /// The page that the response becomes a fragment of.
    Page(Rc<FragmentContext>),
    /// The store alone: the request warms it, and its response is answered to no client.
    Warmth,
}

impl Downstream {
    /// Returns true if a client gets the response itself.
    #[inline]
    pub(crate) fn is_of_client(&self) -> bool {
        matches!(self, Self::Client)
    }

    pub(crate) fn is_node(&self) -> bool {
        matches!(self, Self::Node)
    }

    /// The page that the response becomes a fragment of, if there is one.
    pub(crate) fn page(&self) -> Option<&Rc<FragmentContext>> {
        match self {
            Self::Page(context) => Some(context),
            Self::Client | Self::Node | Self::Warmth => None,
        }
    }
}
