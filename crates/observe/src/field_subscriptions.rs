//! Header fields that log readers ask for, and the transactions that they ask about.
//!
//! Most of the time nobody asks, and then nothing is kept. A reader asks for some seconds at a
//! time, so that a reader that is gone is forgotten.

use std::borrow::Cow;

use crate::heads::HeadSide;
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
pub struct FieldSubscription {
    /// The names of the fields; all when there are none.
    pub names: Vec<String>,
    /// The same by the heads that they stand in, for whoever needs none of other heads.
    pub fields: Vec<(HeadSide, String)>,
    /// Of which transactions; all when it is not said.
    pub query: Option<Query>,
    /// The same as it was written, by which a reader that asks again is known.
    pub text: String,
    /// Secrets too.
    pub secrets: bool,
}

impl FieldSubscription {
    fn is_same(&self, other: &Self) -> bool {
        (&self.names, &self.text, self.secrets) == (&other.names, &other.text, other.secrets)
            && self.fields == other.fields
    }

    /// Returns true if it asks for fields called `name` in the heads of `side`.
    fn asks_for(&self, side: HeadSide, name: &[u8]) -> bool {
        let is = |own: &String| own.as_bytes().eq_ignore_ascii_case(name);
        match self.fields.as_slice() {
            [] => self.names.is_empty() || self.names.iter().any(is),
            fields => fields.iter().any(|(own, field)| *own == side && is(field)),
        }
    }
}

/// The end of a wish that holds as long as the daemon runs.
const LASTING: u64 = u64::MAX;

/// The fields that all readers ask for, each until some millisecond of the monotonic clock.
#[derive(Clone, Debug, Default)]
pub struct FieldSubscriptions {
    wants: Vec<(FieldSubscription, u64)>,
}

impl FieldSubscriptions {
    /// Adds a wish that holds as long as the daemon runs, and is no reader's.
    #[must_use]
    pub fn with_lasting(mut self, want: FieldSubscription) -> Self {
        self.wants.push((want, LASTING));
        self
    }

    /// Adds `want` until `until_ms`, and leaves out wants that are over at `now_ms`. Returns `None`
    /// if there would be more than `most` readers.
    pub fn with(
        &self,
        want: FieldSubscription,
        now_ms: u64,
        until_ms: u64,
        most: usize,
    ) -> Option<Self> {
        let others = self.wants.iter();
        let others = others.filter(|(own, until)| *until > now_ms && !own.is_same(&want)).cloned();
        let mut wants: Vec<_> = others.collect();
        wants.push((want, until_ms));
        let readers = wants.iter().filter(|(_, until)| *until != LASTING).count();
        (readers <= most).then_some(Self { wants })
    }

    /// Returns true if a reader no longer asks at `now_ms`.
    pub fn has_ended(&self, now_ms: u64) -> bool {
        self.wants.iter().any(|(_, until)| *until <= now_ms)
    }

    /// The wishes that still hold at `now_ms`; `None` if none does.
    pub fn without_expired(&self, now_ms: u64) -> Option<Self> {
        let wants = self.wants.iter().filter(|(_, until)| *until > now_ms).cloned();
        let wants: Vec<_> = wants.collect();
        (!wants.is_empty()).then_some(Self { wants })
    }

    /// Returns true if somebody asks for the fields called `name` of heads of `side`. First lines
    /// have an empty name.
    pub fn keeps(&self, side: HeadSide, name: &[u8]) -> bool {
        self.wants.iter().any(|(want, _)| want.asks_for(side, name))
    }

    /// Returns true if somebody asks for anything of heads of `side`.
    pub fn keeps_any(&self, side: HeadSide) -> bool {
        self.wants.iter().any(|(want, _)| {
            want.fields.is_empty() || want.fields.iter().any(|(own, _)| *own == side)
        })
    }

    /// Returns true if a reader asks for `record`.
    pub fn matches(&self, record: &Record<'_>) -> bool {
        let asks = |want: &FieldSubscription| {
            want.query.as_ref().is_none_or(|query| query.matches(record))
        };
        self.wants.iter().any(|(want, _)| asks(want))
    }

