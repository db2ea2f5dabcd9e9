//! Bodies: filling objects, windows and readers.

use std::future::Future;
use std::sync::atomic::{AtomicU32, Ordering};

use bytes::Bytes;
use message::Trailers;

use super::*;

#[test]
fn a_reader_follows_and_ends_with_the_body() {
    let cache = cache();
    let mut filling = lead(begin(&cache, "/a")).store(permit(), head(Some(6)), None);
    let object = Arc::clone(filling.object());
    let mut reader = object.reader();
    assert_eq!((reader.length(), object.length()), (Some(6), Some(6)));
    assert_eq!(read_once(&mut reader), None);
    assert_eq!(filling.push(b"abc"), PushOutcome::Ok);
    assert_eq!(read_once(&mut reader), Some(Ok(Some(b"abc"[..].into()))));
    assert_eq!(read_once(&mut reader), None);
    assert!(object.whole().is_none() && object.is_filling());
    assert_eq!(filling.push(b"def"), PushOutcome::Ok);
    assert!(filling.finish());
    assert_eq!(object.whole().map(|whole| whole.len()), Some(6));
    assert!(!object.is_filling());
    assert_eq!(read_once(&mut reader), Some(Ok(Some(b"def"[..].into()))));
    assert_eq!(read_once(&mut reader), Some(Ok(None)));
    assert_eq!(read_all(object.reader()).expect("complete"), b"abcdef");
}

#[test]
fn bodies_of_every_shape_come_out_as_they_went_in() {
    let cache = cache();
    let sizes = [0, 1, 4095, 4096, 4097, 65_535, 65_536, 65_537, 262_144, 262_145, 800_000];
    for size in sizes {
        let body = pattern(size);
        for (declared, step) in [(true, 1000), (true, 100_000), (false, 1000), (false, 70_000)] {
            let length = declared.then_some(size as u64);
            let mut filling = begin_anew(&cache, "/a").store(permit(), head(length), None);
            let early = filling.object().reader();
            let follower = std::thread::spawn(move || read_all(early));
            for piece in body.chunks(step) {
                assert_eq!(filling.push(piece), PushOutcome::Ok);
            }
            let object = Arc::clone(filling.object());
            assert!(filling.finish());
            assert!(follower.join().expect("no panic").expect("complete") == body);
            assert!(bytes_of(&object).expect("complete") == body);
            assert!(read_all(object.reader()).expect("complete") == body);
            assert_eq!(object.length(), Some(size as u64));
            let single = matches!(object.whole(), Some(BorrowedBody::One(_)));
            assert_eq!(single, size <= if declared { 262_144 } else { 65_536 }, "{size}");
        }
    }
    cache.clear();
    assert_eq!(cache.stats().bytes, 0);
}

fn trailers(name: &[u8]) -> Trailers {
    let mut trailers = Trailers::default();
    trailers.push(name, b"1");
    trailers
}

#[test]
fn trailers_come_behind_a_kept_body_for_every_reader_and_are_weighed_with_it() {
    let cache = cache();
    let store = |length: usize, flags: Flags, behind: Option<Trailers>| {
        let mut filling =
            begin_anew(&cache, "/a").store(permit(), NewObject { flags, ..head(None) }, None);
        let mut early = filling.object().reader();
        assert!(early.take_trailers().is_none(), "before the end there are none");
        let object = Arc::clone(filling.object());
        assert_eq!(filling.push(&pattern(length)), PushOutcome::Ok);
        assert!(filling.finish_with(behind.clone()));
        for mut reader in [early, object.reader(), object.reader()] {
            while let Some(data) = block_on(reader.next()).expect("complete") {
                assert!(!data.is_empty());
            }
            assert_eq!(reader.take_trailers().map(|come| come.trailers), behind);
        }
        assert_eq!(object.trailers(), behind.as_ref());
        assert!(bytes_of(&object).expect("complete") == pattern(length));
        let taken = cache.stats().bytes;
        drop(object);
        cache.clear();
        assert_eq!(cache.stats().bytes, 0, "{length}");
        taken
    };
    for length in [0, 10, 300_000] {
        for esi in [false, true] {
            let flags = Flags { esi, ..Flags::default() };
            let without = store(length, flags, None);
            assert!(store(length, flags, Some(trailers(b"X-Sum"))) > without, "{length}");
        }
    }
}

