//! Faults: a full, broken, read-only or slow disk causes misses, and nothing worse.

use std::sync::atomic::AtomicU8;

use super::*;
use crate::vfs::{FaultyDirectory, InjectedFault, MemoryDirectory, Operation};

/// A disk whose faults the test switches on and off.
#[derive(Clone, Default)]
struct Switch(Arc<AtomicU8>);

const NO_WRITES: u8 = 1;
const NO_SYNC: u8 = 2;
const NO_READS: u8 = 4;
const FULL: u8 = 8;
const READ_ONLY: u8 = 16;
const SHORT: u8 = 32;
const JOURNAL_ONLY: u8 = 64;
const DATA_ONLY: u8 = 128;

impl Switch {
    fn set(&self, faults: u8) {
        self.0.store(faults, Ordering::Relaxed);
    }

    fn over(&self, under: MemoryDirectory) -> FaultyDirectory {
        let own = self.clone();
        FaultyDirectory::new(under, move |name, operation| own.fault(name, operation))
    }

    fn fault(&self, name: &str, operation: Operation) -> Option<InjectedFault> {
        let faults = self.0.load(Ordering::Relaxed);
        let is = |fault: u8| faults & fault != 0;
        if is(JOURNAL_ONLY) && !name.starts_with("journal") {
            return None;
        }
        if is(DATA_ONLY) && !name.starts_with("data") {
            return None;
        }
        match operation {
            Operation::Read => is(NO_READS).then_some(InjectedFault::Broken),
            _ if is(READ_ONLY) => Some(InjectedFault::ReadOnly),
            Operation::Write(_) if is(FULL) => Some(InjectedFault::Full),
            Operation::Write(_) if is(NO_WRITES) => Some(InjectedFault::Broken),
            Operation::Write(bytes) if is(SHORT) => Some(InjectedFault::Short(bytes.div_ceil(2))),
            Operation::Sync => is(NO_SYNC).then_some(InjectedFault::Broken),
            Operation::Names if is(FULL) => Some(InjectedFault::Full),
            _ => None,
        }
    }
}

fn lab(switch: &Switch, vfs: &MemoryDirectory, clocks: &Arc<Clocks>) -> Lab {
    Lab::over(switch.over(vfs.clone()), clocks)
}

/// Asserts that all records are right, and returns their number.
fn all_right(lab: &Lab) -> usize {
    let hashes: Vec<u64> = lab.index.places.lock().keys().copied().collect();
    hashes.into_iter().filter(|hash| lab.version(*hash).is_some()).count()
}

#[test]
fn a_disk_that_takes_writes_in_pieces_is_as_good_as_another() {
    let (switch, vfs, clocks) = (Switch::default(), MemoryDirectory::new(), Clocks::new());
    switch.set(SHORT);
    let first = lab(&switch, &vfs, &clocks);
    (0..30).for_each(|hash| _ = first.put(hash, 1, 900).unwrap());
    first.disk.stop();
    assert_eq!(all_right(&lab(&switch, &vfs, &clocks)), 30);
}

#[test]
fn writes_that_fail_lose_their_records_and_their_segment_alone() {
    let (switch, vfs, clocks) = (Switch::default(), MemoryDirectory::new(), Clocks::new());
    let first = lab(&switch, &vfs, &clocks);
    (0..3).for_each(|hash| _ = first.put(hash, 1, 900).unwrap());
    first.disk.settle();
    switch.set(NO_WRITES);
    (3..6).for_each(|hash| _ = first.put(hash, 1, 900).unwrap());
    first.disk.step();
    switch.set(0);
    assert_eq!((first.stats().lost, first.stats().errors_write), (3, 1));
    assert_eq!(first.stats().queued_bytes, 0);
    (6..9).for_each(|hash| _ = first.put(hash, 1, 900).unwrap());
    first.disk.settle();
    assert_eq!(all_right(&first), 6);
    assert_eq!(first.stats().bad_segments, 1);
    first.disk.stop();
    // The segment is remembered, and its records are read.
    let second = lab(&switch, &vfs, &clocks);
    assert_eq!((all_right(&second), second.stats().bad_segments), (6, 1));
}

