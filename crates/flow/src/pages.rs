//! Pages that are made here: error pages that name their cause, synthetic responses of the policy,
//! and answers to purges, challenges and health checks.

use base::Limit;
use bytes::Bytes;
use message::{Framing, HeaderId, Method, Request, Response, Status, grpc};
use policy::{Notes, Synthetic};

use crate::problem::Problem;
use crate::state::body::ReplyBody;
use crate::state::invalidate::Outcome;
use crate::state::reply::{CacheOutcome, HeadSource, Reply, ReplyOrigin};
use crate::state::request_context::{complete, sign};
use crate::state::site::Site;
use crate::state::trace::{FailureNote, ReplyNotes};
use crate::trust::Readiness;

impl Problem {
    /// Notes the problem for the log.
    pub(crate) fn note(&self, about: &mut ReplyNotes) {
        about.failure = Some(Box::new(self.failure()));
    }

    /// The note of the problem for the log.
    pub(crate) fn failure(&self) -> FailureNote {
        FailureNote { error: self.reason().into(), limit: self.limit() }
    }
}

/// The error page for `problem`.
pub fn problem(request: &Request, problem: Problem) -> Reply {
    numbered(request, problem, None)
}

/// The error page for `problem` with the request's transaction number, on the page and in a field,
/// so that a visitor's complaint leads to the log. A site's own page cannot show the number, hence
/// the field.
pub(crate) fn numbered(request: &Request, problem: Problem, number: Option<u64>) -> Reply {
    if grpc::is_call(request) {
        let mut reply = failed_call(problem.status(), problem.limit(), &problem.shown(), number);
        problem.note(&mut reply.about);
        return reply;
    }
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

/// The failure of a gRPC call: its status is in a head that ends the response ("Trailers-Only").
fn failed_call(status: Status, limit: Option<Limit>, said: &str, number: Option<u64>) -> Reply {
    let mut response = Response::new(Status::OK);
    response.headers.push(HeaderId::ContentType, b"application/grpc");
    // Caches that know nothing of gRPC see a 200.
    response.headers.push(HeaderId::CacheControl, b"no-store");
    let code = grpc::GrpcStatus::of_failure(status, limit) as u8;
    response.headers.push_named(b"grpc-status", code.to_string().as_bytes());
    let mut message = Vec::new();
    grpc::write_message(said, &mut message);
    response.headers.push_named(b"grpc-message", &message);
    if let Some(number) = number {
        response.headers.push_named(b"X-Request-Id", format!("{number:x}").as_bytes());
    }
    let body = ReplyBody::from(Bytes::new());
    let mut reply = Reply::owned(response, body, CacheOutcome::Synthetic);
    reply.made = ReplyOrigin::Here;
    reply
}

/// The refusal `page` in the form that `request` needs: a gRPC call has a status of its own.
pub fn refusal_of(request: &Request, page: Reply) -> Reply {
    if !grpc::is_call(request) {
        return page;
    }
    let failure = page.about.failure;
    let (limit, said) = match &failure {
        Some(failure) => (failure.limit, &*failure.error),
        None => (None, page.status.reason()),
    };
    let mut reply = failed_call(page.status, limit, said, None);
    reply.about.failure = failure;
    reply
}

/// The answer to a request that no user waits for: the status alone.
pub(crate) fn bare(request: &Request, problem: Problem) -> Reply {
    let mut response = Response::new(problem.status());
    response.headers.push(HeaderId::CacheControl, b"no-store");
    let mut reply = own(request, response, Bytes::new());
    problem.note(&mut reply.about);
    reply
}

/// The redirect of a directory's path to the path with a slash, keeping the query. Leading slashes
/// become one: `//name` would lead to another host, and browsers read `/\` likewise.
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
    let mut reply = error_page(request, response, "Here is a directory.");
    if let HeadSource::Owned(head) = &mut reply.head {
        // Directories come and go, so the redirect is not stored.
        head.headers.set(HeaderId::CacheControl, b"no-store");
    }
    reply
}

/// The page for a request that could not be parsed. The connection ends after it.
pub fn refused(status: Status, reason: &str) -> Reply {
    let mut reply = error_page(&Request::new(), Response::new(status), reason);
    reply.close = true;
    reply.about.failure = Some(Box::new(FailureNote { error: reason.into(), limit: None }));
    reply
}

fn error_page(request: &Request, response: Response, reason: &str) -> Reply {
    page(request, response, reason, None)
}

