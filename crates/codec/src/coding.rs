//! The content codings that Larder knows, their names, and sets of them. The order of
//! [`Coding::ALL`] is that of bits, and never a preference.

use message::list::members;

/// A content coding (RFC 9110 8.4.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Coding {
    /// No coding: the bytes as they are.
    #[default]
    Identity,
    /// gzip (RFC 1952).
    Gzip,
    /// Brotli, without large windows (RFC 7932).
    Brotli,
    /// Zstandard, with windows of at most 8 MiB (RFC 8878, RFC 9659).
    Zstd,
}

impl Coding {
    /// Every coding.
    pub const ALL: [Self; 4] = [Self::Identity, Self::Gzip, Self::Brotli, Self::Zstd];

    /// The codings that change bytes.
    pub const CODED: [Self; 3] = [Self::Gzip, Self::Brotli, Self::Zstd];

    /// Name of the coding in Content-Encoding and Accept-Encoding.
    pub const fn token(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::Gzip => "gzip",
            Self::Brotli => "br",
            Self::Zstd => "zstd",
        }
    }

    /// The coding named `token`, without regard to case; `x-gzip` is gzip (RFC 9110 8.4.1.3).
    /// `None` for an unknown one.
    pub fn of_token(token: &[u8]) -> Option<Self> {
        let is = |name: &str| token.eq_ignore_ascii_case(name.as_bytes());
        let known = Self::ALL.into_iter().find(|coding| is(coding.token()));
        known.or_else(|| is("x-gzip").then_some(Self::Gzip))
    }

    /// The single coding in the values of a response's Content-Encoding, or the identity if they
    /// name none. `None` for several codings or an unknown one: such a response is never recoded.
    pub fn of_content<'a>(values: impl IntoIterator<Item = &'a [u8]>) -> Option<Self> {
        let mut found = Self::Identity;
        for member in members(values) {
            match (found, Self::of_token(member)?) {
                (_, Self::Identity) => {}
                (Self::Identity, coding) => found = coding,
                _ => return None,
            }
        }
        Some(found)
    }
}

/// A set of codings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Codings(u8);

impl Codings {
    /// The empty set.
    pub const NONE: Self = Self(0);

    /// The set with `coding` added.
    #[must_use]
    pub const fn with(self, coding: Coding) -> Self {
        Self(self.0 | 1 << coding as u8)
    }

    /// The intersection of both sets.
    #[must_use]
    pub const fn both(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Returns true if `coding` is in the set.
    pub const fn contains(self, coding: Coding) -> bool {
        self.0 & 1 << coding as u8 != 0
    }

    /// Returns true if the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The set as a number below 16: bit `1 << n` is the n-th of [`Coding::ALL`].
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// The set with these [`Codings::bits`]; `None` if they are no set.
    pub const fn of_bits(bits: u8) -> Option<Self> {
        if bits < 1 << Coding::ALL.len() { Some(Self(bits)) } else { None }
    }

    /// The members, in the order of [`Coding::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Coding> {
        Coding::ALL.into_iter().filter(move |coding| self.contains(*coding))
    }
}

impl FromIterator<Coding> for Codings {
    fn from_iter<I: IntoIterator<Item = Coding>>(codings: I) -> Self {
        codings.into_iter().fold(Self::NONE, Self::with)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(lines: &[&str]) -> Option<Coding> {
        Coding::of_content(lines.iter().map(|line| line.as_bytes()))
    }

    #[test]
    fn one_known_coding_is_found_and_all_else_is_left_alone() {
        for (lines, expected) in [
            (&[][..], Some(Coding::Identity)),
            (&[""], Some(Coding::Identity)),
            (&["identity"], Some(Coding::Identity)),
            (&["gzip"], Some(Coding::Gzip)),
            (&[" X-GZip ,"], Some(Coding::Gzip)),
            (&["", "br"], Some(Coding::Brotli)),
            (&["identity, zstd"], Some(Coding::Zstd)),
            (&["gzip, gzip"], None),
            (&["gzip", "br"], None),
            (&["deflate"], None),
            (&["gzip, dcb"], None),
            (&["\"gzip\""], None),
        ] {
            assert_eq!(of(lines), expected, "{lines:?}");
        }
    }

    #[test]
    fn tokens_are_read_as_they_are_written() {
        for coding in Coding::ALL {
            assert_eq!(Coding::of_token(coding.token().as_bytes()), Some(coding));
        }
        assert_eq!(Coding::of_token(b"brotli"), None);
    }

    #[test]
    fn every_set_has_bits_of_its_own() {
        for bits in 0..16 {
            let set = Codings::of_bits(bits).expect("below 16");
            assert_eq!(set.bits(), bits);
            assert_eq!(set.iter().collect::<Codings>(), set);
            assert_eq!(set.iter().count(), bits.count_ones() as usize);
            assert_eq!(set.is_empty(), bits == 0);
        }
        assert_eq!(Codings::of_bits(16), None);
        let two = Codings::NONE.with(Coding::Gzip).with(Coding::Zstd);
        assert_eq!(two.both(Codings::NONE.with(Coding::Zstd)).iter().next(), Some(Coding::Zstd));
    }
}