#[test]
fn a_failed_sync_is_final() {
    let (switch, vfs, clocks) = (Switch::default(), MemoryDirectory::new(), Clocks::new());
    let first = lab(&switch, &vfs, &clocks);
    (0..3).for_each(|hash| _ = first.put(hash, 1, 900).unwrap());
    first.disk.settle();
    (3..6).for_each(|hash| _ = first.put(hash, 1, 900).unwrap());
    switch.set(NO_SYNC);
    let before = first.stats().errors_sync;
    // The error of the journal would be equal.
    switch.0.store(NO_SYNC, Ordering::Relaxed);
    first.clocks.pass(10_000);
    first.disk.step();
    switch.set(0);
    assert_eq!(first.stats().errors_sync, before + 1);
    first.disk.settle();
    let there: Vec<u64> = first.index.places.lock().keys().copied().collect();
    assert!(there.iter().all(|hash| *hash < 3), "what was not synced is not there: {there:?}");
    // Not even after a start, which might find the bytes.
    drop(first);
    let second = lab(&switch, &vfs, &clocks);
    let there: Vec<u64> = second.index.places.lock().keys().copied().collect();
    assert!(there.iter().all(|hash| *hash < 3), "{there:?}");
}

#[test]
fn a_full_disk_pauses_and_comes_back_by_itself() {
    let (switch, vfs, clocks) = (Switch::default(), MemoryDirectory::new(), Clocks::new());
    let first = lab(&switch, &vfs, &clocks);
    first.put(1, 1, 900).unwrap();
    first.disk.settle();
    switch.set(FULL);
    first.put(2, 1, 900).unwrap();
    first.disk.step();
    assert!(first.put(3, 1, 900).is_none(), "a miss, and no error");
    assert!(matches!(
        first.read(first.index.place(1).unwrap(), 1, RecordRequest::whole()),
        Err(Error::Out)
    ));
    let full = VolumeCondition::Pausing(Reason::Full);
    assert_eq!(*first.index.changes.lock(), [(0, full)]);
    switch.set(0);
    first.disk.tick();
    assert!(first.put(3, 1, 900).is_none(), "not yet");
    clocks.pass(60_000);
    first.disk.tick();
    first.put(3, 1, 900).unwrap();
    first.disk.settle();
    assert_eq!((first.version(1), first.version(2), first.version(3)), (Some(1), None, Some(1)));
    assert_eq!((first.stats().pauses, first.stats().errors_full), (1, 1));
    assert_eq!(*first.index.changes.lock(), [(0, full), (0, VolumeCondition::In)]);
}

#[test]
fn reads_that_fail_are_misses_and_take_a_disk_out_that_has_too_many() {
    let (switch, vfs, clocks) = (Switch::default(), MemoryDirectory::new(), Clocks::new());
    let first = lab(&switch, &vfs, &clocks);
    (0..9).for_each(|hash| _ = first.put(hash, 1, 900).unwrap());
    first.disk.settle();
    switch.set(NO_READS);
    let read = |hash| first.read(first.index.place(hash).unwrap(), hash, RecordRequest::whole());
    assert!(matches!(read(0), Err(Error::Unreadable)));
    assert!(first.index.place(0).is_none(), "the owner gets a report");
    // Rare errors are no sign of a broken disk.
    clocks.pass(61_000);
    assert!(matches!(read(1), Err(Error::Unreadable)));
    assert!(matches!(read(2), Err(Error::Unreadable)));
    assert!(first.index.changes.lock().is_empty());
    assert!(matches!(read(3), Err(Error::Unreadable)));
    assert_eq!(*first.index.changes.lock(), [(0, VolumeCondition::Out(Reason::Errors))]);
    assert!(first.disk.put(entry(50, 1, 10)).is_none());
    assert!(first.disk.append(Bytes::from_static(b"x")).is_err(), "no journal can write it");
    assert_eq!(first.stats().errors_read, 4);
    first.disk.settle();
    drop(first.disk.append(Bytes::from_static(b"x")).expect("there is nothing to invalidate"));
    drop(first);
    // The failure is remembered, and the disk's records are not trusted.
    switch.set(0);
    let second = lab(&switch, &vfs, &clocks);
    assert_eq!((second.emptied.clone(), second.index.len()), (vec![0], 0));
    second.put(1, 1, 10).expect("it is well again");
}

