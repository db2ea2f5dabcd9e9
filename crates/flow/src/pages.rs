//! Replies of our own: error pages that name what fired, and what policy synthesises.

use std::borrow::Cow;

use base::Limit;
use bytes::Bytes;
use message::{Framing, HeaderId, Method, Request, Response, Status};
use policy::Synthetic;

use crate::body::ReplyBody;
use crate::invalidate::Outcome;
use crate::reply::{Reply, Served};
use crate::trace::{About, Trouble};
use crate::trust::Readiness;

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

    fn reason(&self) -> &str {
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
    fn retry_after_s(&self) -> Option<u64> {
        match self {
            Self::TooOften { after_s, .. } => Some(*after_s),
            Self::TooManyAtOnce { .. } | Self::TooManyPasswords => Some(1),
            _ => (self.status().code() == 503).then_some(1),
        }
    }

    /// The sentence that clients get. What servers there are and why they fail is for operators.
    fn shown(&self) -> Cow<'_, str> {
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

    fn limit(&self) -> Option<Limit> {
        match self {
            Self::TooManyWaiters => Some(Limit::Waiters),
            Self::PasswordsBusy(limit) => Some(*limit),
            Self::Origin { limit, .. } => *limit,
            _ => None,
        }
    }

    /// Notes the problem for the log.
    pub(crate) fn note(&self, about: &mut About) {
        about.trouble = Some(Box::new(self.trouble()));
    }

    /// It, as the log tells of it.
    pub(crate) fn trouble(&self) -> Trouble {
        Trouble { error: self.reason().into(), limit: self.limit() }
    }
}

/// The page for `problem`.
pub fn problem(request: &Request, problem: Problem) -> Reply {
    numbered(request, problem, None)
}

/// The same, with the number that the request has in the log, so that a visitor who complains can
/// say which it was: on the page and in a field, since a site's own page cannot show it.
pub(crate) fn numbered(request: &Request, problem: Problem, number: Option<u64>) -> Reply {
    let status = problem.status();
    let mut response = Response::new(status);
    if let Some(after_s) = problem.retry_after_s() {
        response.headers.push(HeaderId::RetryAfter, after_s.to_string().as_bytes());
    }
    if problem == Problem::OnlyReadable {
        response.headers.push(HeaderId::Allow, b"GET, HEAD");
    }
    let number = number.map(|number| {
        response.headers.push_named(b"X-Request-Id", format!("{number:x}").as_bytes());
        format!("Request {number:x}")
    });
    let mut reply = page(request, response, &problem.shown(), number.as_deref());
    problem.note(&mut reply.about);
    reply
}

/// The redirect of a directory's path to the same with a slash behind it, the query kept. It is a
/// path alone, and slashes before it become one: `//name` would lead to another host, and browsers
/// read `/\` like it.
pub(crate) fn with_slash(request: &Request) -> Reply {
    let path = request.path();
    let begin = path.iter().position(|b| !matches!(b, b'/' | b'\\')).unwrap_or(path.len());
    let mut location = vec![b'/'];
    location.extend_from_slice(&path[begin..]);
    location.push(b'/');
    if let Some(query) = request.query() {
        location.push(b'?');
        location.extend_from_slice(query);
    }
    let mut response = Response::new(Status::MOVED_PERMANENTLY);
    response.headers.push(HeaderId::Location, &location);
    error_page(request, response, "Here is a directory.")
}

/// The page for a request that could not be read; the connection ends after it.
pub fn refused(status: Status, reason: &str) -> Reply {
    let mut reply = error_page(&Request::new(), Response::new(status), reason);
    reply.close = true;
    reply.about.trouble = Some(Box::new(Trouble { error: reason.into(), limit: None }));
    reply
}

fn error_page(request: &Request, response: Response, reason: &str) -> Reply {
    page(request, response, reason, None)
}

/// A page of one sentence, and a line below it.
fn page(request: &Request, mut response: Response, reason: &str, below: Option<&str>) -> Reply {
    let status = response.status;
    let below = below.map(|text| format!("<p>{}</p>\n", base::html::escape(text)));
    let body = format!(
        "<!doctype html><html lang=\"en\"><head><title>{status} {phrase}</title>\n{look}</head>\n\
         <body><h1>{status} {phrase}</h1>\n<p>{reason}</p>\n{below}</body></html>\n",
        look = base::html::LOOK,
        phrase = status.reason(),
        reason = base::html::escape(reason),
        below = below.unwrap_or_default(),
    );
    response.headers.push(HeaderId::ContentType, b"text/html; charset=utf-8");
    response.headers.push(HeaderId::CacheControl, b"no-store");
    let mut reply = own(request, response, Bytes::from(body));
    reply.plain = true;
    reply
}

