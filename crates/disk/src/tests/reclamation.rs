//! Reclamation: segments are reclaimed, popular records are moved, and writes stay within the
//! limit.

use super::*;
use crate::vfs::MemoryDirectory;

#[test]
fn records_that_were_read_are_moved_and_the_rest_is_dropped() {
    let lab = Lab::over(MemoryDirectory::new(), &Clocks::new());
    for hash in 0..400 {
        lab.put(hash, 1, 900).unwrap();
        lab.disk.settle();
        assert_eq!(lab.version(7), (hash >= 7).then_some(1), "asked for again and again");
    }
    let stats = lab.stats();
    assert!(stats.reclaimed > 20 && stats.moved > 3, "{stats:?}");
    assert_eq!(stats.damaged(), 0);
    assert_eq!(stats.records as usize, lab.index.len());
    assert_eq!(stats.dropped as usize + lab.index.len(), 400);
    let all: Vec<u64> = lab.index.places.lock().keys().copied().collect();
    assert!(all.iter().all(|hash| lab.version(*hash) == Some(1)));
    assert!(all.iter().filter(|hash| **hash != 7).all(|hash| *hash > 250), "the newest stay");
    assert!(stats.amplification() < 1.3, "{}", stats.amplification());
}

#[test]
fn moving_never_takes_more_than_its_share() {
    let lab = Lab::over(MemoryDirectory::new(), &Clocks::new());
    for hash in 0..1000 {
        lab.put(hash, 1, 900);
        lab.disk.settle();
        // All records are read all the time.
        (0..=hash).for_each(|hash| _ = lab.version(hash));
    }
    let stats = lab.stats();
    assert_eq!(stats.refused_space, 0);
    let amplification = stats.amplification();
    assert!((1.0..1.3).contains(&amplification), "{amplification}");
}

/// A store of many segments whose index has `bytes`, with all records found.
fn lab_with_index(
    vfs: MemoryDirectory,
    clocks: &Arc<Clocks>,
    bytes: u64,
) -> (Lab, Arc<base::Allowance>) {
    let index = base::Allowance::new(bytes);
    let settings = settings(vec![volume(Arc::new(vfs), 200)]);
    let lab = Lab::open(Config { index: Arc::clone(&index), ..settings }, clocks).unwrap();
    lab.find();
    (lab, index)
}

#[test]
fn a_full_index_makes_room_by_what_is_worth_least_and_the_disk_takes_more() {
    const INDEX_BYTES: u64 = 16 << 10;
    let (vfs, clocks) = (MemoryDirectory::new(), Clocks::new());
    let (lab, index) = lab_with_index(vfs.clone(), &clocks, INDEX_BYTES);
    for hash in 0..3000 {
        assert!(lab.put(hash, 1, 100).is_some(), "{hash}");
        if hash % 10 == 0 {
            lab.disk.settle();
            (3..6).for_each(|asked| assert_eq!(lab.version(asked).is_some(), hash >= asked));
        }
        assert!(index.used() <= INDEX_BYTES + INDEX_BYTES / 8, "{} bytes", index.used());
    }
    let stats = lab.stats();
    assert!(stats.free_segments > 150, "the volume is far from full: {stats:?}");
    assert!(stats.dropped_index > 2000 && stats.dropped_index == stats.dropped, "{stats:?}");
    assert!(lab.index.len() > 300, "{} are left", lab.index.len());
    assert_eq!((lab.version(4), lab.version(2999), lab.version(100)), (Some(1), Some(1), None));
    assert_eq!((stats.refused_index, stats.refused_space, stats.damaged()), (0, 0, 0));
    lab.disk.stop();
    // With less memory a start finds the newest records.
    let (lab, index) = lab_with_index(vfs, &clocks, INDEX_BYTES / 2);
    assert!(index.used() <= INDEX_BYTES / 2 + INDEX_BYTES / 8);
    assert!(lab.stats().dropped_index > 0);
    assert_eq!((lab.version(2999), lab.stats().damaged()), (Some(1), 0));
}

#[test]
fn with_an_index_that_is_full_nothing_is_taken() {
    let (lab, index) = lab_with_index(MemoryDirectory::new(), &Clocks::new(), 16 << 10);
    index.take(16 << 10);
    assert_eq!((lab.put(1, 1, 100), lab.stats().refused_index), (None, 1));
    index.give(16 << 10);
    assert!(lab.put(1, 1, 100).is_some());
}