#[test]
fn a_disk_that_was_taken_out_is_taken_back_empty_when_it_is_well() {
    let (switch, vfs, clocks) = (Switch::default(), MemoryDirectory::new(), Clocks::new());
    let first = lab(&switch, &vfs, &clocks);
    (0..9).for_each(|hash| _ = first.put(hash, 1, 900).unwrap());
    first.disk.settle();
    switch.set(NO_READS | READ_ONLY);
    (0..3).for_each(|hash| {
        _ = first.read(first.index.place(hash).unwrap(), hash, RecordRequest::whole());
    });
    let out = (0, VolumeCondition::Out(Reason::Errors));
    assert_eq!(*first.index.changes.lock(), [out]);
    for _ in 0..3 {
        clocks.pass(60_000);
        first.disk.tick();
        assert_eq!(*first.index.changes.lock(), [out], "it is not well yet");
    }
    switch.set(0);
    clocks.pass(60_000);
    first.disk.tick();
    assert_eq!(*first.index.changes.lock(), [out, (0, VolumeCondition::In)]);
    first.disk.settle();
    first.put(20, 1, 900).expect("it is used again");
    drop(first.disk.append(Bytes::from_static(b"x")).expect("and writes purges down"));
    first.disk.settle();
    assert_eq!((first.version(20), first.stats().records), (Some(1), 1));
}

#[test]
fn a_purge_without_a_usable_disk_is_in_force_and_reports_its_limits() {
    let (switch, vfs, clocks) = (Switch::default(), MemoryDirectory::new(), Clocks::new());
    let first = lab(&switch, &vfs, &clocks);
    first.put(1, 1, 900).unwrap();
    first.disk.settle();
    switch.set(READ_ONLY);
    // The failed operation may be the first, or one that finds the volume out.
    for _ in 0..3 {
        let (effect, writing) = first.disk.begin_append(Bytes::from_static(b"x")).unwrap();
        assert!(effect.number() > 0);
        drop(effect);
        writing.wait().expect_err("it may be undone by a crash");
    }
}

#[test]
fn a_purge_that_cannot_be_written_is_refused_and_the_volume_begins_anew() {
    let (switch, vfs, clocks) = (Switch::default(), MemoryDirectory::new(), Clocks::new());
    let first = lab(&switch, &vfs, &clocks);
    first.put(1, 1, 900).unwrap();
    first.disk.settle();
    switch.set(READ_ONLY);
    let refused = first.disk.append(Bytes::from_static(b"x")).unwrap_err();
    assert!(refused.to_string().starts_with("the journal of the disk cache: memory: "));
    assert_eq!(first.stats().outs, 1);
    switch.set(0);
    clocks.pass(60_000);
    first.disk.tick();
    first.disk.settle();
    assert_eq!(first.index.changes.lock().last(), Some(&(0, VolumeCondition::In)));
    first.put(2, 1, 900).unwrap();
    drop(first.disk.append(Bytes::from_static(b"y")).unwrap());
    first.disk.settle();
    assert_eq!(first.stats().records, 1);
    drop(first);
    let second = lab(&switch, &vfs, &clocks);
    assert_eq!((second.version(1), second.version(2)), (None, Some(1)));
    // The rejected invalidation has been carried out, and records from memory may still be older.
    let told: Vec<&[u8]> = second.invalidations.iter().map(|known| &*known.bytes).collect();
    assert_eq!(told, [b"x", b"y"]);
}

