//! The party downstream of a request, which its answer is for.

use std::rc::Rc;

use crate::state::assemble::FragmentContext;

/// The party downstream of a request, which its answer is for.
#[derive(Clone, Debug, Default)]
pub(crate) enum Downstream {
    #[default]
    Client,
    /// Another node of the cluster, which wants the stored response itself or nothing.
    Node,
    /// The page that the answer becomes a fragment of.
    Page(Rc<FragmentContext>),
}

impl Downstream {
    pub(crate) fn is_node(&self) -> bool {
        matches!(self, Self::Node)
    }

    /// The page that the answer becomes a fragment of.
    pub(crate) fn page(&self) -> Option<&Rc<FragmentContext>> {
        match self {
            Self::Page(within) => Some(within),
            Self::Client | Self::Node => None,
        }
    }
}
