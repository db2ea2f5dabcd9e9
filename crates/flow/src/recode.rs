//! Recoding of bodies in transit: testing, encoding, decoding. It proceeds in steps that yield to
//! the core's other connections, and never buffers the decoded form of more than a step.

mod decoding;

use std::sync::Arc;

use base::{Account, HeldBytes, Limit, Limits, MemoryBudget};
use codec::{
    Coding, CodingProgress, DecodeLimit, DecodeLimits, Decoder, EncodeSettings, Encoder, Error,
    FlushMode, STEP_BYTES,
};

pub(crate) use decoding::BodyDecoding;

/// Bytes that steps may read and write before they yield: a third of a millisecond of gzip at its
/// default level.
const TURN_BYTES: usize = 16 << 10;

/// The recoding of a body between the exchange and its sink.
#[derive(Debug, Default)]
pub(crate) enum BodyRecoding {
    /// The body stays as it is.
    #[default]
    None,
    /// The body is tested to be in this coding.
    Test(Coding),
    /// The body is encoded, with this memory.
    Encode(Box<(EncodeSettings, HeldBytes)>),
    /// The body is decoded from this coding.
    Decode(Coding),
}

impl BodyRecoding {
    /// Encoding with `settings`. `None` if there is no memory for it.
    pub(crate) fn encode(settings: EncodeSettings, memory: &Arc<MemoryBudget>) -> Option<Self> {
        let held = Account::open_large(memory).hold(settings.most_memory() as u64).ok()?;
        Some(Self::Encode(Box::new((settings, held))))
    }

    /// Returns true if the output differs from the input.
    pub(crate) fn changes(&self) -> bool {
        matches!(self, Self::Encode(..) | Self::Decode(_))
    }
}

/// A decoder with its memory, reserved in advance as far as the beginning of the stream tells the
/// size.
pub(crate) struct HeldDecoder {
    decoder: Decoder,
    account: Arc<Account>,
    held: HeldBytes,
}

impl HeldDecoder {
    /// A decoder at the beginning of a stream.
    ///
    /// # Errors
    /// There is no memory for it.
    pub(crate) fn new(
        coding: Coding,
        limits: DecodeLimits,
        account: &Arc<Account>,
    ) -> Result<Self, Error> {
        let first = limits.first_memory(coding) as u64;
        let held = account.hold_whole(first).map_err(|_| Error::Memory)?;
        let decoder = Decoder::new(coding, limits)?;
        Ok(Self { decoder, account: Arc::clone(account), held })
    }

    /// Decodes one step; see [`Decoder::step`].
    ///
    /// # Errors
    /// The decoder's, or there is no memory for the step.
    pub(crate) fn step(
        &mut self,
        input: &[u8],
        output: &mut [u8],
    ) -> Result<CodingProgress, Error> {
        self.hold(self.decoder.wanted_memory(input))?;
        let step = self.decoder.step(input, output)?;
        self.hold(self.decoder.memory())?;
        Ok(step)
    }

    /// Checks the end of the stream; see [`Decoder::finish`].
    ///
    /// # Errors
    /// The decoder's.
    pub(crate) fn finish(&self) -> Result<(), Error> {
        self.decoder.finish()
    }

    fn hold(&mut self, bytes: usize) -> Result<(), Error> {
        let bytes = bytes as u64;
        if bytes <= self.held.bytes() {
            self.held.shrink_to(bytes);
            return Ok(());
        }
        self.held.shrink_to(0);
        self.held = self.account.hold_whole(bytes).map_err(|_| Error::Memory)?;
        Ok(())
    }
}

/// A body that is being recoded: call [`Coder::take`] for input, then [`Coder::step`] until it
/// returns `None`.
pub(crate) struct Coder {
    work: Work,
    /// Input, and the number of its bytes that were processed.
    came: Vec<u8>,
    at: usize,
    /// Bytes of input still to come, if that is known.
    missing: Option<u64>,
    output: Box<[u8]>,
    /// All input was processed.
    is_idle: bool,
    is_ended: bool,
    is_flushed: bool,
    /// Bytes of the body without its coding.
    plain: u64,
    /// Memory of input and output.
    buffers: HeldBytes,
}