#[test]
fn an_invalidation_while_the_only_volume_is_out_is_known_when_it_is_back() {
    let (switch, vfs, clocks) = (Switch::default(), MemoryDirectory::new(), Clocks::new());
    let first = lab(&switch, &vfs, &clocks);
    switch.set(JOURNAL_ONLY | NO_SYNC);
    first.disk.append(Bytes::from_static(b"x")).unwrap_err();
    switch.set(0);
    first.disk.settle();
    let missed = first.disk.append(Bytes::from_static(b"y")).expect("nothing will be found");
    let number = missed.number();
    drop(missed);
    clocks.pass(60_000);
    first.disk.tick();
    first.disk.settle();
    // It was in memory before, and has not been tested.
    let old = Entry { order: Some(number - 1), ..entry(1, 1, 100) };
    first.index.add(1, first.disk.put(old).unwrap());
    first.disk.stop();
    let second = lab(&switch, &vfs, &clocks);
    assert_eq!(second.index.found.lock()[0].order, number - 1);
    assert!(second.invalidations.iter().any(|known| known.number == number));
}

#[test]
fn with_two_disks_one_may_fail_and_what_it_missed_is_not_found_on_it() {
    let (switch, clocks) = (Switch::default(), Clocks::new());
    let disks = [MemoryDirectory::new(), MemoryDirectory::new()];
    let open = || {
        let volumes = vec![
            volume(Arc::new(switch.over(disks[0].clone())), 8),
            volume(Arc::new(disks[1].clone()), 8),
        ];
        let lab = Lab::open(settings(volumes), &clocks).unwrap();
        lab.find();
        lab
    };
    let first = open();
    (0..40).for_each(|hash| _ = first.put(hash, 1, 500).unwrap());
    first.disk.settle();
    let on = |lab: &Lab, volume: usize| {
        let places = lab.index.places.lock();
        places.values().flatten().filter(|place| place.volume() == volume).count()
    };
    assert!(on(&first, 0) > 8 && on(&first, 1) > 8);
    // It can be read, but accepts neither a purge nor the marker.
    switch.set(READ_ONLY);
    drop(first.disk.append(Bytes::from_static(b"x")).expect("the other one took it"));
    assert_eq!(*first.index.changes.lock(), [(0, VolumeCondition::Out(Reason::Journal))]);
    assert_eq!(on(&first, 0), 0);
    (100..120).for_each(|hash| assert_eq!(first.put(hash, 1, 500).unwrap().volume(), 1));
    drop(first.disk.append(Bytes::from_static(b"y")).unwrap());
    first.disk.settle();
    drop(first);
    switch.set(0);
    let second = open();
    assert_eq!((second.emptied.clone(), on(&second, 0)), (vec![0], 0));
    assert!(on(&second, 1) > 28);
    assert_eq!(second.invalidations.len(), 2);
    assert!((200..220).any(|hash| second.put(hash, 1, 500).unwrap().volume() == 0));
    second.disk.stop();
    let third = open();
    assert!(third.emptied.is_empty() && on(&third, 0) > 0);
    assert_eq!(third.invalidations.len(), 2, "both know both");
}

#[test]
fn a_disk_that_was_away_is_emptied_if_it_may_have_missed_something() {
    let clocks = Clocks::new();
    let disks = [MemoryDirectory::new(), MemoryDirectory::new()];
    let open = |which: &[usize]| {
        let volumes = which.iter().map(|disk| volume(Arc::new(disks[*disk].clone()), 8));
        let lab = Lab::open(settings(volumes.collect()), &clocks).unwrap();
        lab.find();
        lab
    };
    let lab = open(&[0, 1]);
    (0..20).for_each(|hash| _ = lab.put(hash, 1, 500).unwrap());
    lab.disk.stop();
    let lab = open(&[0]);
    let number = lab.disk.append(Bytes::from_static(b"x")).unwrap().number();
    lab.disk.stop();
    // The invalidations it missed are still known and reported, and older records are distinguished
    // from newer ones.
    let lab = open(&[0, 1]);
    assert!(lab.emptied.is_empty());
    assert_eq!(lab.index.len(), 20);
    assert!(lab.index.found.lock().iter().all(|found| found.order < number));
    lab.disk.stop();
    let lab = open(&[0]);
    let number = lab.disk.append(Bytes::from_static(b"y")).unwrap().number();
    lab.disk.release(number);
    lab.disk.stop();
    assert_eq!(open(&[0, 1]).emptied, [1]);
}