#[test]
fn an_owner_that_has_forgotten_gets_nothing_moved() {
    let lab = Lab::over(MemoryDirectory::new(), &Clocks::new());
    lab.put(1, 1, 900).unwrap();
    lab.disk.settle();
    lab.version(1).unwrap();
    let place = lab.index.place(1).unwrap();
    // The owner has removed its entry, and has not reported that yet.
    lab.index.remove(1, place);
    for hash in 10..200 {
        lab.put(hash, 1, 900).unwrap();
        lab.disk.settle();
    }
    let moved = lab.index.moved.lock().clone();
    let (_, _, new) = moved.iter().find(|(hash, _, _)| *hash == 1).unwrap();
    assert!(matches!(lab.read(*new, 1, RecordRequest::whole()), Err(Error::Gone)));
}

#[test]
fn what_moves_keeps_its_order_and_is_found_once() {
    let (vfs, clocks) = (MemoryDirectory::new(), Clocks::new());
    let lab = Lab::over(vfs.clone(), &clocks);
    let expires_ms = START_MS + 1_000_000;
    let place = lab.disk.put(Entry { expires_ms, ..entry(1, 5, 900) }).unwrap();
    lab.index.add(1, place);
    let number = lab.disk.append(Bytes::from_static(b"x")).unwrap().number();
    for hash in 10..200 {
        lab.put(hash, 1, 900).unwrap();
        lab.disk.settle();
        lab.version(1).unwrap();
    }
    assert!(lab.index.moved.lock().iter().any(|(hash, _, _)| *hash == 1));
    lab.disk.stop();
    let lab = Lab::over(vfs, &clocks);
    let found: Vec<FoundRecord> =
        lab.index.found.lock().iter().filter(|found| found.hash == 1).copied().collect();
    assert_eq!(found.len(), 1);
    assert!(found[0].order < number, "it has not been tested against what came later");
    assert_eq!((found[0].expires_ms, found[0].passed), (expires_ms, 5));
    assert_eq!(lab.version(1), Some(5));
}

#[test]
fn what_has_expired_does_not_move() {
    let (vfs, clocks) = (MemoryDirectory::new(), Clocks::new());
    let lab = Lab::over(vfs, &clocks);
    let place = lab.disk.put(Entry { expires_ms: START_MS + 1000, ..entry(1, 1, 900) }).unwrap();
    lab.index.add(1, place);
    lab.disk.settle();
    lab.version(1).unwrap();
    clocks.pass(2000);
    for hash in 10..200 {
        lab.put(hash, 1, 900).unwrap();
        lab.disk.settle();
    }
    assert!(lab.index.moved.lock().is_empty() && lab.index.place(1).is_none());
}

#[test]
fn the_little_that_crashes_leave_in_their_segments_moves_on() {
    let (vfs, clocks) = (MemoryDirectory::new(), Clocks::new());
    let volumes = || vec![volume(Arc::new(vfs.clone()), u64::from(config::SEGMENTS_MIN))];
    let mut lab = Lab::open(settings(volumes()), &clocks).unwrap();
    lab.find();
    lab.put(0, 1, 900).unwrap();
    lab.put(1, 1, 2500).unwrap();
    lab.disk.settle();
    for crash in 2..12 {
        // No record is read, because the marks would be written, too.
        drop(lab);
        lab = Lab::open(settings(volumes()), &clocks).unwrap();
        lab.find();
        lab.put(crash, 1, 20).unwrap();
        lab.disk.settle();
    }
    let there: Vec<u64> = lab.index.places.lock().keys().copied().collect();
    assert_eq!(there, (0..12).collect::<Vec<u64>>());
    assert!(there.iter().all(|hash| lab.version(*hash) == Some(1)));
    assert!(lab.stats().damaged() == 0);
}

