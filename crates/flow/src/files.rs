//! Files: replies from the directories of a site or route, and from files beside the scripts of a
//! FastCGI origin.
//!
//! Files are not stored in the cache: the kernel caches them, and each core keeps them open. Only
//! their coded forms are stored ([`codings`]). A path is looked up on the core while no disk access
//! is needed, and on a blocking thread otherwise.

mod codings;

use std::rc::Rc;
use std::sync::Arc;

use base::Limit;
use codec::Accept;
use files::{Coding, Depth, FileVariants, OpenFile, OpenFileCache, PathLookup, Root, WouldBlock};
use message::conditional;
use message::{Framing, HeaderBlock, HeaderId, Method, Request, Response, Status, path};
use policy::response_rules::MatchedRules;

use crate::problem::Problem;
use crate::selection::{Selection, Validators};
use crate::sent_form::SentCoding;
use crate::shape::{self, ShapedResponse};
use crate::state::body::{BodyPart, ReplyBody};
use crate::state::core::CoreState;
use crate::state::reply::{CacheOutcome, HeadSource, Reply};
use crate::state::request_context::RequestContext;
use crate::{form, pages};

const CONDITIONS: [HeaderId; 5] = [
    HeaderId::IfMatch,
    HeaderId::IfModifiedSince,
    HeaderId::IfNoneMatch,
    HeaderId::IfUnmodifiedSince,
    HeaderId::Range,
];

/// Returns true if a file may answer the request's method and path; other requests are for scripts
/// or refused.
pub(crate) fn is_readable(request: &Request) -> bool {
    matches!(request.method, Method::Get | Method::Head) && request.framing == Framing::None
}

/// The normal form of the request's path; `None` if the path has no normal form.
pub(crate) fn normal<'p>(request: &'p Request, room: &'p mut Vec<u8>) -> Option<&'p [u8]> {
    match path::normal_form(request.path(), room) {
        Ok(true) => Some(room),
        Ok(false) => Some(request.path()),
        Err(_) => None,
    }
}

/// Looks up the request's path below `root`.
pub(crate) fn look(
    core: &CoreState,
    ctx: &RequestContext<'_>,
    root: &Arc<Root>,
) -> Result<PathLookup, WouldBlock> {
    let mut room = Vec::new();
    match normal(ctx.request, &mut room) {
        Some(path) => look_at(core, ctx, root, path),
        None => Ok(PathLookup::Missing),
    }
}

fn look_at(
    core: &CoreState,
    ctx: &RequestContext<'_>,
    root: &Arc<Root>,
    path: &[u8],
) -> Result<PathLookup, WouldBlock> {
    let (limits, now_ms) = (&ctx.live.limits, ctx.now.mono_ms);
    let mut table = core.files.borrow_mut();
    if let Some(look) = table.find(root, path, now_ms, limits.files_recheck) {
        return Ok(look.clone());
    }
    let look = root.look(path, Depth::Cached)?;
    Ok(put(core, &mut table, root, path, look, now_ms, limits.open_files))
}

/// Caches the result of a path's lookup.
fn put(
    core: &CoreState,
    table: &mut OpenFileCache,
    root: &Arc<Root>,
    path: &[u8],
    look: PathLookup,
    now_ms: u64,
    most: u64,
) -> PathLookup {
    let before = table.evicted();
    let look = table.put(root, path, look, now_ms, most as usize);
    if table.evicted() > before {
        core.counters.limit(Limit::OpenFiles);
    }
    look
}

/// Looks up the request's path like [`look`], reading the disk if necessary.
pub(crate) async fn look_up_with_disk(
    core: &Rc<CoreState>,
    ctx: &RequestContext<'_>,
    root: &Arc<Root>,
) -> PathLookup {
    let mut room = Vec::new();
    match normal(ctx.request, &mut room) {
        Some(path) => look_up_path_with_disk(core, ctx, root, path).await,
        None => PathLookup::Missing,
    }
}

