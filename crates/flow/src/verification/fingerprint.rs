//! Fingerprint of a response: two hashes, one of the response as it is, and one without what may
//! change at every request (numbers, tokens). Their comparison says if a page depends on its
//! visitor. Pure.

use message::Status;
use sha2::{Digest, Sha256};

/// Letters from which on a word of letters in both cases is a token.
const TOKEN_LETTERS: usize = 20;

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
        mask(body, |piece| masked.update(piece));
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

/// Passes `body` to `take` with `#` in place of each number and token.
fn mask(body: &[u8], mut take: impl FnMut(&[u8])) {
    let mut rest = body;
    while !rest.is_empty() {
        let word = rest.iter().position(|byte| !is_of_word(*byte)).unwrap_or(rest.len());
        let (own, behind) = rest.split_at(word);
        match is_token(own) {
            true => take(b"#"),
            false => take(own),
        }
        let next = behind.iter().position(|byte| is_of_word(*byte)).unwrap_or(behind.len());
        take(&behind[..next]);
        rest = &behind[next..];
    }
}

fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'+')
}

fn is_token(word: &[u8]) -> bool {
    let has = |is: fn(&u8) -> bool| word.iter().any(is);
    has(u8::is_ascii_digit)
        || word.len() >= TOKEN_LETTERS && has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(body: &str) -> Fingerprint {
        Fingerprint::of(Status::OK, b"", body.as_bytes())
    }

    fn masked(body: &str) -> String {
        let mut out = Vec::new();
        mask(body.as_bytes(), |piece| out.extend_from_slice(piece));
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn numbers_and_tokens_are_masked() {
        for (body, expected) in [
            ("", ""),
            ("Hello, Anna!", "Hello, Anna!"),
            ("3 items, 12.50 EUR", "# items, #.# EUR"),
            ("<input value=\"aZ_9f\">", "<input value=\"#\">"),
            ("AbcdefghijklmnopqrsT", "#"),
            ("internationalisation", "internationalisation"),
            ("/shop/item-12/", "/shop/#/"),
        ] {
            assert_eq!(masked(body), expected, "{body}");
        }
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
