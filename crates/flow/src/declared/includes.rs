//! Includes: pages with instructions, as the rules of a site select them.

use std::sync::Arc;

use cache::{Flags, Object};
use codec::Coding;
use message::digest::digest_of;
use message::forwarding::add_via;
use message::targeted_control::surrogate_content;
use message::{HeaderBlock, HeaderId, Response, Status, Version};
use policy::{ConnectionPeer, EsiPages};

use crate::assemble::draft;
use crate::disposition::Start;
use crate::form;
use crate::pages;
use crate::problem::Problem;
use crate::shape::{ShapedResponse, matched, shape, shapes, unshaped};
use crate::state::assemble::{ComposedPage, Dialect, TopPage};
use crate::state::reply::{HeadSource, Reply};
use crate::state::request_context::RequestContext;
use crate::state::site::Site;
use crate::state::site_context::SiteContext;
use crate::stored_heads::stored_head;
use codec::CompressionScope;

/// The language's name in Surrogate-Control.
const ESI: &[u8] = b"ESI/1.0";

/// Fields about the bytes of a page before its assembly.
const OF_BYTES: [HeaderId; 4] =
    [HeaderId::AcceptRanges, HeaderId::ContentLength, HeaderId::Etag, HeaderId::LastModified];

/// The dialect of a response's instructions, if it is a page with instructions.
pub(super) fn dialect(site: &Site, response: &Response) -> Option<Dialect> {
    let headers = &response.headers;
    let is_read = || Coding::of_content(headers.values(HeaderId::ContentEncoding)).is_some();
    if !site.includes.any() || response.status != Status::OK || !is_read() {
        return None;
    }
    let is_announced = || surrogate_content(headers.values(HeaderId::SurrogateControl), ESI);
    match site.includes.esi {
        EsiPages::Announced if is_announced() => return Some(Dialect::Esi),
        EsiPages::Html if is_announced() || is_html(headers) => return Some(Dialect::Esi),
        EsiPages::Announced | EsiPages::Html | EsiPages::Never => {}
    }
    (site.includes.ssi && is_html(headers)).then_some(Dialect::Ssi)
}

fn is_html(headers: &HeaderBlock) -> bool {
    let kind = headers.value(HeaderId::ContentType).unwrap_or_default();
    let kind = kind.split(|b| *b == b';').next().unwrap_or_default().trim_ascii();
    kind.eq_ignore_ascii_case(b"text/html") || kind.eq_ignore_ascii_case(b"application/xhtml+xml")
}

/// Sets the flags that such a page is stored with.
pub(super) fn marks(site: &Site, dialect: Option<Dialect>, flags: &mut Flags) {
    flags.gzip_page = dialect.is_some() && site.compress != CompressionScope::Off;
    flags.esi = dialect == Some(Dialect::Esi);
    flags.ssi = dialect == Some(Dialect::Ssi);
}

/// The dialect of a stored page.
#[inline]
pub(crate) fn of_stored(flags: Flags) -> Option<Dialect> {
    match (flags.esi, flags.ssi) {
        (true, _) => Some(Dialect::Esi),
        (false, true) => Some(Dialect::Ssi),
        (false, false) => None,
    }
}

/// The page to be assembled for `reply`, which has the head of `object`.
pub(super) fn stored(
    ctx: &RequestContext<'_>,
    object: &Arc<Object>,
    dialect: Dialect,
    mut reply: Reply,
) -> Start {
    let Some(mut response) = stored_head(object) else {
        return Start::Reply(pages::problem(ctx.request, Problem::Internal));
    };
    let received = if object.flags().http10 { Version::Http10 } else { Version::Http11 };
    add_via(&mut response.headers, received, ctx.live.announce.pseudonym.as_str());
    if shapes(ctx) {
        let matched = matched(ctx, &response);
        let of = ShapedResponse::Stored(object, reply.served);
        if !shape(ctx, &mut response, of, &matched) {
            return Start::Reply(unshaped(ctx));
        }
    }
    reply.status = response.status;
    let is_gzip = object.flags().gzip_page && reply.body.declared_length() != Some(0);
    if is_gzip {
        form::vary_by_coding(&mut response.headers);
    }
    let taken = || form::accept(ctx.request).best([Coding::Gzip, Coding::Identity]);
    let gzip = is_gzip && ctx.downstream.page().is_none() && taken() == Some(Coding::Gzip);
    put_together(ctx, dialect, response, reply, gzip)
}

/// The page to be assembled for `reply`, with the head of `response`. Fields about the page's own
/// bytes are removed; the page is sent in `gzip` or without a coding.
pub(super) fn put_together(
    ctx: &RequestContext<'_>,
    dialect: Dialect,
    mut response: Response,
    mut reply: Reply,
    gzip: bool,
) -> Start {
    response
        .headers
        .retain(|field| !OF_BYTES.contains(&field.id) && digest_of(field.name).is_none());
    reply.head = HeadSource::Owned(Box::new(response));
    let request = ctx.request.clone();
    let place = SiteContext { live: ctx.live, site: ctx.site };
    let mut page = ComposedPage::new(dialect, place, request, ctx.downstream.page(), || {
        let peer = ctx.notes.client.unwrap_or(ConnectionPeer::Unnamed(None));
        let mut top =
            TopPage::new(ctx.live, ctx.request.clone(), peer, None, ctx.connection.account);
        // Each fragment is judged by its own cookies; a certificate applies to all of them.
        top.personal = ctx.site.client_check.is_some() && ctx.notes.personal;
        top
    });
    (page.gzip, page.routes) = (gzip, ctx.notes.routes());
    if let Some(cookies) = ctx.cookies {
        let headers = &mut page.request.headers;
        page.cookies_left = Some(headers.value(HeaderId::Cookie).unwrap_or_default().into());
        match cookies {
            [] => headers.remove(HeaderId::Cookie),
            cookies => headers.set(HeaderId::Cookie, cookies),
        }
    }
    Start::page(place, draft(reply, page))
}
