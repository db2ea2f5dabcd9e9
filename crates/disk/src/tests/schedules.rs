//! The store's threads under many schedules: no wake-up is lost, nothing is reported durable too
//! early, and everything ends.
//!
//! `RUSTFLAGS="--cfg shuttle" cargo test -p disk --lib schedules`; `DISK_SCHEDULES` sets the
//! number. A wait that only a timeout of more than a millisecond would end is a deadlock, and
//! fails.

use ::shuttle::scheduler::{PctScheduler, RandomScheduler};
use ::shuttle::{Config as Trial, FailurePersistence, MaxSteps, Runner, thread};

use super::*;
use crate::sync::{Condvar, Mutex as Gate};
use crate::vfs::{FaultyDirectory, MemoryDirectory, Operation, RecordingDirectory};

/// Schedules of each kind in the suite.
const SCHEDULES: usize = 300;

/// Bytes of the write queue: three records of 1000 bytes.
const QUEUE_BYTES: u64 = 3500;

/// Runs a test under random schedules, and under those that let few threads run for long.
fn try_all(test: impl Fn() + Send + Sync + 'static) {
    let schedules = std::env::var("DISK_SCHEDULES");
    let schedules = schedules.map_or(SCHEDULES, |schedules| schedules.parse().unwrap());
    let test = Arc::new(test);
    let trial = || {
        let mut trial = Trial::new();
        // A wait without end should fail soon.
        trial.max_steps = MaxSteps::FailAfter(200_000);
        trial.stack_size = 1 << 20;
        trial.failure_persistence = FailurePersistence::None;
        trial
    };
    let own = Arc::clone(&test);
    Runner::new(RandomScheduler::new_from_seed(1, schedules), trial()).run(move || own());
    let own = Arc::clone(&test);
    Runner::new(PctScheduler::new_from_seed(2, 3, schedules), trial()).run(move || own());
}

/// A store whose threads may be interrupted at every operation of their disk.
fn threaded(vfs: impl Vfs, hook: impl Fn(&str, Operation) + Send + Sync + 'static) -> Lab {
    let vfs = FaultyDirectory::new(vfs, move |name, operation| {
        hook(name, operation);
        None
    });
    let config = Config {
        threads: true,
        // Only the journal's own thread commits.
        commit_ms: u64::MAX,
        reader_threads: 1,
        queue_bytes: QUEUE_BYTES,
        ..settings(vec![volume(Arc::new(vfs), 6)])
    };
    let lab = Lab::open(config, &Clocks::new()).unwrap();
    lab.disk.find();
    until(|| lab.disk.has_found());
    lab
}

fn interrupted(vfs: impl Vfs) -> Lab {
    threaded(vfs, |_, _| thread::yield_now())
}

/// Waits for other threads, and fails if the condition stays false.
#[track_caller]
fn until(is: impl Fn() -> bool) {
    let mut turns = 0;
    while !is() {
        turns += 1;
        assert!(turns < 2000, "no thread makes progress");
        thread::yield_now();
    }
}

/// Numbers of the invalidations that a start would find after a power failure now.
fn durable(disk: &RecordingDirectory, seed: u64) -> Vec<u64> {
    let left = disk.cut(disk.point(), seed);
    let single = settings(vec![volume(Arc::new(left), 6)]);
    let lab = Lab::open(single, &Clocks::new()).unwrap();
    assert!(lab.emptied.is_empty(), "a power cut damages nothing");
    lab.invalidations.iter().map(|known| known.number).collect()
}

