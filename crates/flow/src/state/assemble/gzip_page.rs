//! Gzip page: assembles a page from gzip segments that were compressed once, without compressing
//! again.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use cache::{BorrowedBody, Object};
use codec::{
    Coding, CrcShift, EncodeSettings, Encoder, FlushMode, STEP_BYTES, STORED_BYTES, TrailerBuilder,
};

use crate::state::body::BodyPart;

/// The longest page whose texts are compressed when it is parsed, in one go. A longer one is
/// compressed while it is sent.
pub(crate) const PAGE_BYTES: u64 = 128 << 10;
/// The gzip level of a page's texts.
const LEVEL: u8 = 6;
/// Bytes of the gzip header, before the first block.
const HEAD: usize = codec::HEAD.len();
/// Bytes behind the last block of a segment: an empty block, CRC and length.
const END: usize = 10;
/// The flush at a segment's end and the bytes behind it.
const TAIL: usize = 4 + END;

/// A compressed text of a page, which can be joined with others.
#[derive(Clone, Debug)]
pub(crate) struct Clip {
    range: Range<u64>,
    blocks: Bytes,
    crc: u32,
    shift: CrcShift,
}

impl Clip {
    /// The compressed text in `range` of a page; `None` if that is not shorter.
    pub(crate) fn of(whole: BorrowedBody<'_>, range: &Range<u64>) -> Option<Self> {
        let length = range.end - range.start;
        let settings = EncodeSettings::new(Coding::Gzip, LEVEL)?.for_length(length);
        let mut encoder = Encoder::new(&settings).ok()?;
        let (mut coded, mut output) = (Vec::new(), vec![0; STEP_BYTES]);
        let pieces = whole.range(range.clone()).map(|piece| (piece, FlushMode::Gather));
        for (mut piece, goal) in pieces.chain([(&[][..], FlushMode::Finish)]) {
            loop {
                let step = encoder.step(piece, &mut output, goal).ok()?;
                coded.extend_from_slice(&output[..step.made]);
                piece = &piece[step.taken..];
                if step.done {
                    break;
                }
            }
        }
        let segment = codec::segment(&coded)?;
        let is_shorter = segment.blocks.len() < length as usize;
        is_shorter.then(|| Self {
            range: range.clone(),
            blocks: Bytes::from(coded).slice(segment.blocks),
            crc: segment.crc,
            shift: CrcShift::of(length),
        })
    }

    /// Bytes in memory.
    pub(crate) fn memory(&self) -> usize {
        size_of::<Self>() + self.blocks.len()
    }

    /// The clip of the text in `range`; `clips` are in the order of the page.
    pub(crate) fn find<'a>(clips: &'a [Self], range: &Range<u64>) -> Option<&'a Self> {
        let at = clips.binary_search_by_key(&range.start, |cut| cut.range.start).ok()?;
        Some(&clips[at]).filter(|cut| cut.range == *range)
    }
}

/// A gzip page during assembly.
pub(crate) struct GzipPage {
    parts: VecDeque<BodyPart>,
    joined: TrailerBuilder,
}

impl GzipPage {
    /// An empty page of about this number of pieces.
    pub(crate) fn begin(pieces: usize) -> Self {
        let mut parts = VecDeque::with_capacity(2 * pieces + 2);
        parts.push_back(BodyPart::Bytes(Bytes::from_static(&codec::HEAD)));
        Self { parts, joined: TrailerBuilder::default() }
    }

    /// Appends a text.
    pub(crate) fn add_cut(&mut self, cut: &Clip) {
        self.joined.add(cut.crc, (cut.range.end - cut.range.start) as u32, cut.shift);
        self.parts.push_back(BodyPart::Bytes(cut.blocks.clone()));
    }

    /// Appends bytes without a coding as stored blocks. They must be in memory.
    pub(crate) fn add_plain(&mut self, mut part: BodyPart) {
        let crc = match &part {
            BodyPart::Bytes(bytes) => codec::crc32([&bytes[..]]),
            BodyPart::Stored(object, range) => {
                let whole = object.whole();
                codec::crc32(whole.iter().flat_map(|whole| whole.range(range.clone())))
            }
            BodyPart::File(..) => return,
        };
        let length = part.len();
        self.joined.add(crc, length as u32, CrcShift::of(length));
        while !part.is_empty() {
            let block = part.split_to(STORED_BYTES as u64);
            let head = codec::stored_head(block.len() as usize);
            self.parts.push_back(BodyPart::Bytes(Bytes::copy_from_slice(&head)));
            self.parts.push_back(block);
        }
    }

    /// Appends a gzip body that was made here.
    pub(crate) fn add_coded(&mut self, cut: &GzipSegment) {
        self.joined.add(cut.crc, cut.length, CrcShift::of(u64::from(cut.length)));
        self.parts.push_back(cut.body.slice(&cut.blocks));
    }

    /// Ends the page.
    pub(crate) fn end(mut self) -> VecDeque<BodyPart> {
        self.parts.push_back(BodyPart::Bytes(Bytes::copy_from_slice(&self.joined.end())));
        self.parts
    }
}

/// A gzip body whose blocks can be joined with others.
#[derive(Debug)]
pub(crate) struct GzipSegment {
    /// The body, as stored or as a further form.
    body: BodyPart,
    /// The stored body, if it has no coding.
    plain: Option<BodyPart>,
    blocks: Range<u64>,
    /// The CRC-32 of the content.
    crc: u32,
    length: u32,
}

impl GzipSegment {
    /// The segment of `body`, the gzip form of `object`. `None` if another encoder made it.
    pub(crate) fn of(object: &Arc<Object>, body: &BodyPart) -> Option<Self> {
        let length = body.len();
        let flags = object.flags();
        let plain = match (flags.coding, body) {
            (Coding::Identity, BodyPart::Bytes(_)) => {
                Some(BodyPart::Stored(Arc::clone(object), 0..object.whole()?.len()))
            }
            (Coding::Gzip, BodyPart::Stored(..))
                if flags.coded_here && object.length() == Some(length) =>
            {
                None
            }
            _ => return None,
        };
        let from = length.checked_sub(TAIL as u64).filter(|from| *from >= HEAD as u64)?;
        // Header and trailer together are a stream of the same shape.
        let mut ends = [0; HEAD + TAIL];
        copy(&body.slice(&(0..HEAD as u64)), &mut ends[..HEAD]);
        copy(&body.slice(&(from..length)), &mut ends[HEAD..]);
        let codec::Segment { crc, length, .. } = codec::segment(&ends)?;
        let blocks = HEAD as u64..body.len() - END as u64;
        Some(Self { body: body.clone(), plain, blocks, crc, length })
    }

    /// The body without its coding if it is at hand; otherwise in gzip.
    pub(crate) fn into_plain(self) -> Result<BodyPart, BodyPart> {
        self.plain.ok_or(self.body)
    }
}

/// Copies a part that is in memory.
fn copy(part: &BodyPart, to: &mut [u8]) {
    match part {
        BodyPart::Bytes(bytes) => to.copy_from_slice(bytes),
        BodyPart::Stored(object, range) => {
            let pieces = object.whole().into_iter().flat_map(|whole| whole.range(range.clone()));
            to.iter_mut().zip(pieces.flatten()).for_each(|(to, byte)| *to = *byte);
        }
        BodyPart::File(..) => {}
    }
}
