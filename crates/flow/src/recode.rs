//! Bodies on their way: tested, coded, or decoded. Each does so step by step, so that the other
//! connections of a core get their turns, and what a few bytes decode to is never held in memory.

use std::sync::Arc;

use base::{Account, Counter, Counters, Held, Limit, Limits, Memory};
use cache::{Body, BodyWriter, Passage, Push, Reader};
use codec::{
    Coding, DecodeLimit, DecodeLimits, Decoder, EncodeSettings, Encoder, Error, Goal, STEP_BYTES,
};

use crate::body::{Part, Parts, ReplyBody};
use crate::trailers::of_any_form;

/// Bytes that steps may take and make until others get their turn: a third of a millisecond when
/// gzip codes at its default level.
const TURN_BYTES: usize = 16 << 10;

/// The change that a body undergoes between the exchange and where it goes.
#[derive(Debug, Default)]
pub(crate) enum Recode {
    /// None.
    #[default]
    None,
    /// It is tested whether it is in this coding.
    Test(Coding),
    /// It is coded, with this memory.
    Encode(Box<(EncodeSettings, Held)>),
    /// It is decoded from this coding.
    Decode(Coding),
}

impl Recode {
    /// Coding with `settings`. `None` if there is no memory for that.
    pub(crate) fn encode(settings: EncodeSettings, memory: &Arc<Memory>) -> Option<Self> {
        let held = Account::open_large(memory).hold(settings.most_memory() as u64).ok()?;
        Some(Self::Encode(Box::new((settings, held))))
    }

    /// Returns true if other bytes come out than go in.
    pub(crate) fn changes(&self) -> bool {
        matches!(self, Self::Encode(..) | Self::Decode(_))
    }
}

/// A body that is being recoded: [`Coder::take`] for what has come, then [`Coder::step`] until
/// that returns nothing.
pub(crate) struct Coder {
    work: Work,
    /// Bytes that came, and how many of them were worked on.
    came: Vec<u8>,
    at: usize,
    /// Bytes that are still to come, where that is known.
    missing: Option<u64>,
    output: Box<[u8]>,
    /// All that came was worked on.
    is_idle: bool,
    is_ended: bool,
    is_flushed: bool,
    /// Bytes of the body without its coding.
    plain: u64,
    _held: Option<Held>,
}

enum Work {
    Test(Decoder),
    Encode(Encoder),
    Decode(Decoder),
}

