//! Users with password hashes of `htpasswd`: bcrypt, Apache's MD5 (`$apr1$`), and SHA-1. Passwords
//! in plain text and unknown hashes must be rejected.

use std::collections::BTreeMap;
use std::fmt;

use data_encoding::BASE64;
use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha256};

/// The prefix of a hash of Apache's MD5.
const APR1: &str = "$apr1$";
/// The longest significant salt.
const APR1_SALT: usize = 8;
/// The digits of its encoding.
const APR1_DIGITS: &[u8; 64] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// The prefix of a SHA-1 hash.
const SHA1: &str = "{SHA}";
/// The prefixes of bcrypt's hashes.
const BCRYPT: [&str; 4] = ["$2y$", "$2b$", "$2a$", "$2x$"];
/// The accepted costs of bcrypt: a higher one takes a core for seconds.
const COSTS: std::ops::RangeInclusive<u32> = 4..=16;

/// Users with their passwords.
pub struct Users {
    by_name: BTreeMap<Box<[u8]>, Hashed>,
    digest: [u8; 32],
}

/// A password's hash.
#[derive(Clone)]
enum Hashed {
    Bcrypt(Box<str>),
    Apr1 { salt: Box<str>, digits: [u8; 22] },
    Sha1([u8; 20]),
}

/// The reason why a file of users is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsersError {
    /// The line, from 1 on.
    pub line: usize,
    /// The reason.
    pub why: &'static str,
}

impl fmt::Display for UsersError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.why)
    }
}

impl std::error::Error for UsersError {}

impl fmt::Debug for Users {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Users").field("users", &self.by_name.len()).finish_non_exhaustive()
    }
}

impl Users {
    /// Parses lines of `name:hash`, with an optional comment behind another colon. Empty lines and
    /// those that start with `#` are ignored.
    ///
    /// # Errors
    /// The first invalid line.
    pub fn parse(text: &[u8]) -> Result<Self, UsersError> {
        let mut by_name = BTreeMap::new();
        for (at, line) in text.split(|byte| *byte == b'\n').enumerate() {
            let error = |why| UsersError { line: at + 1, why };
            let line = line.trim_ascii();
            if line.is_empty() || line.starts_with(b"#") {
                continue;
            }
            let mut parts = line.splitn(3, |byte| *byte == b':');
            let (name, hash) = (parts.next().unwrap_or_default(), parts.next());
            let hash = hash.ok_or_else(|| error("no colon between a user and a password"))?;
            if name.is_empty() || name.iter().any(u8::is_ascii_control) {
                return Err(error("a user without a name, or with a control character in it"));
            }
            let hash = str::from_utf8(hash).ok().and_then(Hashed::parse).ok_or_else(|| {
                error("not a bcrypt, apr1 or SHA-1 hash: `htpasswd -B FILE USER` makes one")
            })?;
            if by_name.insert(name.into(), hash).is_some() {
                return Err(error("this user is listed twice"));
            }
        }
        Ok(Self { by_name, digest: Sha256::digest(text).into() })
    }

    /// The empty set of users.
    pub fn nobody() -> Self {
        Self { by_name: BTreeMap::new(), digest: [0; 32] }
    }

    /// The number of users.
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Returns true if there is no user.
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// A digest of the users.
    pub fn digest(&self) -> &[u8; 32] {
        &self.digest
    }

    /// Returns true if `password` is that of `user`. It takes the time of the hash: tens of
    /// milliseconds for bcrypt. An unknown user takes as long as a known one, and with several
    /// kinds of hashes each check takes as long as the slowest kind: the time must not reveal
    /// names.
    pub fn has(&self, user: &[u8], password: &[u8]) -> bool {
        let Some((hashed, besides)) = self.to_hash(user) else { return false };
        let is_right = hashed.is(password);
        if let Some(besides) = besides {
            std::hint::black_box(besides.is(password));
        }
        is_right && self.by_name.contains_key(user)
    }

    /// The hash to check for `user`, or another user's for an unknown one; and the slowest one if
    /// that is slower. `None` if there are no users.
    fn to_hash(&self, user: &[u8]) -> Option<(&Hashed, Option<&Hashed>)> {
        let own = || {
            // Selected by a hash of the file, so that it is not predictable whose hash it is.
            let sum: [u8; 32] =
                Sha256::new().chain_update(self.digest).chain_update(user).finalize().into();
            let at = u64::from_le_bytes(*sum.first_chunk()?) % self.by_name.len().max(1) as u64;
            self.by_name.values().nth(usize::try_from(at).ok()?)
        };
        let hashed = self.by_name.get(user).or_else(own)?;
        let dearest = self.by_name.values().max_by_key(|hashed| hashed.cost())?;
        Some((hashed, Some(dearest).filter(|dearest| dearest.cost() > hashed.cost())))
    }
}

