//! Basics: records are stored, read in any part, forgotten, and found after a stop.

use super::*;
use crate::vfs::{MemoryDirectory, RealDirectory};

#[test]
fn what_is_put_is_read_from_the_queue_and_from_the_disk() {
    let lab = Lab::over(MemoryDirectory::new(), &Clocks::new());
    for (hash, len) in (0..).zip([0, 1, 500, 912, 913, 1024, 1900, 2000, 2001, 3000, 9000]) {
        let place = lab.put(hash, 1, len).unwrap();
        assert_eq!(lab.version(hash), Some(1), "{len} bytes in the queue");
        let now = lab.disk.read_now(place, hash, &RecordRequest::whole()).unwrap();
        assert_eq!(check(hash, &now), 1);
    }
    assert!(lab.stats().queued_bytes > 0 && lab.stats().reads_queued > 0);
    lab.disk.settle();
    let queued = lab.stats().reads_queued;
    assert_eq!(lab.stats().queued_bytes, 0);
    for hash in 0..11 {
        assert_eq!(lab.version(hash), Some(1), "record {hash}");
    }
    assert_eq!(lab.stats().reads_queued, queued);
    assert_eq!(lab.stats().damaged(), 0);
}

#[test]
fn any_part_is_read_and_no_more_blocks_than_it_takes() {
    let lab = Lab::over(MemoryDirectory::new(), &Clocks::new());
    for (hash, len) in [(1, 1900_usize), (2, 9000)] {
        let place = lab.put(hash, 1, len).unwrap();
        let body = body(hash, 1, len);
        for settled in [false, true] {
            if settled {
                lab.disk.settle();
            }
            let answer = lab.read(place, hash, RecordRequest::head()).unwrap();
            assert_eq!((answer.head, answer.body.len()), (head(hash, 1, len), 0));
            assert_eq!((answer.length, answer.passed), (len as u64, 1));
            for (start, end) in
                [(0, 1), (0, 912), (911, 913), (1000, 1001), (1500, 1900), (5, 1899), (1899, 4000)]
            {
                let answer = lab.read(place, hash, RecordRequest::range(start..end)).unwrap();
                assert!(answer.head.is_empty());
                let end = (end as usize).min(len);
                assert!(answer.body.concat() == body[start as usize..end], "{start} to {end}");
            }
            assert_eq!(
                lab.read(place, hash, RecordRequest::range(10_000..10_001)).unwrap().size(),
                0
            );
        }
    }
}

#[test]
fn a_long_body_is_read_in_several_answers() {
    let config = Config {
        read_bytes: 3000,
        part_bytes: 2000,
        ..settings(vec![volume(Arc::new(MemoryDirectory::new()), 8)])
    };
    let lab = Lab::open(config, &Clocks::new()).unwrap();
    lab.find();
    let place = lab.put(7, 1, 10_000).unwrap();
    lab.disk.settle();
    let mut read = Vec::new();
    while read.len() < 10_000 {
        let answer = lab.read(place, 7, RecordRequest::range(read.len() as u64..u64::MAX)).unwrap();
        assert!((1..=3000).contains(&answer.size()));
        read.extend(answer.body.concat());
    }
    assert!(read == body(7, 1, 10_000));
}

#[test]
fn a_forgotten_record_is_gone_and_its_old_address_finds_no_other() {
    let lab = Lab::over(MemoryDirectory::new(), &Clocks::new());
    let place = lab.put(1, 1, 300).unwrap();
    lab.put(2, 1, 300).unwrap();
    lab.disk.settle();
    assert!(lab.disk.forget(place));
    assert!(!lab.disk.forget(place), "once is enough");
    assert!(matches!(lab.read(place, 1, RecordRequest::whole()), Err(Error::Gone)));
    assert_eq!(lab.version(2), Some(1));
    let wrong = lab.read(lab.index.place(2).unwrap(), 1, RecordRequest::whole());
    assert!(matches!(wrong, Err(Error::Damaged(Damage::Other))), "{wrong:?}");
    assert_eq!(lab.version(2), Some(1), "it is not the record's fault");
}