/// Looks up `path`, in its normal form, reading the disk if necessary.
pub(crate) async fn look_up_path_with_disk(
    core: &Rc<CoreState>,
    ctx: &RequestContext<'_>,
    root: &Arc<Root>,
    path: &[u8],
) -> PathLookup {
    if let Ok(look) = look_at(core, ctx, root, path) {
        return look;
    }
    let (place, wanted) = (Arc::clone(root), path.to_vec());
    // At full depth the lookup never asks for the disk.
    let wait = move || place.look(&wanted, Depth::Full).unwrap_or(PathLookup::Missing);
    let look = rt::run_blocking(wait).await;
    let (now_ms, most) = (core.now().mono_ms, ctx.live.limits.open_files);
    put(core, &mut core.files.borrow_mut(), root, path, look, now_ms, most)
}

/// The root beside the scripts, or in front of the servers, of the origin that the request would be
/// sent to.
pub(crate) fn front_root<'s>(ctx: &RequestContext<'s>) -> Option<&'s Arc<Root>> {
    ctx.site.origin(&ctx.notes)?.front_files.as_ref()
}

/// The reply from a file in front of the origin, if the request's path likely means one.
///
/// # Errors
/// The disk must be read.
pub(crate) fn likely(
    core: &Rc<CoreState>,
    ctx: &RequestContext<'_>,
) -> Result<Option<Reply>, WouldBlock> {
    match likely_root(ctx) {
        Some(root) => look(core, ctx, root).map(|look| found(Some(core), ctx, &look)),
        None => Ok(None),
    }
}

/// The root in front of the origin, if the request's path likely means one of its files. In front
/// of HTTP servers every path may: no later rule looks for a file.
#[inline]
pub(crate) fn likely_root<'s>(ctx: &RequestContext<'s>) -> Option<&'s Arc<Root>> {
    let own = ctx.site.origin(&ctx.notes)?;
    let root = own.front_files.as_ref()?;
    let likely = is_readable(ctx.request)
        && match &own.origin.config().scripts {
            Some(scripts) => root.may_be_file(ctx.request.path(), &scripts.rules.suffixes),
            None => true,
        };
    likely.then_some(root)
}

/// The reply from a file beside the scripts, if the file is open already. In front of HTTP servers,
/// [`likely`] has looked for it.
pub(crate) fn known(core: &Rc<CoreState>, ctx: &RequestContext<'_>) -> Option<Reply> {
    let own = ctx.site.origin(&ctx.notes)?;
    let root = own.front_files.as_ref().filter(|_| own.origin.config().scripts.is_some())?;
    let mut room = Vec::new();
    let path = normal(ctx.request, &mut room)?;
    let (now_ms, recheck_ms) = (ctx.now.mono_ms, ctx.live.limits.files_recheck);
    let mut table = core.files.borrow_mut();
    found(Some(core), ctx, table.find(root, path, now_ms, recheck_ms)?)
}

/// The page on disk that a plugin of the application may have written for this request: its root
/// and path.
pub(crate) fn page_of<'s>(ctx: &RequestContext<'s>) -> Option<(&'s Arc<Root>, Vec<u8>)> {
    let plugin = ctx.notes.pages.filter(|_| !ctx.notes.personal)?;
    let root = ctx.site.origin(&ctx.notes)?.pages.as_ref()?;
    Some((root, policy::page_cache::place(plugin, ctx.request)?))
}

/// The reply from a plugin's page.
///
/// # Errors
/// The disk must be read.
pub(crate) fn page(
    core: &Rc<CoreState>,
    ctx: &RequestContext<'_>,
) -> Result<Option<Reply>, WouldBlock> {
    match page_of(ctx) {
        Some((root, path)) => {
            look_at(core, ctx, root, &path).map(|look| found(Some(core), ctx, &look))
        }
        None => Ok(None),
    }
}

/// The reply from a plugin's page like [`page`], reading the disk if necessary.
pub(crate) async fn page_with_disk(
    core: &Rc<CoreState>,
    ctx: &RequestContext<'_>,
) -> Option<Reply> {
    let (root, path) = page_of(ctx)?;
    let look = look_up_path_with_disk(core, ctx, root, &path).await;
    found(Some(core), ctx, &look)
}

/// The reply if a file is found; `None` if something else must answer. Without a core, in a
/// forecast, the file itself is sent and no form is made.
pub(crate) fn found(
    core: Option<&Rc<CoreState>>,
    ctx: &RequestContext<'_>,
    look: &PathLookup,
) -> Option<Reply> {
    match look {
        PathLookup::Page(_) => Some(answer(core, ctx, look)),
        _ => None,
    }
}