#[test]
fn the_smallest_volume_fills_two_segments_before_one_makes_room() {
    let volumes = vec![volume(Arc::new(MemoryDirectory::new()), u64::from(config::SEGMENTS_MIN))];
    let lab = Lab::open(settings(volumes), &Clocks::new()).unwrap();
    lab.find();
    let mut hashes = 0..100;
    while lab.stats().reclaimed == 0 {
        lab.put(hashes.next().unwrap(), 1, 900).unwrap();
        lab.disk.settle();
    }
    let put = lab.stats().put_bytes;
    assert!(put > u64::from(SEGMENT) * 2 * 9 / 10, "{put}");
    hashes.for_each(|hash| {
        lab.put(hash, 1, 900).unwrap();
        lab.disk.settle();
    });
}

#[test]
fn what_is_forgotten_is_overwritten_if_that_is_wanted() {
    let (vfs, clocks) = (MemoryDirectory::new(), Clocks::new());
    let config = Config { erase: true, ..settings(vec![volume(Arc::new(vfs.clone()), 8)]) };
    let lab = Lab::open(config, &clocks).unwrap();
    lab.find();
    let secret = b"attack at dawn, and tell nobody";
    let is_there = || {
        let data = vfs.contents().remove("data-0000").unwrap();
        data.windows(secret.len()).any(|bytes| bytes == secret)
    };
    let long: Vec<u8> = secret.iter().copied().cycle().take(5000).collect();
    for body in [Bytes::from_static(secret), Bytes::from(long)] {
        let entry = Entry { body: Body::Bytes(body), ..entry(1, 1, 0) };
        let place = lab.disk.put(entry.clone()).unwrap();
        lab.disk.settle();
        assert!(is_there());
        lab.disk.forget(place);
        lab.disk.settle();
        assert!(!is_there());
        // A record that was not even written.
        let place = lab.disk.put(entry).unwrap();
        lab.disk.forget(place);
        lab.disk.settle();
        assert!(!is_there());
    }
    for hash in 10..100 {
        lab.put(hash, 1, 900).unwrap();
        lab.disk.settle();
    }
    let all: Vec<u64> = lab.index.places.lock().keys().copied().collect();
    assert!(all.iter().all(|hash| lab.version(*hash) == Some(1)));
    assert_eq!(lab.stats().damaged(), 0);
}

#[test]
fn weights_share_out_the_records_and_a_volume_more_moves_few() {
    let clocks = Clocks::new();
    let shares = |weights: &[u32]| {
        let volumes = weights.iter().map(|weight| VolumeConfig {
            weight: *weight,
            ..volume(Arc::new(MemoryDirectory::new()), 64)
        });
        let lab = Lab::open(settings(volumes.collect()), &clocks).unwrap();
        lab.find();
        (0..1000)
            .map(|hash: u64| {
                let hash = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15);
                let place = lab.disk.put(entry(hash, 1, 10)).unwrap();
                lab.disk.settle();
                place.volume()
            })
            .collect::<Vec<usize>>()
    };
    let two = shares(&[1, 3]);
    let second = two.iter().filter(|volume| **volume == 1).count();
    assert!((700..800).contains(&second), "{second}");
    let three = shares(&[1, 3, 1]);
    assert!(two.iter().zip(&three).all(|(before, now)| before == now || *now == 2));
}

/// Fills the store more than once with records of these hashes.
fn fill(lab: &Lab, hashes: std::ops::Range<u64>) {
    for hash in hashes {
        lab.put(hash, 1, 900);
        lab.disk.settle();
    }
}

#[test]
fn a_record_read_for_a_client_is_pinned() {
    let lab = Lab::over(MemoryDirectory::new(), &Clocks::new());
    // One is in parts, over two segments, and the other is not.
    let places = [(1, 20_000), (2, 1_500)].map(|(hash, len)| lab.put(hash, 1, len).unwrap());
    lab.disk.settle();
    let holds = places.map(|place| lab.disk.hold(place, 50).unwrap());
    fill(&lab, 10..300);
    let read = |hash: u64, place| lab.read(place, hash, RecordRequest::whole());
    for (hash, place) in [1, 2].into_iter().zip(places) {
        assert!(read(hash, place).is_ok(), "{hash}");
    }
    assert!(lab.stats().reclaimed > 10);
    drop(holds);
    fill(&lab, 300..600);
    for (hash, place) in [1, 2].into_iter().zip(places) {
        assert!(read(hash, place).is_err() && lab.disk.hold(place, 50).is_none(), "{hash}");
    }
}