#[test]
fn forgotten_records_stay_forgotten_after_a_kill_on_every_volume() {
    let (disks, clocks) = ([MemoryDirectory::new(), MemoryDirectory::new()], Clocks::new());
    let config =
        || settings(disks.iter().map(|disk| volume(Arc::new(disk.clone()), 8)).collect::<Vec<_>>());
    let lab = Lab::open(config(), &clocks).unwrap();
    lab.find();
    let places: Vec<RecordAddress> = (0..20).map(|hash| lab.put(hash, 1, 300).unwrap()).collect();
    for volume in 0..2 {
        assert!(places.iter().filter(|place| place.volume() == volume).count() > 3);
    }
    lab.disk.settle();
    for place in places.iter().step_by(2) {
        assert!(lab.disk.forget(*place));
    }
    lab.disk.settle();
    drop(lab);
    let lab = Lab::open(config(), &clocks).unwrap();
    lab.find();
    for hash in 0..20 {
        assert_eq!(lab.version(hash), (hash % 2 == 1).then_some(1), "{hash}");
    }
}

#[test]
fn after_a_stop_everything_is_there_as_it_was() {
    let (vfs, clocks) = (MemoryDirectory::new(), Clocks::new());
    let lab = Lab::over(vfs.clone(), &clocks);
    for hash in 0..40 {
        lab.put(hash, 3, 100 + hash as usize * 40).unwrap();
    }
    let gone = lab.index.place(5).unwrap();
    lab.disk.forget(gone);
    let (before, records) = (lab.index.places.lock().clone(), lab.stats().records);
    lab.disk.stop();

    let lab = Lab::over(vfs, &clocks);
    assert_eq!(lab.stats().records, records);
    assert_eq!(lab.index.place(5), None);
    for (hash, places) in before.iter().filter(|(hash, _)| **hash != 5) {
        assert_eq!(lab.index.places.lock()[hash], *places);
        assert_eq!(lab.version(*hash), Some(3));
    }
    assert!(lab.index.found.lock().iter().all(|found| found.passed == 3));
    assert_eq!((lab.stats().damaged(), lab.stats().damaged_table), (0, 0));
}

#[test]
fn the_newest_is_found_first_and_new_records_are_taken_meanwhile() {
    let (vfs, clocks) = (MemoryDirectory::new(), Clocks::new());
    let lab = Lab::over(vfs.clone(), &clocks);
    for hash in 0..30 {
        lab.put(hash, 1, 1500).unwrap();
    }
    lab.disk.stop();
    let config = settings(vec![volume(Arc::new(vfs), 8)]);
    let lab = Lab::open(config, &clocks).unwrap();
    assert!(lab.put(99, 1, 10).is_none(), "the free segments are not known yet");
    lab.disk.find();
    let mut looked = 0;
    while lab.index.len() == 0 {
        lab.disk.step();
        looked += 1;
    }
    assert!(looked < 4 && !lab.disk.has_found());
    let (done, all) = lab.disk.progress();
    assert!(done >= 1 && done < all);
    let first: Vec<u64> = lab.index.found.lock().iter().map(|found| found.hash).collect();
    assert!(first.iter().all(|hash| *hash > 15), "{first:?}");
    assert_eq!(lab.version(first[0]), Some(1), "what was found is read");
    lab.put(99, 1, 10).unwrap();
    lab.disk.settle();
    assert!((0..30).all(|hash| lab.version(hash) == Some(1)));
    assert_eq!(lab.version(99), Some(1));
}

#[test]
fn expired_records_are_not_found_also_after_a_stop() {
    let (vfs, clocks) = (MemoryDirectory::new(), Clocks::new());
    let lab = Lab::over(vfs.clone(), &clocks);
    for (hash, after_ms) in [(1, 10_000), (2, 60_000)] {
        let expires_ms = START_MS + after_ms;
        let place = lab.disk.put(Entry { expires_ms, ..entry(hash, 1, 10) }).unwrap();
        lab.index.add(hash, place);
    }
    lab.disk.stop();
    clocks.pass(20_000);
    let lab = Lab::over(vfs, &clocks);
    assert_eq!((lab.version(1), lab.version(2)), (None, Some(1)));
    assert_eq!(lab.index.found.lock()[0].expires_ms, START_MS + 60_000);
    assert_eq!(lab.stats().found_expired, 1);
}