enum Work {
    Test(HeldDecoder),
    /// The body would be tested if there were memory for it.
    Untested,
    Encode(Encoder, #[expect(dead_code, reason = "it gives back when dropped")] HeldBytes),
    Decode(HeldDecoder),
}

impl Coder {
    /// The coder of a body of `length` bytes, if known, with memory of `account`. `None` if the
    /// body stays as it is.
    ///
    /// # Errors
    /// There is no memory for it.
    pub(crate) fn new(
        recode: BodyRecoding,
        length: Option<u64>,
        limits: DecodeLimits,
        account: &Arc<Account>,
    ) -> Result<Option<Self>, Error> {
        let buffers = account.hold(STEP_BYTES as u64);
        let (work, buffers) = match recode {
            BodyRecoding::None => return Ok(None),
            // The test keeps none of the decoded bytes.
            BodyRecoding::Test(coding) => {
                let limits = DecodeLimits { size_bytes: u64::MAX, ratio: u64::MAX, ..limits };
                match (HeldDecoder::new(coding, limits, account), buffers) {
                    (Ok(decoder), Ok(buffers)) => (Work::Test(decoder), buffers),
                    (Err(Error::Memory), _) | (Ok(_), Err(_)) => {
                        (Work::Untested, account.hold_anyway(0))
                    }
                    (Err(error), _) => return Err(error),
                }
            }
            BodyRecoding::Encode(with) => {
                let (settings, held) = *with;
                // Far less than the encoder's memory, which was granted.
                let buffers = buffers.unwrap_or_else(|_| account.hold_anyway(STEP_BYTES as u64));
                (Work::Encode(Encoder::new(&settings)?, held), buffers)
            }
            BodyRecoding::Decode(coding) => {
                let buffers = buffers.map_err(|_| Error::Memory)?;
                (Work::Decode(HeldDecoder::new(coding, limits, account)?), buffers)
            }
        };
        let output = if matches!(work, Work::Untested) { 0 } else { STEP_BYTES };
        Ok(Some(Self {
            work,
            came: Vec::new(),
            at: 0,
            missing: length,
            output: vec![0; output].into(),
            is_idle: true,
            is_ended: false,
            is_flushed: true,
            plain: 0,
            buffers,
        }))
    }

    /// Appends input for [`Coder::step`].
    pub(crate) fn take(&mut self, bytes: &[u8]) {
        if self.is_idle {
            self.came.clear();
            (self.at, self.is_idle) = (0, false);
        }
        self.came.extend_from_slice(bytes);
        let kept = (self.output.len() + self.came.capacity()) as u64;
        if kept > self.buffers.bytes() {
            self.buffers.grow_anyway(kept - self.buffers.bytes());
        }
        self.missing = self.missing.map(|missing| missing.saturating_sub(bytes.len() as u64));
    }

    /// Processes input and returns output, which may be empty; `None` once all input is processed.
    /// `last` says that no more input comes.
    ///
    /// A tested body is output unchanged once a step is valid. Its last bytes, or those that
    /// complete its length, are output only if the whole is valid.
    ///
    /// # Errors
    /// The body is not in its coding, or exceeds a limit.
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
            Work::Untested if self.is_idle => {
                self.is_ended = true;
                Ok(Some(&[]))
            }
            Work::Untested => {
                (self.is_idle, self.is_ended) = (true, last);
                Ok(Some(&self.came))
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
            Work::Encode(encoder, _) => {
                let goal = if last { FlushMode::Finish } else { FlushMode::Gather };
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

    /// Returns true if the output differs from the input.
    pub(crate) fn changes(&self) -> bool {
        !matches!(self.work, Work::Test(_) | Work::Untested)
    }

    /// Returns true if input has not been output yet, and can be flushed when the body pauses.
    pub(crate) fn holds_back(&self) -> bool {
        matches!(self.work, Work::Encode(..)) && !self.is_flushed && !self.is_ended
    }

    /// Flushes the output when the body pauses; `None` once it is empty.
    ///
    /// # Errors
    /// The coder fails.
    pub(crate) fn flush(&mut self) -> Result<Option<&[u8]>, Error> {
        let Work::Encode(encoder, _) = &mut self.work else { return Ok(None) };
        if self.is_flushed || self.is_ended {
            return Ok(None);
        }
        let step = encoder.step(&[], &mut self.output, FlushMode::Flush)?;
        self.is_flushed = step.done;
        Ok(Some(&self.output[..step.made]))
    }

    /// Returns true if the body was not tested: it may not be stored.
    pub(crate) fn is_untested(&self) -> bool {
        matches!(self.work, Work::Untested)
    }

    /// Bytes of the body without its coding so far; `None` if they are not counted.
    pub(crate) fn plain_length(&self) -> Option<u64> {
        (!self.is_untested()).then_some(self.plain)
    }
}

/// A counter of work that yields to other tasks after a share.
#[derive(Default)]
pub(crate) struct YieldCounter(usize);

impl YieldCounter {
    /// Counts a step that wrote `made` bytes, and yields if the share is used. A step reads at most
    /// [`STEP_BYTES`], and counts as half of that at least.
    pub(crate) async fn pass(&mut self, made: usize) {
        self.0 += made.max(STEP_BYTES / 2);
        if self.0 >= TURN_BYTES {
            self.0 = 0;
            rt::yield_now().await;
        }
    }
}

/// The bounds of decoding in `limits`.
pub(crate) fn decode_limits(limits: &Limits) -> DecodeLimits {
    DecodeLimits {
        size_bytes: limits.decoded_bytes,
        ratio: limits.decoded_ratio,
        window_bits: limits.decoded_window.max(1).ilog2() as u8,
        ..DecodeLimits::default()
    }
}

/// The limit behind an error, if one was reached.
pub(crate) fn limit_of(error: Error) -> Option<Limit> {
    match error {
        Error::Limit(DecodeLimit::Size) => Some(Limit::DecodedBytes),
        Error::Limit(DecodeLimit::Ratio) => Some(Limit::DecodedRatio),
        Error::Limit(DecodeLimit::Window) => Some(Limit::DecodedWindow),
        Error::Memory => Some(Limit::ClientMemory),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
