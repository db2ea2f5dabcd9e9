//! Tests of recoding: bodies in transit and their limits.

use std::io::Write;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use base::MemoryBudget;
use cache::{BodyDerivation, BodyWindow, Reader, WindowLimit};
use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;

use super::*;
use crate::state::body::ReplyBody;

fn memory() -> Arc<MemoryBudget> {
    MemoryBudget::new(64 << 20, 32 << 20)
}

fn gzipped(plain: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(plain).expect("memory");
    encoder.finish().expect("memory")
}

fn account() -> Arc<Account> {
    Account::open(&memory(), u64::MAX)
}

fn decoder(coded: &[u8], decoder: BodyDecoding<'_>) -> Reader {
    let passage = WindowLimit { bytes: coded.len().max(1) as u64, account: account() };
    let (mut writer, reader) = BodyWindow::window(passage);
    _ = writer.push(coded);
    writer.finish();
    let mut body = ReplyBody::Stream { reader, length: None };
    decoder.decode_body(&mut body, None);
    let ReplyBody::Stream { reader, .. } = body else { panic!("a body that comes") };
    reader
}

/// Reads a body without waiting; `None` if it breaks off.
fn read(reader: &mut Reader) -> Option<Vec<u8>> {
    let mut all = Vec::new();
    let mut cx = Context::from_waker(Waker::noop());
    loop {
        match reader.poll_next(&mut cx) {
            Poll::Ready(Ok(Some(piece))) => all.extend_from_slice(&piece),
            Poll::Ready(Ok(None)) => return Some(all),
            Poll::Ready(Err(_)) => return None,
            // The task yields.
            Poll::Pending => {}
        }
    }
}

/// Decodes `coded`; `None` if it breaks off. Also returns the limits reached.
fn decoded(coded: &[u8], coding: Coding, limits: DecodeLimits) -> (Option<Vec<u8>>, Vec<u64>) {
    let registry = base::counters::Registry::default();
    let (account, counters) = (account(), registry.register());
    let how = BodyDecoding { coding, limits, account: &account, counters: &counters };
    let whole = read(&mut decoder(coded, how));
    let reached = [Limit::DecodedBytes, Limit::DecodedRatio, Limit::DecodedWindow];
    assert_eq!(account.held(), 0, "all is given back");
    (whole, reached.map(|limit| registry.limit_sum(limit)).to_vec())
}

#[test]
fn nothing_is_decoded_before_it_is_asked_for_and_no_more_than_that() {
    let plain = b"the same again and again, ".repeat(100_000);
    let registry = base::counters::Registry::default();
    let (memory, counters) = (memory(), registry.register());
    let account = Account::open(&memory, u64::MAX);
    for coding in Coding::CODED {
        let settings = EncodeSettings::new(coding, 3).expect("a level");
        let coded =
            through(BodyRecoding::encode(settings, &memory).expect("memory"), &plain, None, 999);
        // One line, repeated so often, is coded in a few bytes.
        let limits = DecodeLimits { ratio: u64::MAX, ..DecodeLimits::default() };
        let coded = coded.expect("coded");
        let how = BodyDecoding { coding, limits, account: &account, counters: &counters };
        let mut reader = decoder(&coded, how);
        assert_eq!(account.held(), 0, "{coding:?}");
        assert_eq!(reader.making(), BodyDerivation::OfComing);
        let mut cx = Context::from_waker(Waker::noop());
        let Poll::Ready(Ok(Some(piece))) = reader.poll_next(&mut cx) else { panic!("a piece") };
        let most = DecodeLimits::default().most_memory(coding) as u64;
        let most = most + STEP_BYTES as u64;
        assert!(piece.len() <= STEP_BYTES && account.held() <= most, "{}", account.held());
        // A decoder with a large window is reserved beside the account.
        assert!(memory.held() > STEP_BYTES as u64, "{coding:?}: {}", memory.held());
        let rest = read(&mut reader).expect("whole");
        assert_eq!([&piece[..], &rest].concat(), plain);
        drop(piece);
        assert_eq!(account.held(), 0, "{coding:?}");
    }
}

