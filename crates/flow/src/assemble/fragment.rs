//! Fragment: the request for a fragment of a page, and the judgement of its reply.
//!
//! Must never send the page's credentials to another host, nor request a server that the page's
//! site does not permit.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use base::{Counter, Limit, Now};
use codec::Coding;
use esi::{Fragment, FragmentTarget, OnError};
use message::authority::parse_authority;
use message::{Framing, HeaderId, Method, Request, Status, Upgrade, Version, target};
use observe::CipherSuite;
use observe::record::Kind;
use vcl::params::Param;

use crate::gate::{self, ArrivingRequest};
use crate::origin_messages::CONDITIONS;
use crate::recode::{BodyDecoding, decode_limits};
use crate::state::assemble::{ComposedPage, Dialect, GzipSegment};
use crate::state::body::ReplyBody;
use crate::state::core::CoreState;
use crate::state::finish::{RequestStart, TransactionFacts};
use crate::state::reply::{HeadSource, Reply};
use crate::state::site::Site;
use crate::state::trace::FailureNote;

/// The longest URL of a fragment.
const SRC_BYTES_MAX: usize = 8 * 1024;

/// Fields of the page's request that fragments do not inherit, beside its conditions: they concern
/// its body or its connection.
const LEFT: [HeaderId; 10] = [
    HeaderId::AcceptEncoding,
    HeaderId::AvailableDictionary,
    HeaderId::Connection,
    HeaderId::ContentEncoding,
    HeaderId::ContentLength,
    HeaderId::ContentType,
    HeaderId::Expect,
    HeaderId::TransferEncoding,
    HeaderId::Upgrade,
    HeaderId::Te,
];

/// Fields of the page's request that fragments on another host inherit: the client's preferences,
/// and nothing that identifies it. Other fields may be secrets of the page's host, such as an API
/// key.
const FOR_ALL: [HeaderId; 8] = [
    HeaderId::Accept,
    HeaderId::AcceptLanguage,
    HeaderId::Host,
    HeaderId::MaxForwards,
    HeaderId::Priority,
    HeaderId::SurrogateCapability,
    HeaderId::UserAgent,
    HeaderId::Via,
];

/// A fragment's request, and its start and end.
pub(super) struct FragmentRequest {
    pub(super) request: Box<Request>,
    pub(super) at: Now,
    pub(super) began_us: u64,
    /// 0 before the reply, and without a log.
    pub(super) ended_us: Cell<u64>,
}

