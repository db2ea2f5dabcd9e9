//! The functions of the command line: check, stat, export, empty.

use super::*;
use crate::tools::{check as check_volume, empty, export, stat};
use crate::vfs::MemoryDirectory;

fn filled(clocks: &Arc<Clocks>) -> MemoryDirectory {
    let vfs = MemoryDirectory::new();
    let lab = Lab::over(vfs.clone(), clocks);
    (0..20).for_each(|hash| {
        _ = lab.put(hash, 1, hash as usize * 300).unwrap();
        // The last record is one second later.
        clocks.pass(u64::from(hash == 18) * 1000);
    });
    drop(lab.disk.append(Bytes::from_static(b"x")).unwrap());
    lab.disk.stop();
    vfs
}

#[test]
fn a_volume_is_summarised_without_a_change() {
    let clocks = Clocks::new();
    let vfs = filled(&clocks);
    let before = vfs.contents();
    let shared: Arc<dyn Vfs> = Arc::new(vfs.clone());
    let summary = stat(&shared, &clocks.clock()).unwrap();
    assert_eq!(
        (summary.volume.as_str(), summary.segment_bytes, summary.block_bytes),
        ("memory", SEGMENT, 1024)
    );
    assert_eq!(
        (summary.stats.found, summary.invalidations, summary.out, summary.trusted),
        (20, 1, None, true)
    );
    assert!(summary.generation.is_some());
    assert_eq!(summary.written_ms, Some((START_MS, START_MS + 1000)));
    let checked = check_volume(&shared, &clocks.clock()).unwrap();
    assert_eq!((checked.sound, checked.flaws.len()), (20, 0));
    assert!(vfs.contents() == before);
    let lab = Lab::over(vfs, &clocks);
    let refused = stat(&shared, &clocks.clock()).unwrap_err();
    assert!(matches!(refused, Error::Locked { .. }));
    drop(lab);
    let nothing: Arc<dyn Vfs> = Arc::new(MemoryDirectory::new());
    let refused = stat(&nothing, &clocks.clock()).unwrap_err().to_string();
    assert_eq!(refused, "memory: there is no volume here");
}

#[test]
fn a_check_names_the_place_of_each_flaw() {
    let clocks = Clocks::new();
    let vfs = filled(&clocks);
    vfs.damage("data-0000", |bytes| bytes[64 + 100] ^= 1);
    let before = vfs.contents();
    let shared: Arc<dyn Vfs> = Arc::new(vfs.clone());
    let checked = check_volume(&shared, &clocks.clock()).unwrap();
    assert_eq!((checked.sound, checked.flaws.len()), (19, 1));
    assert_eq!((checked.flaws[0].segment, checked.flaws[0].offset), (0, 64));
    assert_eq!(checked.summary.stats.damaged_sum, 1);
    assert!(vfs.contents() == before);
}

#[test]
fn all_records_are_brought_out_with_their_bodies() {
    let clocks = Clocks::new();
    let shared: Arc<dyn Vfs> = Arc::new(filled(&clocks));
    let mut hashes = Vec::new();
    let brought = export(&shared, &clocks.clock(), |record, read| {
        let mut got = Vec::new();
        while let Some(piece) = read() {
            got.extend_from_slice(&piece);
        }
        assert_eq!(record.length, got.len() as u64);
        let hash = record.found.hash;
        assert_eq!(record.head, head(hash, 1, got.len()));
        assert!(got == body(hash, 1, hash as usize * 300));
        hashes.push(hash);
    });
    assert_eq!(brought.unwrap(), (20, 0));
    hashes.sort_unstable();
    assert!(hashes.into_iter().eq(0..20));
}

#[test]
fn an_emptied_volume_begins_anew_whatever_its_format_was() {
    let clocks = Clocks::new();
    let vfs = filled(&clocks);
    vfs.damage("superblock", |bytes| bytes[8] = 9);
    let shared: Arc<dyn Vfs> = Arc::new(vfs.clone());
    empty(&shared).unwrap();
    let lab = Lab::over(vfs, &clocks);
    assert_eq!((lab.index.len(), lab.invalidations.len()), (0, 0));
    let photos: Arc<dyn Vfs> =
        Arc::new(MemoryDirectory::with([("holiday.jpg".to_owned(), vec![1])]));
    assert!(matches!(empty(&photos), Err(Error::Foreign { .. })));
    assert_eq!(photos.list().unwrap(), ["holiday.jpg"]);
}
