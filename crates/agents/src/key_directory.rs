//! Key directory: the public keys by which an agent signs its requests, as a JSON Web Key Set (RFC
//! 7517, draft-ietf-webbotauth-httpsig-protocol).
//!
//! Must never trust a label: a key is known by the thumbprint that is computed of it.

use std::fmt;

use crypto::digest::{SHA256, digest};
use crypto::signature::{ED25519, UnparsedPublicKey};
use data_encoding::BASE64URL_NOPAD;
use serde_json::Value;

/// Most keys of a directory: the old and the new one of several products are a few.
const KEYS_MAX: usize = 64;
/// Characters of a thumbprint: SHA-256 in base64.
const THUMBPRINT: usize = 43;
/// From here on a number of seconds is one of milliseconds, which some directories write: as
/// seconds it would be a year behind 5000.
const MILLISECONDS_FROM: u64 = 100_000_000_000;
/// The thumbprint of `test-key-ed25519` of RFC 9421 B.1.4. Its private half is printed beside it.
const PUBLISHED: &str = "poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U";

/// The keys of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyDirectory {
    keys: Vec<DirectoryKey>,
}

/// A key for Ed25519, with the times between which it counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DirectoryKey {
    thumbprint: [u8; THUMBPRINT],
    public: [u8; 32],
    from_secs: u64,
    until_secs: u64,
}

/// A directory that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyDirectoryError {
    /// It is no JSON.
    Json(String),
    /// It has no list `keys`.
    NoKeySet,
    /// It has more keys than a directory may have.
    TooMany,
    /// None of its keys can be used.
    NoUsableKey,
}

impl fmt::Display for KeyDirectoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Json(why) => write!(f, "it is no JSON: {why}"),
            Self::NoKeySet => f.write_str("it is no JSON Web Key Set: `keys` is missing"),
            Self::TooMany => write!(f, "it has more than {KEYS_MAX} keys"),
            Self::NoUsableKey => f.write_str("it has no key for Ed25519 that may be used"),
        }
    }
}

impl KeyDirectory {
    /// Reads a JSON Web Key Set. Keys for other algorithms or purposes are left out, and so are
    /// malformed ones.
    ///
    /// # Errors
    /// It is no key set, or no key is left.
    pub fn parse(json: &[u8]) -> Result<Self, KeyDirectoryError> {
        let mut read = Self::parse_with_published(json)?;
        read.keys.retain(|key| key.thumbprint != *PUBLISHED.as_bytes());
        if read.keys.is_empty() { Err(KeyDirectoryError::NoUsableKey) } else { Ok(read) }
    }

    /// The directory with the key of RFC 9421 among others, by which the RFC's examples are signed.
    pub(crate) fn parse_with_published(json: &[u8]) -> Result<Self, KeyDirectoryError> {
        let read: Value = serde_json::from_slice(json)
            .map_err(|error| KeyDirectoryError::Json(error.to_string()))?;
        let keys = read.get("keys").and_then(Value::as_array);
        let keys = keys.ok_or(KeyDirectoryError::NoKeySet)?;
        if keys.len() > KEYS_MAX {
            return Err(KeyDirectoryError::TooMany);
        }
        Ok(Self { keys: keys.iter().filter_map(DirectoryKey::read).collect() })
    }

    /// The key that has the thumbprint `keyid` and counts at `now_secs`.
    pub(crate) fn key(&self, keyid: &[u8], now_secs: u64) -> Option<&DirectoryKey> {
        let counts = |key: &&DirectoryKey| (key.from_secs..key.until_secs).contains(&now_secs);
        self.keys.iter().find(|key| key.thumbprint == *keyid).filter(counts)
    }
}

impl DirectoryKey {
    /// Reads a key for Ed25519 (RFC 8037 2); `None` if it is for something else.
    fn read(jwk: &Value) -> Option<Self> {
        let text = |name| jwk.get(name).and_then(Value::as_str);
        let allows = |name, allowed: &[&str]| match jwk.get(name) {
            Some(own) => own.as_str().is_some_and(|own| allowed.contains(&own)),
            None => true,
        };
        let is_ed25519 = text("kty") == Some("OKP") && text("crv") == Some("Ed25519");
        if !is_ed25519 || !allows("use", &["sig"]) || !allows("alg", &["EdDSA", "Ed25519"]) {
            return None;
        }
        let x = text("x")?;
        let public = BASE64URL_NOPAD.decode(x.as_bytes()).ok()?.try_into().ok()?;
        let (from_secs, until_secs) = (time(jwk, "nbf", 0)?, time(jwk, "exp", u64::MAX)?);
        Some(Self { thumbprint: thumbprint(&public)?, public, from_secs, until_secs })
    }

