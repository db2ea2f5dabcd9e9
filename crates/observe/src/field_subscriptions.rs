//! Field subscriptions: the header fields that log readers ask for, and a filter of their
//! transactions.
//!
//! A reader subscribes for some seconds and renews its subscription, so that a reader that is gone
//! expires. Without a subscription no header field may be kept.

use std::borrow::Cow;

use crate::heads::HeadSide;
use crate::query::Query;
use crate::record::Record;

/// Fields with credentials. Their values are masked unless a subscription includes secrets.
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

/// The mask of a secret.
const MASK: &[u8] = b"***";

/// The subscription of one reader.
#[derive(Clone, Debug, Default)]
pub struct FieldSubscription {
    /// The names of the fields; empty for all fields.
    pub names: Vec<String>,
    /// The names of the fields with their heads, for a reader of certain heads only.
    pub fields: Vec<(HeadSide, String)>,
    /// The filter of transactions; `None` for all.
    pub query: Option<Query>,
    /// The filter's text, which identifies the subscription when a reader renews it.
    pub text: String,
    /// True if secrets are included.
    pub secrets: bool,
}

impl FieldSubscription {
    fn is_same(&self, other: &Self) -> bool {
        (&self.names, &self.text, self.secrets) == (&other.names, &other.text, other.secrets)
            && self.fields == other.fields
    }

    /// Returns true if the subscription includes the field `name` of the head `side`.
    fn includes(&self, side: HeadSide, name: &[u8]) -> bool {
        let is = |own: &String| own.as_bytes().eq_ignore_ascii_case(name);
        match self.fields.as_slice() {
            [] => self.names.is_empty() || self.names.iter().any(is),
            fields => fields.iter().any(|(own, field)| *own == side && is(field)),
        }
    }
}

/// The end of a subscription that holds as long as the daemon runs.
const LASTING: u64 = u64::MAX;

/// The subscriptions of all readers, each with its end in milliseconds of the monotonic clock.
#[derive(Clone, Debug, Default)]
pub struct FieldSubscriptions {
    subscriptions: Vec<(FieldSubscription, u64)>,
}

impl FieldSubscriptions {
    /// Adds a subscription that belongs to no reader and holds as long as the daemon runs.
    #[must_use]
    pub fn with_lasting(mut self, subscription: FieldSubscription) -> Self {
        self.subscriptions.push((subscription, LASTING));
        self
    }

    /// Adds `subscription` until `until_ms`, and removes the subscriptions that have ended by
    /// `now_ms`. Returns `None` if there would be more than `most` readers.
    pub fn with(
        &self,
        subscription: FieldSubscription,
        now_ms: u64,
        until_ms: u64,
        most: usize,
    ) -> Option<Self> {
        let others = self.subscriptions.iter();
        let others =
            others.filter(|(own, until)| *until > now_ms && !own.is_same(&subscription)).cloned();
        let mut subscriptions: Vec<_> = others.collect();
        subscriptions.push((subscription, until_ms));
        let readers = subscriptions.iter().filter(|(_, until)| *until != LASTING).count();
        (readers <= most).then_some(Self { subscriptions })
    }

    /// Returns true if a subscription has ended at `now_ms`.
    pub fn has_ended(&self, now_ms: u64) -> bool {
        self.subscriptions.iter().any(|(_, until)| *until <= now_ms)
    }

    /// Returns the subscriptions that hold at `now_ms`; `None` if there are none.
    pub fn without_expired(&self, now_ms: u64) -> Option<Self> {
        let subscriptions = self.subscriptions.iter().filter(|(_, until)| *until > now_ms).cloned();
        let subscriptions: Vec<_> = subscriptions.collect();
        (!subscriptions.is_empty()).then_some(Self { subscriptions })
    }

    /// Returns true if a subscription includes the field `name` of the head `side`. First lines
    /// have an empty name.
    pub fn keeps(&self, side: HeadSide, name: &[u8]) -> bool {
        self.subscriptions.iter().any(|(subscription, _)| subscription.includes(side, name))
    }

    /// Returns true if a subscription includes any field of the head `side`.
    pub fn keeps_any(&self, side: HeadSide) -> bool {
        self.subscriptions.iter().any(|(subscription, _)| {
            subscription.fields.is_empty()
                || subscription.fields.iter().any(|(own, _)| *own == side)
        })
    }

