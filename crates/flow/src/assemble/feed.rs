//! The task of a page that must wait for some of its pieces: one half has fragments begin as early
//! as may be, the other hands on what has come, in the page's order.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use base::Limit;
use cache::{BodyWriter, Passage, Reader};
use esi::{Fragment, Node, Op, Run};
use tokio::sync::mpsc::{self, Sender};
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;

use super::Source;
use super::begin::{Beginning, Begun, Slot, Slots, Text};
use super::document;
use super::environment::Question;
use super::fragment::{Asked, Failed};
use super::hand_on::HandOn;
use super::page::Page;
use crate::ask::Front;
use crate::body::Part;
use crate::core::Core;
use crate::reply::Reply;

/// Pieces that wait for those before them.
const PIECES: usize = 256;

/// A piece on its way to its place.
pub(super) enum Piece {
    Part(Part),
    Body(Reader),
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
    pub(super) async fn wait(
        mut self,
        most: Option<Duration>,
    ) -> Result<(Asked, Reply), Failed> {
        let reply = &mut self.reply;
        let came = match most {
            Some(most) => rt::time::timeout(most, reply).await.map_err(|_| Failed::Late)?,
            None => reply.await,
        };
        came.map_err(|_| Failed::Lost)
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
    pub(super) page: Rc<Page>,
    pub(super) passage: Passage,
    text: Text,
}

/// Has the pieces of `page` come and hands them to `writer`.
pub(super) async fn run(
    core: Rc<Core>,
    page: Rc<Page>,
    source: Source,
    (writer, passage): (BodyWriter, Passage),
) {
    let (sender, receiver) = mpsc::channel(PIECES);
    let watch = writer.watch();
    let ahead = Rc::new(Ahead::default());
    let feed =
        Rc::new(Feed { core: Rc::clone(&core), page, passage, text: Text::None });
    let hand_on = HandOn::new(Rc::clone(&feed), writer, Rc::clone(&ahead));
    let begins = async {
        match source {
            Source::Slots(slots) => feed.slots(slots, &sender).await,
            Source::Stream(reader) => feed.stream(reader, &sender, &ahead).await,
        }
        drop(sender);
    };
    let hands_on = async {
        hand_on.run(receiver).await;
        ahead.end();
    };
    tokio::select! {
        ((), ()) = async { tokio::join!(begins, hands_on) } => {}
        () = watch.abandoned() => {}
    }
}

impl Feed {
    /// Hands on the pieces of a page that is there; those that have not begun begin as others have
    /// been answered.
    async fn slots(&self, slots: Slots, to: &Sender<Piece>) {
        // All that has begun is sent at once, whatever comes before it.
        let pieces: Vec<Piece> = slots.into_iter().map(|slot| self.piece(slot)).collect();
        _ = self.send(pieces, to).await;
    }

