//! Bodies in gzip: tested on their way from an origin, and unfolded for clients that do not take
//! gzip. What a few bytes unfold to is never held in memory.

use std::io::{self, Write};

use cache::{Body, BodyWriter, Passage, Push, Reader, Whole};
use flate2::write::GzDecoder;

use crate::body::{Part, Parts, ReplyBody};

/// Bytes unfolded at once: gzip makes at most about a thousand of one.
const STEP_BYTES: usize = 512;
/// Bytes that a test unfolds before others get their turn.
const TURN_BYTES: u64 = 1 << 20;
/// A body shorter than this cannot unfold to 4 GiB (deflate makes at most 1032 bytes of one): the
/// length in its last four bytes is the whole length.
const EXACT_BYTES: u64 = (u32::MAX / 1032) as u64;

/// The test of a body that claims to be in gzip, as it comes.
pub(crate) struct Test {
    decoder: GzDecoder<Count>,
    /// Bytes that came and are not tested yet.
    untested: Vec<u8>,
    /// Bytes that are still to come, where that is known.
    missing: Option<u64>,
}

/// A sink that counts.
#[derive(Default)]
struct Count(u64);

impl Write for Count {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Test {
    /// The test of a body of `length` bytes.
    pub(crate) fn new(length: Option<u64>) -> Self {
        let decoder = GzDecoder::new(Count::default());
        Self { decoder, untested: Vec::new(), missing: length }
    }

    /// Takes bytes for [`Test::go_on`].
    pub(crate) fn take(&mut self, bytes: &[u8]) {
        self.untested.extend_from_slice(bytes);
    }

