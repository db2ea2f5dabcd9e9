//! The store with its own threads: no caller waits that must not, and everything ends.

use std::sync::mpsc;
use std::time::Duration;

use super::*;
use crate::vfs::{FaultyDirectory, MemoryDirectory, Operation};

/// Longer than any operation takes. A test that waits this long fails.
const LONG: Duration = Duration::from_secs(60);

fn threaded(vfs: impl Vfs) -> Lab {
    let config = Config {
        threads: true,
        commit_ms: 10,
        reader_threads: 2,
        queue_bytes: 1 << 20,
        ..settings(vec![volume(Arc::new(vfs), 16)])
    };
    let lab = Lab::open(config, &Clocks::new()).unwrap();
    lab.disk.find();
    lab.wait(|lab| lab.disk.has_found());
    lab
}

impl Lab {
    /// Waits for a condition that other threads bring about.
    fn wait(&self, is: impl Fn(&Self) -> bool) {
        let deadline = std::time::Instant::now() + LONG;
        while !is(self) {
            assert!(std::time::Instant::now() < deadline, "{:?}", self.stats());
            std::thread::yield_now();
            self.clocks.pass(1);
        }
    }

    fn read_later(&self, hash: u64) -> mpsc::Receiver<Result<RecordData, Error>> {
        self.read_at(self.index.place(hash).unwrap(), hash)
    }

    fn read_at(
        &self,
        place: RecordAddress,
        hash: u64,
    ) -> mpsc::Receiver<Result<RecordData, Error>> {
        let (tell, told) = mpsc::channel();
        let done = Box::new(move |answer| tell.send(answer).unwrap_or_default());
        self.disk.read(place, hash, RecordRequest::whole(), u64::MAX, done);
        told
    }
}

#[test]
fn threads_write_commit_read_and_end() {
    let vfs = MemoryDirectory::new();
    let lab = threaded(vfs.clone());
    for hash in 0..50 {
        lab.put(hash, 1, 800).unwrap();
    }
    lab.wait(|lab| lab.stats().queued_bytes == 0);
    for hash in 0..50 {
        let answer = lab.read_later(hash).recv_timeout(LONG).unwrap().unwrap();
        assert_eq!(check(hash, &answer), 1);
    }
    drop(lab.disk.append(Bytes::from_static(b"x")).unwrap());
    lab.disk.stop();
    let lab = Lab::over(vfs, &Clocks::new());
    assert_eq!((lab.index.len(), lab.invalidations.len()), (50, 1));
}

#[test]
fn many_threads_put_forget_read_and_invalidate_at_once() {
    let lab = threaded(MemoryDirectory::new());
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let lab = &lab;
            scope.spawn(move || {
                let mut rng = fastrand::Rng::with_seed(thread);
                for version in 0..400 {
                    let hash = thread * 100 + rng.u64(..20);
                    match rng.u32(..10) {
                        0..5 => _ = lab.put(hash, version, rng.usize(..4000)),
                        5 => drop(lab.disk.append(Bytes::from(vec![1; 20])).unwrap()),
                        6..9 => {
                            if let Some(place) = lab.index.place(hash)
                                && let Some(answer) =
                                    lab.disk.read_now(place, hash, &RecordRequest::whole())
                            {
                                check(hash, &answer);
                            }
                        }
                        _ => {
                            if let Some(place) = lab.index.place(hash) {
                                lab.index.remove(hash, place);
                                lab.disk.forget(place);
                            }
                        }
                    }
                    lab.clocks.pass(1);
                }
            });
        }
    });
    lab.wait(|lab| lab.stats().queued_bytes == 0);
    assert_eq!(lab.stats().damaged(), 0);
}

/// A disk whose operations of one kind wait until the test releases them.
fn held(under: MemoryDirectory, kind: fn(Operation) -> bool) -> (FaultyDirectory, Arc<Mutex<()>>) {
    let gate = Arc::new(Mutex::new(()));
    let own = Arc::clone(&gate);
    let vfs = FaultyDirectory::new(under, move |name, operation| {
        if name.starts_with("data") && kind(operation) {
            drop(own.lock());
        }
        None
    });
    (vfs, gate)
}