#[test]
fn trailers_of_a_body_that_is_not_kept_go_to_its_reader() {
    let cache = Cache::new(Config { object_bytes_max: 1000, ..config(1 << 20) });
    let mut filling = lead(begin(&cache, "/a")).store(permit(), head(None), None);
    let mut reader = filling.object().reader();
    assert_eq!(filling.push(&[1; 2000]), PushOutcome::Ok);
    assert!(filling.is_window());
    assert!(filling.finish_with(Some(trailers(b"X-Sum"))));
    while let Some(data) = block_on(reader.next()).expect("complete") {
        assert!(!data.is_empty());
    }
    assert_eq!(reader.take_trailers().map(|come| come.trailers), Some(trailers(b"X-Sum")));
}

#[test]
fn trailers_stay_with_a_body_that_is_confirmed() {
    let cache = cache();
    let mut filling = lead(begin(&cache, "/a")).store(permit(), head(None), None);
    let old = Arc::clone(filling.object());
    assert_eq!(filling.push(b"body"), PushOutcome::Ok);
    assert!(filling.finish_with(Some(trailers(b"X-Sum"))));
    let new = begin_anew(&cache, "/a").freshen(permit(), &old, head(None), None);
    drop(old);
    assert_eq!(new.trailers(), Some(&trailers(b"X-Sum")));
    assert_eq!(bytes_of(&new).as_deref(), Some(&b"body"[..]));
    drop(new);
    cache.clear();
    assert_eq!(cache.stats().bytes, 0);
}

#[test]
fn chunks_that_are_there_are_kept_as_they_are() {
    let cache = cache();
    for (sizes, declared) in [
        (&[0_usize; 1][..], true),
        (&[7], true),
        (&[65_000, 65_000, 3], true),
        (&[65_000, 300_000], false),
    ] {
        let body = pattern(sizes.iter().sum());
        let length = declared.then_some(body.len() as u64);
        let mut filling = begin_anew(&cache, "/a").store(permit(), head(length), None);
        let mut follower = filling.object().reader();
        let mut rest = Bytes::from(body.clone());
        for size in sizes {
            let chunk = rest.split_to(*size);
            assert_eq!(filling.push_chunk(&chunk), PushOutcome::Ok);
            if let Some(read) = read_once(&mut follower) {
                let read = read.expect("it comes").expect("it goes on");
                assert_eq!((read.as_ptr(), read.len()), (chunk.as_ptr(), *size), "no copy");
            }
        }
        let object = Arc::clone(filling.object());
        assert!(filling.finish());
        assert!(bytes_of(&object).expect("complete") == body);
        assert!(read_all(object.reader()).expect("complete") == body);
    }
    // Copies and chunks may alternate, and no more than the declared length is accepted.
    let mut filling = begin_anew(&cache, "/a").store(permit(), head(Some(9)), None);
    let chunk = Bytes::from_static(b"def");
    assert_eq!(
        (filling.push(b"abc"), filling.push_chunk(&chunk)),
        (PushOutcome::Ok, PushOutcome::Ok)
    );
    assert_eq!(filling.push(b"ghi"), PushOutcome::Ok);
    let object = Arc::clone(filling.object());
    assert!(filling.finish());
    assert_eq!(bytes_of(&object).expect("complete"), b"abcdefghi");
    let mut filling = begin_anew(&cache, "/a").store(permit(), head(Some(2)), None);
    assert_eq!(filling.push_chunk(&chunk), PushOutcome::Overrun);
    drop((object, filling));
    cache.clear();
    assert_eq!(cache.stats().bytes, 0);
}