#[test]
fn without_memory_for_a_decoder_a_body_breaks_off_and_is_not_tested() {
    let coded = gzipped(b"a line of text");
    let registry = base::counters::Registry::default();
    let (none, counters) =
        (Account::open(&MemoryBudget::new(100, 100), u64::MAX), registry.register());
    let limits = DecodeLimits::default();
    let how = BodyDecoding { coding: Coding::Gzip, limits, account: &none, counters: &counters };
    let mut reader = decoder(&coded, how);
    assert!(read(&mut reader).is_none() && reader.is_starved());
    assert_eq!(registry.limit_sum(Limit::ClientMemory), 1);
    assert!(Coder::new(BodyRecoding::Decode(Coding::Gzip), None, limits, &none).is_err());
    let coder = Coder::new(BodyRecoding::Test(Coding::Gzip), None, limits, &none);
    let mut coder = coder.expect("without a decoder").expect("a coder");
    assert!(coder.is_untested() && coder.plain_length().is_none());
    coder.take(b"no gzip");
    assert_eq!(coder.step(false).expect("as it came"), Some(&b"no gzip"[..]));
    assert_eq!(coder.step(false).expect("as it came"), None);
    assert_eq!(coder.step(true).expect("the end"), Some(&b""[..]));
    assert_eq!(coder.step(true).expect("the end"), None);
}

#[test]
fn what_is_passed_over_is_decoded_and_not_read() {
    let plain: Vec<u8> = (0..100_000_u32).flat_map(u32::to_be_bytes).collect();
    let coded = gzipped(&plain);
    let registry = base::counters::Registry::default();
    let (account, counters) = (account(), registry.register());
    let (coding, limits) = (Coding::Gzip, DecodeLimits::default());
    let how = || BodyDecoding { coding, limits, account: &account, counters: &counters };
    let mut reader = decoder(&coded, how());
    assert!(!reader.goes_back());
    reader.seek(123_457);
    assert_eq!(read(&mut reader).as_deref(), Some(&plain[123_457..]));
    let mut reader = decoder(&coded, how());
    let mut cx = Context::from_waker(Waker::noop());
    assert!(matches!(reader.poll_next(&mut cx), Poll::Ready(Ok(Some(_)))));
    reader.seek(1);
    assert!(read(&mut reader).is_none(), "it does not go back");
}

#[test]
fn coded_bodies_are_decoded_and_cut_ones_break_off() {
    let plain = b"the same again and again, ".repeat(10_000);
    let coded = gzipped(&plain);
    let decode = |coded: &[u8]| decoded(coded, Coding::Gzip, DecodeLimits::default()).0;
    assert_eq!(decode(&coded).as_deref(), Some(&plain[..]));
    assert_eq!(decode(&coded[..coded.len() - 1]), None);
    assert_eq!(decode(b"no gzip"), None);
}

#[test]
fn a_bomb_in_any_coding_breaks_off_and_is_counted() {
    for coding in Coding::CODED {
        let recode = EncodeSettings::new(coding, 5).expect("a level");
        let recode = BodyRecoding::encode(recode, &memory()).expect("memory");
        let bomb = through(recode, &vec![0; 8 << 20], None, 1 << 20).expect("coded");
        assert!(bomb.len() < 16 << 10, "{coding:?} {}", bomb.len());
        let limits = DecodeLimits { size_bytes: 3 << 20, ratio: u64::MAX, ..Default::default() };
        assert_eq!(decoded(&bomb, coding, limits), (None, vec![1, 0, 0]), "{coding:?}");
        let limits = DecodeLimits { ratio: 10, ..Default::default() };
        assert_eq!(decoded(&bomb, coding, limits), (None, vec![0, 1, 0]), "{coding:?}");
    }
}

/// The output for `body` in pieces of `piece_bytes`; `None` if it is refused.
fn through(
    recode: BodyRecoding,
    body: &[u8],
    length: Option<u64>,
    piece_bytes: usize,
) -> Option<Vec<u8>> {
    let mut coder = Coder::new(recode, length, DecodeLimits::default(), &account()).ok()??;
    let mut all = Vec::new();
    let mut drain = |coder: &mut Coder, last| loop {
        match coder.step(last) {
            Ok(Some(out)) => all.extend_from_slice(out),
            Ok(None) => return true,
            Err(_) => return false,
        }
    };
    for piece in body.chunks(piece_bytes) {
        coder.take(piece);
        if !drain(&mut coder, false) {
            return None;
        }
    }
    drain(&mut coder, true).then_some(all)
}

