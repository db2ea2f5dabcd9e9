//! Downstream of a request: the party that gets its response.

use std::rc::Rc;

use crate::state::assemble::FragmentContext;

/// The party that gets a request's response.
#[derive(Clone, Debug, Default)]
pub(crate) enum Downstream {
    #[default]
    Client,
    /// Another node of the cluster, which gets the stored response itself or none. The bytes are
    /// what the VCL beside the site's settings has added to the key, if it has received the
    /// request there.
    Node(Option<Rc<[u8]>>),
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

    /// Returns true if the request warms the store, and no client waits for it.
    pub(crate) fn is_warmth(&self) -> bool {
        matches!(self, Self::Warmth)
    }

    pub(crate) fn is_node(&self) -> bool {
        matches!(self, Self::Node(_))
    }

    /// The fields that the VCL beside the site's settings has added to the key on another node;
    /// `None` if it has not received the request there.
    pub(crate) fn key_of_node(&self) -> Option<&[u8]> {
        match self {
            Self::Node(added) => added.as_deref(),
            Self::Client | Self::Page(_) | Self::Warmth => None,
        }
    }

    /// The page that the response becomes a fragment of, if there is one.
    pub(crate) fn page(&self) -> Option<&Rc<FragmentContext>> {
        match self {
            Self::Page(context) => Some(context),
            Self::Client | Self::Node(_) | Self::Warmth => None,
        }
    }
}
