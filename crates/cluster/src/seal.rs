//! The seal: the encryption of shared secrets, with a key derived from the operator's secret, bound
//! to name and version. Pure.
//!
//! The servers alone must not be able to read a secret or to change it undetected. They can remove
//! an entry, or restore an old one, which nodes that have seen a later version reject.

use std::fmt;

use crypto::aead::{Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use crypto::hkdf::{HKDF_SHA256, KeyType, Salt};
use crypto::{SEALING, fill};

/// The version of the format.
const FORM: u8 = 1;
/// Bytes of a key's identifier.
const KEY_ID: usize = 8;
/// Bytes of a key.
const KEY: usize = 32;
/// Bytes of a tag.
const TAG: usize = 16;
/// Bytes before the ciphertext: format, key, version, nonce.
const HEAD: usize = 1 + KEY_ID + 8 + NONCE_LEN;
/// Bytes that sealing adds.
pub(crate) const SEALED_MORE: usize = HEAD + TAG;

/// The least bytes of the operator's secret, which may be text and must not be guessable.
pub const SECRET_BYTES_MIN: usize = 32;
/// The most secrets: the one that seals, and its predecessor.
pub const SECRETS_MAX: usize = 2;

/// The fault of an operator's secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadSecret {
    /// It has this many bytes, which are too few.
    Short(usize),
    /// There are this many, which are too few or too many.
    Number(usize),
}

impl fmt::Display for BadSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short(bytes) => write!(
                f,
                "a secret of {bytes} bytes can be guessed: use at least {SECRET_BYTES_MIN}, as from \
                 `openssl rand -base64 48`"
            ),
            Self::Number(count) => {
                write!(f, "{count} secrets are set; from 1 to {SECRETS_MAX} are possible")
            }
        }
    }
}

impl std::error::Error for BadSecret {}

/// The reason why an entry could not be unsealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnsealError {
    /// It is malformed, or in another version of the format.
    Form,
    /// It was sealed with an unknown secret.
    Stranger,
    /// It was changed, or belongs to another name.
    Changed,
}

impl fmt::Display for UnsealError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Form => "it is not a sealed entry of this version",
            Self::Stranger => "it was sealed with a secret that this node does not have",
            Self::Changed => "it was changed after sealing, or belongs to another entry",
        })
    }
}

impl std::error::Error for UnsealError {}

/// Unsealed bytes, and their version.
#[derive(Clone, PartialEq, Eq)]
pub struct UnsealedBytes {
    /// Grows with each entry of a name.
    pub version: u64,
    /// The bytes.
    pub bytes: Vec<u8>,
}

impl fmt::Debug for UnsealedBytes {
    /// Without the bytes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Opened").field(&self.version).finish()
    }
}

/// Keys derived from the operator's secrets: the first seals, all unseal.
pub struct SealKeyring(Vec<SealKey>);

struct SealKey {
    id: [u8; KEY_ID],
    key: LessSafeKey,
}

impl fmt::Debug for SealKeyring {
    /// Without keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Seal").field(&self.0.len()).finish()
    }
}

/// A number of bytes to derive.
struct Bytes(usize);

impl KeyType for Bytes {
    fn len(&self) -> usize {
        self.0
    }
}

impl SealKey {
    fn new(secret: &[u8], prefix: &str) -> Self {
        let from = Salt::new(HKDF_SHA256, b"larder cluster secrets").extract(secret);
        let derive = |what: &[u8], bytes: &mut [u8]| {
            let info = [what, prefix.as_bytes()];
            let derived = from.expand(&info, Bytes(bytes.len()));
            let filled = derived.and_then(|okm| okm.fill(bytes));
            filled.expect("so few bytes can be derived (RFC 5869 2.3)");
        };
        let (mut id, mut key) = ([0; KEY_ID], [0; KEY]);
        derive(b"id ", &mut id);
        derive(b"key ", &mut key);
        let key = UnboundKey::new(&SEALING, &key).expect("the key has its length");
        Self { id, key: LessSafeKey::new(key) }
    }
}