    /// The part of a field's value that is kept: all of it, unless it is a secret, and no reader
    /// who may see secrets asks for it.
    pub fn kept<'a>(&self, side: HeadSide, name: &[u8], value: &'a [u8]) -> Cow<'a, [u8]> {
        if self.wants.iter().any(|(want, _)| want.secrets && want.asks_for(side, name)) {
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
    let (scheme, rest) = credentials.split_at_checked(6)?;
    if !scheme.eq_ignore_ascii_case(b"basic ") {
        return None;
    }
    let decoded = match rest.contains(&b':') {
        true => rest.to_vec(),
        false => data_encoding::BASE64.decode(rest.trim_ascii()).ok()?,
    };
    let end = decoded.iter().position(|byte| *byte == b':')?;
    Some(decoded[..end].to_vec()).filter(|user| !user.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn want(names: &[&str], secrets: bool) -> FieldSubscription {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        FieldSubscription { names, secrets, ..FieldSubscription::default() }
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
            let kept_of = |wanted: &FieldSubscriptions| {
                let kept = wanted.kept(HeadSide::Req, name.as_bytes(), value.as_bytes());
                String::from_utf8_lossy(&kept).into_owned()
            };
            let wanted =
                FieldSubscriptions::default().with(want(&[], false), 0, 1, 9).expect("room");
            assert_eq!(kept_of(&wanted), kept, "{name}: {value}");
            let wanted = wanted.with(want(&[], true), 0, 1, 9).expect("room");
            assert_eq!(kept_of(&wanted), value);
        }
    }

    #[test]
    fn who_asks_again_is_one_reader_and_who_is_gone_is_forgotten() {
        let first =
            FieldSubscriptions::default().with(want(&["Host"], false), 0, 10, 1).expect("room");
        let again = first.with(want(&["Host"], false), 5, 15, 1).expect("the same");
        assert!(again.with(want(&[], false), 5, 15, 1).is_none());
        assert!(!again.has_ended(14) && again.has_ended(15) && again.without_expired(15).is_none());
        let keeps = |wanted: &FieldSubscriptions, name: &[u8]| wanted.keeps(HeadSide::Req, name);
        assert!(keeps(&again, b"host") && !keeps(&again, b"accept") && !keeps(&again, b""));
        let other = again.with(want(&[], false), 15, 20, 1).expect("the other is over");
        assert!(keeps(&other, b"accept") && keeps(&other, b""));
        assert!(other.matches(&Record::default()));
    }

    #[test]
    fn a_log_asks_for_ever_takes_no_readers_place_and_has_secrets_for_its_own_fields_only() {
        let fields = vec![(HeadSide::Resp, "set-cookie".to_owned())];
        let log = FieldSubscription { fields, secrets: true, ..FieldSubscription::default() };
        let lasting = FieldSubscriptions::default().with_lasting(log);
        assert!(!lasting.has_ended(u64::MAX - 1));
        assert!(
            lasting.keeps(HeadSide::Resp, b"Set-Cookie") && !lasting.keeps(HeadSide::Resp, b"")
        );
        assert!(!lasting.keeps(HeadSide::Beresp, b"set-cookie"));
        assert!(lasting.keeps_any(HeadSide::Resp) && !lasting.keeps_any(HeadSide::Req));

        let both = lasting.with(want(&["Cookie"], false), 0, 10, 1).expect("room for a reader");
        let kept = |side, name: &[u8]| both.kept(side, name, b"a=1").into_owned();
        assert_eq!(kept(HeadSide::Resp, b"Set-Cookie"), b"a=1");
        assert_eq!(kept(HeadSide::Req, b"Cookie"), b"a=***");
        assert!(both.has_ended(10));
        let rest = both.without_expired(10).expect("the log");
        assert!(!rest.keeps(HeadSide::Req, b"cookie") && rest.keeps(HeadSide::Resp, b"set-cookie"));
    }

    #[test]
    fn only_transactions_that_somebody_asks_for_are_kept() {
        let query = Query::parse("resp.status == 404", &crate::format::FieldPositions::default());
        let want = FieldSubscription {
            query: query.ok(),
            text: "x".into(),
            ..FieldSubscription::default()
        };
        let wanted = FieldSubscriptions::default().with(want, 0, 10, 1).expect("room");
        let of = |status| Record { status, ..Record::default() };
        assert!(wanted.matches(&of(404)) && !wanted.matches(&of(200)));
    }
}
