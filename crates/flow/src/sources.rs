//! Sources of a response that is not in memory, in the order in which they are asked.
//!
//! The order stands here only. Fetches and slices follow it, and forecasts report the sources that
//! would be asked.

use policy::DecisionStep;

use crate::siblings;
use crate::state::miss::Miss;
use crate::state::shared::SharedState;

/// Declares the sources in the order in which they are asked, with their descriptions and possible
/// answers.
macro_rules! sources {
    ($($(#[doc = $is:literal])+ $source:ident => $($answer:ident),+;)+) => {
        /// A source of a response that is not in memory.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) enum Source {
            $($source,)+
        }

        impl Source {
            /// All sources in order.
            const ROW: &[Self] = &[$(Self::$source),+];

            /// Returns true if the source may give this answer.
            fn may_say<T>(self, answer: &SourceAnswer<T>) -> bool {
                matches!(
                    (self, answer),
                    $((Self::$source, $(SourceAnswer::$answer { .. })|+))|+
                )
            }
        }
    };
}

// `cargo xtask docs` writes this table into ARCHITECTURE.md.
sources! {
    /// what has left memory (`flow::tier`). A request reads it itself, in front of its fetch
    Disk => Has, HasNot, Waits;
    /// the node of the cluster that owns the key (`flow::peers`)
    Owner => Has, HasNot;
    /// the policy or program, which makes the request for those behind it, or an answer itself
    Policy => Has, HasNot;
    /// a file beside the origin's scripts
    File => Has, HasNot;
    /// the siblings, asked by HTCP (`flow::siblings`)
    Siblings => Has, HasNot;
    /// the origin, whose failure is an answer, too
    Origin => Has;
}

/// The answer of a source.
pub(crate) enum SourceAnswer<T> {
    Has(T),
    HasNot,
    /// Another fetch has begun; its result will not come to this search.
    Waits,
}

/// A search for a response that is not in memory.
pub(crate) trait Search {
    type Found;

    /// Asks `source`. A source that does not apply answers `HasNot`.
    async fn ask(&mut self, source: Source) -> SourceAnswer<Self::Found>;
}

/// Asks the sources one after the other, from `first` on. `None` if the search ends without a
/// result.
pub(crate) async fn find<S: Search>(search: &mut S, first: Source) -> Option<S::Found> {
    for source in Source::ROW.iter().copied().filter(|source| *source >= first) {
        let answer = search.ask(source).await;
        debug_assert!(source.may_say(&answer));
        match answer {
            SourceAnswer::Has(found) => return Some(found),
            SourceAnswer::HasNot => {}
            SourceAnswer::Waits => return None,
        }
    }
    None
}

/// Forecasts the sources that would be asked for `miss` before its origin. The disk is part of the
/// lookup's verdict; the policy and its origin report themselves.
pub(crate) fn foretell(shared: &SharedState, miss: Miss<'_>) -> Vec<DecisionStep> {
    let step = |source: &Source| match source {
        Source::Owner => shared.peers.load().as_ref()?.foretell(miss.key),
        Source::Siblings => siblings::foretell(&*shared.siblings.load_full()?, miss),
        Source::Disk | Source::Policy | Source::File | Source::Origin => None,
    };
    Source::ROW.iter().filter_map(step).collect()
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    /// A search in which one source has an answer.
    struct One(Source, fn() -> SourceAnswer<()>, Vec<Source>);

    impl Search for One {
        type Found = ();

        async fn ask(&mut self, source: Source) -> SourceAnswer<()> {
            self.2.push(source);
            if source == self.0 { (self.1)() } else { SourceAnswer::HasNot }
        }
    }

    /// The result of a search that never waits.
    fn found(search: &mut One) -> Option<()> {
        match pin!(find(search, Source::Disk)).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(found) => found,
            Poll::Pending => panic!("it waits"),
        }
    }

    #[test]
    fn sources_are_asked_in_their_order_until_one_has_it() {
        for (at, source) in Source::ROW.iter().enumerate() {
            let mut search = One(*source, || SourceAnswer::Has(()), Vec::new());
            assert_eq!(found(&mut search), Some(()));
            assert_eq!(search.2, Source::ROW[..=at]);
        }
    }

    #[test]
    fn a_search_ends_where_another_fetch_has_begun() {
        let mut search = One(Source::Disk, || SourceAnswer::Waits, Vec::new());
        assert_eq!(found(&mut search), None);
        assert_eq!(search.2, [Source::Disk]);
    }
}