/// The reply to a request that only a file can answer. `core` is as for [`found`].
pub(crate) fn answer(
    core: Option<&Rc<CoreState>>,
    ctx: &RequestContext<'_>,
    look: &PathLookup,
) -> Reply {
    let request = ctx.request;
    if !matches!(request.method, Method::Get | Method::Head) {
        return match look {
            PathLookup::Missing => pages::problem(request, Problem::NoFile),
            _ => pages::problem(request, Problem::OnlyReadable),
        };
    }
    match look {
        PathLookup::Page(page) => whole(core, ctx, page, None),
        PathLookup::Slash => pages::with_slash(request),
        PathLookup::Forbidden => pages::problem(request, Problem::FileRefused),
        PathLookup::Missing => pages::problem(request, Problem::NoFile),
        PathLookup::Exhausted => pages::problem(request, Problem::TooManyFiles),
    }
}

/// Fields of an origin's head that are kept when a file replaces its body (nginx:
/// X-Accel-Redirect).
const KEPT: [HeaderId; 5] = [
    HeaderId::CacheControl,
    HeaderId::ContentDisposition,
    HeaderId::ContentType,
    HeaderId::Expires,
    HeaderId::SetCookie,
];

/// The reply with the file that the origin named, whatever the request's method: the origin has
/// carried out the request.
pub(crate) async fn named(
    core: &Rc<CoreState>,
    ctx: &RequestContext<'_>,
    named: &NamedFile,
) -> Reply {
    let Some((root, path)) = &named.place else {
        return pages::problem(ctx.request, Problem::FileNotAllowed);
    };
    match look_up_path_with_disk(core, ctx, root, path).await {
        PathLookup::Page(page) => whole(None, ctx, &page, Some(&named.headers)),
        PathLookup::Exhausted => pages::problem(ctx.request, Problem::TooManyFiles),
        _ => pages::problem(ctx.request, Problem::NoFile),
    }
}

fn whole(
    core: Option<&Rc<CoreState>>,
    ctx: &RequestContext<'_>,
    page: &Arc<FileVariants>,
    origin: Option<&HeaderBlock>,
) -> Reply {
    let request = ctx.request;
    let file = page.form(coding(&request.headers, page));
    let date_s = ctx.now.unix_secs();
    // A named file is sent without coding: another response may name it with another head.
    let varies = origin.is_none() && codings::may_be(ctx, file);
    let head = HeadSource::File { file: Arc::clone(file), date_s, varies };
    let form = core.filter(|_| varies).and_then(|core| codings::form(core, ctx, file));
    let body = match form {
        Some(_) => ReplyBody::None,
        None => BodyPart::File(Arc::clone(file), 0..file.length()).into(),
    };
    let mut reply = Reply::file(head, body);
    if let Some((coding, body)) = form {
        (reply.form, reply.body) = (Some(coding), body);
    }
    reply.answer_to(request);
    let reads = matches!(request.method, Method::Get | Method::Head);
    if reads && request.headers.contains_any(&CONDITIONS) && !judge(ctx, file, date_s, &mut reply) {
        return pages::problem(request, Problem::Precondition);
    }
    if (origin.is_some() || shape::shapes(ctx)) && !shape(ctx, file, origin, &mut reply) {
        return shape::unshaped(ctx);
    }
    reply
}

/// The coding of a precompressed file that the client accepts and prefers at least as much as the
/// plain file.
fn coding(headers: &HeaderBlock, page: &FileVariants) -> Option<Coding> {
    let offered = || page.codings().map(|own| (own, content_coding(own)));
    offered().next()?;
    let accept = Accept::of(headers.values(HeaderId::AcceptEncoding));
    let identity = codec::Coding::Identity;
    let best = accept.best(offered().map(|(_, coding)| coding).chain([identity]))?;
    offered().find(|(_, coding)| *coding == best).map(|(own, _)| own)
}

fn content_coding(own: Coding) -> codec::Coding {
    match own {
        Coding::Br => codec::Coding::Brotli,
        Coding::Zstd => codec::Coding::Zstd,
        Coding::Gzip => codec::Coding::Gzip,
    }
}

