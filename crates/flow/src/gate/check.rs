//! Checks that a gate cannot answer from its cache: a password is hashed, which takes a thread some
//! tens of milliseconds, or the authentication server is asked.
//!
//! A check that fails for any reason must refuse the request.

use std::rc::Rc;
use std::sync::Arc;

use base::{Account, Counter, Counters, Limit};
use bytes::Bytes;
use message::authority::write_authority;
use message::forwarding::add_via;
use message::store::strip_hop_by_hop;
use message::{
    Framing, HeaderBlock, HeaderId, Method, Request, Response, Scheme, Status, Upgrade, Version,
};
use origin::{Exchange, OriginRequestContext, RequestBody};
use policy::headers::FieldName;
use policy::{ConnectionPeer, Declared, LimitKey, Notes};

use crate::gathered_body::GatheredBody;
use crate::origin_messages::CONDITIONS;
use crate::pages::{self, refusal};
use crate::problem::Problem;
use crate::state::body::ReplyBody;
use crate::state::core::CoreState;
use crate::state::gate::check::PendingAuthCheck;
use crate::state::gate::{
    AuthGrant, AuthResult, BasicAuthCheck, ClientIdentity, ForwardAuthCheck, ForwardAuthFields,
    QueueRefusal, SiteAuthChecks, User,
};
use crate::state::reply::{CacheOutcome, HeadSource, Reply, ReplyOrigin};
use crate::state::request_context::{complete, sign};
use crate::state::site::Site;
use crate::state::site_context::SiteContext;
use crate::state::term::Term;

/// Fields about a client's body, which the authentication server does not get.
const NOT_TOLD: [HeaderId; 2] = [HeaderId::ContentLength, HeaderId::Expect];

impl PendingAuthCheck {
    /// Runs the check.
    ///
    /// # Errors
    /// The answer to a request that is refused.
    pub(crate) async fn run(
        self,
        core: &Rc<CoreState>,
        site_ctx: SiteContext<'_>,
        request: &Request,
        identity: ClientIdentity,
        account: &Arc<Account>,
    ) -> Result<AuthResult, Box<Reply>> {
        let SiteContext { live, site } = site_ctx;
        let Some(gates) = &site.gates else {
            return Err(Box::new(pages::problem(request, Problem::Internal)));
        };
        let (digest, grant, keep_ms) = match self {
            Self::Password { gate, digest, user, password } => {
                let name = Arc::new(User(String::from_utf8_lossy(&user).into()));
                let mark = LimitKey::Address.mark(&core.shared.seed, request, identity.who);
                let attempt = PasswordAttempt { gate: &gate, digest, mark, user, password };
                check(core, gates, site, request, attempt).await?;
                let now_ms = core.now().mono_ms;
                let until_ms = now_ms.saturating_add(gates.keep_ms);
                let term = Term { from_ms: now_ms, until_ms };
                core.auth_memory.verified_passwords.note(digest, mark, &name, term);
                (digest, AuthGrant { user: Some(name), ..AuthGrant::default() }, gates.keep_ms)
            }
            Self::ForwardAuth { gate, digest, keeps_password } => {
                let question = gate.question(site, request, identity, keeps_password);
                let fields =
                    ask(core, site_ctx, request, identity.who, account, &gate, question).await?;
                (digest, AuthGrant { fields, ..AuthGrant::default() }, gate.rule.keep_ms)
            }
        };
        let now_ms = core.now().mono_ms;
        let term = Term { from_ms: now_ms, until_ms: now_ms.saturating_add(keep_ms) };
        core.auth_memory.remember(digest, &grant, term, live.limits.gate_memory);
        Ok(AuthResult { digest, grant })
    }
}

/// The answer to a client without a password or with a wrong one.
pub(super) fn ask_for_password(
    counters: &Counters,
    site: &Site,
    request: &Request,
    gate: &BasicAuthCheck,
) -> Reply {
    counters.inc(Counter::GateRefused);
    let mut reply = refusal(site, request, Problem::PasswordNeeded, Declared::BASIC_AUTH);
    if let HeadSource::Owned(head) = &mut reply.head {
        let challenge = format!("Basic realm=\"{}\", charset=\"UTF-8\"", gate.rule.realm);
        head.headers.push(HeaderId::WwwAuthenticate, challenge.as_bytes());
    }
    reply
}