#[test]
fn a_clock_that_goes_back_makes_nothing_live_longer() {
    let (vfs, clocks) = (MemoryDirectory::new(), Clocks::new());
    let lab = Lab::over(vfs.clone(), &clocks);
    let expires_ms = START_MS + 100_000;
    lab.disk.put(Entry { expires_ms, ..entry(1, 1, 10) }).unwrap();
    lab.disk.settle();
    clocks.pass(60_000);
    lab.disk.stop();
    // 40 seconds are left, by the clock as it is now.
    clocks.set_back(30_000);
    for (passed_ms, left_ms) in [(0, 40_000), (15_000, 25_000), (20_000, 5_000)] {
        clocks.pass(passed_ms);
        let lab = Lab::over(vfs.clone(), &clocks);
        let old = lab.index.found.lock().iter().find(|found| found.hash == 1).copied();
        assert_eq!(old.unwrap().expires_ms - clocks.now().unix_ms, left_ms);
        // A record with a time of the present clock is not changed.
        let hash = 10 + passed_ms;
        let expires_ms = clocks.now().unix_ms + 1_000_000;
        lab.disk.put(Entry { expires_ms, ..entry(hash, 1, 10) }).unwrap();
        lab.disk.stop();
        let lab = Lab::over(vfs.clone(), &clocks);
        let found = lab.index.found.lock().clone();
        let found = found.iter().find(|found| found.hash == hash).unwrap();
        assert_eq!(found.expires_ms, expires_ms);
        lab.disk.stop();
    }
    clocks.pass(5_000);
    assert_eq!(Lab::over(vfs, &clocks).index.place(1), None);
}

#[test]
fn invalidations_are_returned_in_order_at_the_start_until_released() {
    let (vfs, clocks) = (MemoryDirectory::new(), Clocks::new());
    let lab = Lab::over(vfs.clone(), &clocks);
    lab.put(1, 1, 10).unwrap();
    let numbers = ["a", "b", "c"].map(|text| {
        let effect = lab.disk.append(Bytes::from(text)).unwrap();
        effect.number()
    });
    lab.put(2, 1, 10).unwrap();
    assert!(numbers.is_sorted());
    drop(lab);

    // Not even with a commit after it.
    let lab = Lab::over(vfs.clone(), &clocks);
    let known: Vec<_> =
        lab.invalidations.iter().map(|known| (known.number, &known.bytes[..])).collect();
    assert_eq!(known, [(numbers[0], &b"a"[..]), (numbers[1], b"b"), (numbers[2], b"c")]);
    lab.put(3, 1, 10).unwrap();
    lab.disk.release(numbers[1]);
    lab.disk.stop();

    let lab = Lab::over(vfs, &clocks);
    assert_eq!(lab.invalidations.len(), 1);
    assert_eq!(lab.invalidations[0].number, numbers[2]);
    let found = lab.index.found.lock();
    assert!(found.iter().all(|found| found.hash == 3 && found.order > numbers[2]));
}

#[test]
fn dropped_invalidations_are_not_returned_again() {
    let (vfs, clocks) = (MemoryDirectory::new(), Clocks::new());
    let lab = Lab::over(vfs.clone(), &clocks);
    lab.put(1, 1, 10).unwrap();
    let numbers = ["a", "b", "c"].map(|text| lab.disk.append(Bytes::from(text)).unwrap().number());
    assert_eq!(lab.disk.sealed(), numbers[2]);
    lab.disk.drop_invalidations(&[numbers[0], numbers[2]]);
    assert_eq!(Lab::over(vfs.copy(), &clocks).invalidations.len(), 3, "not durable yet");
    lab.disk.settle();
    let known = |lab: &Lab| lab.invalidations.iter().map(|known| known.number).collect::<Vec<_>>();
    assert_eq!(known(&Lab::over(vfs.copy(), &clocks)), [numbers[1]], "after a kill");
    lab.disk.stop();
    let lab = Lab::over(vfs.clone(), &clocks);
    assert_eq!(known(&lab), [numbers[1]], "after a stop");
    assert_eq!(lab.version(1), Some(1), "what they have not met stays");
    // Without both snapshots the volume has lost which records are forgotten.
    lab.disk.stop();
    for name in vfs.list().unwrap().iter().filter(|name| name.starts_with("snapshot")) {
        vfs.remove(name).unwrap();
    }
    assert_eq!(Lab::over(vfs, &clocks).version(1), None);
}

