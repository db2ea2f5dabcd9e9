//! HTTP/1: serves one request: authorises it, looks it up in the table of routes, and writes the
//! response's head.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use base::{Counter, Limit};
use http::header::{self, HeaderName, HeaderValue};
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::{Body as _, Incoming};
use rt::time::timeout;
use serde_json::Value;

use crate::api::{AdminPeer, AdminRequest, AdminResponse, Api, Caller};
use crate::audit::{Audit, Change};
use crate::body::OutgoingBody;
use crate::connection_limiter::ConnectionPermit;
use crate::cross_site_checks::{self, HostAllowlist, Type};
use crate::openapi;
use crate::role::Role;
use crate::routes::{Operation, RequestContent, Route, RouteAccess, RouteMethod, RouteSet};
use crate::tokens::{TokenVerdict, Tokens};

/// Bytes of a request's body, and of a response's, in the audit log.
const AUDITED_BYTES: usize = 2_000;

/// Fields of every response, for browsers: no cache and no other site may get it, and only files of
/// this listener run in it.
const FIELDS: [(HeaderName, &str); 6] = [
    (header::CACHE_CONTROL, "no-store"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
];

/// The content security policy of responses.
const POLICY: &str = "default-src 'self'; script-src 'self'; style-src 'self'; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'";

/// The content security policy of the documentation: its pages have scripts and styles within.
const DOCUMENTATION_POLICY: &str = "default-src 'self'; script-src 'self' 'unsafe-inline'; \
                                    style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
                                    base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// State that all connections of a listener share.
pub(crate) struct ListenerState<A> {
    pub(crate) api: Arc<A>,
    pub(crate) names: HostAllowlist,
    /// `None` if the listener has no addresses.
    pub(crate) tokens: Option<Arc<Tokens>>,
    pub(crate) audit: Audit,
    /// True if clients need no token for `/metrics`.
    pub(crate) open_metrics: bool,
    /// The routes that the listener serves.
    pub(crate) part: RouteSet,
}

/// The reason for a refusal, with its status.
struct Refusal {
    status: StatusCode,
    why: String,
    /// A field that the status requires.
    field: Option<(HeaderName, HeaderValue)>,
}

impl Refusal {
    fn new(status: StatusCode, why: impl Into<String>) -> Self {
        Self { status, why: why.into(), field: None }
    }

    fn with(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.field = Some((name, value));
        self
    }
}

impl<A: Api> ListenerState<A> {
    /// Serves one request.
    pub(crate) async fn answer(
        self: Arc<Self>,
        peer: AdminPeer,
        request: Request<Incoming>,
    ) -> Result<Response<OutgoingBody>, Infallible> {
        self.api.count(Counter::AdminRequests);
        let (head, body) = request.into_parts();
        Ok(match self.ask(peer, &head, body).await {
            Ok((operation, answer)) => response(answer, policy(operation)),
            Err(refusal) => {
                self.api.count(Counter::AdminRefused);
                let refused = AdminResponse::refusal(refusal.status, &refusal.why);
                let mut refused = response(refused, POLICY);
                refused.headers_mut().extend(refusal.field);
                refused
            }
        })
    }

    async fn ask(
        self: &Arc<Self>,
        peer: AdminPeer,
        head: &Parts,
        body: Incoming,
    ) -> Result<(Operation, AdminResponse), Refusal> {
        if !self.names.admit(head) {
            let why = "this listener does not accept that host: see `[admin] hosts`";
            return Err(Refusal::new(StatusCode::MISDIRECTED_REQUEST, why));
        }
        let route = find(self.part, head);
        let role = match &route {
            Ok(route) if self.is_open(route) => None,
            // A health port has no secret paths, so that a missing one is 404 for every caller.
            Err(_) if self.part == RouteSet::Health => None,
            _ => Some(self.role_of(peer, head)?),
        };
        let route = route?;
        let caller = Caller { role, peer };
        let asked = match self.admit(route, caller, head, body).await {
            Ok(asked) => asked,
            Err(refusal) => {
                let why = Value::from(refusal.why.as_str());
                self.note(route, caller, refusal.status, Value::Null, why).await;
                return Err(refusal);
            }
        };
        if route.operation == Operation::Describe {
            return Ok((route.operation, AdminResponse::json(&openapi::document())));
        }
        if !route.changes {
            return Ok((route.operation, self.api.answer(route.operation, asked).await));
        }
        // A client that disconnects meanwhile does not stop the change or its log line.
        let state = Arc::clone(self);
        let changed = rt::spawn(async move {
            let wanted = shortened(&hidden(&asked.body, route.hides));
            let answer = state.api.answer(route.operation, asked).await;
            state.note(route, caller, answer.status, wanted, excerpt(&answer)).await;
            (route.operation, answer)
        });
        changed.await.map_err(|error| {
            base::tell!(Error, "larder: admin: {} {}: {error}", route.verb.token(), route.path);
            let why = "internal error: see the daemon's log";
            Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, why)
        })
    }

    /// Logs a change and its outcome.
    async fn note(
        &self,
        route: &Route,
        caller: Caller,
        status: StatusCode,
        asked: Value,
        answer: Value,
    ) {
        if !route.changes {
            return;
        }
        let who = match caller.role {
            Some(role) => format!("{}, role {}", caller.peer, role.word()),
            None => caller.peer.to_string(),
        };
        let what = format!("{} {}", route.verb.token(), route.path);
        let status = status.as_u16();
        self.audit.note(Change { who, what, asked, status, answer }).await;
    }

    /// The limit of connections.
    pub(crate) fn connections(&self) -> u64 {
        self.api.limits().value(self.part.connections())
    }

    fn is_open(&self, route: &Route) -> bool {
        match route.needs {
            RouteAccess::Public => true,
            RouteAccess::OpenMetrics(_) => self.open_metrics,
            RouteAccess::Role(_) => false,
        }
    }

    /// Returns the role that the caller's socket or token proves, or a refusal.
    fn role_of(&self, peer: AdminPeer, head: &Parts) -> Result<Role, Refusal> {
        let address = match peer {
            // Access to the socket means every right.
            AdminPeer::Local { .. } => return Ok(Role::Config),
            AdminPeer::Address(address) => address,
        };
        let refused = |why: &str, challenge: &'static str| {
            let refusal = Refusal::new(StatusCode::UNAUTHORIZED, why);
            Err(refusal.with(header::WWW_AUTHENTICATE, HeaderValue::from_static(challenge)))
        };
        let Some(token) = cross_site_checks::bearer(&head.headers) else {
            let why = match self.part {
                RouteSet::Metrics => "a token is required: `Authorization: Bearer TOKEN`",
                _ => "a token of `[admin] tokens` is required: `Authorization: Bearer TOKEN`",
            };
            return refused(why, "Bearer realm=\"larder\"");
        };
        let wrong_max = self.api.limits().admin_wrong_tokens;
        let worth =
            self.tokens.as_ref().map(|tokens| tokens.verify_token(token, address, wrong_max));
        match worth.unwrap_or(TokenVerdict::Wrong) {
            TokenVerdict::Role(role) => {
                if let Some(permit) = head.extensions.get::<Arc<ConnectionPermit>>() {
                    // At the limit of authenticated connections it may still be evicted.
                    _ = permit.mark_authenticated(self.connections());
                }
                Ok(role)
            }
            TokenVerdict::Wrong => {
                refused("the token is wrong", "Bearer realm=\"larder\", error=\"invalid_token\"")
            }
            TokenVerdict::Unchecked => {
                self.api.count_limit(Limit::AdminWrongTokens);
                let why = "too many wrong tokens from this address: wait a second";
                let refusal = Refusal::new(StatusCode::TOO_MANY_REQUESTS, why);
                Err(refusal.with(header::RETRY_AFTER, HeaderValue::from_static("1")))
            }
        }
    }

    /// Checks that the caller may use the route, and reads parameters and body.
    async fn admit(
        &self,
        route: &Route,
        caller: Caller,
        head: &Parts,
        body: Incoming,
    ) -> Result<AdminRequest, Refusal> {
        if let (RouteAccess::Role(needed) | RouteAccess::OpenMetrics(needed), Some(role)) =
            (route.needs, caller.role)
            && role < needed
        {
            let (needed, own) = (needed.word(), role.word());
            let why = format!("this needs the role `{needed}`, and the token is for `{own}`");
            return Err(Refusal::new(StatusCode::FORBIDDEN, why));
        }
        if route.verb == RouteMethod::Post && cross_site_checks::is_cross_site(head) {
            let why = "a page of another site sent this request";
            return Err(Refusal::new(StatusCode::FORBIDDEN, why));
        }
        let query = query(route, head)?;
        let body = self.body(route, head, body).await?;
        Ok(AdminRequest { caller, path: head.uri.path().to_owned(), query, body })
    }

    /// The body, if the route takes one.
    async fn body(&self, route: &Route, head: &Parts, body: Incoming) -> Result<Value, Refusal> {
        if self.part != RouteSet::Whole {
            // Here a body is not read, only rejected.
            let none = || Refusal::new(StatusCode::BAD_REQUEST, "this takes no body");
            return body.is_end_stream().then_some(Value::Null).ok_or_else(none);
        }
        let said = cross_site_checks::type_of(&head.headers);
        if said == Type::Other {
            let why = "a body needs `Content-Type: application/json`";
            return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, why));
        }
        let limits = self.api.limits();
        let most = usize::try_from(limits.admin_body_bytes).unwrap_or(usize::MAX);
        let too_large = || {
            self.api.count_limit(Limit::AdminBodyBytes);
            let why = "the body is larger than `admin_body_bytes` allows";
            Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, why)
        };
        if body.size_hint().lower() > limits.admin_body_bytes {
            return Err(too_large());
        }
        let whole = Limited::new(body, most).collect();
        let bytes = match timeout(Duration::from_millis(limits.admin_timeout), whole).await {
            Ok(Ok(whole)) => whole.to_bytes(),
            Ok(Err(error)) if error.is::<LengthLimitError>() => return Err(too_large()),
            Ok(Err(error)) => return Err(Refusal::new(StatusCode::BAD_REQUEST, error.to_string())),
            Err(_) => {
                self.api.count_limit(Limit::AdminTimeout);
                let why = "the body took longer than `admin_timeout`";
                let refusal = Refusal::new(StatusCode::REQUEST_TIMEOUT, why);
                return Err(refusal.with(header::CONNECTION, HeaderValue::from_static("close")));
            }
        };
        match (route.takes, bytes.is_empty()) {
            (RequestContent::Empty | RequestContent::MaybeJson(_), true) => {
                return Ok(Value::Null);
            }
            (RequestContent::Empty, false) => {
                return Err(Refusal::new(StatusCode::BAD_REQUEST, "this takes no body"));
            }
            (RequestContent::Json(_), true) => {
                return Err(Refusal::new(StatusCode::BAD_REQUEST, "this takes a body of JSON"));
            }
            (RequestContent::Json(_) | RequestContent::MaybeJson(_), false) => {}
        }
        if said == Type::Absent {
            let why = "a body needs `Content-Type: application/json`";
            return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, why));
        }
        match serde_json::from_slice(&bytes) {
            // As if there was none, which is something else.
            Ok(Value::Null) => Err(Refusal::new(StatusCode::BAD_REQUEST, "the body is `null`")),
            Ok(value) => Ok(value),
            Err(error) => {
                let why = format!("the body is no JSON: {error}");
                Err(Refusal::new(StatusCode::BAD_REQUEST, why))
            }
        }
    }
}