#[test]
fn a_full_disk_under_the_journal_alone_costs_no_record() {
    let (switch, vfs, clocks) = (Switch::default(), MemoryDirectory::new(), Clocks::new());
    let first = lab(&switch, &vfs, &clocks);
    (0..5).for_each(|hash| _ = first.put(hash, 1, 500).unwrap());
    first.disk.settle();
    switch.set(FULL | JOURNAL_ONLY);
    assert!(first.disk.append(Bytes::from_static(b"x")).is_err());
    switch.set(0);
    clocks.pass(60_000);
    first.disk.tick();
    first.disk.settle();
    drop(first.disk.append(Bytes::from_static(b"x")).unwrap());
    (0..5).for_each(|hash| _ = first.put(hash, 2, 500).unwrap());
    assert_eq!(all_right(&first), 5);
}

#[test]
fn what_is_replaced_while_a_full_disk_pauses_does_not_come_back() {
    // The journal has reserved space. Without it the volume begins again.
    for (faults, stays) in [(FULL | DATA_ONLY, 1), (FULL, 0)] {
        let (switch, vfs, clocks) = (Switch::default(), MemoryDirectory::new(), Clocks::new());
        let first = lab(&switch, &vfs, &clocks);
        (1..3).for_each(|hash| _ = first.put(hash, 1, 900).unwrap());
        first.disk.settle();
        switch.set(faults);
        first.put(3, 1, 900).unwrap();
        first.disk.step();
        assert!(first.put(1, 2, 900).is_none(), "a newer one is in memory alone");
        let old = first.index.place(1).unwrap();
        first.index.remove(1, old);
        first.disk.forget(old);
        clocks.pass(1000);
        while first.disk.step() {}
        if stays == 0 {
            // Another program has freed space, and no one has tried the volume again yet.
            switch.set(0);
            clocks.pass(1000);
            first.disk.step();
        }
        drop(first);
        switch.set(0);
        let second = lab(&switch, &vfs, &clocks);
        assert_eq!(second.version(1), None, "an older one is back");
        assert_eq!(all_right(&second), stays);
    }
}

#[test]
fn there_is_no_room_for_a_new_volume() {
    let switch = Switch::default();
    switch.set(FULL);
    let vfs = Arc::new(switch.over(MemoryDirectory::new()));
    let clocks = Clocks::new();
    let lab = Lab::open(settings(vec![volume(Arc::clone(&vfs) as _, 8)]), &clocks).unwrap();
    let (0, refused) = &lab.failed[0] else { panic!("{:?}", lab.failed) };
    assert!(refused.to_string().starts_with("memory: making the volume: "), "{refused}");
    assert_eq!(lab.disk.absence(0), Some(refused.to_string()));
    assert_eq!(vfs.list().unwrap(), Vec::<String>::new(), "nothing is left of it");
    assert!(lab.put(1, 1, 10).is_none());
    drop(lab.disk.append(Bytes::from_static(b"x")).expect("there is nothing to invalidate"));
    switch.set(0);
    lab.disk.tick();
    assert!(lab.put(1, 1, 10).is_none(), "not yet");
    clocks.pass(60_000);
    lab.disk.tick();
    lab.disk.settle();
    assert_eq!(*lab.index.changes.lock(), [(0, VolumeCondition::In)]);
    assert_eq!(lab.disk.absence(0), None);
    lab.put(1, 1, 10).expect("there is room now");
}