    /// Tests what was taken and hands it on; false when it is no gzip. The `last` bytes of a body,
    /// or those that complete its length, are handed on only if the whole is well.
    pub(crate) async fn go_on(&mut self, last: bool, then: impl FnOnce(&[u8])) -> bool {
        for at in (0..self.untested.len()).step_by(STEP_BYTES) {
            let step = &self.untested[at..self.untested.len().min(at + STEP_BYTES)];
            if self.decoder.write_all(step).is_err() {
                return false;
            }
            let unfolded = self.decoder.get_mut();
            if unfolded.0 > TURN_BYTES {
                unfolded.0 = 0;
                rt::yield_now().await;
            }
        }
        let came = self.untested.len() as u64;
        self.missing = self.missing.map(|missing| missing.saturating_sub(came));
        if (last || self.missing == Some(0)) && self.decoder.try_finish().is_err() {
            return false;
        }
        then(&self.untested);
        self.untested.clear();
        true
    }
}

/// Returns the length that the whole body `folded`, which has been tested, has when it is unfolded
/// (RFC 1952 2.3.1, ISIZE).
pub(crate) fn unfolded_length(folded: Whole<'_>) -> Option<u64> {
    if folded.len() > EXACT_BYTES {
        return None;
    }
    let from = folded.len().checked_sub(size_of::<u32>() as u64)?;
    let last: Vec<u8> = folded.range(from..folded.len()).flatten().copied().collect();
    last.first_chunk().map(|last| u64::from(u32::from_le_bytes(*last)))
}

/// The body that `coded` unfolds to, at most about `window` bytes ahead of who reads it. What is no
/// gzip, or not all of it, breaks off.
pub(crate) fn unfold(coded: Reader, window: impl Into<Passage>) -> Reader {
    let (writer, reader) = Body::window(window);
    rt::spawn_local(pump(coded, writer));
    reader
}

/// Unfolds `body`, to `length` bytes where that is known, at most `window` bytes ahead of the
/// client.
pub(crate) fn unfold_body(body: &mut ReplyBody, length: Option<u64>, window: Passage) {
    let folded = match std::mem::replace(body, ReplyBody::None) {
        ReplyBody::Stream { reader, .. } => reader,
        ReplyBody::Parts(Parts::One(Part::Stored(object, _))) => object.reader(),
        ReplyBody::Parts(Parts::One(Part::Bytes(bytes))) if !bytes.is_empty() => {
            let (mut writer, reader) = Body::window(bytes.len() as u64);
            // A window takes what it is given, and its reader is there.
            _ = writer.push(&bytes);
            writer.finish();
            reader
        }
        ReplyBody::Head(_) => return *body = ReplyBody::Head(length),
        other => return *body = other,
    };
    *body = ReplyBody::Stream { reader: unfold(folded, window), length };
}

async fn pump(mut coded: Reader, mut writer: BodyWriter) {
    let mut decoder = GzDecoder::new(Vec::new());
    loop {
        let piece = match coded.next().await {
            Ok(Some(piece)) => piece,
            Ok(None) => break,
            Err(_) => return writer.abort(),
        };
        for step in piece.chunks(STEP_BYTES) {
            if decoder.write_all(step).is_err() || !pass(&mut decoder, &mut writer).await {
                return writer.abort();
            }
        }
    }
    if decoder.try_finish().is_ok() && pass(&mut decoder, &mut writer).await {
        writer.finish();
    } else {
        writer.abort();
    }
}

/// Hands on what has been unfolded; whether anybody is there to take it.
async fn pass(decoder: &mut GzDecoder<Vec<u8>>, writer: &mut BodyWriter) -> bool {
    let plain = decoder.get_mut();
    let push = if plain.is_empty() { Push::Ok } else { writer.push(plain) };
    plain.clear();
    match push {
        Push::Ok => true,
        _ => writer.room().await.is_ok(),
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use cache::Pieces;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use tokio::runtime::Builder;
    use tokio::task::LocalSet;

    use super::*;

    /// Unfolds `coded`; `None` if it breaks off.
    fn unfolded(coded: &[u8]) -> Option<Vec<u8>> {
        let runtime = Builder::new_current_thread().build().expect("a runtime");
        LocalSet::new().block_on(&runtime, async {
            let (mut writer, reader) = Body::window(1 << 20);
            _ = writer.push(coded);
            writer.finish();
            let mut reader = unfold(reader, 1 << 10);
            let mut all = Vec::new();
            loop {
                match reader.next().await {
                    Ok(Some(piece)) => all.extend_from_slice(&piece),
                    Ok(None) => return Some(all),
                    Err(_) => return None,
                }
            }
        })
    }

    #[test]
    fn what_was_folded_is_unfolded_and_what_is_cut_breaks_off() {
        let plain = b"the same again and again, ".repeat(10_000);
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(&plain).expect("memory");
        let coded = encoder.finish().expect("memory");
        assert_eq!(unfolded(&coded).as_deref(), Some(&plain[..]));
        assert_eq!(unfolded(&coded[..coded.len() - 1]), None);
        assert_eq!(unfolded(b"no gzip"), None);
    }

    /// Returns true if `folded`, which comes in pieces of `piece_bytes`, is found to be gzip.
    fn passes(folded: &[u8], piece_bytes: usize) -> bool {
        [None, Some(folded.len() as u64)].map(|length| {
            let mut came = Vec::new();
            let passes = passes_to(&mut came, folded, length, piece_bytes);
            assert!(folded.starts_with(&came));
            assert!(passes || length.is_none() || came != folded, "{length:?} {piece_bytes}");
            passes
        }) == [true; 2]
    }

    /// The same, what is handed on going to `came`.
    fn passes_to(
        came: &mut Vec<u8>,
        folded: &[u8],
        length: Option<u64>,
        piece_bytes: usize,
    ) -> bool {
        let runtime = Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            let mut test = Test::new(length);
            for piece in folded.chunks(piece_bytes) {
                test.take(piece);
                if !test.go_on(false, |tested| came.extend_from_slice(tested)).await {
                    return false;
                }
            }
            test.go_on(true, |_| {}).await
        })
    }

    #[test]
    fn what_is_whole_passes_and_what_is_cut_garbled_or_followed_by_more_does_not() {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(&b"a line of text\n".repeat(100)).expect("memory");
        let folded = encoder.finish().expect("memory");
        let (mut garbled, mut more) = (folded.clone(), folded.clone());
        let last = garbled.len() - 5;
        garbled[last] ^= 1;
        more.extend_from_slice(b"more");
        for piece_bytes in [1, 7, 10_000] {
            assert!(passes(&folded, piece_bytes));
            assert!(!passes(&folded[..folded.len() - 1], piece_bytes));
            assert!(!passes(&garbled, piece_bytes));
            assert!(!passes(&more, piece_bytes));
            assert!(!passes(b"no gzip at all", piece_bytes));
        }
        assert_eq!(unfolded_length(Whole::One(&folded)), Some(1500));
        let pieces: Vec<Bytes> = folded.chunks(3).map(Bytes::copy_from_slice).collect();
        assert_eq!(unfolded_length(Whole::Many(&Pieces::new(pieces))), Some(1500));
        assert_eq!(unfolded_length(Whole::One(b"abc")), None);
    }
}
