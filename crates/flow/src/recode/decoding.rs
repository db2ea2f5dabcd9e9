//! Decoding of stored bodies for a client, piece by piece as the client reads them.
//!
//! Nothing is decoded ahead: an unread body has no decoder, and a stalled one has a decoder and no
//! output. Memory is reserved before it is used.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use base::{Account, Counter, Counters, HeldBytes};
use bytes::{Buf, Bytes};
use cache::{BodyDerivation, ExternalBodyReader, HeldTrailers, IncompleteBody, Reader};
use codec::{Coding, DecodeLimits, Error, STEP_BYTES};

use super::{HeldDecoder, TURN_BYTES, limit_of};
use crate::state::body::{BodyPart, BodyParts, ReplyBody};
use crate::trailers::of_any_form;

/// Bytes of a piece if the client's memory is used up. They are counted nevertheless.
const SCARCE_BYTES: usize = 4 << 10;

/// A decoder of bodies for clients.
pub(crate) struct BodyDecoding<'a> {
    pub(crate) coding: Coding,
    pub(crate) limits: DecodeLimits,
    /// The account for decoders and output.
    pub(crate) account: &'a Arc<Account>,
    pub(crate) counters: &'a Arc<Counters>,
}

impl BodyDecoding<'_> {
    /// Decodes `body`, to `length` bytes if known.
    pub(crate) fn decode_body(self, body: &mut ReplyBody, length: Option<u64>) {
        let (coded, making) = match std::mem::replace(body, ReplyBody::None) {
            ReplyBody::Stream { reader, .. } => (CodedBody::Read(reader), BodyDerivation::OfComing),
            ReplyBody::Parts(BodyParts::One(BodyPart::Stored(object, _))) => {
                (CodedBody::Read(object.reader()), BodyDerivation::OfWhole)
            }
            ReplyBody::Parts(BodyParts::One(BodyPart::Bytes(bytes))) if !bytes.is_empty() => {
                (CodedBody::Bytes(bytes), BodyDerivation::OfWhole)
            }
            ReplyBody::Head(_) => return *body = ReplyBody::Head(length),
            other => return *body = other,
        };
        *body = ReplyBody::Stream { reader: self.decode(coded, making), length };
    }

    /// The decoded form of `coded`. It breaks off if the body is incomplete, not in its coding, or
    /// beyond a limit.
    pub(super) fn decode(self, coded: CodedBody, making: BodyDerivation) -> Reader {
        Reader::of_reading(Box::new(DecodedBody {
            coding: self.coding,
            limits: self.limits,
            account: Arc::clone(self.account),
            counters: Arc::clone(self.counters),
            coded,
            making,
            input: Bytes::new(),
            is_behind: false,
            piece: None,
            at: 0,
            wanted_from: 0,
            turn: 0,
            state: DecodingProgress::Coded,
            is_starved: false,
        }))
    }
}

/// A coded body.
pub(super) enum CodedBody {
    Read(Reader),
    /// The whole body; empty once it was taken.
    Bytes(Bytes),
}

impl CodedBody {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, IncompleteBody>> {
        match self {
            Self::Read(reader) => reader.poll_next(cx),
            Self::Bytes(bytes) => {
                let all = std::mem::take(bytes);
                Poll::Ready(Ok(Some(all).filter(|all| !all.is_empty())))
            }
        }
    }
}

/// The progress of decoding.
enum DecodingProgress {
    /// Nothing was read yet.
    Coded,
    Decoding(Box<HeldDecoder>),
    /// The output is complete.
    Whole,
    Broken,
}

/// A body that is decoded while it is read.
struct DecodedBody {
    coding: Coding,
    limits: DecodeLimits,
    account: Arc<Account>,
    counters: Arc<Counters>,
    coded: CodedBody,
    making: BodyDerivation,
    /// Bytes that the decoder has not taken.
    input: Bytes,
    /// The decoder has output left of the bytes that it has taken.
    is_behind: bool,
    /// The piece that is being filled.
    piece: Option<PlainPiece>,
    /// The number of bytes that have come out.
    at: u64,
    /// The offset of the first byte that the client wants.
    wanted_from: u64,
    /// Work since the last yield.
    turn: usize,
    state: DecodingProgress,
    is_starved: bool,
}

/// The reason for which filling a piece stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pause {
    /// The piece is full, or the last one.
    Piece,
    /// There is no input.
    Input,
    /// Other tasks run first.
    Turn,
}

/// A part of the body, with its reserved memory.
struct PlainPiece {
    data: Vec<u8>,
    made: usize,
    held: HeldBytes,
}

impl AsRef<[u8]> for PlainPiece {
    fn as_ref(&self) -> &[u8] {
        &self.data[..self.made]
    }
}

impl PlainPiece {
    /// An empty piece, smaller if little memory is left.
    fn begin(account: &Arc<Account>) -> Self {
        let (held, bytes) = match account.hold(STEP_BYTES as u64) {
            Ok(held) => (held, STEP_BYTES),
            Err(_) => (account.hold_anyway(SCARCE_BYTES as u64), SCARCE_BYTES),
        };
        Self { data: vec![0; bytes], made: 0, held }
    }

