//! Feed: the half of an assembly task that starts fragments as early as permitted. The other half
//! ([`forwarder`](super::forwarder)) sends the pieces in order.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use base::Limit;
use cache::WindowLimit;
use codec::Coding;
use esi::{Fragment, ResolvedNode};
use origin::ClientEnds;
use tokio::sync::mpsc::{self, Sender};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::document;
use super::forwarder::{PageForwarder, PageWriter};
use super::fragment::{self, FragmentFailure, FragmentRequest, Gap};
use super::operations::{Operations, PageTruncation, decides};
use super::pieces::{
    ComingBody, FragmentStarter, PagePiece, PagePieces, PageTextSource, PendingFragment,
};
use super::readahead::{AssemblyReadahead, OwnText};
use crate::state::assemble::{ComposedPage, FragmentPermit, GzipSegment, permits};
use crate::state::body::{BodyPart, BodyParts, ReplyBody};
use crate::state::core::CoreState;
use crate::state::reply::Reply;
use crate::state::request_context::RequestConnection;

/// Pieces that may wait for earlier ones.
const PIECES: usize = 256;

/// The pieces of a page that waits for some of them, and the rest of the page.
pub(super) struct UnfinishedPage {
    pub(super) pieces: PagePieces,
    pub(super) text: PageTextSource,
    pub(super) ops: Operations,
}

/// A piece for the other half.
pub(super) enum Arrival {
    Text(OwnText),
    Part(BodyPart),
    Body(ComingBody),
    Fragment(Box<Fragment>, FragmentReply),
    /// All pieces of the first branch, or else the other branch.
    Try(Vec<Self>, Vec<ResolvedNode>),
    /// An operation that has not started.
    Op(Box<ResolvedNode>),
    /// The page cannot continue.
    Broken,
}

/// The future reply of a fragment in progress. Dropping it abandons the fragment.
pub(super) struct FragmentReply {
    reply: oneshot::Receiver<(FragmentRequest, Reply, FragmentPermit)>,
    /// The fragment's turn has come, so its reply is read at once.
    is_turn: Rc<Cell<bool>>,
    task: JoinHandle<()>,
}

impl Drop for FragmentReply {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl FragmentReply {
    /// Waits for the reply. Returns the fragment's request, its reply, and the permit of the body.
    pub(super) async fn wait(
        mut self,
        most: Option<Duration>,
    ) -> Result<(FragmentRequest, Reply, FragmentPermit), FragmentFailure> {
        let reply = &mut self.reply;
        let came = match most {
            Some(most) => {
                rt::time::timeout(most, reply).await.map_err(|_| FragmentFailure::Late)?
            }
            None => reply.await,
        };
        came.map_err(|_| FragmentFailure::Lost)
    }
}

/// The half that starts pieces.
pub(super) struct Feed {
    pub(super) core: Rc<CoreState>,
    pub(super) page: Rc<ComposedPage>,
    pub(super) passage: WindowLimit,
    pub(super) ahead: Rc<AssemblyReadahead>,
    /// The addresses of the client and of this side.
    ends: Option<ClientEnds>,
    text: PageTextSource,
    /// A waiting fragment has started, so later ones are behind it.
    has_first: Cell<bool>,
}

/// Starts the pieces of `page` and passes them to `out`.
pub(super) async fn run(
    core: Rc<CoreState>,
    page: Rc<ComposedPage>,
    pieces: UnfinishedPage,
    out: PageWriter,
    passage: WindowLimit,
    ends: Option<ClientEnds>,
) {
    let (sender, receiver) = mpsc::channel(PIECES);
    let mut watch = out.writer.watch();
    let ahead = Rc::new(AssemblyReadahead::new(&passage.account));
    let UnfinishedPage { pieces, text, ops } = pieces;
    let has_first = Cell::new(false);
    let feed = &Feed { core, page, passage, ahead, ends, text, has_first };
    let most = Duration::from_millis(feed.page.live.limits.esi_still_time);
    let begins = async {
        _ = feed.feed(pieces, ops, &sender).await;
        drop(sender);
        // The other half ends the page.
        std::future::pending::<()>().await;
    };
    tokio::select! {
        biased;
        () = PageForwarder { feed, out }.run(receiver) => {}
        () = begins => {}
        () = watch.abandoned() => {}
        () = feed.ahead.wait_until_stalled(most) => {
            feed.core.counters.limit(Limit::EsiStillTime);
            feed.page.note_ended(Limit::EsiStillTime);
        }
    }
}

impl Feed {
    /// Passes on the started pieces, then the rest as soon as it is known.
    async fn feed(
        &self,
        pieces: PagePieces,
        mut ops: Operations,
        to: &Sender<Arrival>,
    ) -> Result<(), PageAbandonment> {
        self.send(pieces, &mut ops, to).await?;
        loop {
            let known = match ops.next(&self.core, &self.ahead).await {
                Ok(Some(known)) => known,
                Ok(None) => return Ok(()),
                Err(PageTruncation) => return broken(to).await,
            };
            self.send(self.beginning().of_known(known), &mut ops, to).await?;
            self.ahead.room(self.passage.bytes).await;
        }
    }