/// Builds a reply from a response that policy made up.
pub(crate) fn synthetic(request: &Request, synthetic: &Synthetic) -> Reply {
    let mut response = Response::new(synthetic.status);
    for (name, value) in &synthetic.fields {
        response.headers.push_named(name, value);
    }
    let mut reply = if synthetic.body.is_empty() && !synthetic.status.has_no_body() {
        error_page(request, response, synthetic.status.reason())
    } else {
        own(request, response, Bytes::copy_from_slice(&synthetic.body))
    };
    // A TRACE has no content (RFC 9110 9.3.8): what one brings may be meant as another request.
    let is_odd = request.method == Method::Trace && request.framing != Framing::None;
    reply.close = synthetic.close || is_odd;
    reply
}

/// The answer to a purge, with how many responses it hit in a field and in its body.
pub(crate) fn purged(request: &Request, status: Status, outcome: Outcome) -> Reply {
    let mut response = Response::new(status);
    response.headers.push_named(b"X-Purged", outcome.objects.to_string().as_bytes());
    let pending = if outcome.pending { ",\"pending\":true" } else { "" };
    let body = format!("{{\"status\":\"ok\",\"purged\":{}{pending}}}\n", outcome.objects);
    json(request, response, body)
}

/// The answer to a question for what is stored.
pub(crate) fn listed(request: &Request, names: &[String]) -> Reply {
    let names: Vec<_> = names.iter().map(|name| format!("\"{}\"", json_text(name))).collect();
    json(request, Response::new(Status::OK), format!("[{}]\n", names.join(",\n")))
}

fn json(request: &Request, mut response: Response, body: String) -> Reply {
    if !response.status.has_no_body() {
        response.headers.push(HeaderId::ContentType, b"application/json");
    }
    response.headers.push(HeaderId::CacheControl, b"no-store");
    let mut reply = own(request, response, Bytes::from(body));
    reply.served = Served::Purge;
    reply
}

fn json_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out
}

/// The answer to a purge that is not done.
pub(crate) fn purge_refused(request: &Request, status: Status, reason: &str) -> Reply {
    let mut response = Response::new(status);
    if status.code() == 405 {
        response.headers.push(HeaderId::Allow, policy::ALLOW);
    }
    let mut reply = error_page(request, response, reason);
    (reply.served, reply.plain) = (Served::Purge, false);
    reply.about.trouble = Some(Box::new(Trouble { error: reason.into(), limit: None }));
    reply
}

/// The answer to a certificate authority (RFC 8555 8.3).
pub(crate) fn challenge(request: &Request, answer: Bytes) -> Reply {
    let mut response = Response::new(Status::OK);
    response.headers.push(HeaderId::ContentType, b"application/octet-stream");
    response.headers.push(HeaderId::CacheControl, b"no-store");
    own(request, response, answer)
}

/// The answer to a balancer that asks whether this server answers.
pub(crate) fn health(request: &Request, readiness: Readiness) -> Reply {
    let is_ready = readiness.is_ready();
    let status = if is_ready { Status::OK } else { Status::new(503).unwrap_or(Status::OK) };
    let mut response = Response::new(status);
    response.headers.push(HeaderId::ContentType, b"text/plain; charset=utf-8");
    response.headers.push(HeaderId::CacheControl, b"no-store");
    let text = if is_ready { "ok\n" } else { readiness.why() };
    own(request, response, Bytes::from_static(text.as_bytes()))
}

/// The answer to OPTIONS where the request may go no further (RFC 9110 7.6.2 and 9.3.7).
pub(crate) fn options(request: &Request) -> Reply {
    let mut response = Response::new(Status::NO_CONTENT);
    response.headers.push(HeaderId::Allow, policy::ALLOW);
    own(request, response, Bytes::new())
}

fn own(request: &Request, response: Response, body: Bytes) -> Reply {
    let body = ReplyBody::from(body).answering(&request.method, response.status);
    Reply::owned(response, body, Served::Synthetic)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::Part;

    #[test]
    fn reasons_are_escaped_and_errors_never_stored_by_others() {
        let reply = refused(Status::new(400).expect("a status"), "<script>");
        let Some(Part::Bytes(body)) = reply.body.part() else { panic!("a body") };
        assert!(!body.windows(8).any(|w| w == b"<script>"));
        let crate::reply::Head::Owned(head) = &reply.head else { panic!("an own head") };
        assert_eq!(head.headers.value(HeaderId::CacheControl), Some(&b"no-store"[..]));
        assert!(reply.close);
    }

    #[test]
    fn head_gets_the_length_only() {
        let mut request = Request::new();
        request.method = Method::Head;
        let reply = problem(&request, Problem::NoSite);
        assert!(matches!(reply.body, ReplyBody::Head(Some(n)) if n > 0));
    }
}
