//! Forwarder: the half of an assembly task that sends the pieces in the page's order.

use base::{HeldBytes, Limit};
use cache::{BodyWriter, PushOutcome, WindowLimit};
use codec::{Coding, EncodeSettings, Encoder, FlushMode, STEP_BYTES};
use esi::{Fragment, ResolvedNode};
use tokio::sync::mpsc::Receiver;

use super::feed::{Arrival, Feed, FragmentReply};
use super::fragment::Gap;
use super::operations::PageTruncation;
use super::pieces::ComingBody;
use super::readahead::AssemblyReadahead;
use crate::state::body::BodyPart;

/// Bytes of a file that one read fetches.
const FILE_BYTES: u64 = 64 * 1024;

/// The gzip level of pages that cannot be assembled from compressed segments.
const LEVEL: u8 = 3;

/// The encoder of a page that is compressed while it is sent.
pub(super) struct PageCoder {
    encoder: Encoder,
    output: Box<[u8]>,
    /// Input was taken since the last flush.
    is_behind: bool,
    _held: HeldBytes,
}

impl PageCoder {
    /// An encoder for a page with the window `passage`; `None` if there is no memory for it.
    pub(super) fn begin(passage: &WindowLimit) -> Option<Self> {
        let settings = EncodeSettings::new(Coding::Gzip, LEVEL)?;
        let held = passage.account.hold(settings.most_memory() as u64).ok()?;
        let encoder = Encoder::new(&settings).ok()?;
        Some(Self { encoder, output: vec![0; STEP_BYTES].into(), is_behind: false, _held: held })
    }
}

/// The writer of a page's bytes, with an encoder if the page is compressed.
pub(super) struct PageWriter {
    pub(super) writer: BodyWriter,
    pub(super) coder: Option<PageCoder>,
}

pub(super) struct PageForwarder<'a> {
    pub(super) feed: &'a Feed,
    pub(super) out: PageWriter,
}