/// Returns true for a redirect that clients may store (RFC 9110 15.4.2 and 15.4.9).
fn is_for_good(response: &Response) -> bool {
    matches!(response.status.code(), 301 | 308) && response.headers.contains(HeaderId::Location)
}

/// A page of one sentence, and perhaps a line below it.
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
    if !is_for_good(&response) {
        response.headers.push(HeaderId::CacheControl, b"no-store");
    }
    let mut reply = own(request, response, Bytes::from(body));
    reply.made = ReplyOrigin::Plain;
    reply
}

/// The reply from a policy's synthetic response.
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
    // A TRACE has no content (RFC 9110 9.3.8); content that comes anyway may be a smuggled request.
    let is_odd = request.method == Method::Trace && request.framing != Framing::None;
    reply.close = synthetic.close || is_odd;
    reply
}

/// The answer to a purge, with the number of selected responses in a field and in the body.
pub(crate) fn purged(request: &Request, status: Status, outcome: Outcome) -> Reply {
    let mut response = Response::new(status);
    response.headers.push_named(b"X-Purged", outcome.objects.to_string().as_bytes());
    let pending = if outcome.pending { ",\"pending\":true" } else { "" };
    let body = format!("{{\"status\":\"ok\",\"purged\":{}{pending}}}\n", outcome.objects);
    json(request, response, body)
}

/// The answer to a listing of stored responses.
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
    (reply.served, reply.made) = (CacheOutcome::Purge, ReplyOrigin::No);
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

/// The answer to a purge that is refused.
pub(crate) fn purge_refused(request: &Request, status: Status, reason: &str) -> Reply {
    let mut response = Response::new(status);
    if status.code() == 405 {
        response.headers.push(HeaderId::Allow, policy::ALLOW);
    }
    let mut reply = error_page(request, response, reason);
    (reply.served, reply.made) = (CacheOutcome::Purge, ReplyOrigin::No);
    reply.about.failure = Some(Box::new(FailureNote { error: reason.into(), limit: None }));
    reply
}

/// The answer to a challenge of a certificate authority (RFC 8555 8.3).
pub(crate) fn challenge(request: &Request, answer: Bytes) -> Reply {
    let mut response = Response::new(Status::OK);
    response.headers.push(HeaderId::ContentType, b"application/octet-stream");
    response.headers.push(HeaderId::CacheControl, b"no-store");
    own(request, response, answer)
}

/// The answer to a health check.
pub(crate) fn health(request: &Request, readiness: Readiness) -> Reply {
    let is_ready = readiness.is_ready();
    let status = if is_ready { Status::OK } else { Status::new(503).unwrap_or(Status::OK) };
    let mut response = Response::new(status);
    response.headers.push(HeaderId::ContentType, b"text/plain; charset=utf-8");
    response.headers.push(HeaderId::CacheControl, b"no-store");
    let text = if is_ready { "ok\n" } else { readiness.why() };
    own(request, response, Bytes::from_static(text.as_bytes()))
}

/// The answer to an OPTIONS that may not be forwarded (RFC 9110 7.6.2 and 9.3.7).
pub(crate) fn options(request: &Request) -> Reply {
    let mut response = Response::new(Status::NO_CONTENT);
    response.headers.push(HeaderId::Allow, policy::ALLOW);
    own(request, response, Bytes::new())
}

fn own(request: &Request, response: Response, body: Bytes) -> Reply {
    let body = ReplyBody::from(body).answering(&request.method, response.status);
    let mut reply = Reply::owned(response, body, CacheOutcome::Synthetic);
    reply.made = ReplyOrigin::Here;
    reply
}

/// The page that refuses a request of `site` by the rule of this number.
pub(crate) fn refusal(site: &Site, request: &Request, problem: Problem, rule: u32) -> Reply {
    let mut reply = self::problem(request, problem);
    // The route is not known yet.
    complete(&mut reply, site, request, &Notes::default());
    sign(&mut reply, site, &Notes { rule, ..Notes::default() }, request.scheme);
    reply
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::body::BodyPart;

    #[test]
    fn reasons_are_escaped_and_errors_never_stored_by_others() {
        let reply = refused(Status::new(400).expect("a status"), "<script>");
        let Some(BodyPart::Bytes(body)) = reply.body.part() else { panic!("a body") };
        assert!(!body.windows(8).any(|w| w == b"<script>"));
        let crate::state::reply::HeadSource::Owned(head) = &reply.head else {
            panic!("an own head")
        };
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