#[test]
fn a_reader_seeks_within_and_beyond_what_has_come() {
    let cache = cache();
    let body = pattern(600_000);
    let mut filling = lead(begin(&cache, "/a")).store(permit(), head(Some(600_000)), None);
    let skips = [0, 1, 1000, 262_144, 262_145, 599_999, 600_000, 700_000];
    let mut readers: Vec<_> = skips.iter().map(|_| filling.object().reader()).collect();
    readers.iter_mut().zip(skips).for_each(|(reader, skip)| reader.seek(skip));
    for piece in body.chunks(50_000) {
        assert_eq!(filling.push(piece), PushOutcome::Ok);
        assert_eq!(read_once(&mut readers[6]), None);
    }
    let object = Arc::clone(filling.object());
    assert!(filling.finish());
    let late = skips.iter().map(|skip| {
        let mut reader = object.reader();
        reader.seek(*skip);
        reader
    });
    let late: Vec<_> = late.collect();
    for (reader, skip) in readers.into_iter().chain(late).zip(skips.iter().cycle()) {
        let from = (*skip as usize).min(body.len());
        assert!(read_all(reader).expect("complete") == body[from..], "{skip}");
    }
}

#[test]
fn a_length_not_met_is_an_abort() {
    let cache = cache();
    let mut filling = lead(begin(&cache, "/a")).store(permit(), head(Some(6)), None);
    let reader = filling.object().reader();
    assert_eq!(filling.push(b"abc"), PushOutcome::Ok);
    assert!(found(&cache, "/a").is_some());
    assert!(!filling.finish());
    assert_eq!(read_all(reader), Err(IncompleteBody));
    assert!(found(&cache, "/a").is_none());
}

#[test]
fn a_length_exceeded_is_an_abort() {
    let cache = cache();
    let mut filling = lead(begin(&cache, "/a")).store(permit(), head(Some(2)), None);
    let reader = filling.object().reader();
    assert_eq!(filling.push(b"abc"), PushOutcome::Overrun);
    assert_eq!(filling.push(b"d"), PushOutcome::Abandoned);
    assert!(!filling.finish());
    assert_eq!(read_all(reader), Err(IncompleteBody));
    assert!(found(&cache, "/a").is_none());
}

#[test]
fn a_slow_reader_does_not_slow_the_writer_of_a_kept_body() {
    let cache = cache();
    let mut filling = lead(begin(&cache, "/a")).store(permit(), head(None), None);
    let slow = filling.object().reader();
    for _ in 0..10 {
        assert_eq!(filling.push(&[7; 100_000]), PushOutcome::Ok);
        assert_eq!(block_on(filling.room()), Ok(()));
    }
    assert!(filling.finish());
    assert_eq!(read_all(slow).map(|body| body.len()), Ok(1_000_000));
}

#[test]
fn a_body_that_outgrows_the_limit_becomes_a_window() {
    let cache = cache();
    let mut filling = lead(begin(&cache, "/a")).store(permit(), head(None), None);
    let object = Arc::clone(filling.object());
    let (mut fast, mut slow) = (object.reader(), object.reader());
    let piece = pattern(100_000);
    for _ in 0..10 {
        assert_eq!(filling.push(&piece), PushOutcome::Ok);
    }
    assert!(filling.stored() && object.is_live());
    assert_eq!(filling.push(&piece), PushOutcome::Wait, "the limit is a mebibyte");
    assert!(!filling.stored() && filling.is_window() && !object.is_live());
    assert!(matches!(cache.lookup(&key("/a"), &mut plain, 0), CacheLookup::HitForMiss));
    let mut got = 0;
    while let Some(Ok(Some(data))) = read_once(&mut fast) {
        got += data.len();
    }
    assert_eq!(got, 1_100_000);
    let room =
        |filling: &mut ObjectWriter| filling.poll_room(&mut Context::from_waker(Waker::noop()));
    assert!(room(&mut filling).is_pending(), "the slowest counts");
    let mut all = Vec::new();
    while let Some(Ok(Some(data))) = read_once(&mut slow) {
        all.extend_from_slice(&data);
    }
    assert_eq!(all.len(), 1_100_000);
    assert!(all.chunks(100_000).all(|chunk| chunk == piece));
    assert!(room(&mut filling).is_ready());
    assert!(object.reader().is_behind(), "the beginning is gone");
    assert_eq!(read_all(object.reader()), Err(IncompleteBody));
    assert_eq!(filling.push(b"end"), PushOutcome::Ok);
    drop(fast);
    assert!(filling.finish());
    assert_eq!(read_all(slow).expect("complete"), b"end");
    assert_eq!(cache.stats().refused, 1);
}

