//! Damage of any kind: no wrong byte is returned, and each damage is counted.

use fastrand::Rng;

use super::*;
use crate::vfs::MemoryDirectory;

/// Injections in the suite; `DISK_DAMAGES` sets another number.
const INJECTIONS: usize = 5000;

/// Records of the damaged disk.
const RECORDS: u64 = 40;

/// A disk with records of all kinds, some over older ones.
fn disk(clocks: &Arc<Clocks>) -> MemoryDirectory {
    let vfs = MemoryDirectory::new();
    let lab = Lab::over(vfs.clone(), clocks);
    let mut rng = Rng::with_seed(1);
    for version in 0..5 {
        for hash in 0..RECORDS {
            let len = [20, 300, 900, 1500, 1900, 4500][rng.usize(..6)];
            lab.put(hash, version, len);
            lab.disk.settle();
        }
    }
    assert!(lab.stats().reclaimed > 5);
    for hash in 0..3 {
        drop(lab.disk.append(Bytes::from(vec![hash; 10])).unwrap());
    }
    lab.disk.stop();
    vfs
}

#[test]
fn a_volume_whose_journals_are_gone_or_older_than_its_superblock_begins_empty() {
    let clocks = Clocks::new();
    let start = |vfs: &MemoryDirectory| {
        let lab = Lab::over(vfs.clone(), &clocks);
        (0..20).for_each(|hash| _ = lab.put(hash, 1, 900).unwrap());
        lab.disk.settle();
        lab
    };
    let rest = |vfs: &MemoryDirectory| {
        vfs.contents()
            .into_keys()
            .filter(|name| name.starts_with("journal") || name.starts_with("snapshot"))
            .collect::<Vec<_>>()
    };
    let vfs = MemoryDirectory::new();
    start(&vfs).disk.stop();
    let (older, names) = (vfs.contents(), rest(&vfs));
    // Pages are purged, and two more sessions follow.
    for _ in 0..2 {
        let lab = Lab::over(vfs.clone(), &clocks);
        let purge = lab.disk.append(Bytes::from_static(b"all of them")).unwrap();
        let places: Vec<_> = lab.index.places.lock().values().flatten().copied().collect();
        assert!(places.iter().all(|place| lab.disk.forget(*place)));
        drop(purge);
        (0..20).for_each(|hash| _ = lab.put(hash, 2, 900).unwrap());
        lab.disk.stop();
    }
    let whole = vfs.copy();
    assert_eq!(Lab::over(whole, &clocks).index.len(), 20);
    let gone = vfs.copy();
    rest(&gone).iter().for_each(|name| gone.remove(name).unwrap());
    let lab = Lab::over(gone, &clocks);
    assert_eq!((lab.emptied.clone(), lab.index.len()), (vec![0], 0));
    assert_eq!(lab.stats().damaged_journal, 1);
    // The files of an older copy, under the new superblock and data.
    let back = vfs.copy();
    rest(&back).iter().for_each(|name| back.remove(name).unwrap());
    for name in names {
        let file = back.open(&name, true).unwrap();
        file.write_at(&older[&name], 0).unwrap();
    }
    let lab = Lab::over(back, &clocks);
    assert_eq!((lab.emptied.clone(), lab.index.len()), (vec![0], 0));
}