    /// Passes pieces on. An operation that has not started starts once there is a permit.
    async fn send(
        &self,
        pieces: PagePieces,
        ops: &mut Operations,
        to: &Sender<Arrival>,
    ) -> Result<(), PageAbandonment> {
        for piece in self.pieces(pieces) {
            match piece {
                Arrival::Op(op) => match *op {
                    ResolvedNode::Include(fragment) if decides(&fragment) => {
                        self.in_turn(fragment, ops, to).await?;
                    }
                    op => {
                        for piece in self.begin_late(vec![op], false).await {
                            self.hand(piece, to).await?;
                        }
                    }
                },
                piece => self.hand(piece, to).await?,
            }
        }
        Ok(())
    }

    /// Waits for a fragment on which the following pieces depend, then passes it on or sets its
    /// variable.
    async fn in_turn(
        &self,
        mut fragment: Box<Fragment>,
        ops: &mut Operations,
        to: &Sender<Arrival>,
    ) -> Result<(), PageAbandonment> {
        fragment.wait = false;
        let name = fragment.set.take();
        let mut rest = self.begin_late(vec![ResolvedNode::Include(fragment)], false).await;
        rest.reverse();
        let mut value = Vec::new();
        while let Some(piece) = rest.pop() {
            match piece {
                Arrival::Fragment(fragment, coming) => match self.come(fragment, coming).await {
                    Ok(pieces) => rest.extend(pieces.into_iter().rev()),
                    Err(Gap::LeftOut) => {}
                    Err(Gap::Breaks) => return broken(to).await,
                },
                piece if name.is_none() => self.hand(piece, to).await?,
                piece => self.collect(piece, &mut value).await,
            }
        }
        if let Some(name) = name {
            ops.assign(&name, value);
        }
        Ok(())
    }

    /// Appends the bytes of a piece to `value`, up to the size of a variable.
    async fn collect(&self, piece: Arrival, value: &mut Vec<u8>) {
        let (_, limits) = document::reading(self.page.dialect, &self.page.live);
        let mut add = |bytes: &[u8]| {
            let room = limits.value_bytes.saturating_sub(value.len());
            value.extend_from_slice(&bytes[..bytes.len().min(room)]);
            bytes.len() < room
        };
        match piece {
            Arrival::Text(text) => _ = add(&text.bytes),
            Arrival::Part(BodyPart::Bytes(bytes)) => _ = add(&bytes),
            Arrival::Part(BodyPart::Stored(object, range)) => {
                for bytes in object.whole().iter().flat_map(|whole| whole.range(range.clone())) {
                    add(bytes);
                }
            }
            Arrival::Body(ComingBody { mut reader, .. }) => {
                _ = reader.unpark();
                while let Ok(Some(bytes)) = reader.next().await
                    && add(&bytes)
                {}
            }
            _ => {}
        }
    }

    /// The pieces of a fragment, or of its substitute.
    ///
    /// # Errors
    /// The fragment failed and has no substitute.
    pub(super) async fn come(
        &self,
        fragment: Box<Fragment>,
        coming: FragmentReply,
    ) -> Result<Vec<Arrival>, Gap> {
        let most = fragment.maxwait_ms.map(Duration::from_millis);
        coming.is_turn.set(true);
        let came = coming.wait(most).await.and_then(|(asked, reply, permit)| {
            Ok((fragment::judge(&self.core, &self.page, &fragment, &asked, reply)?, permit))
        });
        let (mut pieces, beginning) = (PagePieces::new(), self.beginning());
        match came {
            Ok((came, permit)) => beginning.add_body(came, permit, &fragment, &mut pieces),
            Err(failed) => beginning.instead(fragment, failed, &mut pieces)?,
        }
        Ok(self.pieces(pieces))
    }

    /// Decodes a gzip segment.
    fn decoded(&self, cut: GzipSegment) -> Arrival {
        let mut body = match cut.into_plain() {
            Ok(plain) => return Arrival::Part(plain),
            Err(part) => ReplyBody::Parts(BodyParts::One(part)),
        };
        fragment::decode(&self.core, &self.page, Coding::Gzip, &mut body);
        match body {
            ReplyBody::Stream { reader, .. } => Arrival::Body(ComingBody::own(reader)),
            _ => Arrival::Broken,
        }
    }

