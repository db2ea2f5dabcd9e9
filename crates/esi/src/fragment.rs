//! Fragment of a page, and the resolved nodes that a response is assembled from. Nothing is fetched
//! here.

use std::ops::Range;

use crate::address::{self, AddressRules, FragmentTarget, target};
use crate::variable::Template;

/// The page's instruction for a fragment that fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnError {
    /// The page has none.
    #[default]
    Unsaid,
    /// The page fails too.
    Fail,
    /// The fragment is left out.
    Continue,
}

/// A fragment to fetch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fragment {
    /// Address as written, with entities decoded and variables expanded.
    pub src: Vec<u8>,
    /// Address to try if `src` fails.
    pub alt: Option<Vec<u8>>,
    /// Instruction for the case that both fail.
    pub onerror: OnError,
    /// `maxwait`: milliseconds that the page waits for the fragment.
    pub maxwait_ms: Option<u64>,
    /// SSI's `stub`: nodes that replace an empty or failed fragment.
    pub stub: Option<Vec<ResolvedNode>>,
    /// SSI's `wait`: the nodes behind are resolved only when the fragment has arrived.
    pub wait: bool,
    /// SSI's `set`: the body is not sent, but becomes the value of this variable.
    pub set: Option<Vec<u8>>,
    pub(crate) rules: AddressRules,
}

impl Fragment {
    /// The request for the fragment; `base` is path and query of the page's request.
    pub fn target(&self, base: &[u8]) -> FragmentTarget {
        target(&self.src, base, self.rules)
    }

    /// Bytes on the heap.
    pub(crate) fn memory(&self) -> usize {
        let alt = self.alt.as_ref().map_or(0, Vec::capacity);
        self.src.capacity() + alt + self.set.as_ref().map_or(0, Vec::capacity)
    }
}

/// One node of a resolved page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResolvedNode {
    /// Bytes of the page, by their offsets.
    Text(Range<u64>),
    /// Other bytes.
    Bytes(Vec<u8>),
    /// A fragment.
    Include(Box<Fragment>),
    /// Two alternatives.
    Try {
        /// Sent if all its fragments succeed.
        attempt: Vec<Self>,
        /// Sent otherwise.
        except: Vec<Self>,
    },
}

/// An include as it stands in a page.
#[derive(Clone, Debug, PartialEq)]
pub struct Include {
    pub(crate) fragment: Box<Fragment>,
    /// The addresses, if they have variables.
    pub(crate) open: Option<Box<AddressTemplates>>,
}

/// Addresses with variables, which differ between requests.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AddressTemplates {
    pub(crate) src: Template,
    pub(crate) alt: Option<Template>,
}

impl Include {
    /// An include whose addresses have no variables.
    pub(crate) fn fixed(fragment: Fragment) -> Self {
        Self { fragment: Box::new(fragment), open: None }
    }

    /// An include with these address templates.
    pub(crate) fn new(mut fragment: Fragment, src: Template, alt: Option<Template>) -> Self {
        let fixed_alt = alt.as_ref().map(Template::literal);
        match (src.literal(), fixed_alt) {
            (Some(own), None) => fragment.src = address::safe(own),
            (Some(own), Some(Some(other))) => {
                fragment.src = address::safe(own);
                fragment.alt = Some(address::safe(other));
            }
            _ => {
                let open = Some(Box::new(AddressTemplates { src, alt }));
                return Self { fragment: Box::new(fragment), open };
            }
        }
        Self::fixed(fragment)
    }

    /// Bytes on the heap.
    pub(crate) fn memory(&self) -> usize {
        let open = self.open.as_ref().map_or(0, |open| {
            size_of::<AddressTemplates>()
                + open.src.memory()
                + open.alt.as_ref().map_or(0, Template::memory)
        });
        size_of::<Fragment>() + self.fragment.memory() + open
    }
}