#[test]
fn a_body_declared_too_large_is_a_window_from_the_start() {
    let cache = cache();
    let lead = lead(begin(&cache, "/a"));
    let FetchDecision::Wait(waiting) = begin(&cache, "/a") else { panic!("a fetch is under way") };
    let mut filling = lead.store(permit(), head(Some(2 * MIB)), None);
    assert!(matches!(block_on(waiting), WaiterOutcome::Refused));
    assert!(!filling.stored() && filling.is_window());
    assert!(matches!(begin(&cache, "/a"), FetchDecision::Alone(_)));
    let reader = filling.object().reader();
    let body = pattern(2 * MIB as usize);
    let expected = body.clone();
    let follower = std::thread::spawn(move || read_all(reader).expect("complete") == expected);
    for piece in body.chunks(30_000) {
        match filling.push(piece) {
            PushOutcome::Ok => {}
            PushOutcome::Wait => block_on(filling.room()).expect("the reader reads on"),
            other => panic!("{other:?}"),
        }
    }
    assert!(filling.finish());
    assert!(follower.join().expect("no panic"));
}

#[test]
fn a_window_without_readers_is_abandoned() {
    let cache = cache();
    // Its readers have gone.
    let mut filling = lead(begin(&cache, "/a")).store(permit(), head(Some(2 * MIB)), None);
    let reader = filling.object().reader();
    assert_eq!(filling.push(&[1; 70_000]), PushOutcome::Wait);
    assert!(filling.poll_room(&mut Context::from_waker(Waker::noop())).is_pending());
    drop(reader);
    assert_eq!(block_on(filling.room()), Err(AbandonedBody));
    assert_eq!(filling.push(b"x"), PushOutcome::Abandoned);
    assert!(!filling.finish());
    // It never had a reader: it waits for one until it is full.
    let mut lead_of_b = lead(begin(&cache, "/b"));
    lead_of_b.set_window_limit(window_limit(64 * 1024));
    let mut filling = lead_of_b.store(permit(), head(Some(2 * MIB)), None);
    assert_eq!(filling.push(&[1; 60_000]), PushOutcome::Ok);
    assert_eq!(filling.push(&[1; 60_000]), PushOutcome::Abandoned);
    // A background fetch that outgrows the limit.
    let mut filling = lead(begin(&cache, "/c")).store(permit(), head(None), None);
    assert_eq!(filling.push(&[1; 1_000_000]), PushOutcome::Ok);
    assert_eq!(filling.push(&[1; 100_000]), PushOutcome::Abandoned);
    drop(filling);
    cache.clear();
    assert_eq!(cache.stats().bytes, 0);
}

#[test]
fn a_budget_without_room_makes_windows_too() {
    let cache = Cache::new(config(100_000));
    let mut filling = lead(begin(&cache, "/a")).store(permit(), head(None), None);
    let reader = filling.object().reader();
    let follower = std::thread::spawn(move || read_all(reader));
    let body = pattern(900_000);
    for piece in body.chunks(10_000) {
        match filling.push(piece) {
            PushOutcome::Ok => {}
            PushOutcome::Wait => block_on(filling.room()).expect("the reader reads on"),
            other => panic!("{other:?}"),
        }
        assert!(cache.stats().bytes <= 100_000);
    }
    assert!(filling.is_window() && filling.finish());
    assert!(follower.join().expect("no panic").expect("complete") == body);
}

