//! Assembly of pages with instructions: Edge Side Includes and server-side includes.
//!
//! Delivery makes a [`Draft`] of such a page. For each request the page becomes a sequence of
//! pieces: texts and fragments. A fragment is a request like a client's, one level down, and its
//! reply comes from the store, a fetch or a further assembly. If all pieces are at hand, they
//! become one body without a copy or a task. Otherwise as many fragments as permitted start at
//! once, and a task sends the pieces in order.

mod document;
mod environment;
mod feed;
mod forwarder;
mod fragment;
mod fragment_forecast;
mod operations;
mod pieces;
mod readahead;

use std::collections::VecDeque;
use std::rc::Rc;

use base::Counter;
use codec::Coding;
use message::HeaderId;

use crate::state::assemble::{Clip, ComposedPage, Draft, GzipPage, PAGE_BYTES, ReadPage, permits};
use crate::state::body::{BodyPart, BodyParts, ReplyBody};
use crate::state::core::CoreState;
use crate::state::reply::{HeadSource, Reply};
use crate::state::request_context::RequestConnection;
use feed::UnfinishedPage;
use forwarder::{PageCoder, PageWriter};
use operations::Operations;
use pieces::{FragmentStarter, PagePiece, PagePieces, PageTextSource};

pub(crate) use document::plain;

/// Bytes without a coding that are put into a gzip page at once. The core computes their CRC-32
/// without a break; a task, which yields, does more than that.
const SUMMED_BYTES: u64 = 1 << 20;
/// Memory of a piece that is an arriving or decoded body, and of one that is a waiting request:
/// measured with pages of 64 pieces, rounded up.
const BODY_BYTES: u64 = 2_500;
const WAITS_BYTES: u64 = 6_000;

/// A page and its pieces, as far as they have started.
struct Assembly {
    reply: Reply,
    page: Rc<ComposedPage>,
    /// `None` before the first piece has started.
    pieces: Option<UnfinishedPage>,
}

/// The draft of the page that `reply` becomes; the reply's body is the page's own text.
pub(crate) fn draft(reply: Reply, page: ComposedPage) -> Box<dyn Draft> {
    Box::new(Assembly { reply, page: Rc::new(page), pieces: None })
}

impl Assembly {
    /// Starts the pieces and returns those that must be waited for. `None` if the reply is whole.
    fn pieces(&mut self, core: &Rc<CoreState>) -> Option<UnfinishedPage> {
        if self.pieces.is_some() {
            return self.pieces.take();
        }
        let Self { reply, page, .. } = self;
        core.counters.add(Counter::EsiPages, u64::from(!page.verbatim));
        if let (Some(trace), Some(page)) = (&reply.about.trace, Rc::get_mut(page)) {
            page.trace = Rc::clone(trace);
        }
        if let ReplyBody::Stream { reader, .. } = &mut reply.body {
            reader.hold_for(&page.context.top.account);
        }
        match std::mem::replace(&mut reply.body, ReplyBody::None) {
            body @ (ReplyBody::Parts(BodyParts::One(_)) | ReplyBody::Stream { .. })
                if page.verbatim =>
            {
                let (pieces, text) = (pieces::verbatim(body), PageTextSource::None);
                Some(UnfinishedPage { pieces, text, ops: Operations::none(page) })
            }
            ReplyBody::Parts(BodyParts::One(part)) if !part.is_file() => {
                let (read, text) = pieces::read(core, page, part);
                let mut ops = Operations::of_read(page, &read);
                let known = ops.known(core).unwrap_or_default();
                let pieces = FragmentStarter::new(core, page).of_known(known);
                match at_hand(pieces, page, &read, &text) {
                    Ok(parts) => self.put_together(parts),
                    Err(pieces) => return Some(UnfinishedPage { pieces, text, ops }),
                }
                None
            }
            ReplyBody::Stream { reader, .. } => {
                let ops = Operations::of_arriving(page, reader);
                Some(UnfinishedPage { pieces: PagePieces::new(), text: PageTextSource::None, ops })
            }
            body => {
                if page.gzip && matches!(body, ReplyBody::None | ReplyBody::Head(_)) {
                    say_gzip(reply);
                }
                reply.body = match body {
                    // The length of a page is known only once it is assembled.
                    ReplyBody::Head(_) => ReplyBody::Head(None),
                    body => body,
                };
                None
            }
        }
    }

