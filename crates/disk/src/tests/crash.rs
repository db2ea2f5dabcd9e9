//! Power cuts at any moment: what was committed is there, nothing else than what was written is,
//! and what was invalidated stays so.

use std::collections::BTreeMap;

use fastrand::Rng;

use super::*;
use crate::vfs::Recording;

/// Power cuts in the suite; `DISK_CRASH_POINTS` asks for more.
const POINTS: u64 = 1200;

/// What a script did to one record.
#[derive(Clone, Debug)]
struct Put {
    hash: u64,
    version: u64,
    /// Points from which on it was on disk, and from which on nobody wanted it.
    durable_at: usize,
    unwanted_at: usize,
    /// It may have been dropped to make room from this point on.
    dropped_at: usize,
    place: Place,
}

/// What a script did.
#[derive(Debug, Default)]
struct Story {
    puts: Vec<Put>,
    /// Invalidations: the hash that they are about, the point when they were acknowledged, and the
    /// number of puts before.
    invalidations: Vec<(u64, u64, usize, usize)>,
    released: BTreeMap<usize, u64>,
}

struct Script {
    lab: Lab,
    vfs: Recording,
    rng: Rng,
    story: Story,
    versions: u64,
    uncommitted: Vec<usize>,
}

impl Script {
    fn begin(seed: u64) -> Self {
        let vfs = Recording::new();
        let lab = Lab::over(vfs.clone(), &Clocks::new());
        let story = Story::default();
        Self { lab, vfs, rng: Rng::with_seed(seed), story, versions: 0, uncommitted: Vec::new() }
    }

    /// Notes what the store has told of room that it made.
    fn note_moves(&mut self) {
        let point = self.vfs.point();
        let find = |puts: &mut Vec<Put>, place: Place| {
            puts.iter().rposition(|put| put.place == place && put.dropped_at == usize::MAX)
        };
        for (_, old, new) in self.lab.index.moved.lock().drain(..) {
            if let Some(at) = find(&mut self.story.puts, old) {
                self.story.puts[at].place = new;
            }
        }
        for (_, place) in self.lab.index.dropped.lock().drain(..) {
            if let Some(at) = find(&mut self.story.puts, place) {
                self.story.puts[at].dropped_at = self.before.min(point);
            }
        }
    }

    fn step(&mut self) {
        self.before = self.vfs.point();
        let hash = self.rng.u64(..24);
        match self.rng.u32(..100) {
            0..45 => self.put(hash),
            45..52 => self.forget(hash),
            52..60 => self.invalidate(hash),
            60..80 => drop(self.lab.version(hash)),
            80..94 => {
                self.lab.disk.step();
            }
            94..96 => self.release(),
            _ => self.commit(),
        }
        self.lab.clocks.pass(100);
        self.note_moves();
    }

    fn put(&mut self, hash: u64) {
        self.versions += 1;
        let len = [40, 700, 1500, 5000][self.rng.usize(..4)];
        let old = self.lab.index.place(hash);
        let Some(place) = self.lab.put(hash, self.versions, len) else { return };
        if let Some(old) = old {
            self.unwanted(old);
        }
        self.uncommitted.push(self.story.puts.len());
        let never = usize::MAX;
        self.story.puts.push(Put {
            hash,
            version: self.versions,
            durable_at: never,
            unwanted_at: never,
            dropped_at: never,
            place,
        });
    }
}
