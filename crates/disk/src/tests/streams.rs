//! Streams, and borrowed bodies.

use super::*;
use crate::vfs::{MemoryDirectory, RecordingDirectory};

/// Streams a body in pieces of this size.
fn stream(lab: &Lab, hash: u64, len: usize, piece: usize) -> Option<RecordAddress> {
    let mut stream = lab.disk.stream(hash)?;
    let mut at = 0;
    for part in body(hash, 1, len).chunks(stream.part_bytes() as usize) {
        let pieces: Vec<Bytes> = part.chunks(piece).map(Bytes::copy_from_slice).collect();
        loop {
            match stream.push(pieces.clone()) {
                PartOutcome::Taken(taken) => {
                    // It can be read before the body has ended.
                    let ask = RecordRequest::part(&taken, 1..u64::MAX);
                    let read = lab.read(taken.place(), hash, ask).unwrap();
                    assert!(read.body.concat() == part[1..], "the part at {at}");
                    break;
                }
                PartOutcome::Full => lab.disk.settle(),
                PartOutcome::Refused => return None,
            }
        }
        at += part.len();
    }
    stream.finish(Entry { body: Body::Bytes(Bytes::new()), ..entry(hash, 1, len) })
}

#[test]
fn a_streamed_body_is_one_record() {
    let lab = Lab::over(MemoryDirectory::new(), &Clocks::new());
    for (hash, len, piece) in
        [(1, 0, 1), (2, 10, 3), (3, 2000, 7), (4, 2001, 2001), (5, 6000, 999), (6, 30_000, 5000)]
    {
        let place = stream(&lab, hash, len, piece).unwrap();
        lab.index.add(hash, place);
        assert_eq!(lab.version(hash), Some(1), "{len} bytes, as they wait");
        lab.disk.settle();
        assert_eq!(lab.version(hash), Some(1), "{len} bytes");
        let head = lab.read(place, hash, RecordRequest::head()).unwrap();
        assert_eq!((head.length, head.body.len()), (len as u64, 0));
    }
    let place = lab.index.place(6).unwrap();
    for range in [0..1, 1999..2001, 3999..8001, 29_999..30_000] {
        let answer = lab.read(place, 6, RecordRequest::range(range.start..range.end)).unwrap();
        let body = body(6, 1, 30_000);
        assert!(answer.body.concat() == body[range.start as usize..range.end as usize]);
    }
}

#[test]
fn a_stream_that_is_dropped_leaves_nothing_alive() {
    let lab = Lab::over(MemoryDirectory::new(), &Clocks::new());
    let mut stream = lab.disk.stream(1).unwrap();
    for _ in 0..3 {
        assert!(matches!(stream.push(vec![Bytes::from_static(&[1; 2000])]), PartOutcome::Taken(_)));
    }
    assert_eq!(stream.push(vec![Bytes::from_static(&[1; 2001])]), PartOutcome::Refused);
    assert!(lab.stats().records > 2);
    drop(stream);
    assert_eq!((lab.stats().records, lab.stats().live_bytes), (0, 0));
    lab.disk.settle();
    assert_eq!(lab.stats().records, 0);
}

#[test]
fn parts_live_and_die_with_their_record() {
    let (vfs, clocks) = (MemoryDirectory::new(), Clocks::new());
    let lab = Lab::over(vfs.clone(), &clocks);
    for hash in [1, 2] {
        let place = stream(&lab, hash, 9000, 1000).unwrap();
        lab.index.add(hash, place);
    }
    let mut lost = lab.disk.stream(3).unwrap();
    for _ in 0..5 {
        lost.push(vec![Bytes::from_static(&[3; 2000])]);
    }
    lab.disk.settle();
    let (records, place) = (lab.stats().records, lab.index.place(1).unwrap());
    // A crash: an unfinished stream leaves nothing.
    let vfs = vfs.copy();
    drop((lost, lab));

    let lab = Lab::over(vfs.clone(), &clocks);
    assert_eq!(lab.index.len(), 2);
    assert!(lab.stats().records < records);
    assert_eq!((lab.version(1), lab.version(2)), (Some(1), Some(1)));
    lab.disk.forget(place);
    lab.index.remove(1, place);
    let left = lab.stats().records;
    assert_eq!(left, 6, "a record and its five parts");
    lab.disk.stop();

    let lab = Lab::over(vfs, &clocks);
    assert_eq!((lab.stats().records, lab.version(2)), (left, Some(1)));
}

