//! Pieces of a page, made from its operations: texts are taken, and fragments start.

use std::cell::Cell;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use base::Now;
use bytes::Bytes;
use cache::{Object, Reader};
use esi::{Fragment, ResolvedNode};

use super::document;
use super::fragment::{self, FragmentBody, FragmentFailure, Gap};
use super::operations::is_awaited;
use crate::disposition::{Start, WaitingRequest};
use crate::state::assemble::{ComposedPage, FragmentPermit, GzipSegment, ReadPage};
use crate::state::body::{BodyPart, BodyParts, ReplyBody};
use crate::state::core::CoreState;
use crate::state::site_context::SiteContext;

/// The pieces of a page in order.
pub(super) type PagePieces = Vec<PagePiece>;

/// A piece of a page.
pub(super) enum PagePiece {
    /// A text of the page.
    Text(Range<u64>),
    /// A text of the page, as bytes.
    Own(Bytes),
    /// A part of a body that is at hand.
    Part(BodyPart),
    /// A complete gzip body that can be put into a gzip page.
    Gzip(GzipSegment),
    /// A body that still arrives.
    Body(ComingBody),
    /// A fragment that must wait.
    Waits(Box<PendingFragment>),
    /// All pieces of the first branch, or else the operations of the other.
    Try(PagePieces, Vec<ResolvedNode>),
    /// An operation that has not started, for lack of a permit.
    Op(ResolvedNode),
    /// A failed fragment without which the page cannot continue.
    Broken,
}

/// An arriving body and its context.
pub(super) struct ComingBody {
    pub(super) reader: Reader,
    /// The page continues if the body breaks off.
    pub(super) goes_on: bool,
    /// The permit, held while the body arrives.
    pub(super) permit: FragmentPermit,
    /// The body's fragment, to be requested again if the window has moved past its beginning.
    pub(super) fragment: Option<Box<Fragment>>,
}

impl ComingBody {
    /// A body of the page itself.
    pub(super) fn own(reader: Reader) -> Self {
        Self { reader, goes_on: false, permit: FragmentPermit::of_turn(), fragment: None }
    }
}

/// A fragment that has started and must wait.
pub(super) struct PendingFragment {
    pub(super) fragment: Box<Fragment>,
    pub(super) asked: fragment::FragmentRequest,
    pub(super) slow: Box<WaitingRequest>,
    pub(super) permit: FragmentPermit,
}

/// The source of a page's text.
#[derive(Clone)]
pub(super) enum PageTextSource {
    Stored(Arc<Object>),
    Bytes(Bytes),
    /// An arriving page, whose texts are bytes.
    None,
}

impl PageTextSource {
    /// The length of the page, if it is complete.
    pub(super) fn length(&self) -> u64 {
        match self {
            Self::Stored(object) => object.length().unwrap_or(0),
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::None => 0,
        }
    }

    pub(super) fn part(&self, range: Range<u64>) -> Option<BodyPart> {
        match self {
            Self::Stored(object) => Some(BodyPart::Stored(Arc::clone(object), range)),
            Self::Bytes(bytes) => {
                Some(BodyPart::Bytes(bytes.slice(range.start as usize..range.end as usize)))
            }
            Self::None => None,
        }
    }
}

/// Reads a complete page.
pub(super) fn read(
    core: &CoreState,
    page: &ComposedPage,
    whole: BodyPart,
) -> (Arc<ReadPage>, PageTextSource) {
    match whole {
        BodyPart::Stored(object, _) => {
            (document::of_object(core, page, &object), PageTextSource::Stored(object))
        }
        BodyPart::Bytes(bytes) => {
            let document = match &page.instructions {
                Some(known) => Arc::clone(&known.read),
                None => document::of_bytes(core, page, &bytes),
            };
            (document, PageTextSource::Bytes(bytes))
        }
        BodyPart::File(..) => (document::of_bytes(core, page, &[]), PageTextSource::None),
    }
}