#[test]
fn records_of_a_discarded_order_are_not_found_again() {
    for stops in [false, true] {
        let (vfs, clocks) = (MemoryDirectory::new(), Clocks::new());
        let lab = Lab::over(vfs.clone(), &clocks);
        lab.put(1, 1, 10).unwrap();
        let numbers = ["a", "b"].map(|text| lab.disk.append(Bytes::from(text)).unwrap().number());
        lab.put(2, 1, 10).unwrap();
        lab.disk.discard_before(numbers[0]);
        lab.disk.settle();
        assert_eq!((lab.version(1), lab.version(2)), (Some(1), Some(1)), "they are there yet");
        if stops {
            lab.disk.close();
        }
        drop(lab);
        for _ in 0..2 {
            let lab = Lab::over(vfs.clone(), &clocks);
            assert_eq!((lab.version(1), lab.version(2)), (None, Some(1)), "stops: {stops}");
            let known: Vec<u64> = lab.invalidations.iter().map(|known| known.number).collect();
            assert_eq!(known, numbers[1..]);
            lab.disk.stop();
        }
    }
}

#[test]
fn a_record_put_while_an_invalidation_goes_on_counts_as_older() {
    let (vfs, clocks) = (MemoryDirectory::new(), Clocks::new());
    let lab = Lab::over(vfs.clone(), &clocks);
    let effect = lab.disk.append(Bytes::from_static(b"x")).unwrap();
    let number = effect.number();
    lab.put(1, 1, 10).unwrap();
    drop(effect);
    lab.put(2, 1, 10).unwrap();
    assert!(lab.disk.oldest().unwrap() < number);
    lab.disk.stop();
    let lab = Lab::over(vfs, &clocks);
    let order = |hash| lab.index.found.lock().iter().find(|f| f.hash == hash).unwrap().order;
    assert!(order(1) < number && order(2) > number);
    assert!(lab.disk.oldest().unwrap() < number);
    lab.disk.forget(lab.index.place(1).unwrap());
}

#[test]
fn a_record_is_as_old_as_the_oldest_invalidation_that_it_has_not_met() {
    let (vfs, clocks) = (MemoryDirectory::new(), Clocks::new());
    let lab = Lab::over(vfs.clone(), &clocks);
    let number = lab.disk.append(Bytes::from_static(b"x")).unwrap().number();
    for (hash, order) in [(1, None), (2, Some(number)), (3, Some(number - 1))] {
        lab.disk.put(Entry { order, ..entry(hash, 1, 10) }).unwrap();
    }
    let (effect, writing) = lab.disk.begin_append(Bytes::from_static(b"y")).unwrap();
    lab.disk.put(Entry { order: Some(u64::MAX), ..entry(4, 1, 10) }).unwrap();
    let later = effect.number();
    drop(effect);
    writing.wait().unwrap();
    lab.disk.stop();
    let lab = Lab::over(vfs, &clocks);
    let order = |hash| lab.index.found.lock().iter().find(|f| f.hash == hash).unwrap().order;
    assert!(order(1) > number && order(1) < later);
    assert_eq!((order(2), order(3)), (number, number - 1));
    assert!(order(4) < later, "its effect was still being carried out");
    assert_eq!(lab.invalidations.len(), 2);
}