#[test]
fn chunks_in_a_readers_hand_stay_counted_after_their_object_is_gone() {
    let cache = cache();
    put(&cache, "/a", &pattern(600_000));
    let mut reader = found(&cache, "/a").expect("stored").reader();
    let data = block_on(reader.next()).expect("complete").expect("not empty");
    cache.clear();
    drop(reader);
    assert!((262_144..300_000).contains(&cache.stats().bytes), "{:?}", cache.stats());
    drop(data);
    assert_eq!(cache.stats().bytes, 0);
}

#[test]
fn a_standalone_window_carries_a_body() {
    let (mut writer, reader) = BodyWindow::window(window_limit(10_000));
    let body = pattern(500_000);
    let expected = body.clone();
    let follower = std::thread::spawn(move || read_all(reader).expect("complete") == expected);
    for piece in body.chunks(3000) {
        match writer.push(piece) {
            PushOutcome::Ok => {}
            PushOutcome::Wait => block_on(writer.room()).expect("the reader reads on"),
            other => panic!("{other:?}"),
        }
    }
    assert!(writer.finish());
    assert!(follower.join().expect("no panic"));
}

#[test]
fn what_passes_a_window_is_handed_over_without_another_copy() {
    let (mut writer, mut reader) = BodyWindow::window(window_limit(100_000));
    assert_eq!(writer.push(&[1; 30_000]), PushOutcome::Ok);
    let Some(Ok(Some(data))) = read_once(&mut reader) else { panic!("there is data") };
    assert_eq!(data.len(), 30_000);
    assert_eq!(read_once(&mut reader), None);
}

#[test]
fn both_ends_of_a_window_see_the_other_go() {
    let (mut writer, reader) = BodyWindow::window(window_limit(10));
    assert!(!writer.is_abandoned());
    drop(reader);
    assert!(writer.is_abandoned());
    assert_eq!(writer.push(b"a"), PushOutcome::Abandoned);
    assert_eq!(block_on(writer.room()), Err(AbandonedBody));

    let (mut writer, mut reader) = BodyWindow::window(window_limit(10));
    assert_eq!(writer.push(b"a"), PushOutcome::Ok);
    drop(writer);
    assert_eq!(read_once(&mut reader), Some(Ok(Some(b"a"[..].into()))));
    assert_eq!(read_once(&mut reader), Some(Err(IncompleteBody)));

    let (writer, mut reader) = BodyWindow::window(window_limit(10));
    writer.abort();
    assert_eq!(read_once(&mut reader), Some(Err(IncompleteBody)));
}

/// Counts its wakes.
#[derive(Default)]
struct Woken(AtomicU32);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A wait of a window's writing side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    Room,
    Gone(usize),
    Taken(usize),
}

#[test]
fn no_wait_of_a_window_puts_off_another_in_whatever_order_they_begin() {
    let all = [Wait::Room, Wait::Gone(0), Wait::Gone(1), Wait::Taken(0), Wait::Taken(1)];
    for leaves in [false, true] {
        for turn in 0..all.len() {
            let (mut writer, mut reader) = BodyWindow::window(window_limit(1000));
            let mut watches = [writer.watch(), writer.watch()];
            assert_eq!(writer.push(&[b'a'; 2000]), PushOutcome::Wait);
            let woken = all.map(|_| Arc::new(Woken::default()));
            for at in (0..all.len()).map(|at| (at + turn) % all.len()) {
                let waker = Waker::from(Arc::clone(&woken[at]));
                let cx = &mut Context::from_waker(&waker);
                let waits = match all[at] {
                    Wait::Room => writer.poll_room(cx).is_pending(),
                    Wait::Gone(of) => pin!(watches[of].abandoned()).poll(cx).is_pending(),
                    Wait::Taken(of) => watches[of].poll_taken(cx).is_pending(),
                };
                assert!(waits, "{:?}", all[at]);
            }
            if leaves {
                drop(reader);
            } else {
                assert!(matches!(read_once(&mut reader), Some(Ok(Some(_)))));
            }
            for (wait, woken) in all.iter().zip(&woken) {
                let expected = u32::from(leaves || !matches!(wait, Wait::Gone(_)));
                assert_eq!(woken.0.load(Ordering::Relaxed), expected, "{wait:?} {leaves} {turn}");
            }
        }
    }
}