impl PageForwarder<'_> {
    /// Sends the pieces until there are no more, then ends the page.
    pub(super) async fn run(mut self, mut pieces: Receiver<Arrival>) {
        while let Some(piece) = self.next(&mut pieces).await {
            // The next piece may take long.
            let waits = pieces.is_empty();
            if self.piece(piece).await.is_err() || waits && self.flush().await.is_err() {
                return self.out.writer.abort();
            }
            self.feed.ahead.moved(false);
        }
        match self.code(&[], FlushMode::Finish).await {
            Ok(()) => _ = self.out.writer.finish(),
            Err(PageTruncation) => self.out.writer.abort(),
        }
    }

    /// The next piece. Until it comes, operations start without a permit.
    async fn next(&self, pieces: &mut Receiver<Arrival>) -> Option<Arrival> {
        if let Ok(piece) = pieces.try_recv() {
            return Some(piece);
        }
        self.feed.ahead.set_idle(true);
        let piece = pieces.recv().await;
        self.feed.ahead.set_idle(false);
        piece
    }

    /// Flushes the encoder.
    async fn flush(&mut self) -> Result<(), PageTruncation> {
        match self.out.coder.as_ref().is_some_and(|coder| coder.is_behind) {
            true => self.code(&[], FlushMode::Flush).await,
            false => Ok(()),
        }
    }

    /// Encodes bytes and sends the output.
    async fn code(&mut self, mut bytes: &[u8], goal: FlushMode) -> Result<(), PageTruncation> {
        let Self { feed, out: PageWriter { writer, coder: Some(coder) } } = self else {
            return Ok(());
        };
        coder.is_behind = goal == FlushMode::Gather;
        loop {
            let step =
                coder.encoder.step(bytes, &mut coder.output, goal).map_err(|_| PageTruncation)?;
            bytes = &bytes[step.taken..];
            let made = &coder.output[..step.made];
            if !made.is_empty() {
                hand_on(writer, &feed.ahead, made).await?;
            }
            if step.done {
                return Ok(());
            }
            rt::yield_now().await;
        }
    }

    async fn piece(&mut self, piece: Arrival) -> Result<(), PageTruncation> {
        match piece {
            Arrival::Text(text) => self.push(&text.bytes).await,
            Arrival::Part(part) => self.part(part).await,
            Arrival::Body(coming) => self.body(coming).await,
            Arrival::Fragment(fragment, coming) => self.fragment(fragment, coming).await,
            Arrival::Try(attempt, except) => Box::pin(self.attempt(attempt, except)).await,
            Arrival::Op(op) => Box::pin(self.late(vec![*op])).await,
            Arrival::Broken => Err(PageTruncation),
        }
    }

    async fn part(&mut self, part: BodyPart) -> Result<(), PageTruncation> {
        match part {
            BodyPart::Bytes(bytes) => self.push(&bytes).await?,
            BodyPart::Stored(object, range) => {
                let whole = object.whole().ok_or(PageTruncation)?;
                for bytes in whole.range(range) {
                    self.push(bytes).await?;
                }
            }
            BodyPart::File(file, range) => {
                let mut at = range.start;
                while at < range.end {
                    let (file, next) = (file.clone(), range.end.min(at + FILE_BYTES));
                    let read = rt::blocking(move || file.read(at..next)).await;
                    let Ok(Ok(bytes)) = read else { return Err(PageTruncation) };
                    if bytes.is_empty() {
                        return Err(PageTruncation);
                    }
                    at += bytes.len() as u64;
                    self.push(&bytes).await?;
                }
            }
        }
        Ok(())
    }

    async fn body(&mut self, coming: ComingBody) -> Result<(), PageTruncation> {
        let ComingBody { mut reader, goes_on, permit, fragment } = coming;
        if !reader.unpark() {
            // Other readers have consumed the beginning: the fragment is requested for this page
            // alone.
            let Some(fragment) = fragment else { return Err(PageTruncation) };
            drop((reader, permit));
            return Box::pin(self.late(vec![ResolvedNode::Include(fragment)])).await;
        }
        let length = reader.length();
        loop {
            if !reader.is_spent() {
                // The next bytes may take long.
                self.flush().await?;
            }
            let bytes = match reader.next().await {
                Ok(Some(bytes)) => bytes,
                Err(_) if !goes_on => return Err(PageTruncation),
                Ok(None) | Err(_) => return Ok(()),
            };
            let fits = || self.feed.page.weigh(&self.feed.core.counters, bytes.len() as u64);
            if length.is_none() && !fits() {
                self.feed.page.note_ended(Limit::EsiBytes);
                return Err(PageTruncation);
            }
            self.push(&bytes).await?;
        }
    }

    /// Sends a fragment once it has arrived, or its substitute.
    async fn fragment(
        &mut self,
        fragment: Box<Fragment>,
        coming: FragmentReply,
    ) -> Result<(), PageTruncation> {
        self.flush().await?;
        match self.feed.come(fragment, coming).await {
            Ok(pieces) => Box::pin(self.pieces(pieces)).await,
            Err(Gap::Breaks) => Err(PageTruncation),
            Err(Gap::LeftOut) => Ok(()),
        }
    }

    /// Sends all of an attempt if each of its fragments arrives, otherwise the other branch.
    async fn attempt(
        &mut self,
        attempt: Vec<Arrival>,
        except: Vec<ResolvedNode>,
    ) -> Result<(), PageTruncation> {
        let mut came = Vec::with_capacity(attempt.len());
        let mut rest: Vec<Arrival> = attempt.into_iter().rev().collect();
        while let Some(piece) = rest.pop() {
            match piece {
                Arrival::Fragment(fragment, coming) => {
                    match self.feed.come(fragment, coming).await {
                        Ok(pieces) => rest.extend(pieces.into_iter().rev()),
                        Err(_) => return self.late(except).await,
                    }
                }
                Arrival::Op(op) => {
                    let pieces = self.feed.begin_late(vec![*op], true).await;
                    rest.extend(pieces.into_iter().rev());
                }
                Arrival::Broken => return self.late(except).await,
                piece => came.push(piece),
            }
        }
        self.pieces(came).await
    }

    /// Starts `ops` and sends their pieces.
    async fn late(&mut self, ops: Vec<ResolvedNode>) -> Result<(), PageTruncation> {
        let pieces = self.feed.begin_late(ops, true).await;
        self.pieces(pieces).await
    }

    async fn pieces(&mut self, pieces: Vec<Arrival>) -> Result<(), PageTruncation> {
        for piece in pieces {
            Box::pin(self.piece(piece)).await?;
        }
        Ok(())
    }

    /// Sends bytes at the reader's pace.
    async fn push(&mut self, bytes: &[u8]) -> Result<(), PageTruncation> {
        if self.out.coder.is_some() {
            return self.code(bytes, FlushMode::Gather).await;
        }
        hand_on(&mut self.out.writer, &self.feed.ahead, bytes).await
    }
}

/// Sends bytes and waits until there is room for more.
async fn hand_on(
    writer: &mut BodyWriter,
    ahead: &AssemblyReadahead,
    bytes: &[u8],
) -> Result<(), PageTruncation> {
    match writer.push(bytes) {
        PushOutcome::Ok => {}
        PushOutcome::Wait => {
            ahead.moved(true);
            writer.room().await.map_err(|_| PageTruncation)?;
        }
        _ => return Err(PageTruncation),
    }
    ahead.moved(false);
    Ok(())
}
