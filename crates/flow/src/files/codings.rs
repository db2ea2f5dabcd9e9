//! Codings of files. The gzip form of a file is made in the background once the file is requested
//! again, and is stored like a response; brotli and zstd forms are added beside it as for any body.
//!
//! Its key contains the state of the file, so a changed file gets a new form, and all sites and
//! cores share it. Files are never coded for clients that ask for no coding.

use std::rc::Rc;
use std::sync::Arc;

use base::{Account, Counter, HashSeed, KeyBuf, Limit, Limits};
use cache::{
    BeginOptions, CacheLookup, DemotionPolicy, Flags, NewObject, Object, PushOutcome, Tags,
};
use codec::{Coding, EncodeSettings};
use files::OpenFile;
use message::store::{Permit, Ruling};
use message::{HeaderId, Response, Status, conditional};

use crate::form::{self, Choice, FormSource};
use crate::key::FILE;
use crate::refinement::{self, RefinementPermit};
use crate::state::body::ReplyBody;
use crate::state::core::CoreState;
use crate::state::request_context::RequestContext;
use crate::state::tier::MissStep;
use crate::stored_heads::{form_tags_of_plain, head_to_store};
use codec::CompressionScope;

/// Bytes that one read of a file fetches.
const PIECE_BYTES: u64 = 64 * 1024;
/// The lifetime of a form. Its key contains the file's state, so it does not age.
const LIFETIME_MS: u64 = 10 * 365 * 24 * 3600 * 1000;

/// Returns true if `file` may be sent in a coding to clients that prefer it.
pub(super) fn may_be(ctx: &RequestContext<'_>, file: &OpenFile) -> bool {
    ctx.site.compress != CompressionScope::Off
        && file.is_worth(|head, length| {
            ctx.live.compression.worth.judge(Status::OK, head, Some(length)).is_ok()
        })
}

/// The entity tag of `file` in `coding`.
pub(super) fn tag(file: &OpenFile, coding: Coding) -> Vec<u8> {
    let mut tag = Vec::new();
    form_tags_of_plain(file.etag()).write(coding, &mut tag);
    tag
}

/// The form of `file` that the client names in If-None-Match and accepts.
pub(super) fn form_of_client(ctx: &RequestContext<'_>, file: &OpenFile) -> Option<Coding> {
    let headers = &ctx.request.headers;
    if !headers.contains(HeaderId::IfNoneMatch) {
        return None;
    }
    let accept = form::accept(ctx.request);
    let is_had = |coding: &Coding| {
        accept.takes(*coding) && conditional::lists_none_match(headers, Some(&tag(file, *coding)))
    };
    Coding::ALL.into_iter().find(is_had)
}

/// The client's preferred form of `file`, if it exists: its coding and body. A missing one is
/// started once the file was requested often enough.
pub(super) fn form(
    core: &Rc<CoreState>,
    ctx: &RequestContext<'_>,
    file: &Arc<OpenFile>,
) -> Option<(Coding, ReplyBody)> {
    if !likes_coding(ctx) {
        return None;
    }
    let key = file.key(|state| make_key(&core.shared.seed, state));
    match core.shared.cache.lookup(key, &mut |_, _| {}, ctx.now.mono_ms) {
        CacheLookup::Object(object) => give(core, ctx, file, &object),
        CacheLookup::HitForMiss | CacheLookup::Nothing => {
            begin(core, ctx, file, key);
            None
        }
    }
}

/// Returns true if the client prefers a coding over none.
fn likes_coding(ctx: &RequestContext<'_>) -> bool {
    if !ctx.request.headers.contains(HeaderId::AcceptEncoding) {
        return false;
    }
    let further = ctx.live.compression.forms.iter().copied();
    let offered = further.chain([Coding::Gzip, Coding::Identity]);
    let best = form::accept(ctx.request).best(offered);
    best.is_some_and(|best| best != Coding::Identity)
}

/// The key of the forms of a file in this state.
fn make_key(seed: &HashSeed, state: &[u8]) -> KeyBuf {
    let mut key = KeyBuf::new();
    key.field(FILE);
    key.field(b"");
    key.field(state);
    key.finish(seed);
    key
}

/// The form to send of the stored forms of `file`; `None` if the file itself is sent.
fn give(
    core: &Rc<CoreState>,
    ctx: &RequestContext<'_>,
    file: &OpenFile,
    object: &Arc<Object>,
) -> Option<(Coding, ReplyBody)> {
    if object.flags().coding == Coding::Identity {
        // A former try showed that gzip is not shorter.
        return None;
    }
    let choice = form::choose(object, ctx.request, &ctx.live.compression);
    let Choice { coding, from, wanted, .. } = choice;
    let made = wanted.unwrap_or(coding);
    if !matches!(made, Coding::Identity | Coding::Gzip) {
        refinement::demand(core, ctx, object, made, false);
    }
    let body = match from {
        FormSource::Stored => ReplyBody::whole(object, None),
        FormSource::Beside(bytes) => bytes.into(),
        FormSource::Decoded => return None,
    };
    core.counters.inc(Counter::FormsSent);
    let sent = body.length().unwrap_or_else(|| file.length());
    core.counters.add(Counter::FormsSpared, file.length().saturating_sub(sent));
    Some((coding, body))
}

