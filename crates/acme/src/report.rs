//! The report: events and failures for the operator's log. A text of the authority must never reach
//! the log unescaped.

use std::fmt;
use std::io;
use std::path::PathBuf;

use base::limits::{self, Limit};

/// An event for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// An account was created, which agrees to the authority's terms.
    Account {
        /// The authority's directory.
        directory: String,
    },
    /// An order has begun.
    Ordering {
        /// The name.
        name: String,
    },
    /// A certificate was obtained and stored.
    Obtained {
        /// Its name.
        name: String,
        /// The end of its validity, in seconds since 1970.
        not_after: u64,
    },
    /// A certificate that another daemon ordered was stored.
    Taken {
        /// Its name.
        name: String,
        /// The end of its validity, in seconds since 1970.
        not_after: u64,
    },
    /// A name waits for its certificate.
    Waiting {
        /// The name.
        name: String,
        /// The reason.
        why: String,
    },
    /// Some daemons may not answer the challenge.
    NotAll {
        /// The name.
        name: String,
        /// The reason.
        why: String,
    },
    /// An order failed.
    Failed {
        /// The name.
        name: String,
        /// The reason.
        why: OrderFailure,
        /// The time of the next attempt, in milliseconds from now.
        again_ms: u64,
    },
    /// A file was unusable and has been set aside.
    Aside {
        /// Its new path.
        path: PathBuf,
        /// The reason.
        why: String,
    },
}

/// The reason why an order failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OrderFailure {
    /// The authority could not be reached.
    Unreachable(String),
    /// The authority rejected the order: its problem type (RFC 8555 6.7) without the prefix, and
    /// its text.
    Refused {
        /// The type, such as `rateLimited`.
        kind: String,
        /// The text.
        detail: String,
    },
    /// This limit was exceeded.
    Limit(Limit),
    /// The certificate does not fit the order.
    NotOrdered(String),
    /// The storage cannot be used.
    Storage(String),
    /// Anything else.
    Other(String),
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Account { directory } => {
                write!(f, "acme: new account with {directory}; its terms of service are agreed to")
            }
            Self::Ordering { name } => write!(f, "acme: ordering a certificate for {name}"),
            Self::Obtained { name, not_after } => {
                let date = date(*not_after);
                write!(f, "acme: certificate for {name} obtained, valid until {date}")
            }
            Self::Taken { name, not_after } => {
                let date = date(*not_after);
                write!(
                    f,
                    "acme: certificate for {name} copied from the cluster, valid until {date}"
                )
            }
            Self::Waiting { name, why } => write!(f, "acme: {name} waits for a certificate: {why}"),
            Self::NotAll { name, why } => {
                write!(f, "acme: not every node answers the challenge for {name}: {why}")
            }
            Self::Failed { name, why, again_ms } => {
                let again = base::units::DurationMs(again_ms.div_ceil(1000) * 1000);
                match again_ms {
                    0 => write!(f, "acme: no certificate for {name}: {why}; next attempt at once"),
                    _ => {
                        write!(f, "acme: no certificate for {name}: {why}; next attempt in {again}")
                    }
                }
            }
            Self::Aside { path, why } => {
                write!(f, "acme: {why}; it was put aside as {}", path.display())
            }
        }
    }
}

