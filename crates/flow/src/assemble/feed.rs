//! The task of a page that must wait for some of its pieces: one half has fragments begin as early
//! as may be, the other hands on what has come, in the page's order.

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use base::memory::Full;
use base::{Account, Held, Limit};
use bytes::Bytes;
use cache::{Passage, Reader};
use codec::{Coding, STEP_BYTES};
use esi::{Document, Fragment, Node, Op, Run};
use origin::ClientEnds;
use tokio::sync::mpsc::{self, Sender};
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;

use super::begin::{self, Beginning, Begun, ComingBody, FragmentBody, Slot, Slots, Text};
use super::document;
use super::environment::Question;
use super::fragment::{self, Absent, Asked, Gap};
use super::hand_on::{HandOn, PageWriter};
use super::supply::Supply;
use crate::state::ask::Front;
use crate::state::assemble::{Composed, GzipSegment, OwnPlace, places};
use crate::state::body::{Part, Parts, ReplyBody};
use crate::state::core::Core;
use crate::state::reply::Reply;

/// Pieces that wait for those before them.
const PIECES: usize = 256;

/// A piece on its way to its place.
pub(super) enum Arrival {
    Text(OwnText),
    Part(Part),
    Body(ComingBody),
    Fragment(Box<Fragment>, Coming),
    /// All of the first, or else the others.
    Try(Vec<Self>, Vec<Op>),
    /// Something that has not begun.
    Op(Box<Op>),
    /// The page cannot go on.
    Broken,
}

/// A text of the page itself, in bytes that are counted as long as it waits.
pub(super) struct OwnText {
    pub(super) bytes: Bytes,
    ahead: Rc<Ahead>,
}

impl OwnText {
    fn new(bytes: Bytes, ahead: &Rc<Ahead>) -> Self {
        ahead.more(bytes.len() as u64);
        Self { bytes, ahead: Rc::clone(ahead) }
    }
}

impl Drop for OwnText {
    fn drop(&mut self) {
        self.ahead.less(self.bytes.len() as u64);
    }
}

/// A fragment's reply, which comes. Nobody waits for it any more when this is dropped.
pub(super) struct Coming {
    reply: oneshot::Receiver<(Asked, Reply, OwnPlace)>,
    /// Its turn has come: what it is answered with is read at once.
    is_turn: Rc<Cell<bool>>,
    task: JoinHandle<()>,
}

impl Drop for Coming {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Coming {
    /// The fragment's request, what it was answered with, and the place of the answer's body.
    pub(super) async fn wait(
        mut self,
        most: Option<Duration>,
    ) -> Result<(Asked, Reply, OwnPlace), Absent> {
        let reply = &mut self.reply;
        let came = match most {
            Some(most) => rt::time::timeout(most, reply).await.map_err(|_| Absent::Late)?,
            None => reply.await,
        };
        came.map_err(|_| Absent::Lost)
    }
}

/// The distance between the two halves of a page's task, and what they tell each other.
#[derive(Debug)]
pub(super) struct Ahead {
    /// Bytes of text that wait for the pieces before them.
    bytes: Cell<u64>,
    less: Notify,
    /// Nothing is left to be handed on: what begins next has its turn at once.
    is_idle: Cell<bool>,
    idle: Notify,
    /// Pieces handed on, and if the page's reader is what the next one waits for.
    moved: Cell<u64>,
    waits_for_reader: Cell<bool>,
    /// The text's bytes, held for the client.
    held: RefCell<Held>,
}

impl Ahead {
    /// None yet, held on `account`.
    fn new(account: &Arc<Account>) -> Self {
        Self {
            bytes: Cell::default(),
            less: Notify::default(),
            is_idle: Cell::default(),
            idle: Notify::default(),
            moved: Cell::default(),
            waits_for_reader: Cell::default(),
            held: RefCell::new(account.hold_anyway(0)),
        }
    }

    /// There are more of them.
    fn more(&self, bytes: u64) {
        self.bytes.set(self.bytes.get() + bytes);
        // They are copies of what has been held.
        self.held.borrow_mut().grow_anyway(bytes);
    }

    /// Ready when they are no more than `most`.
    async fn room(&self, most: u64) {
        while self.bytes.get() > most {
            self.less.notified().await;
        }
    }