/// The reason for which a fragment failed.
#[derive(Debug)]
pub(super) enum FragmentFailure {
    /// A limit forbids it.
    Limit(Limit),
    /// The page may not name this URL.
    Target(&'static str),
    /// The reply has this status.
    Status(Status),
    /// The body is in a coding that is not supported.
    Coding,
    /// The body is empty, and the page has a substitute for that.
    Empty,
    /// The fragment exceeded the page's time limit.
    Late,
    /// Its task panicked.
    Lost,
}

impl FragmentFailure {
    pub(super) fn words(&self) -> String {
        match self {
            Self::Limit(limit) => format!("not asked for (limit: {})", limit.name()),
            Self::Target(why) => (*why).to_owned(),
            Self::Status(status) => format!("answered with status {status}"),
            Self::Coding => "in a coding that is not supported".to_owned(),
            Self::Empty => "empty".to_owned(),
            Self::Late => "later than `maxwait` permits".to_owned(),
            Self::Lost => "its request ended without an answer".to_owned(),
        }
    }
}

/// The request for `fragment` in `page`, and the site that serves it.
///
/// # Errors
/// The reason for which the page may not request it.
pub(super) fn request(
    page: &ComposedPage,
    fragment: &Fragment,
) -> Result<(Box<Request>, Arc<Site>), FragmentFailure> {
    const NO_URL: FragmentFailure = FragmentFailure::Target("its address is no URL");
    let FragmentTarget { scheme, host, url } = fragment.target(&page.request.target);
    // The part behind `#` is not sent (RFC 9110 7.1).
    let end = memchr::memchr(b'#', &url).unwrap_or(url.len());
    let url = &url[..end];
    if scheme.is_some_and(|scheme| scheme != b"http" && scheme != b"https") {
        return Err(FragmentFailure::Target("its scheme is not http or https"));
    }
    if url.len() > SRC_BYTES_MAX {
        return Err(FragmentFailure::Target("its address is too long"));
    }
    if !url.starts_with(b"/") || !url.iter().all(|b| b.is_ascii_graphic() || !b.is_ascii()) {
        return Err(NO_URL);
    }
    let mut request = page.spare.take().unwrap_or_default();
    (*request).clone_from(page.pattern.get_or_init(|| pattern(page)));
    let scheme = request.scheme;
    target::read(url, scheme, &mut request).map_err(|_| NO_URL)?;
    let site = match host {
        Some(authority) => site_of(page, &authority, &mut request)?,
        None => Arc::clone(&page.site),
    };
    if site.vcl.is_none() {
        target::canonical(&mut request);
    }
    let from = ArrivingRequest { site: &page.site, routes: page.routes };
    let client = page.context.top.peer;
    let to = |request: &Request| {
        let routes = site.policy.routes(request, client);
        ArrivingRequest { site: &site, routes }
    };
    gate::remove_page_user_fields(from, to(&request), &mut request);
    // Without those fields it may belong to another route.
    if !gate::may_include(from, to(&request)) {
        return Err(FragmentFailure::Target(
            "it stands behind a gate that its page does not stand behind",
        ));
    }
    Ok((request, site))
}

/// The common part of the requests for the fragments of `page`.
fn pattern(page: &ComposedPage) -> Request {
    let mut request = page.request.clone();
    (request.method, request.version) = (Method::Get, Version::Http11);
    (request.framing, request.upgrade) = (Framing::None, Upgrade::None);
    (request.expect_continue, request.keep_alive) = (false, true);
    request.headers.retain(|f| !CONDITIONS.contains(&f.id) && !LEFT.contains(&f.id));
    // Under a program, fragments are requested as in Varnish, in gzip, and decoded here if needed.
    let is_gzipped = page.gzipped && page.live.vcl.params.is_on(Param::HttpGzipSupport);
    if page.gzip || is_gzipped {
        request.headers.set(HeaderId::AcceptEncoding, b"gzip");
    }
    request
}

/// Addresses `request` to `authority` and returns the site of that host. A page may name only hosts
/// that its site permits.
fn site_of(
    page: &ComposedPage,
    authority: &[u8],
    request: &mut Request,
) -> Result<Arc<Site>, FragmentFailure> {
    let refused = Err(FragmentFailure::Target("the site's pages may not include its host"));
    let mut name = Vec::new();
    let Ok(port) = parse_authority(authority, request.scheme, &mut name) else { return refused };
    if name == request.host && port == request.port {
        return Ok(Arc::clone(&page.site));
    }
    let is_program = page.site.vcl.is_some();
    let may = is_program || page.site.includes.hosts.iter().any(|host| **host == *name);
    if !may {
        return refused;
    }
    let site = match page.live.sites.by_host.find(&name) {
        Some(site) if site.client_check.is_none() => Arc::clone(site),
        Some(_) => return refused,
        // A program serves every host.
        None if is_program => Arc::clone(&page.site),
        None => return refused,
    };
    request.headers.set(HeaderId::Host, authority);
    if !is_program {
        request.headers.retain(|field| FOR_ALL.contains(&field.id));
    }
    (request.host, request.port) = (name, port);
    Ok(site)
}

/// The body of a fragment.
pub(super) enum FragmentBody {
    /// Without a coding.
    Body(ReplyBody),
    /// A gzip segment that can be put into a gzip page.
    Gzip(GzipSegment),
}

/// The body of a fragment's `reply`, if the page accepts it.
///
/// # Errors
/// The reason for which it does not.
pub(super) fn judge(
    core: &Rc<CoreState>,
    page: &ComposedPage,
    fragment: &Fragment,
    asked: &FragmentRequest,
    mut reply: Reply,
) -> Result<FragmentBody, FragmentFailure> {
    core.counters.inc(Counter::EsiFragments);
    // Varnish 7.1 ignores the status, whatever `onerror` says.
    let takes_any = page.dialect == Dialect::Varnish;
    let body = std::mem::replace(&mut reply.body, ReplyBody::None);
    note(core, page, asked, &reply, body.length().unwrap_or(0));
    if !takes_any && reply.status.code() / 100 != 2 {
        return Err(FragmentFailure::Status(reply.status));
    }
    match body.length() {
        Some(0) if fragment.stub.is_some() => Err(FragmentFailure::Empty),
        Some(bytes) if !page.weigh(&core.counters, bytes) => {
            Err(FragmentFailure::Limit(Limit::EsiBytes))
        }
        _ => decoded(core, page, &reply, body),
    }
}

/// The `body` of `reply` without its coding, unless the page can use it as it is.
fn decoded(
    core: &CoreState,
    page: &ComposedPage,
    reply: &Reply,
    mut body: ReplyBody,
) -> Result<FragmentBody, FragmentFailure> {
    let coding = match &reply.head {
        HeadSource::Owned(response) => {
            let coding = response.headers.values(HeaderId::ContentEncoding);
            Coding::of_content(coding).ok_or(FragmentFailure::Coding)?
        }
        HeadSource::Stored(_) if reply.has_delta() => return Err(FragmentFailure::Coding),
        HeadSource::Stored(object) => reply.form.unwrap_or_else(|| object.flags().coding),
        HeadSource::File { file, .. } => {
            let own = || Coding::of_content(file.head().values(HeaderId::ContentEncoding));
            reply.form.or_else(own).ok_or(FragmentFailure::Coding)?
        }
    };
    if let ReplyBody::Stream { reader, .. } = &mut body {
        reader.hold_for(&page.context.top.account);
    }
    if coding == Coding::Identity {
        return Ok(FragmentBody::Body(body));
    }
    if let (HeadSource::Stored(object), Some(part)) = (&reply.head, body.part())
        && page.gzip
        && let Some(cut) = GzipSegment::of(object, part)
    {
        return Ok(FragmentBody::Gzip(cut));
    }
    decode(core, page, coding, &mut body);
    Ok(FragmentBody::Body(body))
}

/// Decodes a body while it is put into the page.
pub(super) fn decode(core: &CoreState, page: &ComposedPage, coding: Coding, body: &mut ReplyBody) {
    let decoding = BodyDecoding {
        coding,
        limits: decode_limits(&page.live.limits),
        account: &page.context.top.account,
        counters: &core.counters,
    };
    decoding.decode_body(body, None);
}

/// Writes the record of a fragment whose reply has `bytes` bytes of body.
fn note(core: &CoreState, page: &ComposedPage, asked: &FragmentRequest, reply: &Reply, bytes: u64) {
    let (at, began_us) = (asked.at, asked.began_us);
    let started = RequestStart {
        at,
        began_us,
        read_us: began_us,
        policy_us: began_us,
        head_bytes: 0,
        // The reply was sent over no connection.
        suite: CipherSuite::default(),
    };
    let ended_us = core.log.beside(
        reply,
        &TransactionFacts {
            request: Some(&asked.request),
            body_out: bytes,
            kind: Kind::Fragment,
            parent: Some(page.number(|| core.log.number())),
            ..TransactionFacts::new(page.context.top.peer, &page.live, &started)
        },
    );
    asked.ended_us.set(ended_us);
}

/// A failed fragment without a substitute.
pub(super) enum Gap {
    /// The page continues without it.
    LeftOut,
    /// The page breaks off.
    Breaks,
}

/// Notes a missing fragment.
///
/// # Errors
/// The page may not continue without it.
pub(super) fn note_failed(
    core: &CoreState,
    page: &ComposedPage,
    fragment: &Fragment,
    failed: &FragmentFailure,
) -> Result<(), Gap> {
    core.counters.inc(Counter::EsiFailed);
    let src = String::from_utf8_lossy(&fragment.src);
    let limit = if let FragmentFailure::Limit(limit) = failed { Some(*limit) } else { None };
    let error = format!("fragment {src}: {}", failed.words()).into();
    page.trace.failure.borrow_mut().get_or_insert(FailureNote { error, limit });
    match fragment.onerror {
        OnError::Continue => Ok(()),
        onerror if page.breaks(onerror) => Err(Gap::Breaks),
        _ => Err(Gap::LeftOut),
    }
}
