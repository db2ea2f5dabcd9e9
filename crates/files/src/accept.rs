//! Selection of a coding that a client takes (RFC 9110 12.5.3).

use message::HeaderBlock;
use message::HeaderId;
use message::list::{members, trim};

use crate::config::Coding;

/// Weights of Accept-Encoding in thousandths; what is not named and not covered by `*` is 0, but
/// for `identity`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Weights {
    codings: [Option<u16>; Coding::ALL.len()],
    identity: Option<u16>,
    any: Option<u16>,
}

/// The place in `offered` of the coding that the client likes best, the first of several with the
/// same weight; `None` if the client likes the identity better, or takes no coding that is offered.
pub(crate) fn choose(
    headers: &HeaderBlock,
    offered: impl Iterator<Item = Coding>,
) -> Option<usize> {
    if !headers.contains(HeaderId::AcceptEncoding) {
        return None;
    }
    let weights = Weights::read(headers);
    // A client that names no weight for the identity does not mind getting something smaller.
    let least = weights.identity.unwrap_or(0);
    let mut best: Option<(usize, u16)> = None;
    for (at, coding) in offered.enumerate() {
        let weight = weights.codings[coding as usize].or(weights.any).unwrap_or(0);
        if weight > 0 && weight >= least && best.is_none_or(|(_, other)| weight > other) {
            best = Some((at, weight));
        }
    }
    best.map(|(at, _)| at)
}

impl Weights {
    fn read(headers: &HeaderBlock) -> Self {
        let mut weights = Self::default();
        for member in members(headers.values(HeaderId::AcceptEncoding)) {
            let (name, weight) = match member.iter().position(|b| *b == b';') {
                Some(at) => (trim(&member[..at]), weight(trim(&member[at + 1..]))),
                None => (member, 1000),
            };
            let is = |other: &str| name.eq_ignore_ascii_case(other.as_bytes());
            let coding = Coding::ALL.iter().find(|coding| is(coding.token()));
            match coding {
                Some(coding) => weights.codings[*coding as usize] = Some(weight),
                None if is("x-gzip") => weights.codings[Coding::Gzip as usize] = Some(weight),
                None if is("identity") => weights.identity = Some(weight),
                None if is("*") => weights.any = Some(weight),
                None => {}
            }
        }
        weights
    }
}

/// `q=0.5` in thousandths; what cannot be read counts as 0, so that nothing unwanted is sent.
fn weight(parameter: &[u8]) -> u16 {
    let Some((b'q' | b'Q', value)) = parameter.split_first() else { return 0 };
    let Some(value) = trim(value).strip_prefix(b"=").map(trim) else { return 0 };
    let (whole, digits) = match value {
        [b'1'] => return 1000,
        [b'0'] => return 0,
        [whole, b'.', digits @ ..] if digits.len() <= 3 => (*whole, digits),
        _ => return 0,
    };
    let fraction = digits.iter().chain(b"000").take(3).try_fold(0, |sum: u16, digit| {
        digit.is_ascii_digit().then(|| sum * 10 + u16::from(digit - b'0'))
    });
    match (whole, fraction) {
        (b'0', Some(fraction)) => fraction,
        (b'1', Some(0)) => 1000,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(value: &str, offered: &[Coding]) -> Option<Coding> {
        let mut headers = HeaderBlock::new();
        headers.push(HeaderId::AcceptEncoding, value.as_bytes());
        choose(&headers, offered.iter().copied()).map(|at| offered[at])
    }

    #[test]
    fn the_weight_decides_and_then_our_order() {
        use Coding::{Br, Gzip, Zstd};
        let all = [Br, Zstd, Gzip];
        for (value, expected) in [
            ("gzip, br", Some(Br)),
            ("gzip;q=1.0, br;q=0.5", Some(Gzip)),
            ("GZIP", Some(Gzip)),
            ("x-gzip", Some(Gzip)),
            ("*", Some(Br)),
            ("*;q=0.1, br;q=0", Some(Zstd)),
            ("identity, gzip;q=0.5", None),
            ("identity;q=0.5, gzip", Some(Gzip)),
            ("identity", None),
            ("gzip;q=0", None),
            ("gzip;q=0.000", None),
            ("gzip;q=2", None),
            ("gzip;q=1.001", None),
            ("gzip;q=", None),
            ("gzip;level=1", None),
            ("", None),
            ("deflate", None),
        ] {
            assert_eq!(chosen(value, &all), expected, "{value}");
        }
        assert_eq!(chosen("br, gzip", &[Gzip]), Some(Gzip));
        assert_eq!(choose(&HeaderBlock::new(), all.into_iter()), None);
    }
}