    /// Some of them wait no more.
    fn less(&self, bytes: u64) {
        self.bytes.set(self.bytes.get().saturating_sub(bytes));
        self.held.borrow_mut().shrink_to(self.bytes.get());
        self.less.notify_one();
    }

    /// Says if nothing is left to be handed on.
    pub(super) fn set_idle(&self, is_idle: bool) {
        self.is_idle.set(is_idle);
        if is_idle {
            self.idle.notify_one();
        }
    }

    /// Ready when nothing is left to be handed on.
    async fn idles(&self) {
        while !self.is_idle.get() {
            self.idle.notified().await;
        }
    }

    /// Something has been handed on, and perhaps the reader must take it first.
    pub(super) fn moved(&self, waits_for_reader: bool) {
        self.moved.set(self.moved.get() + 1);
        self.waits_for_reader.set(waits_for_reader);
    }

    /// Ready when for `most`, and not twice as long, nothing was handed on that the reader would
    /// have taken.
    async fn stands_still(&self, most: Duration) {
        loop {
            let before = self.moved.get();
            rt::time::sleep(most).await;
            if self.moved.get() == before && !self.waits_for_reader.get() {
                return;
            }
        }
    }
}

/// The half that has pieces begin.
pub(super) struct Feed {
    pub(super) core: Rc<Core>,
    pub(super) page: Rc<Composed>,
    pub(super) passage: Passage,
    pub(super) ahead: Rc<Ahead>,
    /// The client's address and ours.
    ends: Option<ClientEnds>,
    text: Text,
    /// A fragment has begun that must wait: those after it are behind it.
    has_first: Cell<bool>,
}

/// Has the pieces of `page` come and hands them to `out`.
pub(super) async fn run(
    core: Rc<Core>,
    page: Rc<Composed>,
    source: Supply,
    out: PageWriter,
    passage: Passage,
    ends: Option<ClientEnds>,
) {
    let (sender, receiver) = mpsc::channel(PIECES);
    let mut watch = out.writer.watch();
    let ahead = Rc::new(Ahead::new(&passage.account));
    let text = match &source {
        Supply::Slots(_, text) | Supply::Nodes(_, text) => text.clone(),
        Supply::Stream(_) => Text::None,
    };
    let has_first = Cell::new(false);
    let feed = Feed { core, page, passage, ahead: Rc::clone(&ahead), ends, text, has_first };
    let feed = Rc::new(feed);
    let hand_on = HandOn::new(Rc::clone(&feed), out, Rc::clone(&ahead));
    let most = Duration::from_millis(feed.page.live.limits.esi_still_time);
    let begins = async {
        match source {
            Supply::Slots(slots, _) => _ = feed.send(feed.pieces(slots), &sender).await,
            Supply::Nodes(read, _) => _ = feed.nodes(&read.document, &sender).await,
            Supply::Stream(reader) => _ = feed.stream(reader, &sender).await,
        }
        drop(sender);
        // The other half ends the page.
        std::future::pending::<()>().await;
    };
    tokio::select! {
        biased;
        () = hand_on.run(receiver) => {}
        () = begins => {}
        () = watch.abandoned() => {}
        () = ahead.stands_still(most) => {
            feed.core.counters.limit(Limit::EsiStillTime);
            feed.page.note_ended(Limit::EsiStillTime);
        }
    }
}

impl Feed {
    /// Hands on the pieces of a page that is there, some of whose fragments decide what follows
    /// them.
    async fn nodes(&self, document: &Document, to: &Sender<Arrival>) -> Result<(), Gone> {
        let (_, limits) = document::reading(self.page.dialect, &self.page.live);
        let mut run = Run::new(limits);
        self.resolve(&mut run, document.nodes(), to, |ops| ops).await
    }