    /// Returns true if `signature` is the key's signature of `base`.
    pub(crate) fn has_signed(&self, base: &[u8], signature: &[u8]) -> bool {
        UnparsedPublicKey::new(&ED25519, self.public).verify(base, signature).is_ok()
    }
}

/// A time of a key in seconds since 1970; `None` if it is malformed.
fn time(jwk: &Value, name: &str, missing: u64) -> Option<u64> {
    let Some(own) = jwk.get(name) else { return Some(missing) };
    let number = own.as_u64()?;
    Some(if number < MILLISECONDS_FROM { number } else { number / 1000 })
}

/// The thumbprint of a key (RFC 7638, RFC 8037 A.3).
fn thumbprint(public: &[u8; 32]) -> Option<[u8; THUMBPRINT]> {
    let x = BASE64URL_NOPAD.encode(public);
    let members = format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{x}"}}"#);
    let hash = digest(&SHA256, members.as_bytes());
    BASE64URL_NOPAD.encode(hash.as_ref()).into_bytes().try_into().ok()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The directory of the draft's examples.
    pub(crate) const EXAMPLE: &str = r#"{"keys":[{"kty":"OKP","crv":"Ed25519",
        "kid":"any","x":"JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs","use":"sig"}]}"#;

    /// A key set with one key of these further members.
    fn set(x: &str, more: &str) -> String {
        format!(r#"{{"keys":[{{"kty":"OKP","crv":"Ed25519","x":"{x}"{more}}}]}}"#)
    }

    const X: &str = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";
    /// RFC 8037 A.3.
    const ID: &[u8] = b"kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k";

    #[test]
    fn a_key_is_known_by_its_thumbprint() {
        let read = KeyDirectory::parse(set(X, r#","kid":"other""#).as_bytes()).expect("a set");
        assert!(read.key(ID, 0).is_some());
        assert!(read.key(b"other", 0).is_none());
        assert!(read.key(&ID[..42], 0).is_none());
    }

    #[test]
    fn a_key_counts_between_its_times() {
        for more in [r#","nbf":1000,"exp":2000"#, r#","nbf":1000,"exp":2000.0"#] {
            let read = KeyDirectory::parse(set(X, more).as_bytes());
            if more.contains(".0") {
                assert_eq!(read, Err(KeyDirectoryError::NoUsableKey));
                continue;
            }
            let read = read.expect("a set");
            let at = |now_secs| read.key(ID, now_secs).is_some();
            assert_eq!([999, 1000, 1999, 2000].map(at), [false, true, true, false]);
        }
        let more = r#","nbf":1735689600000,"exp":1735689601000"#;
        let read = KeyDirectory::parse(set(X, more).as_bytes()).expect("a set");
        assert!(read.key(ID, 1_735_689_600).is_some() && read.key(ID, 1_735_689_601).is_none());
    }

    #[test]
    fn keys_that_no_one_may_use_are_left_out() {
        for more in [r#","use":"enc""#, r#","alg":"RS256""#, r#","use":1"#, r#","nbf":"x""#] {
            let read = KeyDirectory::parse(set(X, more).as_bytes());
            assert_eq!(read, Err(KeyDirectoryError::NoUsableKey), "{more}");
        }
        for x in ["", "AAAA", "!", &format!("{X}A"), &format!("{X}=")] {
            let read = KeyDirectory::parse(set(x, "").as_bytes());
            assert_eq!(read, Err(KeyDirectoryError::NoUsableKey), "{x}");
        }
        let rsa = br#"{"keys":[{"kty":"RSA","n":"AQAB","e":"AQAB"}]}"#;
        assert_eq!(KeyDirectory::parse(rsa), Err(KeyDirectoryError::NoUsableKey));
        // Everybody has its private half.
        assert_eq!(KeyDirectory::parse(EXAMPLE.as_bytes()), Err(KeyDirectoryError::NoUsableKey));
        let read = KeyDirectory::parse_with_published(EXAMPLE.as_bytes()).expect("a set");
        assert!(read.key(PUBLISHED.as_bytes(), 0).is_some());
    }

    #[test]
    fn what_is_no_key_set_is_refused() {
        assert!(matches!(KeyDirectory::parse(b"<html>"), Err(KeyDirectoryError::Json(_))));
        assert_eq!(KeyDirectory::parse(b"{}"), Err(KeyDirectoryError::NoKeySet));
        assert_eq!(KeyDirectory::parse(b"{\"keys\":1}"), Err(KeyDirectoryError::NoKeySet));
        let many = format!("{{\"keys\":[{}0]}}", "0,".repeat(KEYS_MAX));
        assert_eq!(KeyDirectory::parse(many.as_bytes()), Err(KeyDirectoryError::TooMany));
    }
}
