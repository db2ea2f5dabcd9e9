//! The task of a page that must wait for some of its pieces: one half has fragments begin as early
//! as may be, the other hands on what has come, in the page's order.

use std::cell::Cell;
use std::net::SocketAddr;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use base::Limit;
use cache::{BodyWriter, Object, Passage, Reader};
use codec::Coding;
use esi::{Document, Fragment, Node, Op, Run};
use tokio::sync::mpsc::{self, Sender};
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;

use super::Supply;
use super::begin::{self, Beginning, Begun, Slot, Slots, Text};
use super::document;
use super::environment::Question;
use super::fragment::{self, Absent, Asked, Came, Gap};
use super::hand_on::{HandOn, PageCoder};
use super::page::Composed;
use crate::ask::Front;
use crate::body::{Part, ReplyBody};
use crate::core::Core;
use crate::reply::Reply;

/// The client's address and ours, where they are known.
pub(super) type Ends = Option<(SocketAddr, SocketAddr)>;

/// Pieces that wait for those before them.
const PIECES: usize = 256;

/// A piece on its way to its place.
pub(super) enum Arrival {
    Part(Part),
    /// The page goes on when it breaks off, if the flag is set.
    Body(Reader, bool),
    Fragment(Box<Fragment>, Coming),
    /// All of the first, or else the others.
    Try(Vec<Self>, Vec<Op>),
    /// Something that has not begun.
    Op(Box<Op>),
    /// The page cannot go on.
    Broken,
}

/// A fragment's reply, which comes. Nobody waits for it any more when this is dropped.
pub(super) struct Coming {
    reply: oneshot::Receiver<(Asked, Reply)>,
    task: JoinHandle<()>,
}

impl Drop for Coming {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Coming {
    /// The fragment's request, and what it was answered with.
    pub(super) async fn wait(mut self, most: Option<Duration>) -> Result<(Asked, Reply), Absent> {
        let reply = &mut self.reply;
        let came = match most {
            Some(most) => rt::time::timeout(most, reply).await.map_err(|_| Absent::Late)?,
            None => reply.await,
        };
        came.map_err(|_| Absent::Lost)
    }
}

/// Bytes of text that wait for the pieces before them.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    bytes: Cell<u64>,
    less: Notify,
}

impl Ahead {
    /// There are more of them; ready when they are no more than `most`.
    async fn more(&self, bytes: u64, most: u64) {
        self.bytes.set(self.bytes.get() + bytes);
        while self.bytes.get() > most {
            self.less.notified().await;
        }
    }

    /// Nobody hands on any more: nothing need wait.
    fn end(&self) {
        self.less(u64::MAX);
    }

    /// Some of them have been handed on.
    pub(super) fn less(&self, bytes: u64) {
        self.bytes.set(self.bytes.get().saturating_sub(bytes));
        self.less.notify_one();
    }
}

/// The half that has pieces begin.
pub(super) struct Feed {
    pub(super) core: Rc<Core>,
    pub(super) page: Rc<Composed>,
    pub(super) passage: Passage,
    /// The client's address and ours.
    ends: Ends,
    text: Text,
}