#[test]
fn an_append_without_waiting_is_durable_with_the_next_commit() {
    let (vfs, clocks) = (MemoryDirectory::new(), Clocks::new());
    let config = Config { append_waits: false, ..settings(vec![volume(Arc::new(vfs.clone()), 8)]) };
    let lab = Lab::open(config, &clocks).unwrap();
    lab.find();
    drop(lab.disk.append(Bytes::from_static(b"x")).unwrap());
    assert!(Lab::over(vfs.copy(), &clocks).invalidations.is_empty());
    lab.disk.settle();
    assert_eq!(Lab::over(vfs.copy(), &clocks).invalidations.len(), 1);
}

#[test]
fn bans_that_all_have_passed_are_known() {
    let (vfs, clocks) = (MemoryDirectory::new(), Clocks::new());
    let lab = Lab::over(vfs.clone(), &clocks);
    assert_eq!(lab.disk.passed(), None);
    lab.put(1, 7, 5000).unwrap();
    lab.put(2, 9, 10).unwrap();
    assert_eq!(lab.disk.passed(), Some(7));
    lab.disk.stop();
    assert_eq!(Lab::over(vfs, &clocks).disk.passed(), Some(7));
}

#[test]
fn another_format_is_refused_by_name_and_so_is_anybody_elses_directory() {
    let (vfs, clocks) = (MemoryDirectory::new(), Clocks::new());
    Lab::over(vfs.clone(), &clocks).disk.stop();
    vfs.damage("superblock", |bytes| bytes[8] = 2);
    let refused =
        |vfs: MemoryDirectory| match Lab::open(settings(vec![volume(Arc::new(vfs), 8)]), &clocks) {
            Err(error) => error.to_string(),
            Ok(_) => String::new(),
        };
    assert_eq!(
        refused(vfs),
        "memory: format 2, and this program knows 1: empty the volume, or start the program that \
         wrote it"
    );
    let photos = MemoryDirectory::with([("holiday.jpg".to_owned(), vec![1, 2, 3])]);
    assert!(refused(photos).contains("not a cache's"));
    let other = MemoryDirectory::with([("superblock".to_owned(), vec![1; 9000])]);
    assert!(refused(other).contains("not a cache's"));
}

#[test]
fn a_second_opener_is_refused_by_name() {
    let (vfs, clocks) = (MemoryDirectory::new(), Clocks::new());
    let lab = Lab::over(vfs.clone(), &clocks);
    let again = Lab::open(settings(vec![volume(Arc::new(vfs.clone()), 8)]), &clocks);
    assert_eq!(again.err().unwrap().to_string(), "memory: another process is using it");
    drop(lab);
    Lab::over(vfs, &clocks);
}

#[test]
fn settings_that_cannot_be_are_refused_with_the_reason() {
    let clocks = Clocks::new();
    let refused = |change: &dyn Fn(&mut VolumeConfig)| {
        let mut volume = volume(Arc::new(MemoryDirectory::new()), 8);
        change(&mut volume);
        Lab::open(settings(vec![volume]), &clocks).err().unwrap().to_string()
    };
    assert!(refused(&|volume| volume.bytes = 3 * u64::from(SEGMENT)).contains("3 segments"));
    assert!(refused(&|volume| volume.block_bytes = 1000).contains("multiple of 64"));
    assert!(refused(&|volume| volume.segment_bytes = 3072).contains("at least four times"));
    let none = Lab::open(settings(Vec::new()), &clocks).err().unwrap().to_string();
    assert!(none.contains("0 volumes"));
}

#[test]
fn a_directory_of_something_else_is_left_without_a_file_more() {
    let path = std::env::temp_dir().join(format!("larder-disk-photos-{}", std::process::id()));
    std::fs::create_dir(&path).unwrap();
    std::fs::write(path.join("photo.jpeg"), "").unwrap();
    let vfs: Arc<dyn Vfs> = Arc::new(RealDirectory::new(&path).unwrap());
    let refused = Lab::open(settings(vec![volume(Arc::clone(&vfs), 8)]), &Clocks::new()).err();
    let emptied = crate::tools::empty(&vfs);
    let left = std::fs::read_dir(&path).unwrap().count();
    std::fs::remove_dir_all(&path).unwrap();
    assert!(matches!(refused, Some(Error::Foreign { .. })), "{refused:?}");
    assert!(matches!(emptied, Err(Error::Foreign { .. })), "{emptied:?}");
    assert_eq!(left, 1);
}

