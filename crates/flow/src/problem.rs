//! Failures of requests: what each is for the client, which limit it is of, and the pages that
//! sites have for them.

use std::borrow::Cow;

use base::Limit;
use bytes::Bytes;
use message::Status;

/// A failure, as the client is told about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// No site of this configuration has the request's host.
    NoSite,
    /// The connection was agreed on for another host, and must not serve this one (RFC 9110
    /// 15.5.20).
    Misdirected,
    /// The site lets in only clients with a certificate, and the connection is plain.
    CertificateNeeded,
    /// `only-if-cached`, and nothing usable is stored (RFC 9111 5.2.1.7).
    NotCached,
    /// Too many requests wait for one fetch already.
    TooManyWaiters,
    /// The fetch this request waited for failed.
    SharedFetchFailed,
    /// The request passed this proxy too often.
    Loop,
    /// A bug ended the fetch.
    Internal,
    /// No file is there, or none that is shown.
    NoFile,
    /// Something is there that is for nobody.
    FileRefused,
    /// A file is there, and files can only be read.
    OnlyReadable,
    /// A condition for the request to be carried out does not hold (RFC 9110 13.1).
    Precondition,
    /// An origin named a file that no setting lets it name.
    FileNotAllowed,
    /// No descriptor was left to open a file with.
    TooManyFiles,
    /// The client comes more often than the site's `rate` allows.
    TooOften {
        /// 429, or what the site says instead.
        status: Status,
        /// Seconds after which the next request would be let in.
        after_s: u64,
    },
    /// As many requests of the client are under way as the site's `concurrent` allows.
    TooManyAtOnce {
        /// 429, or what the site says instead.
        status: Status,
    },
    /// The site is only for users with a password.
    PasswordNeeded,
    /// As many passwords of the client are being checked as may be.
    TooManyPasswords,
    /// Too many passwords wait to be checked, or they take too long.
    PasswordsBusy(Limit),
    /// An origin could not be asked or did not answer properly.
    Origin {
        /// 502, 503 or 504.
        status: Status,
        /// The cause, with the server and the timeout.
        reason: String,
        /// The limit that was reached, if it was one.
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
            Self::TooManyWaiters | Self::TooManyFiles | Self::PasswordsBusy(_) => 503,
            Self::SharedFetchFailed | Self::FileNotAllowed => 502,
            Self::Loop => 508,
            Self::PasswordNeeded => 401,
            Self::TooManyPasswords => 429,
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
            Self::Internal => "The fetch ended by a fault of this proxy.",
            Self::NoFile => "Nothing is here.",
            Self::FileRefused => "This is not for reading.",
            Self::OnlyReadable => "This is a file: it can only be read.",
            Self::Precondition => "The file is not the one the request was meant for.",
            Self::FileNotAllowed => "The origin named a file that no setting lets it name.",
            Self::TooManyFiles => "Too many files are open.",
            Self::TooOften { .. } => "Too many requests came from this client (rate).",
            Self::TooManyAtOnce { .. } => {
                "Too many requests of this client are under way (concurrent)."
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

    /// Seconds after which it is worth while to ask again.
    pub(crate) fn retry_after_s(&self) -> Option<u64> {
        match self {
            Self::TooOften { after_s, .. } => Some(*after_s),
            Self::TooManyAtOnce { .. } | Self::TooManyPasswords => Some(1),
            _ => (self.status().code() == 503).then_some(1),
        }
    }

    /// The sentence that clients get. What servers there are and why they fail is for operators.
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
            // It is the request's own fault.
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
            Self::PasswordsBusy(limit) => Some(*limit),
            Self::Origin { limit, .. } => *limit,
            _ => None,
        }
    }
}

/// The content of a file that is the page of an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorPage {
    /// The error's status.
    pub status: Status,
    /// Content-Type.
    pub kind: String,
    /// The page.
    pub content: Bytes,
}
