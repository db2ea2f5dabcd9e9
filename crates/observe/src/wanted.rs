//! Header fields that log readers ask for, and the transactions that they ask about.
//!
//! Most of the time nobody asks, and then nothing is kept. A reader asks for some seconds at a
//! time, so that a reader that is gone is forgotten.

use std::borrow::Cow;

use crate::query::Query;
use crate::record::Record;

/// Fields whose values let somebody in. Whoever may not see secrets sees that they are there.
const SECRET: &[&str] = &[
    "authorization",
    "proxy-authorization",
    "cookie",
    "set-cookie",
    "x-api-key",
    "x-auth-token",
    "x-csrf-token",
    "x-xsrf-token",
    "x-amz-security-token",
];

/// The text that replaces a secret.
const MASK: &[u8] = b"***";

/// The fields that one reader asks for.
#[derive(Clone, Debug, Default)]
pub struct Want {
    /// The names of the fields; all when there are none.
    pub names: Vec<String>,
    /// Of which transactions; all when it is not said.
    pub query: Option<Query>,
    /// The same as it was written, by which a reader that asks again is known.
    pub text: String,
    /// Secrets too.
    pub secrets: bool,
}

impl Want {
    fn is_same(&self, other: &Self) -> bool {
        (&self.names, &self.text, self.secrets) == (&other.names, &other.text, other.secrets)
    }
}

/// The fields that all readers ask for, each until some millisecond of the monotonic clock.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    wants: Vec<(Want, u64)>,
}

impl Wanted {
    /// Adds `want` until `until_ms`, and leaves out wants that are over at `now_ms`. Returns `None`
    /// if there would be more than `most` readers.
    pub fn with(&self, want: Want, (now_ms, until_ms): (u64, u64), most: usize) -> Option<Self> {
        let others = self.wants.iter();
        let others = others.filter(|(own, until)| *until > now_ms && !own.is_same(&want)).cloned();
        let mut wants: Vec<_> = others.collect();
        wants.push((want, until_ms));
        (wants.len() <= most).then_some(Self { wants })
    }

    /// Returns true if no reader asks for anything at `now_ms`.
    pub fn is_over(&self, now_ms: u64) -> bool {
        self.wants.iter().all(|(_, until)| *until <= now_ms)
    }

    /// Returns true if a reader asks for the field called `name`. First lines have an empty name.
    pub fn keeps(&self, name: &[u8]) -> bool {
        let is = |own: &String| own.as_bytes().eq_ignore_ascii_case(name);
        self.wants.iter().any(|(want, _)| want.names.is_empty() || want.names.iter().any(is))
    }

    /// Returns true if a reader asks for `record`.
    pub fn matches(&self, record: &Record<'_>) -> bool {
        let asks = |want: &Want| want.query.as_ref().is_none_or(|query| query.matches(record));
        self.wants.iter().any(|(want, _)| asks(want))
    }

    /// The part of a value that is kept: all of it, unless it is a secret and no reader asks for
    /// secrets.
    pub fn kept<'a>(&self, name: &[u8], value: &'a [u8]) -> Cow<'a, [u8]> {
        if self.wants.iter().any(|(want, _)| want.secrets) {
            value.into()
        } else {
            mask(name, value)
        }
    }
}