#[test]
fn pinned_records_stay_and_the_limit_of_pins_is_reported() {
    let lab = Lab::over(MemoryDirectory::new(), &Clocks::new());
    let hold = |place: &RecordAddress| lab.disk.hold(*place, 25).unwrap();
    let places: Vec<RecordAddress> = (0..60).map(|hash| lab.put(hash, 1, 900).unwrap()).collect();
    lab.disk.settle();
    let mut holds: Vec<SegmentPin> = places.iter().map(hold).collect();
    let within = holds.iter().filter(|hold| hold.is_within()).count();
    assert!(within > 20 && within < places.len(), "those of two segments of eight: {within}");
    assert!(hold(&places[59]).is_within(), "it is pinned already");
    assert_eq!(lab.stats().refused_hold as usize, places.len() - within);
    let is_there =
        |hash, place: &RecordAddress| lab.read(*place, hash, RecordRequest::whole()).is_ok();
    let all_are = || (0..).zip(&places).all(|(hash, place)| is_there(hash, place));
    fill(&lab, 100..400);
    let stats = lab.stats();
    assert!(stats.reclaimed > 10 && stats.refused_space == 0, "{stats:?}");
    assert!(all_are());
    // All records are read, including new ones.
    for hash in 100..700 {
        if hash >= 400 {
            fill(&lab, hash..hash + 1);
        }
        holds.extend(lab.index.place(hash).as_ref().map(hold));
    }
    let reclaimed = lab.stats().reclaimed;
    fill(&lab, 700..800);
    let stats = lab.stats();
    assert!(stats.reclaimed == reclaimed && stats.refused_space > 0, "{stats:?}");
    assert!(all_are());
    // An ended pin does not count.
    holds.clear();
    fill(&lab, 800..1_000);
    assert!(lab.stats().reclaimed > reclaimed);
    let newest = lab.index.place(999).unwrap();
    assert!(hold(&newest).is_within() && !lab.disk.hold(newest, 0).unwrap().is_within());
}

/// A purge that comes while its matches are being dropped matches nothing. It is needed until a
/// crash cannot bring them back.
#[test]
fn a_purge_of_what_is_being_dropped_is_kept_until_that_is_durable() {
    const LEN: usize = 60_000;
    let (vfs, clocks) = (MemoryDirectory::new(), Clocks::new());
    let config = |vfs: &MemoryDirectory| Config {
        queue_bytes: 16 << 20,
        journal_bytes: 1 << 20,
        part_bytes: 1 << 20,
        ..settings(vec![VolumeConfig {
            segment_bytes: 1 << 20,
            block_bytes: 1024,
            ..VolumeConfig::new(Arc::new(vfs.clone()), 32 << 20)
        }])
    };
    let oldest = 1;
    let is_found = |lab: &Lab| lab.index.found.lock().iter().any(|found| found.hash == oldest);
    let lab = Lab::open(config(&vfs), &clocks).unwrap();
    lab.find();
    // The oldest are written; behind them is more than two turns of the writer.
    let mut hash = 0;
    while lab.disk.takes_bytes() > 0 && lab.stats().puts < 17 * 19 {
        hash += 1;
        lab.put(hash, 1, LEN).unwrap();
        lab.disk.settle();
    }
    while lab.put(hash + 1, 1, LEN).is_some() {
        hash += 1;
    }
    assert!(lab.index.place(oldest).is_some() && lab.stats().queued_bytes > 9 << 20);
    lab.disk.step();
    assert_eq!(lab.index.place(oldest), None, "its segment is reclaimed");

    let effect = lab.disk.append(Bytes::copy_from_slice(&oldest.to_le_bytes())).unwrap();
    let number = effect.number();
    drop(effect);
    assert_eq!(lab.disk.sealed(), number);
    lab.disk.drop_invalidations(&[number]);
    clocks.pass(10_000);
    lab.disk.step();
    let crashed = Lab::open(config(&vfs.copy()), &clocks).unwrap();
    crashed.find();
    let is_told = crashed.invalidations.iter().any(|known| known.number == number);
    assert!(is_told || !is_found(&crashed), "a purged record is back");
    lab.disk.settle();
    let crashed = Lab::open(config(&vfs.copy()), &clocks).unwrap();
    crashed.find();
    assert!(crashed.invalidations.is_empty(), "it is needed no more");
    assert!(!is_found(&crashed));
}
