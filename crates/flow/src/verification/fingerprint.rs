//! Fingerprint of a response: two hashes, one of the response as it is, and one without what may
//! change at every request (numbers, tokens). Their comparison says if a page depends on its
//! visitor. Pure.

use fingerprint::Masker;
use message::Status;
use sha2::{Digest, Sha256};

/// The hashes of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fingerprint {
    /// Of the response as it is.
    exact: [u8; 32],
    /// Of the response with `#` in place of numbers and tokens.
    masked: [u8; 32],
}

/// The result of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    /// The stored page is right.
    Same,
    /// The page has changed since, for all visitors.
    Changed,
    /// The page differs by visitor, as seen with this precision.
    Differs(Precision),
    /// The page is another one at every request, even without numbers and tokens.
    Unsteady,
}

/// The parts of a response that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Precision {
    /// Every byte.
    Exact,
    /// Everything but numbers and tokens.
    Masked,
}

impl Precision {
    /// Returns true if two responses are equal as far as they are compared.
    pub(super) fn are_equal(self, one: &Fingerprint, other: &Fingerprint) -> bool {
        match self {
            Self::Exact => one.is(other),
            Self::Masked => one.masked == other.masked,
        }
    }
}

impl Fingerprint {
    /// The fingerprint of a response. `place` is its Location.
    pub(super) fn of(status: Status, place: &[u8], body: &[u8]) -> Self {
        let mut head = status.code().to_be_bytes().to_vec();
        head.extend_from_slice(&(place.len() as u64).to_be_bytes());
        head.extend_from_slice(place);
        let (mut exact, mut masked) = (Sha256::new(), Sha256::new());
        exact.update(&head);
        exact.update(body);
        masked.update(&head);
        let mut masker = Masker::default();
        masker.feed(body, |text| masked.update(text));
        masker.end(|text| masked.update(text));
        Self { exact: exact.finalize().into(), masked: masked.finalize().into() }
    }

    /// Returns true if the responses are equal in every byte.
    pub(super) fn is(&self, other: &Self) -> bool {
        self.exact == other.exact
    }
}

/// Compares a stored response with two for the visitor and two for a neutral client, which were
/// asked for in turn. Numbers count only if the page has none of its own that change.
pub(super) fn compare(
    stored: &Fingerprint,
    own: &[Fingerprint; 2],
    neutral: &[Fingerprint; 2],
) -> Comparison {
    for by in [Precision::Exact, Precision::Masked] {
        if !by.are_equal(&own[0], &own[1]) || !by.are_equal(&neutral[0], &neutral[1]) {
            continue;
        }
        return match by.are_equal(&own[0], &neutral[0]) {
            true if by.are_equal(&own[0], stored) => Comparison::Same,
            true => Comparison::Changed,
            false => Comparison::Differs(by),
        };
    }
    Comparison::Unsteady
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(body: &str) -> Fingerprint {
        Fingerprint::of(Status::OK, b"", body.as_bytes())
    }

    #[test]
    fn a_page_that_depends_on_its_visitor_is_seen() {
        use Comparison as C;
        const EXACT: C = C::Differs(Precision::Exact);
        let judge = |stored: &str, [v, a, w, b]: [&str; 4]| {
            compare(&of(stored), &[of(v), of(w)], &[of(a), of(b)])
        };
        assert_eq!(judge("x", ["x", "x", "x", "x"]), C::Same);
        assert_eq!(judge("old", ["new", "new", "new", "new"]), C::Changed);
        // A number is a difference where the page has no numbers of its own that change.
        assert_eq!(judge("cart: 0", ["cart: 3", "cart: 0", "cart: 3", "cart: 0"]), EXACT);
        assert_eq!(judge("Hello", ["Hello Eva", "Hello", "Hello Eva", "Hello"]), EXACT);
        let noisy = ["t=1 Eva", "t=2", "t=3 Eva", "t=4"];
        assert_eq!(judge("t=0", noisy), C::Differs(Precision::Masked));
        assert_eq!(judge("t=0", ["t=1", "t=2", "t=3", "t=4"]), C::Same);
        // It changes between the requests.
        assert_eq!(judge("a", ["a", "b", "b", "b"]), C::Unsteady);
        assert_eq!(judge("a", ["b", "c", "d", "e"]), C::Unsteady);
    }

    #[test]
    fn status_and_place_are_part_of_it() {
        let page = of("x");
        assert!(!page.is(&Fingerprint::of(Status::MOVED_PERMANENTLY, b"", b"x")));
        let other = Fingerprint::of(Status::OK, b"/login", b"x");
        assert!(!Precision::Masked.are_equal(&page, &other));
    }

    proptest! {
        #[test]
        fn a_mask_hides_numbers_only(
            parts in prop::collection::vec("[a-z]{1,9}", 1..9), n: u32, m: u32,
        ) {
            let page = |number: u32| of(&parts.join(&format!(" {number} ")));
            prop_assert!(Precision::Masked.are_equal(&page(n), &page(m)));
            let other = format!("{} zz", parts.join(" "));
            prop_assert!(!Precision::Masked.are_equal(&of(&parts.join(" ")), &of(&other)));
        }
    }
}