#[test]
fn the_owners_bytes_are_those_of_the_first_start() {
    let (vfs, clocks) = (MemoryDirectory::new(), Clocks::new());
    let config = |owner| Config { owner, ..settings(vec![volume(Arc::new(vfs.clone()), 8)]) };
    let lab = Lab::open(config([7; 32]), &clocks).unwrap();
    assert_eq!(lab.owner, [7; 32]);
    drop(lab);
    assert_eq!(Lab::open(config([8; 32]), &clocks).unwrap().owner, [7; 32]);
}

#[test]
fn a_volume_grows_and_shrinks_with_its_settings() {
    let (vfs, clocks) = (MemoryDirectory::new(), Clocks::new());
    let with = |segments| {
        let lab = Lab::open(settings(vec![volume(Arc::new(vfs.clone()), segments)]), &clocks);
        let lab = lab.unwrap();
        lab.find();
        lab
    };
    let lab = with(4);
    (0..8).for_each(|hash| _ = lab.put(hash, 1, 1500).unwrap());
    lab.disk.stop();
    let lab = with(9);
    assert!((0..8).all(|hash| lab.version(hash) == Some(1)));
    (8..60).for_each(|hash| _ = lab.put(hash, 1, 1500).unwrap());
    lab.disk.stop();
    let lab = with(5);
    let left = (0..60).filter(|hash| lab.version(*hash) == Some(1)).count();
    assert!((10..60).contains(&left), "{left}");
    assert_eq!(lab.stats().damaged(), 0);
}

#[test]
fn a_real_directory_keeps_it_to_itself() {
    use std::os::unix::fs::PermissionsExt;
    let path = std::env::temp_dir().join(format!("larder-disk-{}", std::process::id()));
    let clocks = Clocks::new();
    let lab = Lab::over(RealDirectory::new(&path).unwrap(), &clocks);
    (0..20).for_each(|hash| _ = lab.put(hash, 1, 700).unwrap());
    lab.disk.settle();
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o700);
    for file in std::fs::read_dir(&path).unwrap() {
        assert_eq!(mode(&file.unwrap().path()), 0o600);
    }
    let place = lab.index.place(3).unwrap();
    assert!(
        lab.disk.read_now(place, 3, &RecordRequest::whole()).is_some(),
        "just written: in memory"
    );
    let other =
        Lab::open(settings(vec![volume(Arc::new(RealDirectory::new(&path).unwrap()), 8)]), &clocks);
    assert!(matches!(other.err(), Some(Error::Locked { .. })));
    drop(lab);
    let lab = Lab::over(RealDirectory::new(&path).unwrap(), &clocks);
    assert!((0..20).all(|hash| lab.version(hash) == Some(1)));
    drop(lab);
    std::fs::remove_dir_all(&path).unwrap();
}

#[test]
fn small_records_take_little_more_than_their_length() {
    let mut config = settings(vec![VolumeConfig::new(Arc::new(MemoryDirectory::new()), 256 << 20)]);
    config.queue_bytes = 64 << 20;
    config.part_bytes = 2 << 20;
    let lab = Lab::open(config, &Clocks::new()).unwrap();
    lab.find();
    let body = body(1, 1, 10 << 10);
    let head = Bytes::from(vec![7; 300]);
    for hash in 0..1000 {
        let entry =
            Entry { head: head.clone(), body: Body::Bytes(body.clone()), ..entry(hash, 1, 0) };
        lab.disk.put(entry).unwrap();
    }
    lab.disk.settle();
    let stats = lab.stats();
    let own = 1000 * (10 * 1024 + 300);
    assert!((stats.written_bytes + stats.journal_bytes) * 100 < own * 105, "{stats:?}");
    assert!(stats.index_bytes < 1000 * 64, "{}", stats.index_bytes);
}
