//! Accept-Encoding (RFC 9110 12.5.3): the codings that a client takes, and the best one for it. It
//! runs on the hit path and never allocates. A client's spelling never reaches a key: only one of
//! sixteen sets, or the chosen coding, is kept.

use message::list::{members, trim};

use crate::coding::{Coding, Codings};

/// The weight `q=0.001`. One step of weight lies between it and 0, for an identity that is not
/// named.
const THOUSANDTH: u16 = 2;
/// Weight of an identity that is neither named nor covered by `*`: acceptable, below every named
/// coding.
const UNNAMED: u16 = 1;

/// The most frequent values of the field, parsed beforehand: browsers, then libraries and proxies.
const COMMON: [(&[u8], Accept); 4] = [
    (b"gzip, deflate, br, zstd", Accept::named([false, true, true, true])),
    (b"gzip, deflate, br", Accept::named([false, true, true, false])),
    (b"gzip", Accept::named([false, true, false, false])),
    (b"gzip, deflate", Accept::named([false, true, false, false])),
];

/// A parsed Accept-Encoding: the weight of each coding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accept {
    /// Weight of each coding, in units of half a thousandth; 0 rejects it.
    weights: [u16; Coding::ALL.len()],
}

impl Accept {
    /// A request without the field: every coding is acceptable, the identity is preferred.
    pub const ABSENT: Self = {
        let mut weights = [UNNAMED; Coding::ALL.len()];
        weights[Coding::Identity as usize] = THOUSANDTH;
        Self { weights }
    };

    /// The codings in `named`, each without a weight; the identity stays acceptable.
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

    /// Parses the values of Accept-Encoding. Without a value it returns [`Accept::ABSENT`]; empty
    /// values mean the identity alone.
    ///
    /// Unknown codings and malformed members are ignored. Of two members for one coding the last
    /// counts.
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

    /// The weight of `coding`, for comparison with other codings; 0 rejects it.
    #[inline]
    pub const fn weight(&self, coding: Coding) -> u16 {
        self.weights[coding as usize]
    }

    /// The set of codings that the client takes, without weights. [`Codings::both`] reduces it to
    /// the codings of an object.
    pub fn codings(&self) -> Codings {
        Coding::ALL.into_iter().filter(|coding| self.takes(*coding)).collect()
    }

    /// The coding with the greatest weight among `offered`; of equal ones the first, so `offered`
    /// begins with the server's preference. An identity that is not named comes after all named
    /// codings.
    ///
    /// `None` if the client takes none of them: the response may be a 406, or the identity
    /// nevertheless.
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

/// Coding and weight of a member; `None` if it is malformed.
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