impl SealKeyring {
    /// Derives keys from `secrets` for the cluster with `prefix`. White space around a secret is
    /// ignored, because files end with a line feed.
    ///
    /// # Errors
    /// A secret is too short, or their number is wrong.
    pub fn new<'a>(
        secrets: impl IntoIterator<Item = &'a [u8]>,
        prefix: &str,
    ) -> Result<Self, BadSecret> {
        let mut keys = Vec::new();
        for secret in secrets.into_iter().map(<[u8]>::trim_ascii) {
            if secret.len() < SECRET_BYTES_MIN {
                return Err(BadSecret::Short(secret.len()));
            }
            keys.push(SealKey::new(secret, prefix));
        }
        match keys.len() {
            1..=SECRETS_MAX => Ok(Self(keys)),
            other => Err(BadSecret::Number(other)),
        }
    }

    /// Seals `bytes` for this name and version; `None` if the random source fails.
    pub fn seal(&self, name: &str, version: u64, bytes: &[u8]) -> Option<Vec<u8>> {
        let key = self.0.first()?;
        let mut nonce = [0; NONCE_LEN];
        fill(&mut nonce).ok()?;
        let head = [&[FORM], &key.id[..], &version.to_be_bytes(), &nonce].concat();
        let mut sealed = [&head, bytes].concat();
        let bound = Aad::from(bound(&head, name));
        let nonce = Nonce::assume_unique_for_key(nonce);
        let tag = key.key.seal_in_place_separate_tag(nonce, bound, &mut sealed[HEAD..]).ok()?;
        sealed.extend_from_slice(tag.as_ref());
        Some(sealed)
    }

    /// Unseals an entry of this name.
    ///
    /// # Errors
    /// It was not sealed for this name, or not with one of these secrets.
    pub fn open(&self, name: &str, sealed: &[u8]) -> Result<UnsealedBytes, UnsealError> {
        let (head, rest) = sealed.split_at_checked(HEAD).ok_or(UnsealError::Form)?;
        let (form, of) = head.split_first().ok_or(UnsealError::Form)?;
        if *form != FORM || rest.len() < TAG {
            return Err(UnsealError::Form);
        }
        let (id, of) = of.split_at_checked(KEY_ID).ok_or(UnsealError::Form)?;
        let (version, nonce) = of.split_first_chunk().ok_or(UnsealError::Form)?;
        let key = self.0.iter().find(|key| key.id == *id).ok_or(UnsealError::Stranger)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| UnsealError::Form)?;
        let mut bytes = rest.to_vec();
        let opened = key.key.open_in_place(nonce, Aad::from(bound(head, name)), &mut bytes);
        let length = opened.map_err(|_| UnsealError::Changed)?.len();
        bytes.truncate(length);
        Ok(UnsealedBytes { version: u64::from_be_bytes(*version), bytes })
    }
}

/// The authenticated data of a seal: the bytes before it, and the name.
fn bound(head: &[u8], name: &str) -> Vec<u8> {
    [head, name.as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ONE: &[u8] = b"a secret of the operator, number one\n";
    const TWO: &[u8] = b"a secret of the operator, number two\n";

    fn seal(secrets: &[&[u8]]) -> SealKeyring {
        SealKeyring::new(secrets.iter().copied(), "larder").expect("good secrets")
    }

    #[test]
    fn a_weak_secret_is_rejected_with_a_remedy() {
        let new = |secrets: &[&[u8]]| SealKeyring::new(secrets.iter().copied(), "larder").err();
        assert_eq!(new(&[ONE.trim_ascii()]), None);
        let spaces = [b' '; 64];
        for (secrets, error) in [
            (&[][..], BadSecret::Number(0)),
            (&[ONE, TWO, ONE], BadSecret::Number(3)),
            (&[ONE, b"short"], BadSecret::Short(5)),
            (&[&spaces], BadSecret::Short(0)),
        ] {
            assert_eq!(new(secrets), Some(error));
            assert!(!error.to_string().is_empty());
        }
    }

    #[test]
    fn a_new_secret_seals_and_the_old_one_still_opens() {
        let (old, both, new) = (seal(&[ONE]), seal(&[TWO, ONE]), seal(&[TWO]));
        let before = old.seal("a", 1, b"x").expect("random bytes");
        let after = both.seal("a", 2, b"y").expect("random bytes");
        assert_eq!(both.open("a", &before), Ok(UnsealedBytes { version: 1, bytes: b"x".to_vec() }));
        assert_eq!(new.open("a", &after), Ok(UnsealedBytes { version: 2, bytes: b"y".to_vec() }));
        assert_eq!(new.open("a", &before), Err(UnsealError::Stranger));
        assert_eq!(old.open("a", &after), Err(UnsealError::Stranger));
        assert!(!after.windows(3).any(|bytes| bytes == b"ope"), "nothing lies there in clear");
    }

    #[test]
    fn a_cluster_opens_nothing_of_another() {
        let sealed = seal(&[ONE]).seal("a", 1, b"x").expect("random bytes");
        let other = SealKeyring::new([ONE], "other").expect("a good secret");
        assert_eq!(other.open("a", &sealed), Err(UnsealError::Stranger));
    }

    proptest! {
        #[test]
        fn what_was_sealed_is_opened_by_its_name_alone(
            name in "[a-z.]{1,20}",
            other in "[a-z.]{1,20}",
            version: u64,
            bytes in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            let seal = seal(&[ONE]);
            let sealed = seal.seal(&name, version, &bytes).expect("random bytes");
            prop_assert_eq!(sealed.len(), bytes.len() + SEALED_MORE);
            prop_assert_eq!(seal.open(&name, &sealed), Ok(UnsealedBytes { version, bytes }));
            if name != other {
                prop_assert_eq!(seal.open(&other, &sealed), Err(UnsealError::Changed));
            }
        }

        #[test]
        fn what_was_changed_or_cut_is_refused(
            bytes in prop::collection::vec(any::<u8>(), 0..50),
            at: prop::sample::Index,
            flip in 1_u8..,
        ) {
            let seal = seal(&[ONE]);
            let mut sealed = seal.seal("a", 7, &bytes).expect("random bytes");
            let at = at.index(sealed.len());
            prop_assert!(seal.open("a", &sealed[..at]).is_err());
            sealed[at] ^= flip;
            prop_assert!(seal.open("a", &sealed).is_err(), "the version, too");
        }
    }
}