/// Has the pieces of `page` come and hands them to `writer`.
pub(super) async fn run(
    core: Rc<Core>,
    page: Rc<Composed>,
    source: Supply,
    (writer, coder): (BodyWriter, Option<PageCoder>),
    (passage, ends): (Passage, Ends),
) {
    let (sender, receiver) = mpsc::channel(PIECES);
    let mut watch = writer.watch();
    let ahead = Rc::new(Ahead::default());
    let text = match &source {
        Supply::Slots(_, text) | Supply::Nodes(_, text) => text.clone(),
        Supply::Stream(_) => Text::None,
    };
    let feed = Rc::new(Feed { core, page, passage, ends, text });
    let hand_on = HandOn::new(Rc::clone(&feed), (writer, coder), Rc::clone(&ahead));
    let begins = async {
        match source {
            Supply::Slots(slots, _) => _ = feed.send(feed.pieces(slots), &sender).await,
            Supply::Nodes(read, _) => _ = feed.nodes(&read.document, &sender).await,
            Supply::Stream(reader) => _ = feed.stream(reader, &sender, &ahead).await,
        }
        drop(sender);
    };
    let hands_on = async {
        hand_on.run(receiver).await;
        ahead.end();
    };
    tokio::select! {
        biased;
        ((), ()) = async { tokio::join!(begins, hands_on) } => {}
        () = watch.abandoned() => {}
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
    async fn stream(
        &self,
        mut reader: Reader,
        to: &Sender<Arrival>,
        ahead: &Ahead,
    ) -> Result<(), Gone> {
        let (rules, limits) = document::reading(self.page.dialect, &self.page.live);
        let (mut parser, mut nodes) = (Some(esi::Parser::new(rules, limits)), Vec::new());
        let (mut run, mut text) = (Run::new(limits), Unsent::default());
        while let Some(reading) = &mut parser {
            match reader.next().await {
                Ok(Some(bytes)) => {
                    text.add(&bytes);
                    reading.push(&bytes, &mut nodes);
                }
                Ok(None) => {
                    if let Some(parser) = parser.take() {
                        document::note(&self.core, &self.page, &parser.finish(&mut nodes));
                    }
                }
                Err(_) => return broken(to).await,
            }
            if text.bytes.len() as u64 > self.page.live.limits.esi_bytes {
                self.core.counters.limit(Limit::EsiBytes);
                return broken(to).await;
            }
            nodes.iter_mut().for_each(|node| node.hold(&|range| text.bytes(range).into()));
            let mut sent = 0;
            self.resolve(&mut run, &nodes, to, |ops| {
                let ops = text.take(ops);
                // Of an attempt nobody knows yet what of it is handed on.
                let bytes =
                    |op: &Op| if let Op::Bytes(bytes) = op { bytes.len() as u64 } else { 0 };
                sent += ops.iter().map(bytes).sum::<u64>();
                ops
            })
            .await?;
            nodes.clear();
            ahead.more(sent, self.passage.bytes).await;
        }
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
        let mut rest = self.begin_late(vec![op]).await;
        rest.reverse();
        let mut value = Vec::new();
        while let Some(piece) = rest.pop() {
            let piece = match piece {
                Arrival::Fragment(fragment, coming) => {
                    let next = match self.come(&fragment, coming).await {
                        Ok(body) => self.pieces_of(body, &fragment),
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
                None => to.send(piece).await.map_err(|_| Gone)?,
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
            Arrival::Part(Part::Bytes(bytes)) => _ = add(&bytes),
            Arrival::Part(Part::Stored(object, range)) => {
                for bytes in object.whole().iter().flat_map(|whole| whole.range(range.clone())) {
                    add(bytes);
                }
            }
            Arrival::Body(mut reader, _) => {
                while let Ok(Some(bytes)) = reader.next().await
                    && add(&bytes)
                {}
            }
            _ => {}
        }
    }

    /// The body of a fragment.
    pub(super) async fn come(&self, fragment: &Fragment, coming: Coming) -> Result<Came, Absent> {
        let most = fragment.maxwait_ms.map(Duration::from_millis);
        let (asked, reply) = coming.wait(most).await?;
        fragment::judge(&self.core, &self.page, fragment, &asked, reply)
    }

    /// The pieces of a fragment's body.
    pub(super) fn pieces_of(&self, body: Came, fragment: &Fragment) -> Vec<Arrival> {
        let mut slots = Slots::new();
        begin::add_body(body, self.page.goes_on(fragment.onerror), &mut slots);
        self.pieces(slots)
    }

    /// A stored body in gzip without its coding.
    fn unfolded(&self, object: &Arc<Object>) -> Arrival {
        let mut body = ReplyBody::whole(object, None);
        fragment::unfold(&self.core, &self.page, Coding::Gzip, &mut body);
        match body {
            ReplyBody::Stream { reader, .. } => Arrival::Body(reader, false),
            _ => Arrival::Broken,
        }
    }

    /// Hands pieces on; what has not begun begins when there is a place for it.
    async fn send(&self, pieces: Vec<Arrival>, to: &Sender<Arrival>) -> Result<(), Gone> {
        for piece in pieces {
            match piece {
                Arrival::Op(op) => {
                    for piece in self.begin_late(vec![*op]).await {
                        to.send(piece).await.map_err(|_| Gone)?;
                    }
                }
                piece => to.send(piece).await.map_err(|_| Gone)?,
            }
        }
        Ok(())
    }

    /// Begins `ops` one after the other, each when there is a place for it.
    pub(super) async fn begin_late(&self, ops: Vec<Op>) -> Vec<Arrival> {
        let mut pieces = Vec::with_capacity(ops.len());
        let mut rest: Vec<Op> = ops.into_iter().rev().collect();
        while let Some(op) = rest.pop() {
            self.page.within.top.places.some().await;
            for piece in self.begin(vec![op]).into_iter().rev() {
                match piece {
                    Arrival::Op(op) => rest.push(*op),
                    piece => pieces.push(piece),
                }
            }
        }
        pieces
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
            Slot::Gzip(object, _) => self.unfolded(&object),
            Slot::Part(part) => Arrival::Part(part),
            Slot::Body(reader, goes_on) => Arrival::Body(reader, goes_on),
            Slot::Waits(begun) => self.wait_for(*begun),
            Slot::Op(op) => Arrival::Op(Box::new(op)),
            Slot::Try(slots, except) => Arrival::Try(self.pieces(slots), except),
            Slot::Broken => Arrival::Broken,
        }
    }

    fn wait_for(&self, begun: Begun) -> Arrival {
        let Begun { fragment, asked, slow, place } = begun;
        let (tell, reply) = oneshot::channel();
        let core = Rc::clone(&self.core);
        let (ends, passage) = (self.ends, self.passage.clone());
        let task = rt::spawn_local(async move {
            let account = &passage.account;
            let front = Front { ends, window: passage.bytes, ..Front::of(account) };
            let answer = Box::pin(slow.run(&core, &asked.request, None, front)).await;
            drop(place);
            _ = tell.send((asked, answer));
        });
        Arrival::Fragment(fragment, Coming { reply, task })
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

/// The bytes of a page that still comes which belong to no piece yet.
#[derive(Debug, Default)]
struct Unsent {
    bytes: Vec<u8>,
    /// Where in the page they begin.
    from: u64,
}

impl Unsent {
    fn add(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
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