/// The piece of a page that is sent unchanged.
pub(super) fn verbatim(body: ReplyBody) -> PagePieces {
    match body {
        ReplyBody::Parts(parts) => parts.map(PagePiece::Part).collect(),
        ReplyBody::Stream { reader, .. } => vec![PagePiece::Body(ComingBody::own(reader))],
        _ => PagePieces::new(),
    }
}

/// The starter of a page's fragments.
pub(super) struct FragmentStarter<'a> {
    core: &'a Rc<CoreState>,
    page: &'a Rc<ComposedPage>,
    at: Now,
    /// The end of the last fragment that was at hand, and so the start of the next, in
    /// microseconds: reading the clock twice for each fragment would cost too much.
    looked_us: Cell<u64>,
    /// The next waiting fragment has its turn and needs no permit.
    is_turn: Cell<bool>,
}

impl<'a> FragmentStarter<'a> {
    /// The starter for the fragments of `page` that may start now.
    pub(super) fn new(core: &'a Rc<CoreState>, page: &'a Rc<ComposedPage>) -> Self {
        let at = core.now();
        let looked_us = Cell::new(core.log.micros(at));
        Self { core, page, at, looked_us, is_turn: Cell::new(false) }
    }

    /// The starter for the fragments of `page` whose turn has come: the first starts without a
    /// permit.
    pub(super) fn in_turn(core: &'a Rc<CoreState>, page: &'a Rc<ComposedPage>) -> Self {
        Self { is_turn: Cell::new(true), ..Self::new(core, page) }
    }

    /// The pieces of `ops`. A last fragment on which further operations depend is not started.
    pub(super) fn of_known(&self, mut ops: Vec<ResolvedNode>) -> PagePieces {
        let awaited = ops.pop_if(|op| is_awaited(op));
        let mut pieces = self.of_ops(ops);
        pieces.extend(awaited.map(PagePiece::Op));
        pieces
    }

    /// The pieces of `ops`.
    pub(super) fn of_ops(&self, ops: Vec<ResolvedNode>) -> PagePieces {
        let mut pieces = Vec::with_capacity(ops.len());
        for op in ops {
            if let Err(Gap::Breaks) = self.add(op, &mut pieces) {
                pieces.push(PagePiece::Broken);
            }
        }
        pieces
    }

    /// Appends the pieces of `op`.
    ///
    /// # Errors
    /// A fragment failed.
    fn add(&self, op: ResolvedNode, pieces: &mut PagePieces) -> Result<(), Gap> {
        match op {
            ResolvedNode::Text(range) => pieces.push(PagePiece::Text(range)),
            ResolvedNode::Bytes(bytes) => pieces.push(PagePiece::Own(bytes.into())),
            ResolvedNode::Include(fragment) => return self.begin(fragment, pieces),
            ResolvedNode::Try { attempt, except } => self.attempt(attempt, except, pieces),
        }
        Ok(())
    }

    /// Starts an attempt, which is decided at once if all its pieces are at hand.
    fn attempt(
        &self,
        attempt: Vec<ResolvedNode>,
        except: Vec<ResolvedNode>,
        pieces: &mut PagePieces,
    ) {
        let mut tried = Vec::with_capacity(attempt.len());
        let whole = attempt.into_iter().try_for_each(|op| self.add(op, &mut tried));
        if whole.is_err() {
            return pieces.extend(self.of_ops(except));
        }
        match tried.iter().any(|piece| {
            matches!(piece, PagePiece::Waits(_) | PagePiece::Op(_) | PagePiece::Try(..))
        }) {
            true => pieces.push(PagePiece::Try(tried, except)),
            false => pieces.append(&mut tried),
        }
    }