#[test]
fn an_invalidation_is_durable_once_reported_and_is_reported() {
    try_all(|| {
        let disk = RecordingDirectory::new();
        let lab = Arc::new(interrupted(disk.clone()));
        let appending = |bytes: &'static [u8]| {
            let (lab, disk) = (Arc::clone(&lab), disk.clone());
            thread::spawn(move || {
                for seed in 0..2 {
                    let told = lab.disk.append(Bytes::from_static(bytes)).unwrap().number();
                    assert!(durable(&disk, seed).contains(&told));
                }
            })
        };
        let threads = [appending(b"one"), appending(b"other")];
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

#[test]
fn an_invalidation_is_durable_though_journals_begin_meanwhile() {
    try_all(|| {
        let disk = RecordingDirectory::new();
        let lab = Arc::new(interrupted(disk.clone()));
        let (own, platter) = (Arc::clone(&lab), disk.clone());
        let appending = thread::spawn(move || {
            let mut told = Vec::new();
            for seed in 0..3 {
                // Longer than a journal may be before another begins.
                let bytes = Bytes::from(vec![7; 3 << 10]);
                let (effect, durability) = own.disk.begin_append(bytes).unwrap();
                told.push(effect.number());
                // A forget wakes no thread, but a record does.
                own.put(seed, 1, 100);
                durability.wait().unwrap();
                let known = durable(&platter, seed);
                assert!(told.iter().all(|number| known.contains(number)), "{told:?}: {known:?}");
            }
        });
        appending.join().unwrap();
    });
}

#[test]
fn all_that_is_taken_is_written_within_the_queues_bound() {
    try_all(|| {
        let memory = MemoryDirectory::new();
        let lab = Arc::new(interrupted(memory.clone()));
        let putting = |thread: u64| {
            let lab = Arc::clone(&lab);
            thread::spawn(move || {
                for hash in thread * 10..thread * 10 + 4 {
                    let refused = lab.put(hash, 1, 880).is_none();
                    let queued = lab.stats().queued_bytes;
                    assert!(queued <= QUEUE_BYTES, "{queued}");
                    // A full queue is written by a thread that is awake.
                    until(|| !refused || lab.stats().queued_bytes + 1000 <= QUEUE_BYTES);
                }
            })
        };
        let threads = [putting(1), putting(2)];
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        until(|| lab.stats().queued_bytes == 0);
        let taken = lab.index.len();
        assert!(taken >= 3, "{taken}");
        lab.disk.close();
        drop(lab);
        let after = Lab::open(settings(vec![volume(Arc::new(memory), 6)]), &Clocks::new());
        let after = after.unwrap();
        after.find();
        assert_eq!(after.index.len(), taken);
    });
}

/// A gate that holds a disk's reads of records while it is closed.
#[derive(Default)]
struct Held {
    closed: Gate<bool>,
    opened: Condvar,
    held: AtomicU64,
}

impl Held {
    fn pass(&self, name: &str, operation: Operation) {
        if operation != Operation::Read || !name.starts_with("data") {
            return;
        }
        let mut closed = self.closed.lock();
        while *closed {
            self.held.fetch_add(1, Ordering::Relaxed);
            self.opened.wait(&mut closed);
        }
    }

    fn set(&self, closed: bool) {
        *self.closed.lock() = closed;
        self.opened.notify_all();
    }
}

/// Reads a record, and collects the answers.
fn ask(lab: &Lab, hash: u64, deadline_ms: u64) -> Arc<Mutex<Vec<Result<u64, Error>>>> {
    let answers = Arc::new(Mutex::new(Vec::new()));
    let own = Arc::clone(&answers);
    let done = Box::new(move |answer: Result<RecordData, Error>| {
        // Its buffers are returned under a modelled lock, not under this real one.
        let answer = answer.map(|answer| check(hash, &answer));
        own.lock().push(answer);
    });
    lab.disk.read(lab.index.place(hash).unwrap(), hash, RecordRequest::whole(), deadline_ms, done);
    answers
}

#[test]
fn a_read_that_is_due_is_answered_though_the_disk_hangs() {
    try_all(|| {
        let held = Arc::new(Held::default());
        let own = Arc::clone(&held);
        let lab =
            threaded(MemoryDirectory::new(), move |name, operation| own.pass(name, operation));
        lab.put(1, 1, 500).unwrap();
        until(|| lab.stats().queued_bytes == 0);
        held.set(true);
        let hanging = ask(&lab, 1, u64::MAX);
        until(|| held.held.load(Ordering::Relaxed) > 0);
        // Only the sentinel can answer it, and it sleeps for a second, or until it is woken.
        let due = ask(&lab, 1, lab.clocks.now().mono_ms);
        until(|| !due.lock().is_empty());
        assert!(matches!(due.lock()[..], [Err(Error::Late)]));
        assert!(hanging.lock().is_empty());
        held.set(false);
        until(|| !hanging.lock().is_empty());
        assert!(matches!(hanging.lock()[..], [Ok(1)]));
        lab.disk.stop();
        assert_eq!((due.lock().len(), hanging.lock().len()), (1, 1));
    });
}

#[test]
fn a_stop_ends_all_work_and_answers_all_reads() {
    try_all(|| {
        let memory = MemoryDirectory::new();
        let lab = Arc::new(interrupted(memory.clone()));
        lab.put(1, 1, 500).unwrap();
        let own = Arc::clone(&lab);
        let asking = thread::spawn(move || [ask(&own, 1, u64::MAX), ask(&own, 1, u64::MAX)]);
        let own = Arc::clone(&lab);
        let working = thread::spawn(move || {
            let appended = own.disk.append(Bytes::from_static(b"x"));
            let put = own.put(2, 1, 500);
            (appended.map(|effect| effect.number()), put.is_some())
        });
        lab.disk.close();
        lab.disk.append(Bytes::from_static(b"y")).expect_err("no thread writes it any more");
        let (appended, put) = working.join().unwrap();
        for answers in asking.join().unwrap() {
            let answers = answers.lock();
            assert!(matches!(answers[..], [Ok(1) | Err(Error::Out)]), "{answers:?}");
        }
        assert!(put || lab.stats().refused_out == 1);
        drop(lab);
        let after = Lab::open(settings(vec![volume(Arc::new(memory), 6)]), &Clocks::new());
        let after = after.unwrap();
        after.find();
        let known: Vec<u64> = after.invalidations.iter().map(|known| known.number).collect();
        assert!(appended.is_err() || known.contains(&appended.unwrap()), "{known:?}");
        assert_eq!(after.version(1), Some(1));
    });
}