impl Hashed {
    fn parse(text: &str) -> Option<Self> {
        if BCRYPT.iter().any(|begin| text.starts_with(begin)) {
            let cost = text.get(4..6)?.parse().ok().filter(|cost| COSTS.contains(cost))?;
            let is_whole = text.len() == 60 && text.as_bytes()[6] == b'$' && cost > 0;
            return is_whole.then(|| Self::Bcrypt(text.into()));
        }
        if let Some(rest) = text.strip_prefix(APR1) {
            let (salt, digits) = rest.split_once('$')?;
            let is_digit = |byte: &u8| APR1_DIGITS.contains(byte);
            let digits: [u8; 22] = digits.as_bytes().try_into().ok()?;
            let is_sound = salt.len() <= APR1_SALT && digits.iter().all(is_digit);
            return is_sound.then(|| Self::Apr1 { salt: salt.into(), digits });
        }
        let sum = BASE64.decode(text.strip_prefix(SHA1)?.as_bytes()).ok()?;
        Some(Self::Sha1(sum.try_into().ok()?))
    }

    /// The order by the time of a check.
    fn cost(&self) -> u32 {
        match self {
            Self::Sha1(_) => 0,
            Self::Apr1 { .. } => 1,
            Self::Bcrypt(hash) => hash.get(4..6).and_then(|cost| cost.parse().ok()).unwrap_or(0),
        }
    }

    fn is(&self, password: &[u8]) -> bool {
        match self {
            Self::Bcrypt(hash) => bcrypt::verify(password, hash).unwrap_or(false),
            Self::Apr1 { salt, digits } => is_same(&apr1(password, salt.as_bytes()), digits),
            Self::Sha1(sum) => is_same(&Sha1::digest(password), sum),
        }
    }
}

/// Compares in constant time.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).fold(0, |all, (a, b)| all | (a ^ b)) == 0
}

/// Apache's variant of the MD5 crypt of FreeBSD: a thousand rounds over password, salt and the
/// previous digest, in an order that depends on the round.
fn apr1(password: &[u8], salt: &[u8]) -> [u8; 22] {
    let inner: [u8; 16] = Md5::new()
        .chain_update(password)
        .chain_update(salt)
        .chain_update(password)
        .finalize()
        .into();
    let mut first = Md5::new().chain_update(password).chain_update(APR1).chain_update(salt);
    for at in (0..password.len()).step_by(16) {
        first.update(&inner[..16.min(password.len() - at)]);
    }
    let mut bits = password.len();
    while bits > 0 {
        first.update(if bits & 1 == 1 { &[0][..] } else { &password[..1] });
        bits >>= 1;
    }
    let mut sum: [u8; 16] = first.finalize().into();
    for round in 0..1000 {
        let mut next = Md5::new();
        next.update(if round & 1 == 1 { password } else { &sum[..] });
        if round % 3 != 0 {
            next.update(salt);
        }
        if round % 7 != 0 {
            next.update(password);
        }
        next.update(if round & 1 == 1 { &sum[..] } else { password });
        sum = next.finalize().into();
    }
    digits_of(&sum)
}

/// The digest in digits of six bits, with its bytes in the order of crypt.
fn digits_of(sum: &[u8; 16]) -> [u8; 22] {
    const ORDER: [[usize; 3]; 5] = [[0, 6, 12], [1, 7, 13], [2, 8, 14], [3, 9, 15], [4, 10, 5]];
    let mut digits = [0; 22];
    let mut put = |at: usize, mut bits: u32, count: usize| {
        for digit in &mut digits[at..at + count] {
            *digit = APR1_DIGITS[(bits & 63) as usize];
            bits >>= 6;
        }
    };
    for (at, [high, middle, low]) in ORDER.into_iter().enumerate() {
        let byte = |at: usize| u32::from(sum[at]);
        put(4 * at, byte(high) << 16 | byte(middle) << 8 | byte(low), 4);
    }
    put(20, u32::from(sum[11]), 2);
    digits
}