/// A user's name and password from a request.
struct PasswordAttempt<'a> {
    gate: &'a BasicAuthCheck,
    digest: [u8; 32],
    /// The client's mark.
    mark: u64,
    user: Vec<u8>,
    password: Vec<u8>,
}

/// Checks a password, unless another request does so already.
async fn check(
    core: &Rc<CoreState>,
    gates: &Arc<SiteAuthChecks>,
    site: &Site,
    request: &Request,
    attempt: PasswordAttempt<'_>,
) -> Result<(), Box<Reply>> {
    let PasswordAttempt { gate, digest, mark, user, password } = attempt;
    let verdict = gates.verdict(digest);
    let find_out = || async {
        let limited = |limit, problem| {
            core.counters.limit(limit);
            problem
        };
        let Some(_client_permit) = gates.clients.acquire(mark, gates.each) else {
            return Err(limited(Limit::PasswordChecksClient, Problem::TooManyPasswords));
        };
        if gates.queue.is_busy() {
            core.counters.limit(Limit::PasswordChecks);
        }
        let standing =
            core.auth_memory.verified_passwords.standing(&digest, mark, core.now().mono_ms);
        let permit = gates.queue.place(standing, gates.bounds).await;
        let _check_permit = permit.map_err(|why| {
            let limit = match why {
                QueueRefusal::Full => Limit::PasswordQueue,
                QueueRefusal::Late => Limit::PasswordWait,
            };
            limited(limit, Problem::PasswordsBusy(limit))
        })?;
        core.counters.inc(Counter::GateChecked);
        let users = Arc::clone(&gate.users);
        rt::blocking(move || users.has(&user, &password)).await.map_err(|_| {
            core.counters.inc(Counter::Panics);
            Problem::Internal
        })
    };
    let Some(cell) = &verdict.cell else {
        return Err(Box::new(refusal(site, request, Problem::Internal, Declared::BASIC_AUTH)));
    };
    match cell.get_or_try_init(find_out).await {
        Ok(true) => Ok(()),
        Ok(false) => Err(Box::new(ask_for_password(&core.counters, site, request, gate))),
        Err(problem) => Err(Box::new(refusal(site, request, problem, Declared::BASIC_AUTH))),
    }
}

impl ForwardAuthCheck {
    /// The request to the authentication server about `identity` and `site`. Forwarding fields are
    /// set as for origins: none is the client's.
    fn question(
        &self,
        site: &Site,
        request: &Request,
        identity: ClientIdentity,
        keeps_password: bool,
    ) -> Request {
        let mut asked = request.clone();
        let headers = &mut asked.headers;
        strip_hop_by_hop(headers);
        site.policy.remove_forged(headers);
        headers.retain(|field| !CONDITIONS.contains(&field.id) && !NOT_TOLD.contains(&field.id));
        if keeps_password {
            headers.remove(HeaderId::Authorization);
        }
        let scheme: &[u8] = if identity.scheme == Scheme::Https { b"https" } else { b"http" };
        // Origins get the same authority, whatever the client's spelling.
        asked.port = asked.port.filter(|port| *port != identity.scheme.default_port());
        let mut host = Vec::new();
        write_authority(&mut host, &asked);
        let headers = &mut asked.headers;
        for (name, value) in [
            (&b"X-Forwarded-Method"[..], request.method.token()),
            (b"X-Forwarded-Proto", scheme),
            (b"X-Forwarded-Host", &host),
            (b"X-Forwarded-Uri", &request.target),
        ] {
            headers.push_named(name, value);
        }
        if let Some(address) = identity.who.address() {
            headers.push(HeaderId::XForwardedFor, address.to_string().as_bytes());
        }
        headers.remove(HeaderId::Host);
        asked.target = self.rule.path.as_bytes().to_vec();
        (asked.method, asked.framing) = (Method::Get, Framing::None);
        (asked.version, asked.upgrade) = (Version::Http11, Upgrade::None);
        asked.expect_continue = false;
        asked
    }

    /// The fields of the response that are copied to requests for the origin.
    fn copied_fields(&self, headers: &HeaderBlock) -> ForwardAuthFields {
        let each = |name: &FieldName| {
            let values: Vec<Box<[u8]>> = name.values(headers).map(Box::from).collect();
            let name = name.clone();
            values.into_iter().map(move |value| (name.clone(), value))
        };
        self.rule.copy.iter().flat_map(each).collect()
    }
}