    /// Starts a fragment.
    ///
    /// # Errors
    /// The fragment and its substitute failed.
    fn begin(&self, fragment: Box<Fragment>, pieces: &mut PagePieces) -> Result<(), Gap> {
        let top = &self.page.context.top;
        let permit = top.permits.take(&top.account);
        let Some(permit) = permit.or_else(|| self.is_turn.get().then(FragmentPermit::of_turn))
        else {
            pieces.push(PagePiece::Op(ResolvedNode::Include(fragment)));
            return Ok(());
        };
        match self.start(&fragment) {
            Ok((asked, Start::Slow(slow))) => {
                self.is_turn.set(false);
                pieces.push(PagePiece::Waits(Box::new(PendingFragment {
                    fragment,
                    asked,
                    slow,
                    permit,
                })));
                Ok(())
            }
            Ok((asked, Start::Reply(reply))) => {
                drop(permit);
                let judged = fragment::judge(self.core, self.page, &fragment, &asked, reply);
                self.looked_us.set(asked.ended_us.get().max(asked.began_us));
                self.page.spare.set(Some(asked.request));
                match judged {
                    Ok(came) => {
                        let from = pieces.len();
                        self.add_body(came, FragmentPermit::of_turn(), &fragment, pieces);
                        for piece in &mut pieces[from..] {
                            if let PagePiece::Body(coming) = piece {
                                coming.reader.park();
                            }
                        }
                        Ok(())
                    }
                    Err(failed) => self.instead(fragment, failed, pieces),
                }
            }
            Err(failed) => {
                drop(permit);
                self.instead(fragment, failed, pieces)
            }
        }
    }

    /// Starts the substitute of a failed fragment.
    ///
    /// # Errors
    /// There is no substitute.
    pub(super) fn instead(
        &self,
        mut fragment: Box<Fragment>,
        failed: FragmentFailure,
        pieces: &mut PagePieces,
    ) -> Result<(), Gap> {
        if let Some(alt) = fragment.alt.take() {
            fragment.src = alt;
            return self.begin(fragment, pieces);
        }
        let missing = fragment::note_failed(self.core, self.page, &fragment, &failed);
        if let Some(stub) = fragment.stub.take() {
            pieces.extend(self.of_ops(stub));
            return Ok(());
        }
        missing
    }

    /// Appends the body of `fragment`, which keeps its permit while it arrives.
    pub(super) fn add_body(
        &self,
        came: FragmentBody,
        permit: FragmentPermit,
        fragment: &Fragment,
        pieces: &mut PagePieces,
    ) {
        match came {
            FragmentBody::Gzip(cut) => pieces.push(PagePiece::Gzip(cut)),
            FragmentBody::Body(ReplyBody::Parts(BodyParts::One(part))) if part.is_empty() => {}
            FragmentBody::Body(ReplyBody::Parts(parts)) => {
                pieces.extend(parts.map(PagePiece::Part));
            }
            FragmentBody::Body(ReplyBody::Stream { reader, .. }) => {
                let goes_on = self.page.goes_on(fragment.onerror);
                let fragment = Some(Box::new(fragment.clone()));
                pieces.push(PagePiece::Body(ComingBody { reader, goes_on, permit, fragment }));
            }
            FragmentBody::Body(_) => {}
        }
    }

    /// Starts the request for `fragment` without waiting.
    ///
    /// # Errors
    /// The reason for which there is no request.
    fn start(
        &self,
        fragment: &Fragment,
    ) -> Result<(fragment::FragmentRequest, Start), FragmentFailure> {
        let Self { core, page, at, .. } = self;
        page.count(&core.counters).map_err(FragmentFailure::Limit)?;
        let (mut request, site) = fragment::request(page, fragment)?;
        let site_ctx = SiteContext { live: &page.live, site: &site };
        let start = core.start_fragment(site_ctx, &mut request, &page.context, *at);
        let began_us = self.looked_us.get();
        Ok((
            fragment::FragmentRequest { request, at: *at, began_us, ended_us: Cell::default() },
            start,
        ))
    }
}
