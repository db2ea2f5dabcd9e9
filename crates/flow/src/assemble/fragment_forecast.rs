//! Fragment forecast: the fragments of a stored page, for `explain`.

use base::Now;
use cache::Object;
use esi::ResolvedNode;
use message::Request;

use super::environment::PageEnvironment;
use super::{document, fragment};
use crate::state::assemble::ComposedPage;

/// A fragment's URL as written in the page, and its request or the reason for its failure.
pub(crate) type FragmentForecast = (Vec<u8>, Result<Request, String>);

impl ComposedPage {
    /// The fragments of the stored page `object`, and the page's faults in words.
    pub(crate) fn fragments(
        &self,
        object: &Object,
        now: Now,
    ) -> (Vec<FragmentForecast>, Vec<String>) {
        let document = &document::foreseen(self, object).document;
        let mut fragments = Vec::new();
        let mut ops = document.resolve(&PageEnvironment::of(self, now, None)).unwrap_or_default();
        ops.reverse();
        while let Some(op) = ops.pop() {
            match op {
                ResolvedNode::Include(fragment) => {
                    let request = fragment::request(self, &fragment).map(|(request, _)| *request);
                    fragments.push((fragment.src, request.map_err(|failed| failed.words())));
                }
                ResolvedNode::Try { attempt, .. } => ops.extend(attempt.into_iter().rev()),
                ResolvedNode::Text(_) | ResolvedNode::Bytes(_) => {}
            }
        }
        let faults = document.remarks().list().iter().map(ToString::to_string);
        (fragments, faults.collect())
    }
}