#[test]
fn an_unreadable_disk_comes_back_empty_and_purges_report_it_until_then() {
    let (switch, vfs, clocks) = (Switch::default(), MemoryDirectory::new(), Clocks::new());
    let first = lab(&switch, &vfs, &clocks);
    (0..5).for_each(|hash| _ = first.put(hash, 1, 500).unwrap());
    first.disk.stop();
    switch.set(NO_READS);
    let second = lab(&switch, &vfs, &clocks);
    assert_eq!(second.failed.len(), 1);
    assert!(second.put(50, 1, 10).is_none());
    let (_, writing) = second.disk.begin_append(Bytes::from_static(b"x")).unwrap();
    writing.wait().expect_err("what is on the disk may be found by a later start");
    switch.set(0);
    clocks.pass(60_000);
    second.disk.tick();
    second.disk.settle();
    assert_eq!(second.index.len(), 0, "it has missed a purge");
    second.put(1, 2, 10).expect("it is used");
    drop(second.disk.append(Bytes::from_static(b"y")).unwrap());
    second.disk.stop();
    let third = lab(&switch, &vfs, &clocks);
    assert_eq!((third.index.len(), third.version(1)), (1, Some(2)));
    assert!(third.emptied.is_empty() && third.failed.is_empty());
}

#[test]
fn late_reads_are_answered_at_their_deadline_and_make_a_slow_disk_pause() {
    let (vfs, clocks) = (MemoryDirectory::new(), Clocks::new());
    let lab = Lab::over(vfs, &clocks);
    let place = lab.put(1, 1, 500).unwrap();
    lab.disk.settle();
    let (tell, told) = std::sync::mpsc::channel();
    for _ in 0..8 {
        let tell = tell.clone();
        let deadline_ms = clocks.now().mono_ms + 100;
        let done = Box::new(move |answer: Result<RecordData, Error>| tell.send(answer).unwrap());
        lab.disk.read(place, 1, RecordRequest::whole(), deadline_ms, done);
    }
    lab.disk.tick();
    assert!(told.try_recv().is_err(), "there is time");
    clocks.pass(100);
    lab.disk.tick();
    assert_eq!(told.try_iter().filter(|answer| matches!(answer, Err(Error::Late))).count(), 8);
    assert_eq!(*lab.index.changes.lock(), [(0, VolumeCondition::Pausing(Reason::Slow))]);
    while lab.disk.serve() {}
    assert!(told.try_recv().is_err(), "answered once");
    assert!(lab.disk.put(entry(2, 1, 10)).is_none());
    assert!(matches!(lab.read(place, 1, RecordRequest::whole()), Err(Error::Out)));
    assert!(
        lab.read(place, 1, RecordRequest::range(0..500)).is_ok(),
        "a body that has begun goes on"
    );
    drop(lab.disk.append(Bytes::from_static(b"x")).expect("the journal goes on"));
    clocks.pass(60_000);
    lab.disk.tick();
    assert_eq!(lab.version(1), Some(1), "it kept what it had");
    assert_eq!((lab.stats().reads_late, lab.stats().pauses), (8, 1));
}

#[test]
fn more_reads_than_may_wait_are_refused_at_once() {
    let config =
        Config { read_queue: 2, ..settings(vec![volume(Arc::new(MemoryDirectory::new()), 8)]) };
    let lab = Lab::open(config, &Clocks::new()).unwrap();
    lab.find();
    let place = lab.put(1, 1, 500).unwrap();
    let (tell, told) = std::sync::mpsc::channel();
    for _ in 0..3 {
        let tell = tell.clone();
        let done = Box::new(move |answer: Result<RecordData, Error>| tell.send(answer).unwrap());
        lab.disk.read(place, 1, RecordRequest::whole(), u64::MAX, done);
    }
    assert!(matches!(told.try_recv(), Ok(Err(Error::Busy))));
    while lab.disk.serve() {}
    assert_eq!(told.try_iter().filter(Result::is_ok).count(), 2);
    assert_eq!(lab.stats().reads_busy, 1);
}

#[test]
fn a_full_queue_takes_nothing_and_waits_for_nothing() {
    let config =
        Config { queue_bytes: 4000, ..settings(vec![volume(Arc::new(MemoryDirectory::new()), 8)]) };
    let lab = Lab::open(config, &Clocks::new()).unwrap();
    lab.find();
    let taken = (0..10).filter(|hash| lab.put(*hash, 1, 900).is_some()).count();
    assert_eq!(taken, 3);
    assert_eq!(lab.stats().refused_queue, 7);
    lab.disk.settle();
    lab.put(20, 1, 900).unwrap();
}
