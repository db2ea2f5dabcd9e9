//! Records are read once and in order, or counted as lost.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use super::*;
use crate::record::Record;

/// A folder for one test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Self(std::env::temp_dir().join(format!("larder-ring-{}-{number}", std::process::id())))
    }

    fn ring(&self, cores: usize, size: u64, started_unix_ms: u64) -> io::Result<Ring> {
        use std::os::unix::fs::MetadataExt;
        // A new file belongs to the current user.
        std::fs::create_dir_all(&self.0)?;
        let uid = std::fs::metadata(&self.0)?.uid();
        let ring = Ring::create(&self.options(cores, size, uid, started_unix_ms), None)?;
        ring.publish().map(|()| ring)
    }

    fn options(&self, cores: usize, size: u64, uid: u32, started_unix_ms: u64) -> Options {
        let names = vec!["Referer".to_owned(), "User-Agent".to_owned()];
        Options { folder: self.0.clone(), cores, size, names, pid: 7, uid, started_unix_ms }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        _ = std::fs::remove_dir_all(&self.0);
    }
}

fn record(id: u64, target: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    Record { id, start_us: id, target, ..Record::default() }.write([None::<&[u8]>; 0], &mut bytes);
    bytes
}

/// Reads all records of the moment: their ids, and the number of lost ones.
fn read_all(follower: &mut RingFollower) -> (Vec<u64>, u64) {
    let (mut ids, mut lost) = (Vec::new(), 0);
    loop {
        let polled = follower.poll(&mut |record| ids.push(record.id)).expect("a readable ring");
        lost += polled.lost;
        if polled.records == 0 && !polled.restarted {
            return (ids, lost);
        }
    }
}

#[test]
fn records_of_all_cores_come_in_the_order_in_which_they_ended() {
    let folder = Folder::new();
    let ring = folder.ring(2, 0, 1).expect("a ring");
    let (mut a, mut b) = (ring.writer(0).expect("core 0"), ring.writer(1).expect("core 1"));
    let mut follower = RingFollower::open(&folder.0, FollowStart::Oldest).expect("a ring");
    assert_eq!(follower.names(), ["Referer", "User-Agent"]);
    assert_eq!((follower.pid(), follower.started_unix_ms()), (7, 1));
    a.append(&[record(1, b"/"), record(4, b"/")].concat(), 2).expect("room");
    b.append(&[record(2, b"/"), record(3, b"/")].concat(), 2).expect("room");
    assert_eq!(read_all(&mut follower), (vec![1, 2, 3, 4], 0));
    assert_eq!(read_all(&mut follower), (vec![], 0));
    b.append(&record(5, b"/"), 1).expect("room");
    assert_eq!(read_all(&mut follower), (vec![5], 0));
}

#[test]
fn who_comes_later_reads_what_is_still_there_or_only_what_comes() {
    let folder = Folder::new();
    let ring = folder.ring(1, 0, 1).expect("a ring");
    let mut writer = ring.writer(0).expect("core 0");
    writer.append(&record(1, b"/"), 1).expect("room");
    let mut all = RingFollower::open(&folder.0, FollowStart::Oldest).expect("a ring");
    let mut new = RingFollower::open(&folder.0, FollowStart::Now).expect("a ring");
    writer.append(&record(2, b"/"), 1).expect("room");
    assert_eq!(read_all(&mut all), (vec![1, 2], 0));
    assert_eq!(read_all(&mut new), (vec![2], 0));
}

#[test]
fn a_reader_that_falls_behind_learns_how_many_it_lost() {
    let folder = Folder::new();
    let ring = folder.ring(1, 0, 1).expect("a ring");
    let mut writer = ring.writer(0).expect("core 0");
    let mut follower = RingFollower::open(&folder.0, FollowStart::Oldest).expect("a ring");
    let long = vec![b'x'; 8000];
    let written = 4 * CAPACITY_MIN / 8000;
    let mut next = 0;
    while next < written {
        // Blocks of different lengths wrap at every offset.
        let count = next % 4 + 1;
        let ids = next..next + count;
        let records: Vec<u8> = ids.flat_map(|id| record(id, &long[..7000 + id as usize])).collect();
        writer.append(&records, count as u32).expect("room");
        next += count;
    }
    let (ids, lost) = read_all(&mut follower);
    assert_eq!(ids.len() as u64 + lost, next);
    assert!(lost > written / 2, "{lost}");
    assert!(ids.len() >= 100, "{}", ids.len());
    assert_eq!(ids, (next - ids.len() as u64..next).collect::<Vec<_>>());
}