#[test]
fn a_parked_reader_delays_no_other_and_detects_what_it_missed() {
    let cache = cache();
    let mut filling = lead(begin(&cache, "/a")).store(permit(), head(None), None);
    let object = Arc::clone(filling.object());
    let (mut first, mut parked, mut late) = (object.reader(), object.reader(), object.reader());
    parked.park();
    late.park();
    assert_eq!(filling.push(b"abc"), PushOutcome::Ok);
    assert!(parked.unpark(), "a body that is kept is there from its beginning");
    assert_eq!(read_once(&mut parked), Some(Ok(Some(b"abc"[..].into()))));
    drop(parked);
    // It becomes a window, whose reader is the slowest.
    let body = pattern(2 << 20);
    let mut taken = 0;
    for piece in body.chunks(100_000) {
        if filling.push(piece) == PushOutcome::Wait {
            while let Some(Ok(Some(bytes))) = read_once(&mut first) {
                taken += bytes.len();
            }
            assert_eq!(block_on(filling.room()), Ok(()));
        }
    }
    assert!(filling.is_window() && taken > 1 << 20);
    assert!(!late.unpark(), "its beginning has passed by");
    assert!(filling.finish());
}

#[test]
fn a_watch_that_ends_takes_nothing_from_another() {
    let (writer, reader) = BodyWindow::window(window_limit(10));
    let (first, mut second) = (writer.watch(), writer.watch());
    drop(first);
    let mut gone = pin!(second.abandoned());
    assert!(gone.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    drop(reader);
    assert!(gone.poll(&mut Context::from_waker(Waker::noop())).is_ready());
    drop(writer);
}

#[test]
fn a_standalone_window_keeps_to_its_declared_length() {
    let (mut writer, reader) = BodyWindow::window_of(window_limit(10), Some(2));
    assert_eq!(reader.length(), Some(2));
    assert_eq!(writer.push(b"abc"), PushOutcome::Overrun);
    assert_eq!(read_all(reader), Err(IncompleteBody));
    let (mut writer, reader) = BodyWindow::window_of(window_limit(10), Some(2));
    assert_eq!(writer.push(b"a"), PushOutcome::Ok);
    assert!(!writer.finish());
    assert_eq!(read_all(reader), Err(IncompleteBody));
}

#[test]
fn what_a_reader_passes_over_makes_room_in_a_window() {
    let (mut writer, mut reader) = BodyWindow::window(window_limit(1000));
    reader.seek(5000);
    for _ in 0..10 {
        assert_eq!(writer.push(&[b'a'; 500]), PushOutcome::Ok);
        assert_eq!(read_once(&mut reader), None);
        assert_eq!(writer.held(), 0);
    }
    assert_eq!(writer.push(b"b"), PushOutcome::Ok);
    assert!(writer.finish());
    assert_eq!(read_all(reader).expect("complete"), b"b");
}

#[test]
fn a_reader_knows_that_nothing_but_the_end_is_left() {
    let cache = cache();
    let (mut window, from_window) = BodyWindow::window(window_limit(10_000));
    let mut filling = lead(begin(&cache, "/a")).store(permit(), head(None), None);
    let mut readers = [from_window, filling.object().reader()];
    assert_eq!((window.push(b"abc"), filling.push(b"abc")), (PushOutcome::Ok, PushOutcome::Ok));
    for reader in &mut readers {
        assert_eq!(read_once(reader), Some(Ok(Some(b"abc"[..].into()))));
        assert!(!reader.is_spent(), "more may come");
    }
    assert_eq!((window.push(b"def"), filling.push(b"def")), (PushOutcome::Ok, PushOutcome::Ok));
    assert!(window.finish() && filling.finish());
    for mut reader in readers {
        assert!(!reader.is_spent(), "it was not taken");
        assert_eq!(read_once(&mut reader), Some(Ok(Some(b"def"[..].into()))));
        assert!(reader.is_spent());
        assert_eq!(read_once(&mut reader), Some(Ok(None)));
    }
}