    /// Makes `parts` the reply's body.
    fn put_together(&mut self, parts: VecDeque<BodyPart>) {
        let Self { reply, page, .. } = self;
        if page.gzip {
            say_gzip(reply);
        }
        reply.body = ReplyBody::Parts(BodyParts::Many(parts));
        if let Some(failure) = page.trace.failure.borrow_mut().take() {
            reply.about.failure = Some(Box::new(failure));
        }
        if page.trace.number.get() != 0 {
            reply.about.trace = Some(Rc::clone(&page.trace));
        }
    }
}

/// The parts of a page whose pieces are all at hand; `None` otherwise.
fn at_hand(
    pieces: PagePieces,
    page: &ComposedPage,
    read: &ReadPage,
    text: &PageTextSource,
) -> Result<VecDeque<BodyPart>, PagePieces> {
    let mut summed = 0;
    let is_there = |slot: &PagePiece| match slot {
        PagePiece::Text(_) | PagePiece::Gzip(..) => true,
        PagePiece::Part(part) if page.gzip => {
            summed += part.len();
            !part.is_file() && summed <= SUMMED_BYTES
        }
        PagePiece::Own(bytes) => {
            summed += bytes.len() as u64;
            !page.gzip || summed <= SUMMED_BYTES
        }
        PagePiece::Part(_) => true,
        _ => false,
    };
    let is_long = page.gzip && text.length() > PAGE_BYTES;
    if is_long || !pieces.iter().all(is_there) {
        return Err(pieces);
    }
    if !page.gzip {
        let part = |slot| match slot {
            PagePiece::Part(part) => Some(part),
            PagePiece::Own(bytes) => Some(BodyPart::Bytes(bytes)),
            PagePiece::Text(range) => text.part(range),
            _ => None,
        };
        return Ok(pieces.into_iter().filter_map(part).collect());
    }
    let mut stitch = GzipPage::begin(pieces.len());
    for slot in pieces {
        match slot {
            PagePiece::Text(range) => match Clip::find(&read.clips, &range) {
                Some(cut) => stitch.add_cut(cut),
                None => text.part(range).into_iter().for_each(|part| stitch.add_plain(part)),
            },
            PagePiece::Part(part) => stitch.add_plain(part),
            PagePiece::Own(bytes) => stitch.add_plain(BodyPart::Bytes(bytes)),
            PagePiece::Gzip(cut) => stitch.add_coded(&cut),
            _ => {}
        }
    }
    Ok(stitch.end())
}

/// Marks the head of a page as gzip.
fn say_gzip(reply: &mut Reply) {
    if let HeadSource::Owned(response) = &mut reply.head {
        response.headers.set(HeaderId::ContentEncoding, Coding::Gzip.token().as_bytes());
    }
}

impl Draft for Assembly {
    fn reply(&mut self) -> &mut Reply {
        &mut self.reply
    }

    fn begin(mut self: Box<Self>, core: &Rc<CoreState>) -> Result<Reply, Box<dyn Draft>> {
        self.pieces = self.pieces(core);
        if self.pieces.is_some() { Err(self) } else { Ok(self.reply) }
    }

    fn memory(&self) -> u64 {
        let bytes = |slot: &PagePiece| match slot {
            PagePiece::Body(..) | PagePiece::Gzip(..) => BODY_BYTES,
            PagePiece::Waits(_) => WAITS_BYTES,
            _ => size_of::<PagePiece>() as u64,
        };
        self.pieces.iter().flat_map(|pieces| &pieces.pieces).map(bytes).sum()
    }

    fn run(mut self: Box<Self>, core: &Rc<CoreState>, connection: RequestConnection<'_>) -> Reply {
        let Some(pieces) = self.pieces(core) else { return self.reply };
        let Self { mut reply, page, .. } = *self;
        let mut passage = connection.passage(&page.live.limits);
        passage.bytes = passage.bytes.min(permits::part_of(&passage.account));
        reply.about.trace = Some(Rc::clone(&page.trace));
        let (writer, reader) = cache::BodyWindow::window(passage.clone());
        let coder = if page.gzip { PageCoder::begin(&passage) } else { None };
        if coder.is_some() {
            say_gzip(&mut reply);
        }
        rt::spawn_local(feed::run(
            Rc::clone(core),
            page,
            pieces,
            PageWriter { writer, coder },
            passage,
            connection.ends,
        ));
        reply.body = ReplyBody::Stream { reader, length: None };
        reply
    }
}