/// Asks the authentication server and returns its fields about the client.
async fn ask(
    core: &Rc<CoreState>,
    site_ctx: SiteContext<'_>,
    request: &Request,
    client: ConnectionPeer,
    account: &Arc<Account>,
    gate: &ForwardAuthCheck,
    question: Request,
) -> Result<ForwardAuthFields, Box<Reply>> {
    core.counters.inc(Counter::GateAsked);
    let caller =
        OriginRequestContext { client: client.address(), ..OriginRequestContext::default() };
    let failed = |status, reason, limit| {
        core.counters.inc(Counter::GateFailed);
        let problem = Problem::Origin { status, reason, limit };
        Box::new(refusal(site_ctx.site, request, problem, Declared::FORWARD_AUTH))
    };
    let hash = core.shared.seed.hash(&gate.digest);
    let pool = core.pool();
    let sent = pool.send(&gate.origin, &question, RequestBody::None, hash, &caller, &mut ()).await;
    let mut exchange =
        sent.map_err(|error| failed(error.status(), error.to_string(), error.limit()))?;
    let most = site_ctx.live.limits.gate_answer_bytes;
    let body = body_of(&mut exchange, most, account).await.map_err(|(why, limit)| {
        limit.inspect(|limit| core.counters.limit(*limit));
        let status = match limit {
            Some(Limit::ClientMemory) => Status::SERVICE_UNAVAILABLE,
            _ => Status::BAD_GATEWAY,
        };
        failed(status, why, limit)
    })?;
    let response = std::mem::replace(&mut exchange.response, Response::new(Status::OK));
    match response.status.code() {
        200..300 => Ok(gate.copied_fields(&response.headers)),
        300..600 if response.status != Status::NOT_MODIFIED => {
            core.counters.inc(Counter::GateRefused);
            Err(Box::new(its_own(site_ctx, request, response, body)))
        }
        _ => {
            let reason = "its response is unusable".to_owned();
            Err(failed(Status::BAD_GATEWAY, reason, None))
        }
    }
}

/// The body of a response, of at most `most` bytes, reserved on `account`.
///
/// # Errors
/// The reason for which it is missing, and the limit that was reached.
async fn body_of(
    exchange: &mut Exchange,
    most: u64,
    account: &Arc<Account>,
) -> Result<Bytes, (String, Option<Limit>)> {
    let beyond =
        |limit: Limit, what: &str| (format!("{what} (limit: {})", limit.name()), Some(limit));
    let no_memory = |_| beyond(Limit::ClientMemory, "no memory is left for its answer");
    // Most responses have no body.
    let mut body: Option<GatheredBody> = None;
    loop {
        let mut taken = Ok(());
        let take = &mut |data: &[u8]| {
            if taken.is_err() || data.is_empty() {
                return;
            }
            taken = match &mut body {
                Some(body) if body.len() + data.len() as u64 > most => {
                    Err(beyond(Limit::GateAnswerBytes, "its answer is too long"))
                }
                None if data.len() as u64 > most => {
                    Err(beyond(Limit::GateAnswerBytes, "its answer is too long"))
                }
                Some(body) => body.push(data).map_err(no_memory),
                None => {
                    GatheredBody::new(account, None).map_err(no_memory).and_then(|mut begun| {
                        let pushed = begun.push(data).map_err(no_memory);
                        body = Some(begun);
                        pushed
                    })
                }
            };
        };
        let more = exchange.next(take).await.map_err(|error| (error.to_string(), error.limit()))?;
        taken?;
        if !more {
            return Ok(body.map_or_else(Bytes::new, GatheredBody::into_bytes));
        }
    }
}

/// The authentication server's own response, which must not be stored.
fn its_own(
    SiteContext { live, site }: SiteContext<'_>,
    request: &Request,
    mut response: Response,
    body: Bytes,
) -> Reply {
    strip_hop_by_hop(&mut response.headers);
    for id in [HeaderId::ContentLength, HeaderId::CacheControl, HeaderId::Expires] {
        response.headers.remove(id);
    }
    response.headers.push(HeaderId::CacheControl, b"private, no-store");
    add_via(&mut response.headers, Version::Http11, live.announce.pseudonym.as_str());
    let body = ReplyBody::from(body).answering(&request.method, response.status);
    let mut reply = Reply::owned(response, body, CacheOutcome::Synthetic);
    reply.made = ReplyOrigin::Here;
    complete(&mut reply, site, request, &Notes::default());
    let notes = Notes { rule: Declared::FORWARD_AUTH, ..Notes::default() };
    sign(&mut reply, site, &notes, request.scheme);
    reply
}