    /// The bytes of the piece.
    fn into_bytes(mut self) -> Bytes {
        if self.made < self.data.len() / 2 {
            self.data.truncate(self.made);
            self.data.shrink_to_fit();
            self.held.shrink_to(self.made as u64);
        }
        Bytes::from_owner(self)
    }
}

impl DecodedBody {
    /// Continues with the next piece.
    ///
    /// # Errors
    /// The reason for which the body is incomplete.
    fn make(&mut self, cx: &mut Context<'_>) -> Result<Pause, Error> {
        loop {
            if !self.is_behind {
                match self.coded.poll_next(cx) {
                    Poll::Pending => return Ok(Pause::Input),
                    Poll::Ready(Ok(Some(input))) => (self.input, self.is_behind) = (input, true),
                    Poll::Ready(Ok(None)) => {
                        self.finish()?;
                        return Ok(Pause::Piece);
                    }
                    Poll::Ready(Err(_)) => return Err(Error::Truncated),
                }
            }
            if self.step()? {
                return Ok(Pause::Piece);
            }
            if self.turn >= TURN_BYTES {
                return Ok(Pause::Turn);
            }
        }
    }

    /// Ends after all input was taken.
    fn finish(&mut self) -> Result<(), Error> {
        // An empty input is no stream.
        let DecodingProgress::Decoding(decoder) = &self.state else {
            return Err(Error::Truncated);
        };
        decoder.finish()?;
        self.state = DecodingProgress::Whole;
        Ok(())
    }

    /// Decodes one step; returns true if the piece is full.
    fn step(&mut self) -> Result<bool, Error> {
        if let DecodingProgress::Coded = self.state {
            let decoder = HeldDecoder::new(self.coding, self.limits, &self.account)?;
            self.counters.inc(Counter::BodiesDecoded);
            self.state = DecodingProgress::Decoding(Box::new(decoder));
        }
        let DecodingProgress::Decoding(decoder) = &mut self.state else { return Ok(true) };
        let piece = self.piece.get_or_insert_with(|| PlainPiece::begin(&self.account));
        let step = decoder.step(&self.input, &mut piece.data[piece.made..])?;
        self.input.advance(step.taken);
        piece.made += step.made;
        self.is_behind = !step.done;
        // A step takes a bounded number of bytes, so it counts as half of that at least.
        self.turn += step.made.max(STEP_BYTES / 2);
        Ok(piece.made == piece.data.len())
    }

    /// The piece so far, without the bytes before the wanted ones.
    fn take_piece(&mut self) -> Option<Bytes> {
        let mut bytes = self.piece.take_if(|piece| piece.made > 0)?.into_bytes();
        let passed = self.wanted_from.saturating_sub(self.at).min(bytes.len() as u64);
        self.at += bytes.len() as u64;
        bytes.advance(passed as usize);
        Some(bytes).filter(|bytes| !bytes.is_empty())
    }

    /// Notes the reason for which the body breaks off.
    fn broke_off(&mut self, error: Error) {
        self.is_starved = error == Error::Memory;
        if let Some(limit) = limit_of(error) {
            self.counters.limit(limit);
        }
        self.state = DecodingProgress::Broken;
    }
}

impl ExternalBodyReader for DecodedBody {
    fn seek(&mut self, offset: u64) {
        if offset < self.at {
            self.state = DecodingProgress::Broken;
        }
        self.wanted_from = offset;
    }

    fn goes_back(&self) -> bool {
        false
    }

    fn park(&mut self) {
        if let CodedBody::Read(reader) = &mut self.coded {
            reader.park();
        }
    }

    fn unpark(&mut self) -> bool {
        if let CodedBody::Read(reader) = &mut self.coded { reader.unpark() } else { true }
    }

    fn making(&self) -> BodyDerivation {
        self.making
    }

    fn is_starved(&self) -> bool {
        self.is_starved
    }

    fn take_trailers(&mut self) -> Option<Box<HeldTrailers>> {
        match (&self.state, &mut self.coded) {
            (DecodingProgress::Whole, CodedBody::Read(reader)) => {
                let mut behind = reader.take_trailers()?;
                behind.trailers = of_any_form(std::mem::take(&mut behind.trailers))?;
                Some(behind)
            }
            _ => None,
        }
    }

    fn poll_next(
        &mut self,
        _: Option<&Arc<Account>>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, IncompleteBody>> {
        loop {
            if self.turn >= TURN_BYTES {
                // The other tasks have run.
                self.turn = 0;
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            let mut pause = Pause::Piece;
            if let DecodingProgress::Coded | DecodingProgress::Decoding(_) = self.state {
                match self.make(cx) {
                    Ok(Pause::Turn) => continue,
                    Ok(why) => pause = why,
                    Err(error) => self.broke_off(error),
                }
            }
            if let Some(bytes) = self.take_piece() {
                return Poll::Ready(Ok(Some(bytes)));
            }
            match self.state {
                DecodingProgress::Whole => return Poll::Ready(Ok(None)),
                DecodingProgress::Broken => return Poll::Ready(Err(IncompleteBody)),
                _ if pause == Pause::Input => return Poll::Pending,
                // The bytes were skipped.
                _ => {}
            }
        }
    }
}

impl fmt::Debug for DecodedBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DecodedBody").field("coding", &self.coding).finish_non_exhaustive()
    }
}