    /// Reads a page that still comes and hands on its pieces as soon as they are known.
    async fn stream(&self, mut reader: Reader, to: &Sender<Piece>, ahead: &Ahead) {
        let (rules, limits) = document::reading(self.page.dialect, &self.page.live);
        let (mut parser, mut nodes) = (Some(esi::Parser::new(rules, limits)), Vec::new());
        let mut run = Run::new(limits);
        let mut text = Unsent::default();
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
                Err(_) => {
                    _ = to.send(Piece::Broken).await;
                    return;
                }
            }
            if text.bytes.len() as u64 > self.page.live.limits.esi_bytes {
                self.core.counters.limit(Limit::EsiBytes);
                _ = to.send(Piece::Broken).await;
                return;
            }
            let Some(ops) = self.resolve(&mut run, &mut nodes) else {
                _ = to.send(Piece::Broken).await;
                return;
            };
            let ops = text.take(ops);
            let bytes: u64 = ops.iter().map(text_bytes).sum();
            let pieces = self.begin(ops);
            if self.send(pieces, to).await.is_err() {
                return;
            }
            ahead.more(bytes, self.passage.bytes).await;
        }
    }

    /// What nodes come to; `None` where that is more than may be.
    fn resolve(&self, run: &mut Run, nodes: &mut Vec<Node>) -> Option<Vec<Op>> {
        let question = Question::of(&self.page, self.core.now());
        let mut ops = Vec::with_capacity(nodes.len());
        for node in nodes.drain(..) {
            if run.resolve(&node, &question, &mut ops).is_err() {
                self.core.counters.limit(Limit::EsiNodes);
                return None;
            }
        }
        Some(ops)
    }

    /// Hands pieces on; what has not begun begins when there is a place for it.
    async fn send(&self, pieces: Vec<Piece>, to: &Sender<Piece>) -> Result<(), Gone> {
        for piece in pieces {
            match piece {
                Piece::Op(op) => {
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
    pub(super) async fn begin_late(&self, ops: Vec<Op>) -> Vec<Piece> {
        let mut pieces = Vec::with_capacity(ops.len());
        let mut rest: Vec<Op> = ops.into_iter().rev().collect();
        while let Some(op) = rest.pop() {
            // Closed it never is.
            drop(self.page.within.top.places.acquire().await);
            for piece in self.begin(vec![op]).into_iter().rev() {
                match piece {
                    Piece::Op(op) => rest.push(*op),
                    piece => pieces.push(piece),
                }
            }
        }
        pieces
    }

    /// Begins `ops` as far as there are places.
    fn begin(&self, ops: Vec<Op>) -> Vec<Piece> {
        self.pieces(self.beginning().of_ops(ops))
    }

    /// The pieces that take the place of a fragment that failed.
    ///
    /// # Errors
    /// When there are none.
    pub(super) fn instead(&self, fragment: Fragment, failed: Failed) -> Result<Vec<Piece>, Failed> {
        let mut slots = Slots::new();
        self.beginning().instead(fragment, failed, &mut slots)?;
        Ok(self.pieces(slots))
    }

    fn beginning(&self) -> Beginning<'_> {
        Beginning { core: &self.core, page: &self.page, text: &self.text }
    }

    pub(super) fn pieces(&self, slots: Slots) -> Vec<Piece> {
        slots.into_iter().map(|slot| self.piece(slot)).collect()
    }

    /// What a slot becomes: fragments that wait do so in tasks of their own from here on.
    fn piece(&self, slot: Slot) -> Piece {
        match slot {
            Slot::Part(part) => Piece::Part(part),
            Slot::Body(reader) => Piece::Body(reader),
            Slot::Waits(begun) => self.wait_for(*begun),
            Slot::Op(op) => Piece::Op(Box::new(op)),
            Slot::Try(slots, except) => Piece::Try(self.pieces(slots), except),
            Slot::Broken => Piece::Broken,
        }
    }

    fn wait_for(&self, begun: Begun) -> Piece {
        let Begun { fragment, asked, slow, place } = begun;
        let (tell, reply) = oneshot::channel();
        let core = Rc::clone(&self.core);
        let (ends, passage) = (self.page.within.top.ends, self.passage.clone());
        let task = rt::spawn_local(async move {
            let (window, account) = (passage.bytes, passage.account.as_ref());
            let front = Front { interims: None, ends, window, account };
            let answer = Box::pin(slow.run(&core, &asked.request, None, front)).await;
            drop(place);
            _ = tell.send((asked, answer));
        });
        Piece::Fragment(Box::new(fragment), Coming { reply, task })
    }
}

/// Nobody takes pieces any more.
struct Gone;

/// The bytes of text that an operation brings along.
fn text_bytes(op: &Op) -> u64 {
    match op {
        Op::Bytes(bytes) => bytes.len() as u64,
        Op::Text(_) | Op::Include(_) | Op::Try { .. } => 0,
    }
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
                let (from, to) = (range.start - self.from, range.end - self.from);
                Op::Bytes(self.bytes[from as usize..to as usize].to_vec())
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