/// Returns true if `body` in pieces of `piece_bytes` is recognised as gzip.
fn passes(body: &[u8], piece_bytes: usize) -> bool {
    [None, Some(body.len() as u64)].map(|length| {
        match through(BodyRecoding::Test(Coding::Gzip), body, length, piece_bytes) {
            Some(came) => {
                assert_eq!(came, body, "as it came");
                true
            }
            None => false,
        }
    }) == [true; 2]
}

#[test]
fn what_is_whole_passes_and_what_is_cut_garbled_or_followed_by_more_does_not() {
    let body = gzipped(&b"a line of text\n".repeat(100));
    let (mut garbled, mut more) = (body.clone(), body.clone());
    let last = garbled.len() - 5;
    garbled[last] ^= 1;
    more.extend_from_slice(b"more");
    for piece_bytes in [1, 7, 10_000] {
        assert!(passes(&body, piece_bytes));
        assert!(!passes(&body[..body.len() - 1], piece_bytes));
        assert!(!passes(&garbled, piece_bytes));
        assert!(!passes(&more, piece_bytes));
        assert!(!passes(b"no gzip at all", piece_bytes));
    }
}

#[test]
fn the_last_bytes_are_kept_back_until_the_whole_is_well() {
    let mut body = gzipped(&b"a line of text\n".repeat(100));
    let last = body.len() - 1;
    body[last] ^= 1;
    let recode = BodyRecoding::Test(Coding::Gzip);
    let coder = Coder::new(recode, Some(body.len() as u64), DecodeLimits::default(), &account());
    let mut coder = coder.expect("memory").expect("a test");
    let (mut came, mut refused) = (Vec::new(), false);
    for piece in body.chunks(5) {
        coder.take(piece);
        loop {
            match coder.step(false) {
                Ok(Some(out)) => came.extend_from_slice(out),
                Ok(None) => break,
                Err(_) => {
                    refused = true;
                    break;
                }
            }
        }
    }
    assert!(refused && came.len() < body.len(), "{}", came.len());
}

#[test]
fn a_body_that_pauses_can_be_read_as_far_as_it_came() {
    let settings = EncodeSettings::new(Coding::Gzip, 6).expect("a level");
    let recode = BodyRecoding::encode(settings, &memory()).expect("memory");
    let mut coder = Coder::new(recode, None, DecodeLimits::default(), &account())
        .expect("memory")
        .expect("one");
    assert!(!coder.holds_back());
    coder.take(b"the first line\n");
    let mut out = Vec::new();
    while let Some(more) = coder.step(false).expect("coded") {
        out.extend_from_slice(more);
    }
    assert!(coder.holds_back());
    while let Some(more) = coder.flush().expect("coded") {
        out.extend_from_slice(more);
    }
    assert!(!coder.holds_back());
    let mut plain = Vec::new();
    let mut decoder = flate2::write::GzDecoder::new(&mut plain);
    decoder.write_all(&out).expect("gzip");
    decoder.flush().expect("memory");
    drop(decoder);
    assert_eq!(plain, b"the first line\n");
}

proptest! {
    /// Any body, in any pieces, is the same after encoding and decoding.
    #[test]
    fn what_was_coded_is_decoded_to_the_same(
        body in proptest::collection::vec(any::<u8>(), 1..5000),
        times in 1..20_usize,
        piece_bytes in 1..9000_usize,
        other in 1..9000_usize,
        at in 0..3_usize,
        known in any::<bool>(),
    ) {
        let coding = Coding::CODED[at];
        let body = body.repeat(times);
        let length = known.then_some(body.len() as u64);
        let settings = EncodeSettings::new(coding, 3).expect("a level");
        let recode = BodyRecoding::encode(settings, &memory()).expect("memory");
        let coded = through(recode, &body, length, piece_bytes).expect("coded");
        let length = known.then_some(coded.len() as u64);
        let tested = through(BodyRecoding::Test(coding), &coded, length, other);
        prop_assert!(tested.as_ref() == Some(&coded));
        let plain = through(BodyRecoding::Decode(coding), &coded, length, other);
        prop_assert!(plain.as_ref() == Some(&body));
    }
}
