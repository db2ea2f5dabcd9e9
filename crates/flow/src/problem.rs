//! Problems: failures of requests, each with its status, limit and sentence for the client, and the
//! pages that sites have for them.
//!
//! The sentence for clients must never name servers or their errors; operators find those in the
//! log.

use std::borrow::Cow;

use base::Limit;
use bytes::Bytes;
use message::Status;

/// Seconds after which a crawler should come again: it has no one who waits for it.
const CRAWLER_RETRY_S: u64 = 120;

/// A failure of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// No site of the configuration has the request's host.
    NoSite,
    /// The TLS connection was negotiated for another host and must not serve this one (RFC 9110
    /// 15.5.20).
    Misdirected,
    /// The site requires a client certificate, and the connection is plain.
    CertificateNeeded,
    /// `only-if-cached`, and no usable response is stored (RFC 9111 5.2.1.7).
    NotCached,
    /// Too many requests wait for one fetch.
    TooManyWaiters,
    /// The fetch that this request waited for failed.
    SharedFetchFailed,
    /// The request passed this proxy too often.
    Loop,
    /// A bug ended the fetch.
    Internal,
    /// The VCL beside the site's settings failed.
    Program,
    /// No file exists at the path, or it is hidden.
    NoFile,
    /// The path exists, but may not be served.
    FileRefused,
    /// A file exists, and the method is not GET or HEAD.
    OnlyReadable,
    /// A condition for carrying out the request fails (RFC 9110 13.1).
    Precondition,
    /// An origin named a file that no setting permits.
    FileNotAllowed,
    /// No descriptor was left to open a file with.
    TooManyFiles,
    /// The client exceeds the site's `rate`.
    TooOften {
        /// 429, or the configured status.
        status: Status,
        /// Seconds after which the next request is permitted.
        after_s: u64,
    },
    /// The client has as many requests in progress as the site's `concurrent` permits.
    TooManyAtOnce {
        /// 429, or the configured status.
        status: Status,
    },
    /// Too many crawlers wait for a fetch.
    TooManyCrawlers(Limit),
    /// The origin has no place for a prefetch.
    Prefetch,
    /// The site requires a password.
    PasswordNeeded,
    /// The client has as many passwords being checked as permitted.
    TooManyPasswords,
    /// Too many passwords wait to be checked, or the checks take too long.
    PasswordsBusy(Limit),
    /// An origin could not be reached, or its response was unusable.
    Origin {
        /// 502, 503 or 504.
        status: Status,
        /// The cause, with the server and the timeout, for operators.
        reason: String,
        /// The limit that was reached, if one was.
        limit: Option<Limit>,
    },
}

impl Problem {
    pub(crate) fn status(&self) -> Status {
        let code = match self {
            Self::NoSite | Self::Misdirected => 421,
            Self::CertificateNeeded => 403,
            Self::NotCached => 504,
            Self::NoFile => 404,
            Self::FileRefused => 403,
            Self::OnlyReadable => 405,
            Self::Precondition => 412,
            Self::TooManyWaiters
            | Self::TooManyFiles
            | Self::PasswordsBusy(_)
            | Self::Prefetch
            | Self::Program => 503,
            Self::SharedFetchFailed | Self::FileNotAllowed => 502,
            Self::Loop => 508,
            Self::PasswordNeeded => 401,
            Self::TooManyPasswords | Self::TooManyCrawlers(_) => 429,
            Self::Internal => 500,
            Self::Origin { status, .. }
            | Self::TooOften { status, .. }
            | Self::TooManyAtOnce { status } => status.code(),
        };
        Status::new(code).unwrap_or(Status::OK)
    }

    pub(crate) fn reason(&self) -> &str {
        match self {
            Self::NoSite => "No site here has this host name.",
            Self::Misdirected => "This connection was not opened for this host name.",
            Self::CertificateNeeded => "This site is only for clients with a certificate.",
            Self::NotCached => "Nothing is stored for this request, and it asked for nothing else.",
            Self::TooManyWaiters => "Too many requests wait for this page (limit: waiters).",
            Self::SharedFetchFailed => "The fetch this request waited for failed.",
            Self::Loop => "The request has passed this proxy too often.",
            Self::Program => "A program of this site failed.",
            Self::Internal => "The fetch ended by a fault of this proxy.",
            Self::NoFile => "Nothing is here.",
            Self::FileRefused => "This is not for reading.",
            Self::OnlyReadable => "This is a file: it can only be read.",
            Self::Precondition => "The file is not the one the request was meant for.",
            Self::FileNotAllowed => "The origin named a file that no setting permits.",
            Self::TooManyFiles => "Too many files are open.",
            Self::TooOften { .. } => "Too many requests came from this client (rate).",
            Self::TooManyAtOnce { .. } => {
                "Too many requests of this client are under way (concurrent)."
            }
            Self::Prefetch => "The server behind this site has no place for a prefetch.",
            Self::TooManyCrawlers(Limit::CrawlerWait) => {
                "Crawlers wait too long for pages of this site (limit: crawler_wait)."
            }
            Self::TooManyCrawlers(_) => {
                "Too many crawlers wait for pages of this site (limit: crawler_queue)."
            }
            Self::PasswordNeeded => "This is only for users with a password.",
            Self::TooManyPasswords => {
                "Too many passwords of this client are being checked (limit: password_checks_client)."
            }
            Self::PasswordsBusy(Limit::PasswordWait) => {
                "Too many passwords are being checked (limit: password_wait)."
            }
            Self::PasswordsBusy(_) => {
                "Too many passwords are being checked (limit: password_queue)."
            }
            Self::Origin { reason, .. } => reason,
        }
    }

    /// Seconds after which the client should retry, for Retry-After.
    pub(crate) fn retry_after_s(&self) -> Option<u64> {
        match self {
            Self::TooOften { after_s, .. } => Some(*after_s),
            Self::TooManyAtOnce { .. } | Self::TooManyPasswords => Some(1),
            Self::TooManyCrawlers(_) => Some(CRAWLER_RETRY_S),
            _ => (self.status().code() == 503).then_some(1),
        }
    }

    /// The sentence for clients. Servers and their errors are for operators only.
    pub(crate) fn shown(&self) -> Cow<'_, str> {
        let (status, limit) = match self {
            Self::Origin { status, limit, .. } => (status.code(), *limit),
            Self::SharedFetchFailed => (502, None),
            _ => return self.reason().into(),
        };
        let said = match status {
            502 => "The server behind this site cannot be reached, or did not answer properly.",
            503 => "The server behind this site takes no more requests at the moment.",
            504 => "The server behind this site took too long to answer.",
            // The client's request is the cause.
            _ => return self.reason().into(),
        };
        match limit {
            None => said.into(),
            Some(limit) => format!("{said} (limit: {})", limit.name()).into(),
        }
    }

    pub(crate) fn limit(&self) -> Option<Limit> {
        match self {
            Self::TooManyWaiters => Some(Limit::Waiters),
            Self::TooManyCrawlers(limit) | Self::PasswordsBusy(limit) => Some(*limit),
            Self::Origin { limit, .. } => *limit,
            _ => None,
        }
    }
}

/// A site's own page for an error status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorPage {
    /// The status that the page is for.
    pub status: Status,
    /// Content-Type.
    pub kind: String,
    /// The bytes of the page.
    pub content: Bytes,
}