impl Coder {
    /// The coder of a body of `length` bytes, if that is known; `None` for one that is left as it
    /// is.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub(crate) fn new(
        recode: Recode,
        length: Option<u64>,
        limits: DecodeLimits,
    ) -> Result<Option<Self>, Error> {
        let (work, held) = match recode {
            Recode::None => return Ok(None),
            // However much it decodes to, nothing of that is kept.
            Recode::Test(coding) => {
                let limits = DecodeLimits { size_bytes: u64::MAX, ratio: u64::MAX, ..limits };
                (Work::Test(Decoder::new(coding, limits)?), None)
            }
            Recode::Encode(with) => {
                let (settings, held) = *with;
                (Work::Encode(Encoder::new(&settings)?), Some(held))
            }
            Recode::Decode(coding) => (Work::Decode(Decoder::new(coding, limits)?), None),
        };
        Ok(Some(Self {
            work,
            came: Vec::new(),
            at: 0,
            missing: length,
            output: vec![0; STEP_BYTES].into(),
            is_idle: true,
            is_ended: false,
            is_flushed: true,
            plain: 0,
            _held: held,
        }))
    }

    /// Takes bytes for [`Coder::step`].
    pub(crate) fn take(&mut self, bytes: &[u8]) {
        if self.is_idle {
            self.came.clear();
            (self.at, self.is_idle) = (0, false);
        }
        self.came.extend_from_slice(bytes);
        self.missing = self.missing.map(|missing| missing.saturating_sub(bytes.len() as u64));
    }

    /// Works on what was taken, and returns what is to be handed on, which may be nothing yet;
    /// `None` when all of it is done. `last` tells that no more comes.
    ///
    /// What is tested is handed on as it came, when all of it is well. The last bytes of a body, or
    /// those that complete its length, are handed on only if the whole is well.
    ///
    /// # Errors
    /// If the body is not in its coding, or beyond a limit.
    pub(crate) fn step(&mut self, last: bool) -> Result<Option<&[u8]>, Error> {
        let last = last || self.missing == Some(0);
        if self.is_idle && (!last || self.is_ended) {
            return Ok(None);
        }
        let input = &self.came[self.at..];
        match &mut self.work {
            Work::Test(decoder) | Work::Decode(decoder)
                if last && input.is_empty() && self.is_idle =>
            {
                decoder.finish()?;
                self.is_ended = true;
                Ok(Some(&[]))
            }
            Work::Test(decoder) => {
                let step = decoder.step(input, &mut self.output)?;
                self.at += step.taken;
                self.plain += step.made as u64;
                if !step.done {
                    return Ok(Some(&[]));
                }
                if last {
                    decoder.finish()?;
                }
                (self.is_idle, self.is_ended) = (true, last);
                Ok(Some(&self.came))
            }
            Work::Decode(decoder) => {
                let step = decoder.step(input, &mut self.output)?;
                self.at += step.taken;
                self.plain += step.made as u64;
                if step.done {
                    if last {
                        decoder.finish()?;
                    }
                    (self.is_idle, self.is_ended) = (true, last);
                }
                Ok(Some(&self.output[..step.made]))
            }
            Work::Encode(encoder) => {
                let goal = if last { Goal::Finish } else { Goal::Gather };
                let input = if self.is_idle { &[][..] } else { input };
                let step = encoder.step(input, &mut self.output, goal)?;
                self.at += step.taken;
                self.plain += step.taken as u64;
                self.is_flushed = false;
                if step.done {
                    (self.is_idle, self.is_ended) = (true, last);
                }
                Ok(Some(&self.output[..step.made]))
            }
        }
    }

    /// Returns true if other bytes come out than go in.
    pub(crate) fn changes(&self) -> bool {
        !matches!(self.work, Work::Test(_))
    }

    /// Returns true if bytes that came have not come out, and may when the body pauses.
    pub(crate) fn holds_back(&self) -> bool {
        matches!(self.work, Work::Encode(_)) && !self.is_flushed && !self.is_ended
    }

    /// Has come out what has come, where the body pauses; `None` when it is out.
    ///
    /// # Errors
    /// If the coder fails.
    pub(crate) fn flush(&mut self) -> Result<Option<&[u8]>, Error> {
        let Work::Encode(encoder) = &mut self.work else { return Ok(None) };
        if self.is_flushed || self.is_ended {
            return Ok(None);
        }
        let step = encoder.step(&[], &mut self.output, Goal::Flush)?;
        self.is_flushed = step.done;
        Ok(Some(&self.output[..step.made]))
    }

    /// Bytes of the body without its coding, so far.
    pub(crate) fn plain_length(&self) -> u64 {
        self.plain
    }
}

/// Counts bytes of work, and says when it is the others' turn.
#[derive(Default)]
pub(crate) struct Strides(usize);

impl Strides {
    /// Notes a step that has made so much. A step takes no more than [`STEP_BYTES`], so that each
    /// counts as half of them at least.
    pub(crate) async fn pass(&mut self, made: usize) {
        self.0 += made.max(STEP_BYTES / 2);
        if self.0 >= TURN_BYTES {
            self.0 = 0;
            rt::yield_now().await;
        }
    }
}

/// The bounds of decoding, as `limits` has them.
pub(crate) fn decode_limits(limits: &Limits) -> DecodeLimits {
    DecodeLimits {
        size_bytes: limits.decoded_bytes,
        ratio: limits.decoded_ratio,
        window_bits: limits.decoded_window.max(1).ilog2() as u8,
        ..DecodeLimits::default()
    }
}