/// A body for the audit log, without secrets.
fn hidden(body: &Value, names: &[&str]) -> Value {
    let mut body = body.clone();
    for name in names {
        if let Some(value) = body.get_mut(name) {
            *value = Value::from("(not shown)");
        }
    }
    body
}

/// The route of a request.
fn find(part: RouteSet, head: &Parts) -> Result<&'static Route, Refusal> {
    let mut of_path = part.of_path(head.uri.path()).peekable();
    if of_path.peek().is_none() {
        let why = format!("no such path: {}", part.directory());
        return Err(Refusal::new(StatusCode::NOT_FOUND, why));
    }
    let mut allowed = Vec::new();
    for route in of_path {
        let methods: &[Method] = match route.verb {
            RouteMethod::Get => &[Method::GET, Method::HEAD],
            RouteMethod::Post => &[Method::POST],
        };
        if methods.contains(&head.method) {
            return Ok(route);
        }
        allowed.extend(methods.iter().map(Method::as_str));
    }
    let allowed = allowed.join(", ");
    let refusal =
        Refusal::new(StatusCode::METHOD_NOT_ALLOWED, format!("this path takes {allowed}"));
    let value = HeaderValue::try_from(allowed).expect("tokens, commas and spaces");
    Err(refusal.with(header::ALLOW, value))
}

