//! A random walk compared with a plain map: puts, purges, starts, crashes, and a disk too small for
//! all records. The store may drop any record for space, and must not return anything else.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::vfs::{MemoryDirectory, RecordingDirectory};

#[derive(Clone, Debug)]
enum Step {
    Put { hash: u64, len: usize },
    Stream { hash: u64, len: usize },
    Forget(u64),
    Invalidate(u64),
    Read(u64),
    Range { hash: u64, start: u64, len: u64 },
    Work,
    Settle,
    Pass(u64),
    Restart,
    Kill,
    Cut(u64),
}

fn steps() -> impl Strategy<Value = Step> {
    let hash = 0_u64..12;
    prop_oneof![
        8 => (hash.clone(), 0_usize..3000).prop_map(|(hash, len)| Step::Put { hash, len }),
        2 => (hash.clone(), 0_usize..9000).prop_map(|(hash, len)| Step::Stream { hash, len }),
        2 => hash.clone().prop_map(Step::Forget),
        2 => hash.clone().prop_map(Step::Invalidate),
        5 => hash.clone().prop_map(Step::Read),
        3 => (hash, 0_u64..9000, 0_u64..4000)
            .prop_map(|(hash, start, len)| Step::Range { hash, start, len }),
        6 => Just(Step::Work),
        4 => Just(Step::Settle),
        2 => (0_u64..3000).prop_map(Step::Pass),
        1 => Just(Step::Restart),
        1 => Just(Step::Kill),
        1 => any::<u64>().prop_map(Step::Cut),
    ]
}

/// The store, and the versions that it may return.
struct Walk {
    vfs: RecordingDirectory,
    lab: Lab,
    /// Versions that may come back after a crash: those forgotten without an invalidation, until
    /// they are overwritten.
    may_be: BTreeMap<u64, BTreeSet<u64>>,
    lengths: BTreeMap<u64, usize>,
    version: u64,
}

impl Walk {
    fn reopen(&mut self, clocks: &Arc<Clocks>) {
        self.lab = Lab::over(self.vfs.clone(), clocks);
        for found in self.lab.index.found.lock().clone() {
            let old = self.lab.invalidations.iter().any(|known| {
                known.bytes[..] == found.hash.to_le_bytes() && found.order < known.number
            });
            // It may have moved since it was found.
            let moved = self.lab.index.moved.lock();
            let place = moved.iter().fold(
                found.place,
                |place, (_, from, to)| {
                    if place == *from { *to } else { place }
                },
            );
            drop(moved);
            let here = self.lab.index.places.lock().get(&found.hash).cloned().unwrap_or_default();
            if old || here.first() != Some(&place) {
                self.lab.index.remove(found.hash, place);
                self.lab.disk.forget(place);
            }
        }
    }

    fn step(&mut self, step: &Step, clocks: &Arc<Clocks>) {
        match step {
            Step::Put { hash, len } => {
                self.version += 1;
                self.lengths.insert(self.version, *len);
                if self.lab.put(*hash, self.version, *len).is_some() {
                    self.may_be.entry(*hash).or_default().insert(self.version);
                }
            }
            Step::Stream { hash, len } => self.stream(*hash, *len),
            Step::Forget(hash) => self.forget(*hash),
            Step::Invalidate(hash) => {
                let known = Bytes::copy_from_slice(&hash.to_le_bytes());
                let effect = self.lab.disk.append(known).unwrap();
                self.forget(*hash);
                self.may_be.remove(hash);
                let number = effect.number();
                drop(effect);
                // Two in three have no other effect.
                if !number.is_multiple_of(3) {
                    self.lab.disk.drop_invalidations(&[number]);
                }
            }
            Step::Read(hash) => self.check(*hash),
            Step::Range { hash, start, len } => self.range(*hash, *start, *len),
            Step::Work => _ = self.lab.disk.step(),
            Step::Settle => self.lab.disk.settle(),
            Step::Pass(ms) => clocks.pass(*ms),
            Step::Restart => {
                let empty = Lab::over(MemoryDirectory::new(), clocks);
                std::mem::replace(&mut self.lab, empty).disk.stop();
                self.reopen(clocks);
            }
            Step::Kill => {
                self.lab = Lab::over(MemoryDirectory::new(), clocks);
                self.reopen(clocks);
            }
            Step::Cut(seed) => {
                let disk = self.vfs.cut(self.vfs.point(), *seed);
                self.vfs = RecordingDirectory::over(&disk);
                self.lab = Lab::over(MemoryDirectory::new(), clocks);
                self.reopen(clocks);
            }
        }
    }