#[test]
fn a_disk_that_hangs_in_a_write_delays_no_caller() {
    let (vfs, gate) =
        held(MemoryDirectory::new(), |operation| matches!(operation, Operation::Write(_)));
    let lab = threaded(vfs);
    let hold = gate.lock();
    let mut taken = 0;
    while lab.put(taken, 1, 900).is_some() {
        assert_eq!(lab.version_now(taken), Some(1));
        taken += 1;
    }
    assert!(taken > 50, "{taken}");
    drop(lab.disk.append(Bytes::from_static(b"x")).expect("the journal is not behind the data"));
    drop(hold);
    lab.wait(|lab| lab.stats().queued_bytes == 0);
    // Another thread frees space.
    lab.wait(|lab| lab.put(5000, 1, 900).is_some());
}

#[test]
fn a_read_that_hangs_is_answered_at_its_deadline() {
    let (vfs, gate) = held(MemoryDirectory::new(), |operation| operation == Operation::Read);
    let lab = threaded(vfs);
    lab.put(1, 1, 900).unwrap();
    lab.wait(|lab| lab.stats().queued_bytes == 0);
    let hold = gate.lock();
    let (tell, told) = mpsc::channel();
    let done = Box::new(move |answer| tell.send(answer).unwrap());
    let deadline_ms = lab.clocks.now().mono_ms + 100;
    lab.disk.read(lab.index.place(1).unwrap(), 1, RecordRequest::whole(), deadline_ms, done);
    lab.clocks.pass(100);
    assert!(matches!(told.recv_timeout(LONG).unwrap(), Err(Error::Late)));
    drop(hold);
    let answer = lab.read_later(1).recv_timeout(LONG).unwrap().unwrap();
    assert_eq!(check(1, &answer), 1);
    assert!(told.try_recv().is_err(), "answered once");
}

impl Lab {
    fn version_now(&self, hash: u64) -> Option<u64> {
        let answer = self.disk.read_now(self.index.place(hash)?, hash, &RecordRequest::whole())?;
        Some(check(hash, &answer))
    }
}

#[test]
fn a_panic_of_a_thread_is_counted_and_the_thread_continues() {
    static FAULTS: AtomicU64 = AtomicU64::new(0);
    const READ: u64 = 1;
    const WRITE: u64 = 2;
    let met = |fault: u64| FAULTS.fetch_and(!fault, Ordering::SeqCst) & fault != 0;
    let vfs = FaultyDirectory::new(MemoryDirectory::new(), move |name, operation| {
        let is_write = matches!(operation, Operation::Write(_)) && name.starts_with("data");
        assert!(operation != Operation::Read || !met(READ), "as a bug would");
        assert!(!is_write || !met(WRITE), "as a bug would");
        None
    });
    let lab = threaded(vfs);
    lab.put(1, 1, 900).unwrap();
    lab.wait(|lab| lab.stats().queued_bytes == 0);
    FAULTS.store(READ, Ordering::SeqCst);
    assert!(lab.read_later(1).recv_timeout(LONG).is_err(), "a read without an answer");
    for _ in 0..5 {
        let answer = lab.read_later(1).recv_timeout(LONG).unwrap().unwrap();
        assert_eq!(check(1, &answer), 1);
    }
    assert_eq!(lab.stats().panics, 1);
    // The writer's progress is unknown: the volume begins again.
    FAULTS.store(WRITE, Ordering::SeqCst);
    lab.put(2, 1, 900).unwrap();
    lab.wait(|lab| lab.index.changes.lock().last() == Some(&(0, VolumeCondition::In)));
    assert_eq!(lab.stats().panics, 2);
    lab.wait(|lab| lab.put(3, 1, 900).is_some());
    lab.wait(|lab| lab.stats().queued_bytes == 0);
    let answer = lab.read_later(3).recv_timeout(LONG).unwrap().unwrap();
    assert_eq!(check(3, &answer), 1);
}

#[test]
fn what_is_closed_for_another_process_is_read_to_its_end() {
    let vfs = MemoryDirectory::new();
    let lab = threaded(vfs.clone());
    let place = lab.put(1, 1, 800).unwrap();
    let read = || lab.read_at(place, 1).recv_timeout(LONG).unwrap();
    lab.wait(|lab| lab.stats().queued_bytes == 0);
    lab.disk.close_for_other();
    read().expect("a download that goes on");
    assert!(lab.put(2, 1, 800).is_none(), "nothing more is written");
    let next = threaded(vfs);
    assert_eq!(next.version(1), Some(1), "the other process has it");
    read().expect("it still goes on");
    lab.disk.close();
    assert!(matches!(read(), Err(Error::Out)), "it has ended");
}