#[test]
fn a_reader_beside_the_writer_gets_each_record_whole_or_counted() {
    let folder = Folder::new();
    let ring = folder.ring(1, 0, 1).expect("a ring");
    let mut writer = ring.writer(0).expect("core 0");
    let mut follower = RingFollower::open(&folder.0, FollowStart::Oldest).expect("a ring");
    let done = AtomicBool::new(false);
    let written = 60_000;
    let (ids, lost) = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut next = 0;
            while next < written {
                let count = next % 60 + 1;
                let ids = next..next + count;
                // Target and id must agree.
                let records: Vec<u8> =
                    ids.flat_map(|id| record(id, id.to_string().repeat(10).as_bytes())).collect();
                writer.append(&records, count as u32).expect("room");
                next += count;
            }
            done.store(true, Ordering::Release);
        });
        let (mut ids, mut lost) = (Vec::new(), 0);
        loop {
            let last = done.load(Ordering::Acquire);
            let polled = follower
                .poll(&mut |record| {
                    assert_eq!(record.target, record.id.to_string().repeat(10).as_bytes());
                    ids.push(record.id);
                })
                .expect("a readable ring");
            lost += polled.lost;
            if last && polled.records == 0 {
                return (ids, lost);
            }
        }
    });
    assert!(ids.windows(2).all(|pair| pair[0] < pair[1]));
    let last = ids.last().copied().expect("some were read");
    assert_eq!(ids.len() as u64 + lost, last + 1);
    assert!(last >= written - 1);
}

#[test]
fn a_restart_is_gone_over_to_and_nothing_left_out() {
    let folder = Folder::new();
    let first = folder.ring(2, 0, 1).expect("a ring");
    let mut writer = first.writer(0).expect("core 0");
    let mut follower = RingFollower::open(&folder.0, FollowStart::Now).expect("a ring");
    writer.append(&record(1, b"/"), 1).expect("room");
    drop(writer);
    first.end();
    drop(first);
    assert_eq!(read_all(&mut follower), (vec![1], 0));
    let polled = follower.poll(&mut |_| {}).expect("still open");
    assert!(polled.ended && !polled.restarted);
    let second = folder.ring(1, 0, 2).expect("a ring");
    second.writer(0).expect("core 0").append(&record(2, b"/"), 1).expect("room");
    assert_eq!(read_all(&mut follower), (vec![2], 0));
    assert_eq!(follower.started_unix_ms(), 2);
}

#[test]
fn rings_that_are_handed_over_are_followed_until_their_end() {
    use std::os::unix::fs::MetadataExt;
    let folder = Folder::new();
    let first = folder.ring(2, 0, 1).expect("a ring");
    let mut before = first.writer(0).expect("core 0");
    let mut follower = RingFollower::open(&folder.0, FollowStart::Now).expect("a ring");
    let uid = std::fs::metadata(&folder.0).expect("a folder").uid();
    let file = first.lock().try_clone().expect("a lock");
    let inherited = InheritedLock { folder: folder.0.clone(), file };
    let second = Ring::create(&folder.options(1, 0, uid, 2), Some(inherited)).expect("a ring");
    before.append(&record(1, b"/"), 1).expect("room");
    assert_eq!(read_all(&mut follower), (vec![1], 0));
    assert_eq!(follower.started_unix_ms(), 1, "it is not published yet");
    second.publish().expect("renamed");
    let mut after = second.writer(0).expect("core 0");
    for id in [2, 3] {
        after.append(&record(id, b"/"), 1).expect("room");
        before.append(&record(10 + id, b"/"), 1).expect("room");
        let (mut ids, lost) = read_all(&mut follower);
        ids.sort_unstable();
        assert_eq!((ids, lost), (vec![id, 10 + id], 0));
    }
    drop(before);
    first.end();
    drop(first);
    after.append(&record(4, b"/"), 1).expect("room");
    assert_eq!(read_all(&mut follower), (vec![4], 0));
    assert!(folder.ring(1, 0, 3).is_err(), "the lock is the second daemon's");
    second.end();
    assert!(!folder.0.exists());
}

