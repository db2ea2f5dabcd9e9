//! Power failures at any moment: committed records are found, unwritten ones are not, and
//! invalidated ones stay invalidated.

use fastrand::Rng;

use super::*;
use crate::vfs::{MemoryDirectory, RecordingDirectory};

/// Power failures in the suite; `DISK_CRASH_POINTS` sets another number.
const POINTS: usize = 1200;

/// Failures of one life of a store. The next life begins with the last.
const CUTS: usize = 40;

/// Lives of a store, each ended by a power failure.
const LIVES: usize = 3;

const NEVER: usize = usize::MAX;

/// A record that was put.
#[derive(Clone, Debug)]
struct Put {
    hash: u64,
    version: u64,
    place: RecordAddress,
    /// The point from which on it must be found.
    durable_at: usize,
    /// The point from which on it may be gone.
    gone_at: usize,
    /// It was put during an invalidation of its key, and may or may not be found.
    unsure: bool,
}

/// An invalidation of one key.
#[derive(Clone, Debug)]
struct MadeInvalidation {
    number: u64,
    hash: u64,
    called_at: usize,
    durable_at: usize,
    /// The number of puts before it, which it must remove.
    puts: usize,
    /// The point from which on it may be dropped.
    obsolete_at: usize,
}

/// One life of a store, with all operations.
struct Life {
    lab: Lab,
    vfs: RecordingDirectory,
    seed: u64,
    rng: Rng,
    puts: Vec<Put>,
    made: Vec<MadeInvalidation>,
    /// Released numbers, with the points of their release.
    released: Vec<(usize, u64)>,
    committed: usize,
    versions: u64,
    /// The point at which it began.
    base: usize,
}

/// A store after a power failure.
struct Survivors {
    lab: Lab,
    /// Hash, version and place.
    alive: Vec<(u64, u64, RecordAddress)>,
}

impl Life {
    fn begin(disk: &MemoryDirectory, seed: u64, clocks: &Arc<Clocks>, versions: u64) -> Self {
        let vfs = RecordingDirectory::over(disk);
        let base = vfs.point();
        let survivors = Survivors::of(vfs.clone(), clocks);
        survivors.lab.disk.settle();
        let puts = survivors.alive.iter().map(|(hash, version, place)| Put {
            hash: *hash,
            version: *version,
            place: *place,
            durable_at: 0,
            gone_at: NEVER,
            unsure: false,
        });
        let puts: Vec<Put> = puts.collect();
        let made = survivors.lab.invalidations.iter().map(|made| MadeInvalidation {
            number: made.number,
            hash: u64::from_le_bytes(made.bytes[..].try_into().unwrap()),
            called_at: 0,
            durable_at: 0,
            puts: 0,
            obsolete_at: NEVER,
        });
        let made = made.collect();
        let rng = Rng::with_seed(seed);
        let lab = survivors.lab;
        let committed = puts.len();
        let mut life = Self {
            lab,
            vfs,
            seed,
            rng,
            puts,
            made,
            released: Vec::new(),
            committed,
            versions,
            base,
        };
        life.note(0);
        life
    }

    fn live(&mut self, steps: usize) {
        for _ in 0..steps {
            let before = self.vfs.point();
            let hash = self.rng.u64(..24);
            match self.rng.u32(..100) {
                0..45 => self.put(hash, false),
                45..50 => self.forget(hash),
                50..57 => self.invalidate(hash),
                57..80 => _ = self.lab.version(hash),
                80..93 => _ = self.lab.disk.step(),
                93..95 => self.release(),
                95..97 => self.drop_invalidations(),
                _ => self.commit(),
            }
            self.lab.clocks.pass(100);
            self.note(before);
        }
    }

    /// Notes the segments that the store has reclaimed since point `before`.
    fn note(&mut self, before: usize) {
        let find = |puts: &mut [Put], place: RecordAddress| {
            puts.iter().rposition(|put| put.place == place && put.gone_at == NEVER)
        };
        for (_, old, new) in self.lab.index.moved.lock().drain(..) {
            if let Some(at) = find(&mut self.puts, old) {
                self.puts[at].place = new;
            }
        }
        for (_, place) in self.lab.index.dropped.lock().drain(..) {
            if let Some(at) = find(&mut self.puts, place) {
                self.puts[at].gone_at = before;
            }
        }
    }

