//! Fragments that a page asks for, and what a page comes to.

use std::ops::Range;

use crate::address::{self, AddressRules, FragmentTarget, target};
use crate::variable::Template;

/// A page's wish for the case that a fragment fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnError {
    /// It says nothing.
    #[default]
    Unsaid,
    /// The page fails with the fragment.
    Fail,
    /// The fragment is left out.
    Continue,
}

/// A fragment to fetch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fragment {
    /// Its address as written, entities decoded and variables expanded.
    pub src: Vec<u8>,
    /// The address to try if that fails.
    pub alt: Option<Vec<u8>>,
    /// The page's wish if both fail.
    pub onerror: OnError,
    /// `maxwait`: the time in milliseconds that the page waits for it.
    pub maxwait_ms: Option<u64>,
    /// SSI's `stub`: what takes its place if it is empty or fails.
    pub stub: Option<Vec<ResolvedNode>>,
    /// SSI's `wait`: what follows is only evaluated, and fetched, when it has come.
    pub wait: bool,
    /// SSI's `set`: it is not sent, but becomes the value of this variable.
    pub set: Option<Vec<u8>>,
    pub(crate) rules: AddressRules,
}

impl Fragment {
    /// The request for it, from a page whose request was for `base` (a path, with its query).
    pub fn target(&self, base: &[u8]) -> FragmentTarget {
        target(&self.src, base, self.rules)
    }

    /// Bytes on the heap.
    pub(crate) fn memory(&self) -> usize {
        let alt = self.alt.as_ref().map_or(0, Vec::capacity);
        self.src.capacity() + alt + self.set.as_ref().map_or(0, Vec::capacity)
    }
}

/// One piece of what a page comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResolvedNode {
    /// Bytes of the page, by their offsets.
    Text(Range<u64>),
    /// Other bytes.
    Bytes(Vec<u8>),
    /// A fragment.
    Include(Box<Fragment>),
    /// One of two lists.
    Try {
        /// Takes the place if all its fragments come.
        attempt: Vec<Self>,
        /// Takes the place otherwise.
        except: Vec<Self>,
    },
}

/// An include in a page.
#[derive(Clone, Debug, PartialEq)]
pub struct Include {
    pub(crate) fragment: Box<Fragment>,
    /// Addresses with variables in them.
    pub(crate) open: Option<Box<AddressTemplates>>,
}

/// Addresses that are not the same for every request.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AddressTemplates {
    pub(crate) src: Template,
    pub(crate) alt: Option<Template>,
}

impl Include {
    /// An include of a fragment that has its addresses.
    pub(crate) fn fixed(fragment: Fragment) -> Self {
        Self { fragment: Box::new(fragment), open: None }
    }

    /// An include of a fragment with these addresses.
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