/// A value without what is secret in it: of cookies the names stay, of credentials the scheme and
/// the user.
fn mask<'a>(name: &[u8], value: &'a [u8]) -> Cow<'a, [u8]> {
    let Some(secret) = SECRET.iter().find(|own| own.as_bytes().eq_ignore_ascii_case(name)) else {
        return value.into();
    };
    let begin = |end: u8| value.split(|byte| *byte == end).next().unwrap_or_default();
    match *secret {
        "cookie" => {
            let all = value.split(|byte| *byte == b';').map(|pair| {
                let name = pair.split(|byte| *byte == b'=').next().unwrap_or_default();
                // A value without a name is all secret.
                let name = if name.len() == pair.len() { &b""[..] } else { name };
                [name, b"=", MASK].concat()
            });
            all.collect::<Vec<_>>().join(&b';').into()
        }
        "set-cookie" => {
            let pair = begin(b';');
            let name = pair.split(|byte| *byte == b'=').next().unwrap_or_default();
            let name = if name.len() == pair.len() { &b""[..] } else { name };
            [name, b"=", MASK, &value[pair.len()..]].concat().into()
        }
        "authorization" | "proxy-authorization" if begin(b' ').len() < value.len() => {
            let scheme = begin(b' ');
            match basic_user(value) {
                Some(user) => [scheme, b" ", &user, b":", MASK].concat().into(),
                None => [scheme, b" ", MASK].concat().into(),
            }
        }
        _ => MASK.into(),
    }
}

/// The user in the credentials of the scheme Basic (RFC 7617), which are masked or as they came.
pub fn basic_user(credentials: &[u8]) -> Option<Vec<u8>> {
    use base64::Engine as _;
    let (scheme, rest) = credentials.split_at_checked(6)?;
    if !scheme.eq_ignore_ascii_case(b"basic ") {
        return None;
    }
    let decoded = match rest.contains(&b':') {
        true => rest.to_vec(),
        false => base64::engine::general_purpose::STANDARD.decode(rest.trim_ascii()).ok()?,
    };
    let end = decoded.iter().position(|byte| *byte == b':')?;
    Some(decoded[..end].to_vec()).filter(|user| !user.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn want(names: &[&str], secrets: bool) -> Want {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        Want { names, secrets, ..Want::default() }
    }

    #[test]
    fn secrets_are_masked_and_what_they_are_is_seen() {
        for (name, value, kept) in [
            ("Cookie", "a=1; sid=2;x", "a=***; sid=***;=***"),
            ("set-cookie", "sid=abc; Path=/; HttpOnly", "sid=***; Path=/; HttpOnly"),
            ("Set-Cookie", "abc", "=***"),
            ("Authorization", "Basic dTpw", "Basic u:***"),
            ("Authorization", "Bearer dTpw", "Bearer ***"),
            ("Authorization", "dTpw", "***"),
            ("X-Api-Key", "k", "***"),
            ("Accept", "a=1", "a=1"),
        ] {
            let kept_of = |wanted: &Wanted| {
                let kept = wanted.kept(name.as_bytes(), value.as_bytes());
                String::from_utf8_lossy(&kept).into_owned()
            };
            let wanted = Wanted::default().with(want(&[], false), (0, 1), 9).expect("room");
            assert_eq!(kept_of(&wanted), kept, "{name}: {value}");
            let wanted = wanted.with(want(&[], true), (0, 1), 9).expect("room");
            assert_eq!(kept_of(&wanted), value);
        }
    }

    #[test]
    fn who_asks_again_is_one_reader_and_who_is_gone_is_forgotten() {
        let first = Wanted::default().with(want(&["Host"], false), (0, 10), 1).expect("room");
        let again = first.with(want(&["Host"], false), (5, 15), 1).expect("the same");
        assert!(again.with(want(&[], false), (5, 15), 1).is_none());
        assert!(!again.is_over(14) && again.is_over(15));
        assert!(again.keeps(b"host") && !again.keeps(b"accept") && !again.keeps(b""));
        let other = again.with(want(&[], false), (15, 20), 1).expect("the other is over");
        assert!(other.keeps(b"accept") && other.keeps(b"") && other.matches(&Record::default()));
    }

    #[test]
    fn only_transactions_that_somebody_asks_for_are_kept() {
        let query = Query::parse("resp.status == 404", &crate::format::Fields::default());
        let want = Want { query: query.ok(), text: "x".into(), ..Want::default() };
        let wanted = Wanted::default().with(want, (0, 10), 1).expect("room");
        let of = |status| Record { status, ..Record::default() };
        assert!(wanted.matches(&of(404)) && !wanted.matches(&of(200)));
    }
}