/// Request fields that may select something else than the whole file.
const JUDGED: [HeaderId; 5] = [
    HeaderId::IfMatch,
    HeaderId::IfNoneMatch,
    HeaderId::IfModifiedSince,
    HeaderId::IfUnmodifiedSince,
    HeaderId::Range,
];

/// Applies conditions and ranges (RFC 9110 13.2.2 and 14.2). Returns false if a condition for
/// carrying out the request fails.
fn judge(ctx: &RequestContext<'_>, file: &Arc<OpenFile>, date_s: u64, reply: &mut Reply) -> bool {
    if !ctx.request.headers.contains_any(&JUDGED) {
        return true;
    }
    let modified = file.last_modified();
    let sent = reply.form.map(|coding| codings::tag(file, coding));
    let etag = Some(sent.as_deref().unwrap_or_else(|| file.etag()));
    let headers = &ctx.request.headers;
    // A client with any form of the file has this state of the file.
    let proceeds = |etag| conditional::may_proceed(headers, etag, modified, date_s);
    let may_proceed = proceeds(etag) || sent.is_some() && proceeds(Some(file.etag()));
    if !may_proceed {
        return false;
    }
    // A file without a modification date is not compared with the response's date.
    let date = modified.map(|_| date_s);
    let validators = Validators { etag, modified, shown: modified, date };
    let varies = matches!(reply.head, HeadSource::File { varies: true, .. });
    let mut had = None;
    let is_had = || {
        had = if varies { codings::form_of_client(ctx, file) } else { None };
        had.is_some()
    };
    let kind = || file.head().value(HeaderId::ContentType).map(<[u8]>::to_vec);
    Selection::of(ctx).select(&validators, is_had, |_| {}, kind, reply);
    if let Some(coding) = had {
        reply.form = Some(coding).filter(|coding| *coding != codec::Coding::Identity);
    }
    true
}

/// Takes over the origin's fields for the file, and lets the policy change the head for this
/// client. Returns false if the head must not be sent.
fn shape(
    ctx: &RequestContext<'_>,
    file: &OpenFile,
    origin: Option<&HeaderBlock>,
    reply: &mut Reply,
) -> bool {
    let mut response = Response::new(reply.status);
    file.head_for(reply.status == Status::NOT_MODIFIED, &mut response.headers);
    if let Some(origin) = origin {
        take_over(origin, reply.status, &mut response.headers);
    }
    if let Some(coding) = reply.form.take() {
        let tag = codings::tag(file, coding);
        form::give(&mut response.headers, SentCoding::Plain(coding), Some(&tag));
    }
    if matches!(reply.head, HeadSource::File { varies: true, .. }) {
        form::vary_by_coding(&mut response.headers);
    }
    if let Some(kind) = reply.changed.as_mut().and_then(|changed| changed.content_type.take()) {
        response.headers.set(HeaderId::ContentType, kind.as_bytes());
    }
    let date = message::date::HttpDate::new(ctx.now.unix_secs());
    response.headers.push(HeaderId::Date, date.as_bytes());
    // Rules for responses are for those of origins.
    let (of, rules) = (ShapedResponse::Passing, MatchedRules::default());
    let is_shaped = shape::shape(ctx, &mut response, of, &rules);
    reply.status = response.status;
    reply.head = HeadSource::Owned(Box::new(response));
    is_shaped
}

fn take_over(origin: &HeaderBlock, status: Status, headers: &mut HeaderBlock) {
    let describes = |id| matches!(id, HeaderId::ContentType | HeaderId::ContentDisposition);
    for id in KEPT.into_iter().filter(|id| origin.contains(*id)) {
        headers.remove(id);
        if status != Status::NOT_MODIFIED || !describes(id) {
            for value in origin.values(id) {
                headers.push(id, value);
            }
        }
    }
}

impl Reply {
    /// A reply with a file.
    fn file(head: HeadSource, body: ReplyBody) -> Self {
        Self::new(Status::OK, head, body, CacheOutcome::File)
    }
}

/// A file that an origin named, and the head of the origin's response.
pub(crate) struct NamedFile {
    /// The root of the file, and the file's path below it; `None` if no setting permits the file.
    pub(crate) place: Option<(Arc<Root>, Vec<u8>)>,
    pub(crate) headers: HeaderBlock,
}