#[test]
fn a_crash_leaves_the_records_to_be_read() {
    let folder = Folder::new();
    {
        let ring = folder.ring(1, 0, 1).expect("a ring");
        ring.writer(0).expect("core 0").append(&record(1, b"/"), 1).expect("room");
    }
    let mut follower =
        RingFollower::open(&folder.0, FollowStart::Oldest).expect("the ring of one that is gone");
    assert_eq!(read_all(&mut follower), (vec![1], 0));
}

#[test]
fn two_daemons_do_not_write_to_one_folder() {
    let folder = Folder::new();
    let first = folder.ring(1, 0, 1).expect("a ring");
    let error = folder.ring(1, 0, 2).expect_err("it is taken");
    assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    drop(first);
    folder.ring(1, 0, 2).expect("it is free again");
}

#[test]
fn a_folder_is_for_its_owner_alone() {
    use std::os::unix::fs::MetadataExt;
    let folder = Folder::new();
    let _ring = folder.ring(1, 0, 1).expect("a ring");
    let mode = |path: PathBuf| std::fs::metadata(path).expect("it is there").mode() & 0o777;
    assert_eq!(mode(folder.0.clone()), 0o700);
    assert_eq!(mode(folder.0.join("core-0")), 0o600);
    let options = |uid| Options {
        folder: folder.0.clone(),
        cores: 1,
        size: 0,
        names: Vec::new(),
        pid: 7,
        uid,
        started_unix_ms: 1,
    };
    let error = Ring::create(&options(4_000_000), None).expect_err("somebody else's");
    assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
}

#[test]
fn a_file_that_is_no_ring_and_a_ring_of_another_version_are_distinguished() {
    let folder = Folder::new();
    std::fs::create_dir_all(&folder.0).expect("a folder");
    let file = core_file(&folder.0, 0);
    let error = |bytes: &[u8]| {
        std::fs::write(&file, bytes).expect("written");
        RingFollower::open(&folder.0, FollowStart::Oldest).expect_err("no ring").to_string()
    };
    assert_eq!(error(&[0; 2 * HEAD_BYTES]), "not a log ring");
    let head = RingHeader {
        capacity: CAPACITY_MIN,
        core: 0,
        cores: 1,
        pid: 1,
        started_unix_ms: 1,
        names: Vec::new(),
    };
    let mut bytes = head.bytes();
    assert_eq!(RingHeader::of(&bytes), Ok(head));
    bytes[FIXED_AT + 8] ^= 0xff;
    assert!(error(&bytes).contains("another version"), "{}", error(&bytes));
}

#[test]
fn a_damaged_ring_costs_records_and_nothing_else() {
    let folder = Folder::new();
    let ring = folder.ring(1, 0, 1).expect("a ring");
    let mut writer = ring.writer(0).expect("core 0");
    let mut follower = RingFollower::open(&folder.0, FollowStart::Oldest).expect("a ring");
    writer.append(&record(1, b"/"), 1).expect("room");
    let file = std::fs::OpenOptions::new().write(true).open(core_file(&folder.0, 0));
    let file = file.expect("the ring");
    file.write_all_at(&[0xff; 8], (HEAD_BYTES + BLOCK_HEAD) as u64).expect("written");
    assert_eq!(read_all(&mut follower).0, [0; 0]);
    writer.append(&record(2, b"/"), 1).expect("room");
    assert_eq!(read_all(&mut follower).0, [2]);
    // A cursor that never becomes valid.
    file.write_all_at(&[0xff; CURSOR_BYTES], 0).expect("written");
    assert!(follower.poll(&mut |_| {}).is_err());
}