/// The limit that an error tells of, if one was reached.
pub(crate) fn limit_of(error: Error) -> Option<Limit> {
    match error {
        Error::Limit(DecodeLimit::Size) => Some(Limit::DecodedBytes),
        Error::Limit(DecodeLimit::Ratio) => Some(Limit::DecodedRatio),
        Error::Limit(DecodeLimit::Window) => Some(Limit::DecodedWindow),
        _ => None,
    }
}

/// Decodes bodies for clients.
pub(crate) struct Unfolding {
    pub(crate) coding: Coding,
    pub(crate) limits: DecodeLimits,
    /// Bounds of what may be ahead of the client.
    pub(crate) passage: Passage,
    pub(crate) counters: Arc<Counters>,
}

impl Unfolding {
    /// Unfolds `body`, to `length` bytes where that is known.
    pub(crate) fn unfold_body(self, body: &mut ReplyBody, length: Option<u64>) {
        let folded = match std::mem::replace(body, ReplyBody::None) {
            ReplyBody::Stream { reader, .. } => reader,
            ReplyBody::Parts(Parts::One(Part::Stored(object, _))) => object.reader(),
            ReplyBody::Parts(Parts::One(Part::Bytes(bytes))) if !bytes.is_empty() => {
                let passage = Passage { bytes: bytes.len() as u64, ..self.passage.clone() };
                let (mut writer, reader) = Body::window(passage);
                // A window takes what it is given, and its reader is there.
                _ = writer.push(&bytes);
                writer.finish();
                reader
            }
            ReplyBody::Head(_) => return *body = ReplyBody::Head(length),
            other => return *body = other,
        };
        *body = ReplyBody::Stream { reader: self.unfold(folded), length };
    }

    /// The body that `coded` decodes to, at most about a window ahead of who reads it. What is not
    /// in the coding, or not all of it, or beyond a limit, breaks off.
    pub(crate) fn unfold(self, coded: Reader) -> Reader {
        self.counters.inc(Counter::BodiesDecoded);
        let (writer, reader) = Body::window(self.passage.clone());
        rt::spawn_local(self.pump(coded, writer));
        reader
    }

    async fn pump(self, mut coded: Reader, mut writer: BodyWriter) {
        match self.decode(&mut coded, &mut writer).await {
            Ok(()) => {
                let behind = coded.take_trailers();
                _ = writer.finish_with(behind.and_then(|come| of_any_form(come.trailers)));
            }
            Err(limit) => {
                limit.inspect(|limit| self.counters.limit(*limit));
                writer.abort();
            }
        }
    }

    /// Decodes all of `coded`.
    ///
    /// # Errors
    /// If it breaks off: with the limit that was reached, if one was.
    async fn decode(
        &self,
        coded: &mut Reader,
        writer: &mut BodyWriter,
    ) -> Result<(), Option<Limit>> {
        let mut decoder = Decoder::new(self.coding, self.limits).map_err(limit_of)?;
        let mut output = vec![0; STEP_BYTES];
        let no_memory = |_| Some(Limit::ClientMemory);
        let mut held = self.passage.account.hold(STEP_BYTES as u64).map_err(no_memory)?;
        let mut turns = Strides::default();
        while let Some(piece) = coded.next().await.map_err(|_| None)? {
            let mut at = 0;
            loop {
                let step = decoder.step(&piece[at..], &mut output).map_err(limit_of)?;
                at += step.taken;
                let wanted = (STEP_BYTES + decoder.memory()) as u64;
                held.grow(wanted.saturating_sub(held.bytes())).map_err(no_memory)?;
                let made = &output[..step.made];
                let is_full = !made.is_empty() && writer.push(made) != Push::Ok;
                if is_full && writer.room().await.is_err() {
                    return Err(None);
                }
                turns.pass(step.made).await;
                if step.done {
                    break;
                }
            }
        }
        decoder.finish().map_err(limit_of)
    }
}

#[cfg(test)]
mod tests;
