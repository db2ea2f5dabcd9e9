//! Comparison of bodies: do bodies depend on something that requests have, such as a parameter?
//!
//! Pages change with time, too. A body that returns after another one has not changed with time: it
//! depends on the request. A body that has gone for good may have changed with time, and is proof
//! only where a kind of requests got both it and the next one, or many kinds got each.

use std::collections::{BTreeMap, BTreeSet};

/// A body that a request got.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct GivenBody {
    /// Site, URL, and what else must be equal between requests that are compared.
    pub(crate) url: Vec<u8>,
    /// The variant of the response: only bodies of one are compared, but outcomes of all.
    pub(crate) variant: Vec<u8>,
    /// Unix time in milliseconds.
    pub(crate) at_ms: u64,
    /// The value that may or may not matter.
    pub(crate) aspect: Vec<u8>,
    /// Fingerprint of status, Location and body.
    pub(crate) body: u64,
    /// Fingerprint of status and Location alone.
    pub(crate) outcome: u64,
    /// Equal ones are proof: a page, or a redirect that says where it leads. Errors are equal for
    /// all who get one, whatever they asked for.
    pub(crate) is_evidence: bool,
}

/// The result of a comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BodyComparison {
    /// Bodies that were equal although the aspect differed.
    pub(crate) equal: u64,
    /// Bodies that differed, and may have differed because of the aspect.
    pub(crate) differing: u64,
    /// Different values of the aspect among the equal ones.
    pub(crate) aspects: usize,
}

impl BodyComparison {
    /// Returns true if nothing speaks against equality, and at least `least` pairs speak for it.
    pub(crate) fn proves(&self, least: u64) -> bool {
        self.differing == 0 && self.equal >= least
    }
}

/// Least kinds of requests that must have got a body, and least that must have got the next one,
/// if no kind got both: it is unlikely that they came in this order by chance.
const KINDS_MIN: usize = 8;

/// A stretch of equal bodies.
struct Run<'g> {
    body: u64,
    given: &'g [GivenBody],
}

/// Compares the bodies of each variant of a URL, and the outcomes of all variants: a redirect to a
/// login has neither the coding nor the Vary of the page.
pub(crate) fn compare(given: Vec<GivenBody>) -> BodyComparison {
    let outcomes = given.iter().map(|given| GivenBody {
        variant: Vec::new(),
        body: given.outcome,
        ..given.clone()
    });
    let differing = compare_variants(outcomes.collect()).differing;
    let mut result = compare_variants(given);
    result.differing += differing;
    result
}

fn compare_variants(mut given: Vec<GivenBody>) -> BodyComparison {
    given.sort_unstable();
    let mut result = BodyComparison::default();
    let mut aspects = BTreeSet::new();
    let is_one =
        |one: &GivenBody, next: &GivenBody| one.url == next.url && one.variant == next.variant;
    for group in given.chunk_by(is_one) {
        // Requests of one kind tell of time alone.
        if group.iter().all(|given| given.aspect == group[0].aspect) {
            continue;
        }
        let runs: Vec<Run<'_>> = group
            .chunk_by(|one, next| one.body == next.body)
            .map(|given| Run { body: given[0].body, given })
            .collect();
        for run in &runs {
            let kinds = kinds(run);
            if kinds.len() > 1 && run.given[0].is_evidence {
                result.equal += run.given.len() as u64 - 1;
                aspects.extend(kinds);
            }
        }
        result.differing += differing(&runs);
    }
    result.aspects = aspects.len();
    result
}

fn kinds<'g>(run: &Run<'g>) -> BTreeSet<&'g [u8]> {
    run.given.iter().map(|given| &given.aspect[..]).collect()
}

/// Changes between runs that time does not explain.
fn differing(runs: &[Run<'_>]) -> u64 {
    let mut last_run: BTreeMap<u64, usize> = BTreeMap::new();
    let mut found = 0;
    for (at, run) in runs.iter().enumerate() {
        found += u64::from(last_run.insert(run.body, at).is_some());
    }
    for pair in runs.windows(2) {
        let (before, after) = (&pair[0], &pair[1]);
        let (early, late) = (kinds(before), kinds(after));
        let saw_both = early.iter().any(|kind| late.contains(kind));
        let both_mixed = early.len() >= KINDS_MIN && late.len() >= KINDS_MIN;
        found += u64::from(!saw_both && !both_mixed);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bodies in their order, each as a letter for the aspect and a digit for the body.
    fn compared(text: &str) -> BodyComparison {
        let given = text.split(' ').enumerate().map(|(at, word)| GivenBody {
            url: Vec::new(),
            variant: Vec::new(),
            at_ms: at as u64,
            aspect: vec![word.as_bytes()[0]],
            body: u64::from(word.as_bytes()[1]),
            outcome: 200,
            is_evidence: true,
        });
        compare(given.collect())
    }

    #[test]
    fn equal_bodies_of_different_requests_are_proof() {
        assert_eq!(compared("a1 b1 c1"), BodyComparison { equal: 2, differing: 0, aspects: 3 });
        assert_eq!(compared("a1 a1 a1").equal, 0, "they do not differ in anything");
    }

    #[test]
    fn a_change_with_time_is_no_difference() {
        assert_eq!(compared("a1 b1 b2 a2").differing, 0, "one value saw both");
        assert_eq!(compared("a1 b1 b2 c2 a2").differing, 0, "one value saw both");
        let many = "a1 b1 c1 d1 e1 f1 g1 h1 i2 j2 k2 l2 m2 n2 o2 p2";
        assert_eq!(compared(many).differing, 0, "each body was given to many");
    }

    #[test]
    fn a_body_for_some_and_the_next_for_others_depends_on_the_request() {
        assert_eq!(compared("a1 b1 c2 d2").differing, 1);
    }

    #[test]
    fn requests_of_one_kind_tell_nothing_of_others() {
        assert_eq!(compared("a1 a2 a1 a2"), BodyComparison::default());
    }

    #[test]
    fn a_body_that_returns_depends_on_the_request() {
        assert_eq!(compared("a1 b2 a1").differing, 3);
        assert!(compared("a1 c1 b2 a1 c1 d1").differing > 0);
        assert!(compared("a1 a1 b2").differing > 0, "one visitor in many");
    }

    #[test]
    fn groups_are_compared_apart() {
        let of = |group: u8, at_ms, aspect: u8, body| GivenBody {
            url: vec![group],
            variant: Vec::new(),
            at_ms,
            aspect: vec![aspect],
            body,
            outcome: 200,
            is_evidence: true,
        };
        let given = vec![of(1, 1, 1, 1), of(2, 2, 2, 2), of(1, 3, 2, 1), of(2, 4, 1, 2)];
        assert_eq!(compare(given), BodyComparison { equal: 2, differing: 0, aspects: 2 });
    }
}