    /// Reads a page that still comes and hands on its pieces as soon as they are known.
    async fn stream(&self, mut reader: Reader, to: &Sender<Arrival>) -> Result<(), Gone> {
        let (rules, limits) = document::reading(self.page.dialect, &self.page.live);
        let (mut parser, mut nodes) = (esi::Parser::new(rules, limits), Vec::new());
        let (mut run, mut text) = (Run::new(limits), Unsent::new(&self.passage.account));
        loop {
            let bytes = match reader.next().await {
                Ok(Some(bytes)) => bytes,
                Ok(None) => break,
                Err(_) => return broken(to).await,
            };
            for step in bytes.chunks(STEP_BYTES) {
                if text.add(step).is_err() {
                    // The pieces before it give their memory back when they are handed on.
                    self.ahead.idles().await;
                    if text.add(step).is_err() {
                        self.core.counters.limit(Limit::ClientMemory);
                        return broken(to).await;
                    }
                }
                parser.push(step, &mut nodes);
                if text.bytes.len() as u64 > self.page.live.limits.esi_bytes {
                    self.core.counters.limit(Limit::EsiBytes);
                    self.page.note_ended(Limit::EsiBytes);
                    return broken(to).await;
                }
                self.known(&mut nodes, &mut run, &mut text, to).await?;
            }
        }
        document::note(&self.core, &self.page, &parser.finish(&mut nodes));
        self.known(&mut nodes, &mut run, &mut text, to).await
    }

    /// Hands on what is known of such a page.
    async fn known(
        &self,
        nodes: &mut Vec<Node>,
        run: &mut Run,
        text: &mut Unsent,
        to: &Sender<Arrival>,
    ) -> Result<(), Gone> {
        nodes.iter_mut().for_each(|node| node.hold(&|range| text.bytes(range).into()));
        self.resolve(run, nodes, to, |ops| text.take(ops)).await?;
        nodes.clear();
        self.ahead.room(self.passage.bytes).await;
        Ok(())
    }

    /// Hands on what `nodes` come to. A fragment that decides what follows it is waited for.
    async fn resolve(
        &self,
        run: &mut Run,
        nodes: &[Node],
        to: &Sender<Arrival>,
        mut with_text: impl FnMut(Vec<Op>) -> Vec<Op>,
    ) -> Result<(), Gone> {
        let mut ops = Vec::with_capacity(nodes.len());
        for node in nodes {
            let resolved = {
                let question = Question::of(&self.page, self.core.now());
                run.resolve(node, &question, &mut ops)
            };
            if resolved.is_err() {
                self.core.counters.limit(Limit::EsiNodes);
                return broken(to).await;
            }
            if ops.iter().any(is_awaited) {
                for op in with_text(std::mem::take(&mut ops)) {
                    self.in_turn(op, run, to).await?;
                }
            }
        }
        let pieces = self.begin(with_text(ops));
        self.send(pieces, to).await
    }

    /// Hands on what `op` comes to; if it is a fragment that decides what follows, it is waited
    /// for.
    async fn in_turn(&self, op: Op, run: &mut Run, to: &Sender<Arrival>) -> Result<(), Gone> {
        if !is_awaited(&op) {
            let pieces = self.begin(vec![op]);
            return self.send(pieces, to).await;
        }
        let name = if let Op::Include(fragment) = &op { fragment.set.clone() } else { None };
        let mut rest = self.begin_late(vec![op], false).await;
        rest.reverse();
        let mut value = Vec::new();
        while let Some(piece) = rest.pop() {
            let piece = match piece {
                Arrival::Fragment(fragment, coming) => {
                    let next = match self.come(&fragment, coming).await {
                        Ok(came) => self.pieces_of(came, &fragment),
                        Err(failed) => match self.instead(fragment, failed) {
                            Ok(pieces) => pieces,
                            Err(Gap::LeftOut) => Vec::new(),
                            Err(Gap::Breaks) => return broken(to).await,
                        },
                    };
                    rest.extend(next.into_iter().rev());
                    continue;
                }
                piece => piece,
            };
            match &name {
                None => self.hand(piece, to).await?,
                Some(_) => self.collect(piece, &mut value).await,
            }
        }
        if let Some(name) = name {
            run.assign(&name, value);
        }
        Ok(())
    }