    /// Returns true if the filter of a subscription matches `record`.
    pub fn matches(&self, record: &Record<'_>) -> bool {
        let asks = |subscription: &FieldSubscription| {
            subscription.query.as_ref().is_none_or(|query| query.matches(record))
        };
        self.subscriptions.iter().any(|(subscription, _)| asks(subscription))
    }

    /// Returns the part of a field's value that is kept: all of it, or a mask if the field is
    /// secret and no subscription includes secrets.
    pub fn kept<'a>(&self, side: HeadSide, name: &[u8], value: &'a [u8]) -> Cow<'a, [u8]> {
        if self
            .subscriptions
            .iter()
            .any(|(subscription, _)| subscription.secrets && subscription.includes(side, name))
        {
            value.into()
        } else {
            mask(name, value)
        }
    }
}

/// Masks the secrets of a value: names of cookies stay, and of credentials the scheme and the user.
fn mask<'a>(name: &[u8], value: &'a [u8]) -> Cow<'a, [u8]> {
    let Some(secret) = SECRET.iter().find(|own| own.as_bytes().eq_ignore_ascii_case(name)) else {
        return value.into();
    };
    let begin = |end: u8| value.split(|byte| *byte == end).next().unwrap_or_default();
    match *secret {
        "cookie" => {
            let all = value.split(|byte| *byte == b';').map(|pair| {
                let name = pair.split(|byte| *byte == b'=').next().unwrap_or_default();
                // A cookie without a name is a secret as a whole.
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

/// Returns the user in credentials of the scheme Basic (RFC 7617), masked or not.
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

    fn subscription(names: &[&str], secrets: bool) -> FieldSubscription {
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
            let wanted = FieldSubscriptions::default()
                .with(subscription(&[], false), 0, 1, 9)
                .expect("room");
            assert_eq!(kept_of(&wanted), kept, "{name}: {value}");
            let wanted = wanted.with(subscription(&[], true), 0, 1, 9).expect("room");
            assert_eq!(kept_of(&wanted), value);
        }
    }

    #[test]
    fn a_reader_that_renews_counts_once_and_a_reader_that_is_gone_expires() {
        let first = FieldSubscriptions::default()
            .with(subscription(&["Host"], false), 0, 10, 1)
            .expect("room");
        let again = first.with(subscription(&["Host"], false), 5, 15, 1).expect("the same");
        assert!(again.with(subscription(&[], false), 5, 15, 1).is_none());
        assert!(!again.has_ended(14) && again.has_ended(15) && again.without_expired(15).is_none());
        let keeps = |wanted: &FieldSubscriptions, name: &[u8]| wanted.keeps(HeadSide::Req, name);
        assert!(keeps(&again, b"host") && !keeps(&again, b"accept") && !keeps(&again, b""));
        let other = again.with(subscription(&[], false), 15, 20, 1).expect("the other is over");
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

        let both =
            lasting.with(subscription(&["Cookie"], false), 0, 10, 1).expect("room for a reader");
        let kept = |side, name: &[u8]| both.kept(side, name, b"a=1").into_owned();
        assert_eq!(kept(HeadSide::Resp, b"Set-Cookie"), b"a=1");
        assert_eq!(kept(HeadSide::Req, b"Cookie"), b"a=***");
        assert!(both.has_ended(10));
        let rest = both.without_expired(10).expect("the log");
        assert!(!rest.keeps(HeadSide::Req, b"cookie") && rest.keeps(HeadSide::Resp, b"set-cookie"));
    }

    #[test]
    fn only_subscribed_transactions_are_kept() {
        let query = Query::parse("resp.status == 404", &crate::format::FieldPositions::default());
        let subscription = FieldSubscription {
            query: query.ok(),
            text: "x".into(),
            ..FieldSubscription::default()
        };
        let wanted = FieldSubscriptions::default().with(subscription, 0, 10, 1).expect("room");
        let of = |status| Record { status, ..Record::default() };
        assert!(wanted.matches(&of(404)) && !wanted.matches(&of(200)));
    }
}