impl fmt::Display for OrderFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable(why) => write!(f, "the authority cannot be reached: {why}"),
            Self::Refused { kind, detail } => write!(f, "the authority refuses ({kind}): {detail}"),
            Self::Limit(limit) => write!(f, "the order was ended (limit: {})", name_of(*limit)),
            Self::NotOrdered(why) => write!(f, "the certificate cannot be used: {why}"),
            Self::Storage(why) => write!(f, "storage: {why}"),
            Self::Other(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for OrderFailure {}

impl From<instant_acme::Error> for OrderFailure {
    fn from(error: instant_acme::Error) -> Self {
        match error {
            instant_acme::Error::Api(problem) => Self::of_problem(&problem),
            instant_acme::Error::Timeout(_) => Self::Limit(Limit::AcmeOrderTimeout),
            instant_acme::Error::Other(error) => match error.downcast::<io::Error>() {
                Ok(error) => match error.get_ref().and_then(|inner| inner.downcast_ref()) {
                    Some(LimitError(limit)) => Self::Limit(*limit),
                    None => Self::Unreachable(error.to_string()),
                },
                Err(error) => Self::Other(error.to_string()),
            },
            error => Self::Other(error.to_string()),
        }
    }
}

/// The error of an exchange that a limit ended.
#[derive(Debug)]
pub(crate) struct LimitError(pub(crate) Limit);

impl fmt::Display for LimitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        OrderFailure::Limit(self.0).fmt(f)
    }
}

impl std::error::Error for LimitError {}

impl LimitError {
    /// The limit that ended an exchange, if any.
    pub(crate) fn of(error: &io::Error) -> Option<Limit> {
        error.get_ref().and_then(|inner| inner.downcast_ref()).map(|Self(limit)| *limit)
    }
}

impl From<LimitError> for io::Error {
    fn from(reached: LimitError) -> Self {
        Self::other(reached)
    }
}

fn date(secs: u64) -> String {
    let date = message::date::HttpDate::new(secs);
    String::from_utf8_lossy(date.as_bytes()).into_owned()
}

fn name_of(limit: Limit) -> &'static str {
    limits::TABLE.iter().find(|spec| spec.limit == limit).map_or("unknown", |spec| spec.name)
}

impl OrderFailure {
    /// The failure in the authority's `problem`.
    pub(crate) fn of_problem(problem: &instant_acme::Problem) -> Self {
        let kind = problem.r#type.as_deref().unwrap_or("no kind");
        let kind = clean(kind.strip_prefix("urn:ietf:params:acme:error:").unwrap_or(kind));
        let mut detail = clean(problem.detail.as_deref().unwrap_or("without a reason"));
        for sub in problem.subproblems.iter().filter_map(|sub| sub.detail.as_deref()).take(4) {
            detail.push_str("; ");
            detail.push_str(&clean(sub));
        }
        Self::Refused { kind, detail }
    }

    /// Returns true if the authority rejected the order with this problem type.
    pub(crate) fn is(&self, wanted: &str) -> bool {
        matches!(self, Self::Refused { kind, .. } if kind == wanted)
    }
}

/// A foreign text for one line of a log: without control characters, and shortened.
fn clean(text: &str) -> String {
    const MOST: usize = 300;
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(MOST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_authoritys_text_stays_on_one_line() {
        let text = r#"{"type": "urn:ietf:params:acme:error:dns", "detail": "a\nb\u001b[31m"}"#;
        let problem: instant_acme::Problem = serde_json::from_str(text).expect("a problem");
        let failure = OrderFailure::of_problem(&problem);
        assert_eq!(failure.to_string(), "the authority refuses (dns): a b [31m");
        assert!(failure.is("dns") && !failure.is("rateLimited"));
    }

    #[test]
    fn each_event_is_one_line() {
        let name = || "a.test".to_owned();
        let why = OrderFailure::Limit(Limit::AcmeOrderTimeout);
        let failed = Event::Failed { name: name(), why, again_ms: 59_100 };
        for (event, text) in [
            (
                Event::Obtained { name: name(), not_after: 0 },
                "acme: certificate for a.test obtained, valid until Thu, 01 Jan 1970 00:00:00 GMT",
            ),
            (
                Event::Taken { name: name(), not_after: 0 },
                "acme: certificate for a.test copied from the cluster, valid until \
                 Thu, 01 Jan 1970 00:00:00 GMT",
            ),
            (
                failed,
                "acme: no certificate for a.test: the order was ended (limit: acme_order_timeout); \
                 next attempt in 1m",
            ),
        ] {
            assert_eq!(event.to_string(), text);
        }
    }
}