/// Damages one place of a disk, and describes the damage.
fn damage(vfs: &MemoryDirectory, rng: &mut Rng) -> String {
    let sizes: Vec<(String, usize)> =
        vfs.contents().into_iter().map(|(name, bytes)| (name, bytes.len())).collect();
    // Most of the bytes are in the data files.
    let (name, len) = match rng.u32(..10) {
        0 => sizes[rng.usize(..sizes.len())].clone(),
        _ => sizes.iter().find(|(name, _)| name.starts_with("data")).unwrap().clone(),
    };
    if len == 0 {
        return format!("{name}: nothing is left to damage");
    }
    let kind = rng.u32(..6);
    let at = rng.usize(..len);
    let [from, to] = [rng.usize(..len / 512 + 1) * 512, rng.usize(..len / 512 + 1) * 512];
    let size = 512 << rng.u32(..6);
    let segment = SEGMENT as usize;
    let segments = [rng.usize(..8) * segment, rng.usize(..8) * segment];
    vfs.damage(&name, |bytes| match kind {
        0 => bytes[at] ^= 1 << rng.u32(..8),
        1 => {
            let end = bytes.len().min(from + size);
            bytes[from.min(end)..end].fill(0);
        }
        2 => {
            // A misdirected write, or two blocks swapped.
            let size = size.min(bytes.len() - from.max(to).min(bytes.len()));
            let (a, b) = (bytes[from..from + size].to_vec(), bytes[to..to + size].to_vec());
            bytes[to..to + size].copy_from_slice(&a);
            if rng.bool() && from.abs_diff(to) >= size {
                bytes[from..from + size].copy_from_slice(&b);
            }
        }
        3 => bytes.truncate(at),
        4 if len >= 8 * segment => {
            let [a, b] = segments.map(|at| bytes[at..at + segment].to_vec());
            bytes[segments[0]..][..segment].copy_from_slice(&b);
            bytes[segments[1]..][..segment].copy_from_slice(&a);
        }
        _ => {
            let end = bytes.len().min(at + size);
            rng.fill(&mut bytes[at..end]);
        }
    });
    format!("{name}: kind {kind} at {at}, {from} to {to}, {size} bytes")
}

/// Reads everything in a store, and fails on a wrong byte.
fn read_all(lab: &Lab) -> (usize, usize) {
    let places = lab.index.places.lock().clone();
    let all =
        places.into_iter().flat_map(|(hash, places)| places.into_iter().map(move |p| (hash, p)));
    let (mut right, mut missed) = (0, 0);
    for (hash, place) in all {
        match lab.read(place, hash, RecordRequest::whole()) {
            Ok(answer) => {
                check(hash, &answer);
                right += 1;
            }
            Err(Error::Damaged(_) | Error::Gone | Error::Out) => missed += 1,
            Err(error) => panic!("{error:?}"),
        }
    }
    (right, missed)
}

fn injections() -> usize {
    std::env::var("DISK_DAMAGES").map_or(INJECTIONS, |number| number.parse().unwrap())
}

#[test]
fn no_damage_of_a_disk_in_use_lets_a_wrong_byte_out() {
    let clocks = Clocks::new();
    let sound = disk(&clocks);
    let mut rng = Rng::with_seed(2);
    let (mut all, mut met) = (0, 0);
    for _ in 0..injections() / 10 {
        let vfs = sound.copy();
        let lab = Lab::over(vfs.clone(), &clocks);
        for _ in 0..5 {
            let what = damage(&vfs, &mut rng);
            let before = lab.stats();
            let (_, missed) = read_all(&lab);
            let damaged = lab.stats().damaged() - before.damaged();
            assert!(
                damaged as usize >= usize::from(missed > 0),
                "{what}: {missed} are not counted"
            );
            met += usize::from(missed > 0);
            all += 1;
        }
    }
    assert!(met * 4 > all, "{met} of {all} injections hit anything");
}

#[test]
fn no_damage_of_a_disk_at_rest_lets_a_wrong_byte_out() {
    let clocks = Clocks::new();
    let sound = disk(&clocks);
    let lab = Lab::over(sound.copy(), &clocks);
    let (there, missed) = read_all(&lab);
    assert_eq!((missed, lab.stats().damaged()), (0, 0));
    let mut rng = Rng::with_seed(3);
    let mut met = 0;
    for _ in 0..injections() / 2 {
        let vfs = sound.copy();
        let what = damage(&vfs, &mut rng);
        let lab = match Lab::open(settings(vec![volume(Arc::new(vfs), 8)]), &clocks) {
            Ok(lab) => lab,
            Err(Error::Format { .. } | Error::Foreign { .. }) if what.starts_with("superb") => {
                continue;
            }
            Err(error) => panic!("{what}: {error}"),
        };
        while lab.disk.find_step() {}
        let (right, _) = read_all(&lab);
        assert!(right <= there, "{what}");
        met += usize::from(right < there);
        let told = lab.invalidations.len();
        let gone = right == 0 || lab.emptied == [0];
        assert!(told == 3 || gone, "{what}: {told} invalidations, {right} records");
    }
    assert!(met * 20 > injections(), "{met} injections hit anything");
}

