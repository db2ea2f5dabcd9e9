//! Many threads at once.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::*;

const KEYS: u64 = 60;
const ROUNDS: u64 = 15_000;

/// What the threads share: for each key the version an origin would serve, and the oldest that may
/// still be found.
struct Shared {
    cache: Arc<Cache>,
    served: Vec<AtomicU64>,
    floor: Vec<AtomicU64>,
}

/// The same numbers for the same thread in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % n
    }
}

fn version_of(object: &Arc<Object>) -> Option<u64> {
    let body = read_all(object.reader()).ok()?;
    Some(u64::from_le_bytes(body.get(..8)?.try_into().ok()?))
}

fn fetch(shared: &Shared, index: usize, lead: Lead, random: &mut Random) {
    let version = shared.served[index].load(Ordering::SeqCst);
    let mut body = version.to_le_bytes().to_vec();
    body.resize(8 + random.below(6000) as usize, 0);
    match random.below(20) {
        0 => drop(lead),
        1 => lead.refuse(Some(1000)),
        2 => lead.refuse(None),
        n => {
            let length = (n % 2 == 0).then_some(body.len() as u64);
            let mut filling = lead.store(head(length), None);
            let reader = filling.object().reader();
            for piece in body.chunks(1500) {
                if filling.push(piece) == Push::Abandoned || random.below(50) == 0 {
                    return;
                }
            }
            assert!(filling.finish());
            let read = read_all(reader).expect("complete");
            assert!(read == body);
        }
    }
}

fn request(shared: &Shared, random: &mut Random) {
    // Some keys are much hotter than others.
    let index = random.below(KEYS).min(random.below(KEYS)) as usize;
    let key = key(&index.to_string());
    let cache = &shared.cache;
    let floor = shared.floor[index].load(Ordering::SeqCst);
    let old = match cache.lookup(&key, &mut plain, 0) {
        Found::Object(object) if random.below(4) > 0 => {
            assert!(version_of(&object).is_none_or(|version| version >= floor));
            return;
        }
        Found::Object(object) => Some(object),
        _ => None,
    };
    let options = BeginOptions { coalesce: random.below(10) > 0, rejected: old.as_ref() };
    match cache.begin(&key, &mut plain, options, 0) {
        Begin::Lead(lead) | Begin::Alone(lead) => match old {
            Some(old) if old.whole().is_some() && random.below(2) == 0 => {
                // Confirmed: as old as it was.
                drop(lead.freshen(&old, head(None), None));
            }
            _ => fetch(shared, index, lead, random),
        },
        Begin::Wait(ticket) => match random.below(4) {
            0 => drop(ticket),
            _ => {
                if let Waited::Ready(object) = block_on(ticket) {
                    version_of(&object);
                }
            }
        },
        Begin::Object(_) | Begin::Full => {}
    }
}

fn invalidate(shared: &Shared, random: &mut Random) {
    let index = random.below(KEYS) as usize;
    if random.below(50) == 0 {
        let versions: Vec<_> =
            shared.served.iter().map(|served| served.fetch_add(1, Ordering::SeqCst) + 1).collect();
        shared.cache.clear();
        for (floor, version) in shared.floor.iter().zip(versions) {
            floor.fetch_max(version, Ordering::SeqCst);
        }
        return;
    }
    let version = shared.served[index].fetch_add(1, Ordering::SeqCst) + 1;
    shared.cache.invalidate(&key(&index.to_string()));
    shared.floor[index].fetch_max(version, Ordering::SeqCst);
}

#[test]
fn threads_keep_to_the_budget_see_no_purged_response_and_give_all_memory_back() {
    for budget in [60_000, 300_000, 64 * MIB] {
        let shared = Arc::new(Shared {
            cache: Cache::new(config(budget)),
            served: (0..KEYS).map(|_| AtomicU64::new(0)).collect(),
            floor: (0..KEYS).map(|_| AtomicU64::new(0)).collect(),
        });
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let workers: Vec<_> = (1..=4)
                .map(|seed| {
                    let shared = Arc::clone(&shared);
                    scope.spawn(move || {
                        let mut random = Random(0x9e37_79b9_7f4a_7c15 >> seed);
                        for _ in 0..ROUNDS {
                            match random.below(40) {
                                0 => invalidate(&shared, &mut random),
                                _ => request(&shared, &mut random),
                            }
                        }
                    })
                })
                .collect();
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    let stats = shared.cache.stats();
                    assert!(stats.bytes <= stats.budget, "{stats:?}");
                    std::thread::yield_now();
                }
            });
            let ended: Vec<_> = workers.into_iter().map(|worker| worker.join()).collect();
            done.store(true, Ordering::Relaxed);
            assert!(ended.iter().all(Result::is_ok));
        });
        shared.cache.check();
        shared.cache.clear();
        let stats = shared.cache.stats();
        assert_eq!((stats.bytes, stats.objects), (0, 0), "{stats:?}");
    }
}