/// The parameters of a request: only its route's, each at most once.
fn query(route: &Route, head: &Parts) -> Result<Vec<(String, String)>, Refusal> {
    let wrong = |why: String| Err(Refusal::new(StatusCode::BAD_REQUEST, why));
    let mut found: Vec<(String, String)> = Vec::new();
    let text = head.uri.query().unwrap_or_default();
    for (name, value) in form_urlencoded::parse(text.as_bytes()) {
        let Some(known) = route.query.iter().find(|known| known.name == name) else {
            let names: Vec<_> = route.query.iter().map(|known| known.name).collect();
            let there = if names.is_empty() { "there are none".into() } else { names.join(", ") };
            return wrong(format!("unknown parameter `{name}`: {there}"));
        };
        if found.iter().any(|(own, _)| *own == name) {
            return wrong(format!("parameter `{name}` occurs twice"));
        }
        if !known.kind.takes(&value) {
            return wrong(format!("parameter `{name}` takes {}", known.kind));
        }
        found.push((name.into_owned(), value.into_owned()));
    }
    Ok(found)
}

/// The part of a response that the audit log keeps.
fn excerpt(answer: &AdminResponse) -> Value {
    let Some(bytes) = answer.body.bytes() else { return Value::Null };
    let value = serde_json::from_slice(bytes);
    let value = value.unwrap_or_else(|_| Value::from(String::from_utf8_lossy(bytes).trim_end()));
    shortened(&value)
}

/// A value, or the start of its text if that is long.
fn shortened(value: &Value) -> Value {
    let text = value.to_string();
    if text.len() <= AUDITED_BYTES {
        return value.clone();
    }
    let end = text.floor_char_boundary(AUDITED_BYTES);
    Value::from(format!("{}...", &text[..end]))
}

/// The content security policy of an operation's responses.
fn policy(operation: Operation) -> &'static str {
    match operation {
        Operation::Documentation => DOCUMENTATION_POLICY,
        _ => POLICY,
    }
}

fn response(answer: AdminResponse, policy: &'static str) -> Response<OutgoingBody> {
    let AdminResponse { status, content_type, body } = answer;
    let mut response = Response::new(body.into_sent());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
    for (name, value) in FIELDS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}
