//! Tokens: 256 random bits for each role, each in a file readable for its owner only, and their
//! comparison.

use std::collections::HashMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::net::IpAddr;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use data_encoding::HEXLOWER;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};

use crate::role::Role;

/// Random bytes in a token.
const TOKEN_BYTES: usize = 32;

/// Shortest token in a file, in characters.
const TOKEN_MIN: usize = 32;

/// Addresses whose wrong tokens are remembered. Beyond it, a wrong token of another address gets
/// the verdict of one that was not checked.
const ADDRESSES_MAX: usize = 1024;

/// The interval in which wrong tokens of an address are counted.
const SECOND: Duration = Duration::from_secs(1);

/// The reason why tokens cannot be used, with the file.
#[derive(Debug)]
pub struct TokenError {
    /// The file or folder.
    pub path: PathBuf,
    /// The fault, as text.
    pub why: String,
}

impl std::fmt::Display for TokenError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.why)
    }
}

impl std::error::Error for TokenError {}

/// The verdict on a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenVerdict {
    /// The token of this role.
    Role(Role),
    /// A wrong token.
    Wrong,
    /// Not checked: too many wrong tokens came from the address.
    Unchecked,
}

/// The tokens of every role, as hashes.
#[derive(Debug)]
pub struct Tokens {
    hashes: Vec<(Role, [u8; 32])>,
    wrong: Mutex<HashMap<IpAddr, (Instant, u64)>>,
}

impl Tokens {
    /// The file with the token of `role`.
    pub fn file(folder: &Path, role: Role) -> PathBuf {
        folder.join(format!("{}.token", role.word()))
    }

    /// Reads the tokens in `folder`; missing ones are created.
    ///
    /// # Errors
    /// A file that cannot be read or created, that other users may read, or whose token is too
    /// short or that of another role.
    pub fn open(folder: &Path) -> Result<Self, TokenError> {
        let named = |path: &Path| {
            let path = path.to_owned();
            move |error: io::Error| TokenError { path, why: error.to_string() }
        };
        if !folder.exists() {
            let mut builder = DirBuilder::new();
            builder.recursive(true).mode(0o700).create(folder).map_err(named(folder))?;
        }
        let mut hashes: Vec<(Role, [u8; 32])> = Vec::new();
        for role in Role::ALL {
            let path = Self::file(folder, role);
            if !path.exists() {
                create(folder, &path).map_err(named(&path))?;
            }
            let token = read(&path)?;
            let hash = Sha256::digest(token.as_bytes()).into();
            if hashes.iter().any(|(_, own)| *own == hash) {
                let why =
                    "the token of another role: delete the file, and a new one is created".into();
                return Err(TokenError { path, why });
            }
            hashes.push((role, hash));
        }
        Ok(Self { hashes, wrong: Mutex::default() })
    }

    /// The token of `role`, from the `text` of a file.
    ///
    /// # Errors
    /// The text is no token, with the reason.
    pub fn of_text(role: Role, text: &str) -> Result<Self, String> {
        let token = token_in(text).ok_or_else(|| {
            format!("no token: one line of at least {TOKEN_MIN} letters and digits")
        })?;
        let hash = Sha256::digest(token.as_bytes()).into();
        Ok(Self { hashes: vec![(role, hash)], wrong: Mutex::default() })
    }

    /// Judges `token`, which came from the address `from`. A right one is always accepted: it is
    /// too long to guess, and its owner is not to blame for others at that address. At most
    /// `wrong_max` wrong ones of an address in a second get the verdict that they are wrong.
    pub(crate) fn verify_token(&self, token: &[u8], from: IpAddr, wrong_max: u64) -> TokenVerdict {
        // Hashes are compared: their common prefix tells nothing about the tokens'. All roles are
        // compared, so that the time does not depend on the role.
        let hash: [u8; 32] = Sha256::digest(token).into();
        let mut found = None;
        for (role, own) in &self.hashes {
            if own.iter().zip(&hash).fold(0, |all, (a, b)| all | (a ^ b)) == 0 {
                found = Some(*role);
            }
        }
        if let Some(role) = found {
            return TokenVerdict::Role(role);
        }
        let now = Instant::now();
        let mut wrong = self.wrong.lock();
        let is_over = |since: &Instant| now.duration_since(*since) >= SECOND;
        if let Some((since, count)) = wrong.get(&from)
            && !is_over(since)
            && *count >= wrong_max
        {
            return TokenVerdict::Unchecked;
        }
        if wrong.len() >= ADDRESSES_MAX {
            wrong.retain(|_, (since, _)| !is_over(since));
        }
        if wrong.len() >= ADDRESSES_MAX && !wrong.contains_key(&from) {
            return TokenVerdict::Unchecked;
        }
        let entry = wrong.entry(from).or_insert((now, 0));
        if is_over(&entry.0) {
            *entry = (now, 0);
        }
        entry.1 += 1;
        TokenVerdict::Wrong
    }
}

/// Creates a token in `path`; if another process creates one at the same time, that one counts.
fn create(folder: &Path, path: &Path) -> io::Result<()> {
    let mut chance = [0; TOKEN_BYTES];
    getrandom::fill(&mut chance).map_err(io::Error::other)?;
    let draft = path.with_extension(format!("new-{}", std::process::id()));
    let made = (|| {
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create_new(true).mode(0o600).open(&draft)?;
        writeln!(file, "{}", HEXLOWER.encode(&chance))?;
        file.sync_all()?;
        // Unlike a rename, a link never replaces an existing file.
        match fs::hard_link(&draft, path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            done => done,
        }?;
        File::open(folder)?.sync_all()
    })();
    // A leftover draft is harmless.
    _ = fs::remove_file(&draft);
    made
}