    fn forget(&self, hash: u64) {
        for place in self.lab.index.places.lock().remove(&hash).unwrap_or_default() {
            self.lab.disk.forget(place);
        }
    }

    fn stream(&mut self, hash: u64, len: usize) {
        self.version += 1;
        self.lengths.insert(self.version, len);
        let Some(mut stream) = self.lab.disk.stream(hash) else { return };
        for part in body(hash, self.version, len).chunks(stream.part_bytes() as usize) {
            let pieces = part.chunks(700).map(Bytes::copy_from_slice).collect();
            if !matches!(stream.push(pieces), PartOutcome::Taken(_)) {
                return;
            }
        }
        let entry = entry(hash, self.version, len);
        let entry = Entry { body: Body::Bytes(Bytes::new()), ..entry };
        let Some(place) = stream.finish(entry) else { return };
        self.forget(hash);
        self.lab.index.add(hash, place);
        self.may_be.entry(hash).or_default().insert(self.version);
    }

    fn check(&self, hash: u64) {
        let Some(version) = self.lab.version(hash) else { return };
        let may_be = self.may_be.get(&hash);
        assert!(may_be.is_some_and(|may_be| may_be.contains(&version)), "{hash}: {version}");
    }

    fn range(&self, hash: u64, start: u64, len: u64) {
        let Some(place) = self.lab.index.place(hash) else { return };
        let mut ask = RecordRequest::range(start..start + len);
        ask.head = true;
        let Ok(answer) = self.lab.read(place, hash, ask) else { return };
        let version = u64::from_le_bytes(answer.head[8..16].try_into().unwrap());
        let whole = body(hash, version, self.lengths[&version]);
        let clip = |at: u64| (at as usize).min(whole.len());
        assert!(answer.body.concat() == whole[clip(start)..clip(start + len)]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn a_random_walk_shows_nothing_but_what_was_put(
        steps in prop::collection::vec(steps(), 1..250),
    ) {
        let (vfs, clocks) = (RecordingDirectory::new(), Clocks::new());
        let lab = Lab::over(vfs.clone(), &clocks);
        let (may_be, lengths) = (BTreeMap::new(), BTreeMap::new());
        let mut walk = Walk { vfs, lab, may_be, lengths, version: 0 };
        for step in &steps {
            walk.step(step, &clocks);
            let stats = walk.lab.stats();
            prop_assert_eq!(stats.damaged(), 0, "{:?}", stats);
        }
        (0..12).for_each(|hash| walk.check(hash));
        walk.lab.disk.settle();
        let live = walk.lab.stats().records as usize;
        prop_assert!(live >= walk.lab.index.len());
    }

    #[test]
    fn any_bytes_in_a_volume_are_handled(
        files in prop::collection::btree_map("(superblock|data-0000|journal-0000000000000000|journal-0000000000000001|snapshot-0000000000000001|out)",
            prop::collection::vec(any::<u8>(), 0..2000), 0..6),
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..40),
        fresh in any::<bool>(),
    ) {
        let clocks = Clocks::new();
        let vfs = if fresh {
            MemoryDirectory::with(files)
        } else {
            let vfs = MemoryDirectory::new();
            let lab = Lab::over(vfs.clone(), &clocks);
            (0..20).for_each(|hash| _ = lab.put(hash, 1, 900));
            drop(lab.disk.append(Bytes::from_static(b"x")).unwrap());
            lab.disk.settle();
            let names = vfs.list().unwrap();
            for (index, byte) in flips {
                let name = &names[index.index(names.len())];
                vfs.damage(name, |bytes| {
                    let at = index.index(bytes.len().max(1));
                    if let Some(old) = bytes.get_mut(at) {
                        *old = byte;
                    }
                });
            }
            vfs.copy()
        };
        if let Ok(lab) = Lab::open(settings(vec![volume(Arc::new(vfs), 8)]), &clocks) {
            lab.disk.settle();
            let hashes: Vec<u64> = lab.index.places.lock().keys().copied().collect();
            hashes.into_iter().for_each(|hash| _ = lab.version(hash));
        }
    }
}