/// Starts coding `file` in gzip, if it was requested often enough and there is time.
#[cold]
fn begin(core: &Rc<CoreState>, ctx: &RequestContext<'_>, file: &Arc<OpenFile>, key: &KeyBuf) {
    let (limits, compression) = (&ctx.live.limits, &ctx.live.compression);
    if !core.shared.forms.file_hits.is_due(key.hash(), compression.gzip_hits)
        || file.length() > most_bytes(limits)
        || !file.is_settled(ctx.now.unix_secs())
    {
        return;
    }
    let Some(mut permit) = RefinementPermit::take(core, limits, ctx.now.mono_ms) else { return };
    let (file, key) = (Arc::clone(file), key.clone());
    let gzip = compression.gzip;
    let account = Account::open_large(core.shared.cache.memory());
    rt::spawn_local(async move {
        let source = Arc::clone(&file);
        let made = permit.work(move || make(&source, gzip, &account));
        match made.await {
            Some(Ok(CodingOutcome::Gzip(data))) => put(&permit.core, &file, &key, Some(&data)),
            Some(Ok(CodingOutcome::NoShorter)) => put(&permit.core, &file, &key, None),
            Some(Err(limit)) => permit.core.counters.limit(limit),
            Some(Ok(CodingOutcome::Changed)) | None => {}
        }
    });
}

/// The length of the longest file that is coded: that of a body in one piece of memory.
fn most_bytes(limits: &Limits) -> u64 {
    match limits.slices_from {
        0 => limits.object_bytes,
        from => from.min(limits.object_bytes),
    }
}

/// The outcome of coding a file.
enum CodingOutcome {
    Gzip(Vec<u8>),
    /// The form is no shorter than the file.
    NoShorter,
    /// The file was changed or can no longer be read.
    Changed,
}

/// Codes a file; reads the disk.
fn make(
    file: &OpenFile,
    gzip: EncodeSettings,
    account: &Arc<Account>,
) -> Result<CodingOutcome, Limit> {
    let length = file.length();
    let settings = gzip.for_length(length);
    let memory = settings.most_memory() as u64 + PIECE_BYTES + length;
    let _held = account.hold(memory).map_err(|_| Limit::ClientMemory)?;
    let mut is_read = true;
    let starts = (0..length).step_by(PIECE_BYTES as usize);
    let pieces = starts.map_while(|start| {
        let piece = file.read(start..length.min(start + PIECE_BYTES));
        is_read &= piece.is_ok();
        piece.ok()
    });
    let coded = refinement::encode(pieces, &settings, length);
    if !is_read || !file.is_unchanged() {
        return Ok(CodingOutcome::Changed);
    }
    match coded {
        Ok(Some(data)) => Ok(CodingOutcome::Gzip(data)),
        Ok(None) | Err(None) => Ok(CodingOutcome::NoShorter),
        Err(Some(limit)) => Err(limit),
    }
}

/// Stores the `gzip` form of a file; `None` stores that the file is sent as it is.
fn put(core: &CoreState, file: &OpenFile, key: &KeyBuf, gzip: Option<&[u8]>) {
    let mut response = Response::new(Status::OK);
    file.head_for(false, &mut response.headers);
    // Each request asks its site for access to the file.
    let ruling = Ruling { passed: false, uncacheable: false, findable: true };
    let Some(permit) = Permit::by_program(ruling, &response.headers) else { return };
    let now_ms = core.now().mono_ms;
    let cache = &core.shared.cache;
    let lead = match cache.begin(key, &mut |_, _| {}, BeginOptions::default(), now_ms) {
        MissStep::Lead(lead) | MissStep::Alone(lead) => lead,
        MissStep::Object(_) | MissStep::Wait(_) | MissStep::Full => return,
    };
    let mut flags = Flags::default();
    if gzip.is_some() {
        form::code_head(&mut response.headers, Coding::Gzip);
        (flags.coding, flags.negotiated, flags.coded_here) = (Coding::Gzip, true, true);
    }
    let (head, etag) = head_to_store(&response);
    let data = gzip.unwrap_or_default();
    let new = NewObject {
        status: Status::OK,
        head,
        etag,
        last_modified: None,
        date: None,
        born_ms: i64::try_from(now_ms).unwrap_or(i64::MAX),
        lifetime_ms: LIFETIME_MS,
        grace_ms: 0,
        stale_if_error_ms: 0,
        stale_if_unreachable_ms: 0,
        flags,
        note: Box::default(),
        tags: Tags::default(),
        length: Some(data.len() as u64),
    };
    let mut filling = lead.store(permit, new, None);
    filling.object().set_sinks(DemotionPolicy::Never);
    let is_kept = filling.stored();
    let is_whole = filling.push(data) == PushOutcome::Ok && filling.finish();
    core.counters.add(Counter::FormsMade, u64::from(gzip.is_some() && is_kept && is_whole));
}