    fn unwanted(&mut self, hash: u64) {
        let point = self.vfs.point();
        for put in self.puts.iter_mut().filter(|put| put.hash == hash) {
            put.gone_at = put.gone_at.min(point);
        }
    }

    fn put(&mut self, hash: u64, unsure: bool) {
        self.versions += 1;
        let len = [40, 700, 1500, 5000][self.rng.usize(..4)];
        let before = self.vfs.point();
        let old = self.lab.index.place(hash);
        let Some(place) = self.lab.put(hash, self.versions, len) else { return };
        for put in self.puts.iter_mut().filter(|put| Some(put.place) == old) {
            put.gone_at = put.gone_at.min(before);
        }
        let (version, durable_at, gone_at) = (self.versions, NEVER, NEVER);
        self.puts.push(Put { hash, version, place, durable_at, gone_at, unsure });
    }

    fn forget(&mut self, hash: u64) {
        let Some(place) = self.lab.index.place(hash) else { return };
        self.unwanted(hash);
        self.lab.index.remove(hash, place);
        self.lab.disk.forget(place);
    }

    fn invalidate(&mut self, hash: u64) {
        let called_at = self.vfs.point();
        let effect = self.lab.disk.append(Bytes::copy_from_slice(&hash.to_le_bytes())).unwrap();
        let durable_at = self.vfs.point();
        let puts = self.puts.len();
        if self.rng.u32(..3) == 0 {
            self.put(hash, true);
            self.put(hash + 100, false);
        }
        let number = effect.number();
        let obsolete_at = NEVER;
        self.made.push(MadeInvalidation { number, hash, called_at, durable_at, puts, obsolete_at });
        self.unwanted(hash);
        for place in self.lab.index.places.lock().remove(&hash).unwrap_or_default() {
            self.lab.disk.forget(place);
        }
    }

    fn release(&mut self) {
        let newest = self.made.last().map_or(0, |made| made.number);
        let up_to = self.lab.disk.oldest().map_or(newest, |oldest| oldest.min(newest + 1) - 1);
        self.released.push((self.vfs.point(), up_to));
        self.lab.disk.release(up_to);
    }

    fn drop_invalidations(&mut self) {
        let (point, sealed) = (self.vfs.point(), self.lab.disk.sealed());
        let done = self.made.iter_mut().filter(|made| made.number <= sealed);
        let done: Vec<u64> = done
            .map(|made| {
                made.obsolete_at = made.obsolete_at.min(point);
                made.number
            })
            .collect();
        self.lab.disk.drop_invalidations(&done);
    }

    fn commit(&mut self) {
        let before = self.vfs.point();
        self.lab.disk.settle();
        self.note(before);
        let point = self.vfs.point();
        for put in &mut self.puts[self.committed..] {
            put.durable_at = point;
        }
        self.committed = self.puts.len();
    }

