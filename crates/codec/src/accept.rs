//! Accept-Encoding (RFC 9110 12.5.3): which of several forms a client gets.
//!
//! It is read on the hit path, so it allocates nothing. A client's spelling never reaches a key:
//! what is kept of it is one of sixteen sets, or the one coding that was chosen.

use message::list::{members, trim};

use crate::coding::{Coding, Codings};

/// The weight `q=0.001`. Between it and 0 there is room for an identity that nobody named.
const THOUSANDTH: u16 = 2;
/// An identity that is neither named nor covered by `*` is acceptable, and anything that is named
/// is liked better.
const UNNAMED: u16 = 1;

/// Spellings that most clients use, the most frequent first, and what they mean: browsers, then
/// libraries and proxies.
const COMMON: [(&[u8], Accept); 4] = [
    (b"gzip, deflate, br, zstd", Accept::named([false, true, true, true])),
    (b"gzip, deflate, br", Accept::named([false, true, true, false])),
    (b"gzip", Accept::named([false, true, false, false])),
    (b"gzip, deflate", Accept::named([false, true, false, false])),
];

/// The codings that a client takes, and how much it likes each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accept {
    /// By coding, in units of half a thousandth; 0 refuses it.
    weights: [u16; Coding::ALL.len()],
}

impl Accept {
    /// A request without the field: it takes everything, and the identity most gladly.
    pub const ABSENT: Self = {
        let mut weights = [UNNAMED; Coding::ALL.len()];
        weights[Coding::Identity as usize] = THOUSANDTH;
        Self { weights }
    };

    /// Those that are named without a weight, by coding; the identity is not refused.
    const fn named(named: [bool; Coding::ALL.len()]) -> Self {
        let mut weights = [0; Coding::ALL.len()];
        weights[Coding::Identity as usize] = UNNAMED;
        let mut at = 0;
        while at < named.len() {
            if named[at] {
                weights[at] = 1000 * THOUSANDTH;
            }
            at += 1;
        }
        Self { weights }
    }

    /// Reads the values of a request's Accept-Encoding: [`Accept::ABSENT`] if there are none; the
    /// identity alone if they are empty.
    ///
    /// Codings that are not known, and members that are not well-formed, count as not said. Of two
    /// members for the same coding the last counts.
    pub fn of<'a>(values: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut values = values.into_iter();
        let Some(first) = values.next() else { return Self::ABSENT };
        let second = values.next();
        if second.is_none()
            && let Some((_, common)) = COMMON.iter().find(|(spelling, _)| *spelling == first)
        {
            return *common;
        }
        Self::read([first].into_iter().chain(second).chain(values))
    }

    fn read<'a>(values: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut named = [None; Coding::ALL.len()];
        let mut any = None;
        for member in members(values) {
            let Some((token, weight)) = parts(member) else { continue };
            if token == b"*" {
                any = Some(weight);
            } else if let Some(coding) = Coding::of_token(token) {
                named[coding as usize] = Some(weight);
            }
        }
        let weights = Coding::ALL.map(|coding| {
            let unnamed = if coding == Coding::Identity { UNNAMED } else { 0 };
            named[coding as usize].or(any).unwrap_or(unnamed)
        });
        Self { weights }
    }

    /// Returns true if the client takes `coding`.
    pub const fn takes(&self, coding: Coding) -> bool {
        self.weights[coding as usize] > 0
    }

    /// The client's liking for `coding`, to compare with its liking for others; 0 refuses it.
    #[inline]
    pub const fn weight(&self, coding: Coding) -> u16 {
        self.weights[coding as usize]
    }

    /// The codings that the client takes: its class among all clients, as far as weights do not
    /// matter. With [`Codings::both`] it is brought down to what is stored.
    pub fn codings(&self) -> Codings {
        Coding::ALL.into_iter().filter(|coding| self.takes(*coding)).collect()
    }

    /// The form that the client likes best among `offered`, which begins with the form that the
    /// server would rather send; of several with the same weight, the first. An identity that the
    /// client has not named is liked less than any coding that it has named.
    ///
    /// `None` if the client takes none of them: the answer may be 406, or the identity after all.
    pub fn best(&self, offered: impl IntoIterator<Item = Coding>) -> Option<Coding> {
        let mut best = None;
        let mut most = 0;
        for coding in offered {
            let weight = self.weights[coding as usize];
            if weight > most {
                (best, most) = (Some(coding), weight);
            }
        }
        best
    }
}

/// A member's coding and weight. `None` if it is not well-formed.
pub(crate) fn parts(member: &[u8]) -> Option<(&[u8], u16)> {
    let Some(at) = member.iter().position(|b| *b == b';') else {
        return Some((member, 1000 * THOUSANDTH));
    };
    let parameter = trim(&member[at + 1..]);
    let value = parameter.strip_prefix(b"q=").or_else(|| parameter.strip_prefix(b"Q="))?;
    Some((trim(&member[..at]), thousandths(value)? * THOUSANDTH))
}

/// A qvalue (RFC 9110 12.4.2) in thousandths.
fn thousandths(value: &[u8]) -> Option<u16> {
    let (whole, fraction) = match value {
        [whole] => (whole, &b""[..]),
        [whole, b'.', fraction @ ..] if fraction.len() <= 3 => (whole, fraction),
        _ => return None,
    };
    let fraction = fraction.iter().chain(b"000").take(3).try_fold(0, |sum: u16, digit| {
        digit.is_ascii_digit().then(|| sum * 10 + u16::from(digit - b'0'))
    })?;
    match (whole, fraction) {
        (b'0', _) => Some(fraction),
        (b'1', 0) => Some(1000),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