#[test]
fn a_long_body_that_is_wanted_moves_on_part_by_part() {
    let lab = Lab::over(MemoryDirectory::new(), &Clocks::new());
    let place = stream(&lab, 1, 6000, 1000).unwrap();
    lab.index.add(1, place);
    for hash in 10..300 {
        lab.put(hash, 1, 700).unwrap();
        lab.disk.settle();
        if lab.index.place(1).is_some() {
            assert_eq!(lab.version(1), Some(1), "at {hash}");
        }
    }
    assert!(lab.index.moved.lock().iter().any(|(hash, _, _)| *hash == 1));
    assert_eq!(lab.stats().damaged(), 0);
}

#[test]
fn a_record_that_loses_a_part_is_lost() {
    let (vfs, clocks) = (MemoryDirectory::new(), Clocks::new());
    let lab = Lab::over(vfs.clone(), &clocks);
    let place = stream(&lab, 1, 9000, 1000).unwrap();
    lab.index.add(1, place);
    lab.disk.settle();
    // The second part: the first is at the segment's beginning.
    vfs.damage("data-0000", |bytes| bytes[64 + 2112 + 500] ^= 1);
    assert_eq!(lab.read(place, 1, RecordRequest::range(0..1000)).unwrap().size(), 1000);
    assert!(matches!(lab.read(place, 1, RecordRequest::whole()), Err(Error::Damaged(Damage::Sum))));
    assert!(matches!(lab.read(place, 1, RecordRequest::head()), Err(Error::Gone)));
    assert_eq!((lab.index.len(), lab.stats().records), (0, 0));
}

/// A borrowed body, which lives as long as the store needs it.
#[derive(Debug)]
struct Borrowed(Vec<Bytes>);

impl BorrowedBytes for Borrowed {
    fn size(&self) -> u64 {
        self.0.iter().map(|piece| piece.len() as u64).sum()
    }

    fn pieces(&self, each: &mut dyn FnMut(&[u8])) {
        self.0.iter().for_each(|piece| each(piece));
    }
}

#[test]
fn a_borrowed_body_is_held_until_it_is_written() {
    let lab = Lab::over(MemoryDirectory::new(), &Clocks::new());
    for (hash, len) in [(1, 1500), (2, 7000)] {
        let body = body(hash, 1, len);
        let pieces = body.chunks(333).map(Bytes::copy_from_slice).collect();
        let lent = Arc::new(Borrowed(pieces));
        let held = Arc::downgrade(&lent);
        let place = lab.disk.put(Entry { body: Body::Lent(lent), ..entry(hash, 1, len) }).unwrap();
        lab.index.add(hash, place);
        assert_eq!(lab.version(hash), Some(1));
        assert!(held.upgrade().is_some());
        lab.disk.settle();
        assert!(held.upgrade().is_none());
        assert_eq!(lab.version(hash), Some(1));
    }
}

#[test]
fn a_body_that_moves_on_outlives_a_power_cut_before_it_is_durable() {
    let (vfs, clocks) = (RecordingDirectory::new(), Clocks::new());
    let config = Config { move_percent: 60, ..settings(vec![volume(Arc::new(vfs.clone()), 8)]) };
    let lab = Lab::open(config, &clocks).unwrap();
    lab.find();
    // Its parts are in two segments.
    (100..105).for_each(|hash| _ = lab.put(hash, 1, 1900).unwrap());
    let place = stream(&lab, 1, 9000, 1000).unwrap();
    lab.index.add(1, place);
    lab.disk.settle();
    for hash in 200.. {
        assert!(hash < 400, "it never moves");
        assert_eq!(lab.version(1), Some(1));
        lab.put(hash, 1, 1900).unwrap();
        lab.disk.step();
        if !lab.index.moved.lock().is_empty() {
            break;
        }
        lab.clocks.pass(1000);
    }
    assert_eq!(lab.index.moved.lock()[0].0, 1);
    // The journal is made durable, and the moved records are not.
    drop(lab.disk.append(Bytes::from_static(b"x")).unwrap());
    for seed in 0..20 {
        let disk = volume(Arc::new(vfs.cut(vfs.point(), seed)), 8);
        let lab = Lab::open(settings(vec![disk]), &clocks).unwrap();
        while lab.disk.find_step() {}
        assert_eq!(lab.version(1), Some(1), "seed {seed}");
    }
}