    /// Adds the bytes of a piece to `value`, as many as a variable may have.
    async fn collect(&self, piece: Arrival, value: &mut Vec<u8>) {
        let (_, limits) = document::reading(self.page.dialect, &self.page.live);
        let mut add = |bytes: &[u8]| {
            let room = limits.value_bytes.saturating_sub(value.len());
            value.extend_from_slice(&bytes[..bytes.len().min(room)]);
            bytes.len() < room
        };
        match piece {
            Arrival::Text(text) => _ = add(&text.bytes),
            Arrival::Part(Part::Bytes(bytes)) => _ = add(&bytes),
            Arrival::Part(Part::Stored(object, range)) => {
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

    /// The body of a fragment, and its place.
    pub(super) async fn come(
        &self,
        fragment: &Fragment,
        coming: Coming,
    ) -> Result<FragmentBody, Absent> {
        let most = fragment.maxwait_ms.map(Duration::from_millis);
        coming.is_turn.set(true);
        let (asked, reply, place) = coming.wait(most).await?;
        let came = fragment::judge(&self.core, &self.page, fragment, &asked, reply)?;
        Ok(FragmentBody { came, place })
    }

    /// The pieces of a fragment's body.
    pub(super) fn pieces_of(&self, body: FragmentBody, fragment: &Fragment) -> Vec<Arrival> {
        let mut slots = Slots::new();
        let goes_on = self.page.goes_on(fragment.onerror);
        begin::add_body(body, fragment, goes_on, &mut slots);
        self.pieces(slots)
    }

    /// A body in gzip without its coding.
    fn unfolded(&self, cut: GzipSegment) -> Arrival {
        let mut body = match cut.into_plain() {
            Ok(plain) => return Arrival::Part(plain),
            Err(part) => ReplyBody::Parts(Parts::One(part)),
        };
        fragment::unfold(&self.core, &self.page, Coding::Gzip, &mut body);
        match body {
            ReplyBody::Stream { reader, .. } => Arrival::Body(ComingBody::own(reader)),
            _ => Arrival::Broken,
        }
    }

    /// Hands pieces on; what has not begun begins when there is a place for it.
    async fn send(&self, pieces: Vec<Arrival>, to: &Sender<Arrival>) -> Result<(), Gone> {
        for piece in pieces {
            match piece {
                Arrival::Op(op) => {
                    for piece in self.begin_late(vec![*op], false).await {
                        self.hand(piece, to).await?;
                    }
                }
                piece => self.hand(piece, to).await?,
            }
        }
        Ok(())
    }

    /// Begins `ops` one after the other, each when there is a place for it, or when its turn has
    /// come; `is_turn` says that it has.
    pub(super) async fn begin_late(&self, ops: Vec<Op>, is_turn: bool) -> Vec<Arrival> {
        let mut pieces = Vec::with_capacity(ops.len());
        let mut rest: Vec<Op> = ops.into_iter().rev().collect();
        while let Some(op) = rest.pop() {
            let is_turn = is_turn || self.place_or_turn().await;
            let beginning = match is_turn {
                true => Beginning::in_turn(&self.core, &self.page),
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

    /// Hands a piece to the other half.
    async fn hand(&self, piece: Arrival, to: &Sender<Arrival>) -> Result<(), Gone> {
        self.ahead.set_idle(false);
        to.send(piece).await.map_err(|_| Gone)
    }

    /// Waits for a place, or for the turn of what is to begin; returns true if it is that.
    ///
    /// The places may all be taken by fragments of a page that this one is a fragment of, and whose
    /// turn comes after it.
    async fn place_or_turn(&self) -> bool {
        tokio::select! {
            biased;
            () = self.page.within.top.places.some() => false,
            () = self.ahead.idles() => true,
        }
    }

    /// Begins `ops` as far as there are places.
    fn begin(&self, ops: Vec<Op>) -> Vec<Arrival> {
        self.pieces(self.beginning().of_ops(ops))
    }

    /// The pieces that take the place of a fragment that failed.
    ///
    /// # Errors
    /// When there are none.
    pub(super) fn instead(
        &self,
        fragment: Box<Fragment>,
        failed: Absent,
    ) -> Result<Vec<Arrival>, Gap> {
        let mut slots = Slots::new();
        self.beginning().instead(fragment, failed, &mut slots)?;
        Ok(self.pieces(slots))
    }

    fn beginning(&self) -> Beginning<'_> {
        Beginning::new(&self.core, &self.page)
    }

    pub(super) fn pieces(&self, slots: Slots) -> Vec<Arrival> {
        slots.into_iter().map(|slot| self.piece(slot)).collect()
    }

    /// The piece of a slot: fragments that wait do so in tasks of their own from here on.
    fn piece(&self, slot: Slot) -> Arrival {
        match slot {
            Slot::Text(range) => Arrival::Part(self.text.part(range).unwrap_or_else(Part::empty)),
            Slot::Own(bytes) => Arrival::Text(OwnText::new(bytes, &self.ahead)),
            Slot::Gzip(cut) => self.unfolded(cut),
            Slot::Part(part) => Arrival::Part(part),
            Slot::Body(coming) => Arrival::Body(coming),
            Slot::Waits(begun) => self.wait_for(*begun),
            Slot::Op(op) => Arrival::Op(Box::new(op)),
            Slot::Try(slots, except) => Arrival::Try(self.pieces(slots), except),
            Slot::Broken => Arrival::Broken,
        }
    }

    fn wait_for(&self, begun: Begun) -> Arrival {
        let Begun { fragment, asked, slow, mut place } = begun;
        let (tell, reply) = oneshot::channel();
        let core = Rc::clone(&self.core);
        let (ends, passage) = (self.ends, self.passage.clone());
        // The page waits for the first one: what its window needs is not shared.
        let behind = if self.has_first.replace(true) { place.window() } else { None };
        let is_turn = Rc::new(Cell::new(false));
        let has_turn = Rc::clone(&is_turn);
        let task = rt::spawn_local(async move {
            let most = passage.bytes.min(places::part_of(&passage.account));
            let window = behind.map_or(most, |bytes| bytes.min(most));
            let front = Front { ends, window, ..Front::of(&passage.account) };
            let mut answer = Box::pin(slow.run(&core, &asked.request, None, front)).await;
            if let (ReplyBody::Stream { reader, .. }, false) = (&mut answer.body, has_turn.get()) {
                reader.park();
            }
            // What is there already is held as what it is, not by who reads it.
            let comes = matches!(answer.body, ReplyBody::Stream { .. });
            place.answered(if comes { answer.body.length().unwrap_or(u64::MAX) } else { 0 });
            _ = tell.send((asked, answer, place));
        });
        Arrival::Fragment(fragment, Coming { reply, is_turn, task })
    }
}

/// Nobody takes pieces any more.
struct Gone;

/// Ends the page.
async fn broken(to: &Sender<Arrival>) -> Result<(), Gone> {
    to.send(Arrival::Broken).await.map_err(|_| Gone)
}

/// Returns true if `op` is a fragment that decides what follows it.
pub(super) fn is_awaited(op: &Op) -> bool {
    matches!(op, Op::Include(fragment) if fragment.wait || fragment.set.is_some())
}

/// The bytes of a page that still comes which belong to no piece yet, held for the client.
#[derive(Debug)]
struct Unsent {
    bytes: Vec<u8>,
    /// Where in the page they begin.
    from: u64,
    held: Held,
}

impl Unsent {
    /// None yet, held on `account`.
    fn new(account: &Arc<Account>) -> Self {
        Self { bytes: Vec::new(), from: 0, held: account.hold_anyway(0) }
    }

    /// Takes more of them.
    ///
    /// # Errors
    /// When there is no memory for that.
    fn add(&mut self, bytes: &[u8]) -> Result<(), Full> {
        let wanted = self.bytes.len() + bytes.len();
        if wanted > self.bytes.capacity() {
            let room = wanted.max(2 * self.bytes.capacity());
            self.held.grow(room as u64 - self.held.bytes())?;
            self.bytes.reserve_exact(room - self.bytes.len());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// The bytes of `range`, as far as they are there.
    fn bytes(&self, range: &Range<u64>) -> &[u8] {
        let at = |offset: u64| (offset.saturating_sub(self.from) as usize).min(self.bytes.len());
        &self.bytes[at(range.start)..at(range.end)]
    }

    /// The same operations with their texts in bytes.
    fn take(&mut self, ops: Vec<Op>) -> Vec<Op> {
        let mut end = self.from;
        let ops = self.copied(ops, &mut end);
        self.bytes.drain(..(end - self.from) as usize);
        self.from = end;
        ops
    }

    fn copied(&self, ops: Vec<Op>, end: &mut u64) -> Vec<Op> {
        let copied = |op| match op {
            Op::Text(range) => {
                *end = range.end.max(*end);
                Op::Bytes(self.bytes(&range).to_vec())
            }
            Op::Try { attempt, except } => {
                let attempt = self.copied(attempt, end);
                Op::Try { attempt, except: self.copied(except, end) }
            }
            Op::Include(mut fragment) => {
                fragment.stub = fragment.stub.take().map(|stub| self.copied(stub, end));
                Op::Include(fragment)
            }
            op @ Op::Bytes(_) => op,
        };
        ops.into_iter().map(copied).collect()
    }
}