/// The token in `path`.
fn read(path: &Path) -> Result<String, TokenError> {
    let wrong = |why: String| TokenError { path: path.to_owned(), why };
    let mode = fs::metadata(path).map_err(|e| wrong(e.to_string()))?.permissions().mode();
    if mode & 0o007 != 0 {
        return Err(wrong(
            "everyone may read it: delete the file, and a new one is created".into(),
        ));
    }
    let text = fs::read_to_string(path).map_err(|e| wrong(e.to_string()))?;
    token_in(&text).map(str::to_owned).ok_or_else(|| {
        wrong(format!(
            "no token: one line of at least {TOKEN_MIN} letters and digits; delete the file, \
             and a new one is created"
        ))
    })
}

/// The token in a file's text; `None` for other text.
fn token_in(text: &str) -> Option<&str> {
    let token = text.trim_end_matches(['\r', '\n']);
    let is_one = token.len() >= TOKEN_MIN && token.bytes().all(|b| b.is_ascii_graphic());
    is_one.then_some(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            let id = std::process::id();
            Self(std::env::temp_dir().join(format!("larder-tokens-{name}-{id}")))
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            _ = fs::remove_dir_all(&self.0);
        }
    }

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn token(folder: &Path, role: Role) -> String {
        let text = fs::read_to_string(Tokens::file(folder, role)).expect("a file");
        text.trim_end().to_owned()
    }

    #[test]
    fn tokens_are_made_once_and_are_their_owners_alone() {
        let scratch = Scratch::new("made");
        let folder = scratch.0.join("below");
        Tokens::open(&folder).expect("tokens");
        let before: Vec<_> = Role::ALL.iter().map(|role| token(&folder, *role)).collect();
        Tokens::open(&folder).expect("the same tokens");
        for (role, before) in Role::ALL.into_iter().zip(&before) {
            assert_eq!((token(&folder, role), before.len()), (before.clone(), 64));
            let mode = fs::metadata(Tokens::file(&folder, role)).expect("a file").permissions();
            assert_eq!(mode.mode() & 0o777, 0o600);
        }
        assert!(before[0] != before[1] && before[1] != before[2] && before[0] != before[2]);
        let files = fs::read_dir(&folder).expect("a folder").count();
        assert_eq!(files, Role::ALL.len(), "no draft is left");
    }

    #[test]
    fn a_token_is_worth_its_role() {
        let scratch = Scratch::new("worth");
        let tokens = Tokens::open(&scratch.0).expect("tokens");
        for role in Role::ALL {
            let right = token(&scratch.0, role);
            assert_eq!(tokens.verify_token(right.as_bytes(), HERE, 5), TokenVerdict::Role(role));
            let short = &right.as_bytes()[..right.len() - 1];
            let elsewhere = IpAddr::from([127, 0, 0, 9]);
            assert_eq!(tokens.verify_token(short, elsewhere, 5), TokenVerdict::Wrong);
        }
        assert_eq!(tokens.verify_token(b"", HERE, 5), TokenVerdict::Wrong);
    }

    #[test]
    fn after_some_wrong_ones_an_address_is_not_listened_to() {
        let scratch = Scratch::new("wrong");
        let tokens = Tokens::open(&scratch.0).expect("tokens");
        let right = token(&scratch.0, Role::Read);
        // The second may end between two attempts; then it begins again.
        let mut locked = false;
        for _ in 0..20 {
            locked |= tokens.verify_token(b"guess", HERE, 5) == TokenVerdict::Unchecked;
        }
        assert!(locked);
        let there = IpAddr::from([127, 0, 0, 2]);
        assert_eq!(tokens.verify_token(right.as_bytes(), there, 5), TokenVerdict::Role(Role::Read));
    }

    #[test]
    fn a_token_of_ones_own_is_worth_one_role() {
        let text = "0123456789abcdef0123456789abcdef";
        let tokens = Tokens::of_text(Role::Read, &format!("{text}\n")).expect("a token");
        assert_eq!(tokens.verify_token(text.as_bytes(), HERE, 5), TokenVerdict::Role(Role::Read));
        assert_eq!(tokens.verify_token(&text.as_bytes()[1..], HERE, 5), TokenVerdict::Wrong);
        for bad in ["", "\n", &text[1..], &format!("{text} {text}"), &format!("{text}\n{text}")] {
            assert!(Tokens::of_text(Role::Read, bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn files_that_cannot_be_trusted_are_named() {
        let scratch = Scratch::new("bad");
        Tokens::open(&scratch.0).expect("tokens");
        let path = Tokens::file(&scratch.0, Role::Purge);
        let refused = |what: &str| {
            let error = Tokens::open(&scratch.0).expect_err("a bad file").to_string();
            assert!(error.contains("purge.token") && error.contains(what), "{error}");
        };
        fs::write(&path, "short\n").expect("written");
        refused("at least 32");
        fs::write(&path, token(&scratch.0, Role::Read)).expect("written");
        refused("another role");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o604)).expect("a mode");
        refused("everyone may read it");
    }
}