/// The user and the password of a request's Authorization (RFC 7617 2); `None` for another scheme,
/// or if it is malformed.
pub fn basic_credentials(value: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let (scheme, rest) = value.split_at_checked(6)?;
    if !scheme.eq_ignore_ascii_case(b"basic ") {
        return None;
    }
    let mut user = BASE64.decode(rest.trim_ascii()).ok()?;
    let at = user.iter().position(|byte| *byte == b':')?;
    let password = user.split_off(at + 1);
    user.pop();
    let is_sound = !user.is_empty() && !user.iter().chain(&password).any(u8::is_ascii_control);
    is_sound.then_some((user, password))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Output of Debian's `htpasswd` 2.4 and `openssl passwd -apr1`.
    const FILE: &str = "# a comment\n\
        \n\
        strong:$2y$05$SllL4JQ/7f9kmManWIxMneiGFe4Vf3AYv9Qh3x3Nr4j9feWSgMCgS\n\
        apache:$apr1$lZL6V/ci$eIMz/iKDkbtys/uU7LEK00:with a comment\r\n\
        old:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=\n";

    #[test]
    fn passwords_as_htpasswd_keeps_them() {
        let users = Users::parse(FILE.as_bytes()).expect("a good file");
        assert_eq!(users.len(), 3);
        for user in ["strong", "apache", "old"] {
            assert!(users.has(user.as_bytes(), b"password"), "{user}");
            assert!(!users.has(user.as_bytes(), b"Password"), "{user}");
            assert!(!users.has(user.as_bytes(), b""), "{user}");
        }
        assert!(!users.has(b"nobody", b"password"));
        assert!(!users.has(b"", b"password"));
        assert!(Users::parse(b"").expect("nobody").is_empty());
    }

    #[test]
    fn every_name_costs_as_much_as_the_dearest_hash() {
        let users = Users::parse(FILE.as_bytes()).expect("a good file");
        let names = (0..99).map(|n| format!("stranger{n}"));
        let mut kinds = std::collections::BTreeSet::new();
        for name in ["strong", "apache", "old"].map(str::to_owned).into_iter().chain(names) {
            let (own, besides) = users.to_hash(name.as_bytes()).expect("there are users");
            let dearest = own.cost().max(besides.map_or(0, Hashed::cost));
            assert_eq!(dearest, 5, "{name}");
            assert_eq!(besides.is_some(), own.cost() < 5, "{name}");
            if name.starts_with("stranger") {
                kinds.insert(own.cost());
                assert!(!users.has(name.as_bytes(), b"password"), "{name}");
            }
        }
        assert_eq!(kinds.len(), 3, "strangers look like users of every kind");
        assert!(Users::nobody().to_hash(b"a").is_none());
    }

    #[test]
    fn apache_s_md5_is_that_of_openssl() {
        for (password, salt, made) in [
            ("", "abcdefgh", "L.PT565ESX4Tp2bqNs7Ie."),
            ("a", "x", "16j9.5e7KiXmuYFAYpPJM/"),
            ("a password that is longer than a sum", "saltsalt", "9ygoVXUNc8/f65tQJ2ecc0"),
        ] {
            let own = apr1(password.as_bytes(), salt.as_bytes());
            assert_eq!(String::from_utf8_lossy(&own), made);
        }
    }

    #[test]
    fn a_line_that_cannot_be_used_is_named() {
        for (text, line) in [
            ("a", 1),
            ("\n\na:plain", 3),
            ("a:{PLAIN}x", 1),
            (":{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=", 1),
            ("a:{SHA}W6ph5Mm5Pz8GgiULbPgz", 1),
            ("a:$2y$99$cV8ZCGKRjTFvDeQTEGZMJODXlPaCgqp3Uda/AH1xRa/gLZUZ3w8Q2", 1),
            ("a:$2y$05$short", 1),
            ("a:$apr1$saltsaltsalt$eIMz/iKDkbtys/uU7LEK00", 1),
            ("a:$apr1$salt$short", 1),
            ("a:$6$salt$digest", 1),
            ("a:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=\na:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=", 2),
        ] {
            let error = Users::parse(text.as_bytes()).expect_err(text);
            assert_eq!(error.line, line, "{text}");
        }
    }

    #[test]
    fn credentials_are_read_as_the_rfc_has_them() {
        let of = |text: &str| basic_credentials(text.as_bytes());
        let both = |user: &str, word: &str| Some((user.into(), word.into()));
        assert_eq!(of("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="), both("Aladdin", "open sesame"));
        assert_eq!(of("bAsIc  YTpiOmM="), both("a", "b:c"));
        assert_eq!(of("Basic YTo="), both("a", ""));
        for wrong in
            ["", "Basic", "Basic ", "Basic YQ==", "Basic Ong=", "Bearer YTpi", "Basic YTpi!"]
        {
            assert_eq!(of(wrong), None, "{wrong}");
        }
        assert_eq!(of("Basic YQE6Yg=="), None, "a control character");
    }

    proptest! {
        #[test]
        fn whatever_is_read_is_read_without_harm(text: Vec<u8>, value: Vec<u8>) {
            if let Ok(users) = Users::parse(&text) {
                prop_assert!(users.len() <= text.len());
            }
            _ = basic_credentials(&value);
        }

        #[test]
        fn the_password_that_was_hashed_is_the_only_one(
            word in "[ -~]{0,40}", other in "[ -~]{0,40}",
        ) {
            let salt = "saltsalt";
            let digits = String::from_utf8(apr1(word.as_bytes(), salt.as_bytes()).into())
                .expect("digits");
            let users = Users::parse(format!("a:$apr1${salt}${digits}").as_bytes())
                .expect("a good file");
            prop_assert!(users.has(b"a", word.as_bytes()));
            prop_assert_eq!(users.has(b"a", other.as_bytes()), word == other);
        }
    }
}
