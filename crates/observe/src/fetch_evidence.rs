//! Evidence of a fetch: what advice on a site's settings needs to know of it, as it follows the
//! record of a transaction that asked an origin.
//!
//! It must never hold a secret: of cookies there are names and keyed hashes of values.
//!
//! | bytes | content |
//! |---|---|
//! | 2 | length of the whole evidence |
//! | 1 | 1 if a fingerprint follows |
//! | 8 | the fingerprint |
//! | 2 | length of the removed parameters |
//! | | the removed parameters |
//! | | the fields, in the form of [`heads`](mod@crate::heads) |

use fingerprint::BodyFingerprint;

use crate::heads::{self, Field, HeadSide};

/// Bytes of evidence without its texts, with a fingerprint.
const HEAD: usize = 2 + 1 + 8 + 2;

/// Longest evidence of one record.
pub const EVIDENCE_MAX: usize = 4 * 1024;
/// Most bytes of fields in it.
pub const FIELDS_MAX: usize = EVIDENCE_MAX - HEAD - REMOVED_MAX;
/// Longest removed parameters. Longer ones are left out.
pub const REMOVED_MAX: usize = 1024;

/// Evidence of one fetch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FetchEvidence<'a> {
    /// The fingerprint of the origin's response, if its body was among those that get one and came
    /// whole.
    pub fingerprint: Option<BodyFingerprint>,
    /// Parameters of the client's request that the record's target lacks, separated by `&`.
    pub removed: &'a [u8],
    /// Fields of the request to the origin and of its response. A cookie's value is a keyed hash;
    /// Set-Cookie has names only, Authorization and tags no more than that they are there.
    pub fields: &'a [u8],
}

impl<'a> FetchEvidence<'a> {
    /// Iterates over the fields of `side`, with names in lower case.
    pub fn fields_of(self, side: HeadSide) -> impl Iterator<Item = Field<'a>> {
        heads::fields(self.fields).filter(move |field| field.side == side)
    }

    /// Appends the evidence to `out`. Texts that are too long are left out.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let at = out.len();
        out.extend_from_slice(&[0, 0, u8::from(self.fingerprint.is_some())]);
        if let Some(BodyFingerprint(hash)) = self.fingerprint {
            out.extend_from_slice(&hash.to_le_bytes());
        }
        let removed: &[u8] = if self.removed.len() > REMOVED_MAX { &[] } else { self.removed };
        out.extend_from_slice(&(removed.len() as u16).to_le_bytes());
        out.extend_from_slice(removed);
        if self.fields.len() <= FIELDS_MAX {
            out.extend_from_slice(self.fields);
        }
        let length = (out.len() - at) as u16;
        out[at..at + 2].copy_from_slice(&length.to_le_bytes());
    }

    /// Reads the evidence at the beginning of `bytes`, and returns it with the rest; `None` if it
    /// is malformed.
    pub(crate) fn read(bytes: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let length = u16::from_le_bytes(*bytes.first_chunk()?);
        let (own, rest) = bytes.split_at_checked(usize::from(length))?;
        let (&[_, _, has_fingerprint], mut own) = own.split_first_chunk()?;
        let mut fingerprint = None;
        if has_fingerprint != 0 {
            let (hash, after) = own.split_first_chunk()?;
            (own, fingerprint) = (after, Some(BodyFingerprint(u64::from_le_bytes(*hash))));
        }
        let (length, own) = own.split_first_chunk()?;
        let (removed, fields) = own.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
        Some((Self { fingerprint, removed, fields }, rest))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn evidence_reads_back(
            hash: Option<u64>, removed: Vec<u8>, fields: Vec<u8>, rest: Vec<u8>,
        ) {
            let fingerprint = hash.map(BodyFingerprint);
            let evidence = FetchEvidence { fingerprint, removed: &removed, fields: &fields };
            let mut bytes = Vec::new();
            evidence.write(&mut bytes);
            let length = bytes.len();
            bytes.extend_from_slice(&rest);
            prop_assert_eq!(FetchEvidence::read(&bytes), Some((evidence, &rest[..])));
            prop_assert!((0..length).all(|cut| FetchEvidence::read(&bytes[..cut]).is_none()));
        }

        #[test]
        fn no_bytes_make_it_fail(bytes: Vec<u8>) {
            if let Some((evidence, rest)) = FetchEvidence::read(&bytes) {
                prop_assert!(evidence.fields.len() + rest.len() < bytes.len());
            }
        }
    }

    #[test]
    fn texts_that_are_too_long_are_left_out() {
        let long = vec![b'x'; EVIDENCE_MAX];
        let fingerprint = Some(BodyFingerprint(1));
        let length = |removed, fields| {
            let mut bytes = Vec::new();
            FetchEvidence { fingerprint, removed, fields }.write(&mut bytes);
            bytes.len()
        };
        assert_eq!(length(&long[..REMOVED_MAX], &long[..FIELDS_MAX]), EVIDENCE_MAX);
        assert_eq!(length(&long[..=REMOVED_MAX], &long[..=FIELDS_MAX]), HEAD);
    }
}