#[test]
fn an_invalidation_that_rots_away_takes_the_records_with_it() {
    let (vfs, clocks) = (MemoryDirectory::new(), Clocks::new());
    let lab = Lab::over(vfs.clone(), &clocks);
    lab.put(1, 1, 100).unwrap();
    lab.disk.settle();
    drop(lab.disk.append(Bytes::from_static(b"everything")).unwrap());
    lab.put(2, 1, 100).unwrap();
    lab.disk.settle();
    drop(lab);
    let journal =
        vfs.list().unwrap().into_iter().rfind(|name| name.starts_with("journal")).unwrap();
    let sound = vfs.contents()[&journal].clone();
    let at = sound.windows(10).position(|bytes| bytes == b"everything").unwrap();
    vfs.damage(&journal, |bytes| bytes[at] ^= 1);
    let lab = Lab::over(vfs, &clocks);
    assert!(lab.index.found.lock().is_empty(), "the invalidations are lost");
    assert_eq!(lab.stats().damaged_journal, 1);
    lab.clocks.pass(100_000);
    lab.disk.tick();
    lab.disk.settle();
    lab.put(3, 1, 100).expect("the volume begins anew");
    assert_eq!(lab.version(3), Some(1));
}

#[test]
fn each_kind_of_damage_is_counted_as_what_it_is() {
    let (vfs, clocks) = (MemoryDirectory::new(), Clocks::new());
    let lab = Lab::over(vfs.clone(), &clocks);
    for hash in 0..6 {
        lab.put(hash, 1, 1900).unwrap();
    }
    lab.disk.settle();
    let offset = |hash| {
        let place = lab.index.place(hash).unwrap();
        (place.segment() * SEGMENT + place.unit() * crate::layout::UNIT) as usize
    };
    let [a, b, c, d] = [0, 1, 2, 3].map(offset);
    vfs.damage("data-0000", |bytes| {
        bytes[a + 8] = 0;
        bytes[b + 1500] ^= 1;
        let other = bytes[d..d + 2000].to_vec();
        bytes[c..c + 2000].copy_from_slice(&other);
    });
    assert_eq!(
        (0..6).map(|hash| lab.version(hash)).collect::<Vec<_>>(),
        [None, None, None, Some(1), Some(1), Some(1)]
    );
    let stats = lab.stats();
    assert_eq!((stats.damaged_header, stats.damaged_sum, stats.damaged_other), (1, 1, 1));
    vfs.damage("data-0000", |bytes| bytes.truncate(d + 1000));
    assert_eq!(lab.version(3), None);
    assert_eq!(lab.stats().damaged_cut, 1);
    // A damaged record is dead for good.
    assert_eq!((lab.version(3), lab.stats().damaged()), (None, 4));
    assert_eq!(lab.index.dropped.lock().len(), 4);
}

#[test]
fn a_head_and_a_range_are_checked_as_well_as_the_whole() {
    let (vfs, clocks) = (MemoryDirectory::new(), Clocks::new());
    let lab = Lab::over(vfs.clone(), &clocks);
    let place = lab.put(1, 1, 1990).unwrap();
    lab.disk.settle();
    let at = (place.segment() * SEGMENT + place.unit() * crate::layout::UNIT) as usize;
    // The third block, which neither the head nor the beginning needs.
    vfs.damage("data-0000", |bytes| bytes[at + 2050] ^= 1);
    assert_eq!(lab.read(place, 1, RecordRequest::head()).unwrap().head.len(), 24);
    assert_eq!(lab.read(place, 1, RecordRequest::range(0..900)).unwrap().size(), 900);
    assert!(lab.disk.read_now(place, 1, &RecordRequest::range(1980..1990)).is_none());
    assert!(matches!(lab.read(place, 1, RecordRequest::head()), Err(Error::Gone)));
}

#[test]
fn the_fuzz_target_holds_for_some_bytes() {
    let mut rng = Rng::with_seed(4);
    for _ in 0..300 {
        let mut data = vec![0; rng.usize(..200)];
        rng.fill(&mut data);
        crate::fuzz::recovery(&data);
    }
}