    /// Cuts the power at `point`, and checks what the disk has then.
    fn cut(&self, point: usize, seed: u64) -> MemoryDirectory {
        let disk = self.vfs.cut(point, seed);
        let clocks = &self.lab.clocks;
        let survivors = Survivors::of(disk.copy(), clocks);
        let Survivors { lab, alive } = &survivors;
        let case =
            format!("life {}, point {point} of {}, seed {seed}", self.seed, self.vfs.point());
        assert_eq!(lab.emptied, [0_usize; 0], "{case}");
        let stats = lab.stats();
        let damage = [stats.damaged(), stats.damaged_journal, stats.damaged_snapshot];
        assert_eq!(damage, [0; 3], "{case}: {stats:?}");

        let released = self.released.iter().filter(|(at, _)| *at <= point);
        let released = released.map(|(_, number)| *number).max().unwrap_or(0);
        let numbers: Vec<u64> = lab.invalidations.iter().map(|made| made.number).collect();
        assert!(numbers.is_sorted(), "{case}");
        for made in self.made.iter().filter(|made| made.durable_at <= point) {
            let there = numbers.contains(&made.number) || made.obsolete_at <= point;
            assert!(there || made.number <= released, "{case}: {made:?} is lost");
        }
        for (hash, version, _) in alive {
            let put = self.puts.iter().position(|put| (put.hash, put.version) == (*hash, *version));
            let put = put.unwrap_or_else(|| panic!("{case}: {hash} {version} was never put"));
            let made = self
                .made
                .iter()
                .find(|made| made.hash == *hash && made.durable_at <= point && put < made.puts);
            assert!(made.is_none(), "{case}: {:?} is back, past {made:?}", self.puts[put]);
        }
        for put in self.puts.iter().filter(|put| put.durable_at <= point && put.gone_at > point) {
            let made = self.made.iter().any(|made| made.hash == put.hash && made.called_at < point);
            let there =
                alive.iter().any(|(hash, version, _)| (*hash, *version) == (put.hash, put.version));
            assert!(there || put.unsure || made, "{case}: {put:?} is lost");
        }
        disk
    }
}

impl Survivors {
    /// Opens a store whose owner rejects records that an invalidation matches.
    fn of(vfs: impl Vfs, clocks: &Arc<Clocks>) -> Self {
        let lab = Lab::open(settings(vec![volume(Arc::new(vfs), 8)]), clocks).unwrap();
        while lab.disk.find_step() {}
        let mut alive = Vec::new();
        for found in lab.index.found.lock().clone() {
            let invalid = lab.invalidations.iter().any(|made| {
                made.bytes[..] == found.hash.to_le_bytes() && found.order < made.number
            });
            if invalid {
                lab.index.remove(found.hash, found.place);
                lab.disk.forget(found.place);
                continue;
            }
            let answer = lab.read(found.place, found.hash, RecordRequest::whole()).unwrap();
            alive.push((found.hash, check(found.hash, &answer), found.place));
        }
        Self { lab, alive }
    }
}

/// The number of power failures to try.
fn points() -> usize {
    std::env::var("DISK_CRASH_POINTS").map_or(POINTS, |points| points.parse().unwrap())
}

#[test]
fn a_power_cut_loses_the_newest_and_brings_nothing_back() {
    for story in 0..points().div_ceil(CUTS * LIVES) as u64 {
        let clocks = Clocks::new();
        let mut disk = MemoryDirectory::new();
        let mut versions = 0;
        for number in 0..LIVES as u64 {
            let seed = story * 10 + number;
            let mut life = Life::begin(&disk, seed, &clocks, versions);
            life.live(150);
            versions = life.versions;
            let (end, mut rng) = (life.vfs.point(), Rng::with_seed(seed));
            let mut last = MemoryDirectory::new();
            for _ in 0..CUTS {
                last = life.cut(rng.usize(life.base..=end), rng.u64(..));
            }
            disk = last;
        }
    }
}

#[test]
fn a_cut_while_the_volume_is_made_leaves_one_that_can_be_made() {
    let vfs = RecordingDirectory::new();
    let clocks = Clocks::new();
    drop(Lab::over(vfs.clone(), &clocks));
    for point in 0..vfs.point() {
        for seed in 0..10 {
            let lab = Lab::over(vfs.cut(point, seed), &clocks);
            lab.put(1, 1, 100).unwrap();
            lab.disk.settle();
            assert_eq!(lab.version(1), Some(1), "point {point}, seed {seed}");
        }
    }
}

#[test]
fn a_daemon_that_is_killed_loses_nothing_that_was_written() {
    let (vfs, clocks) = (MemoryDirectory::new(), Clocks::new());
    for start in 0..20 {
        let lab = Lab::over(vfs.clone(), &clocks);
        let there = (0..start).filter(|hash| lab.version(*hash) == Some(1)).count();
        assert_eq!(there, start as usize, "start {start}");
        lab.put(start, 1, 600).unwrap();
        lab.disk.settle();
        let names = vfs.list().unwrap();
        assert!(names.len() < 9, "files without an owner: {names:?}");
    }
}