    /// Starts `ops` one after the other, each once there is a permit or its turn has come.
    /// `is_turn` says that it has.
    pub(super) async fn begin_late(&self, ops: Vec<ResolvedNode>, is_turn: bool) -> Vec<Arrival> {
        let mut pieces = Vec::with_capacity(ops.len());
        let mut rest: Vec<ResolvedNode> = ops.into_iter().rev().collect();
        while let Some(op) = rest.pop() {
            let is_turn = is_turn || self.place_or_turn().await;
            let beginning = match is_turn {
                true => FragmentStarter::in_turn(&self.core, &self.page),
                false => self.beginning(),
            };
            for piece in self.pieces(beginning.of_ops(vec![op])).into_iter().rev() {
                match piece {
                    Arrival::Op(op) => rest.push(*op),
                    piece => pieces.push(piece),
                }
            }
        }
        pieces
    }

    /// Passes a piece to the other half.
    async fn hand(&self, piece: Arrival, to: &Sender<Arrival>) -> Result<(), PageAbandonment> {
        self.ahead.set_idle(false);
        to.send(piece).await.map_err(|_| PageAbandonment)
    }

    /// Waits for a permit, or for the turn of the next operation; returns true if it is the turn.
    ///
    /// All permits may be held by fragments of an enclosing page whose turn comes later.
    async fn place_or_turn(&self) -> bool {
        tokio::select! {
            biased;
            () = self.page.context.top.permits.wait_until_free() => false,
            () = self.ahead.wait_until_idle() => true,
        }
    }

    fn beginning(&self) -> FragmentStarter<'_> {
        FragmentStarter::new(&self.core, &self.page)
    }

    fn pieces(&self, pieces: PagePieces) -> Vec<Arrival> {
        pieces.into_iter().map(|piece| self.piece(piece)).collect()
    }

    /// Turns a piece into an arrival. A waiting fragment gets a task of its own.
    fn piece(&self, piece: PagePiece) -> Arrival {
        match piece {
            PagePiece::Text(range) => {
                Arrival::Part(self.text.part(range).unwrap_or_else(BodyPart::empty))
            }
            PagePiece::Own(bytes) => Arrival::Text(OwnText::new(bytes, &self.ahead)),
            PagePiece::Gzip(cut) => self.decoded(cut),
            PagePiece::Part(part) => Arrival::Part(part),
            PagePiece::Body(coming) => Arrival::Body(coming),
            PagePiece::Waits(begun) => self.wait_for(*begun),
            PagePiece::Op(op) => Arrival::Op(Box::new(op)),
            PagePiece::Try(pieces, except) => Arrival::Try(self.pieces(pieces), except),
            PagePiece::Broken => Arrival::Broken,
        }
    }

    fn wait_for(&self, begun: PendingFragment) -> Arrival {
        let PendingFragment { fragment, asked, slow, mut permit } = begun;
        let (tell, reply) = oneshot::channel();
        let core = Rc::clone(&self.core);
        let (ends, passage) = (self.ends, self.passage.clone());
        // The page waits for this fragment first, so its window is not shared.
        let behind = if self.has_first.replace(true) { permit.window() } else { None };
        let is_turn = Rc::new(Cell::new(false));
        let has_turn = Rc::clone(&is_turn);
        let task = rt::spawn_local(async move {
            let most = passage.bytes.min(permits::part_of(&passage.account));
            let window = behind.map_or(most, |bytes| bytes.min(most));
            let connection =
                RequestConnection { ends, window, ..RequestConnection::of(&passage.account) };
            let mut answer = Box::pin(slow.run(&core, &asked.request, None, connection)).await;
            if let (ReplyBody::Stream { reader, .. }, false) = (&mut answer.body, has_turn.get()) {
                reader.park();
            }
            // Memory of a complete body is accounted for by its owner, not by its reader.
            let comes = matches!(answer.body, ReplyBody::Stream { .. });
            permit.answered(if comes { answer.body.length().unwrap_or(u64::MAX) } else { 0 });
            _ = tell.send((asked, answer, permit));
        });
        Arrival::Fragment(fragment, FragmentReply { reply, is_turn, task })
    }
}

/// The other half takes no more pieces.
struct PageAbandonment;

/// Ends the page.
async fn broken(to: &Sender<Arrival>) -> Result<(), PageAbandonment> {
    to.send(Arrival::Broken).await.map_err(|_| PageAbandonment)
}
