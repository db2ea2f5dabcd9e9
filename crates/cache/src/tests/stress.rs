//! Stress: many threads at once.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::*;

const KEYS: u64 = 60;
const ROUNDS: u64 = 15_000;
/// Tags that several keys share.
const TAGS: u64 = 7;

/// The state that the threads share: for each key the version that an origin would serve, and the
/// oldest that may still be found.
struct Shared {
    cache: Arc<Cache>,
    served: Vec<AtomicU64>,
    floor: Vec<AtomicU64>,
}

/// A generator whose numbers are equal for a thread in every run.
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
            let new = NewObject { tags: Tags::new(vec![index as u64 % TAGS]), ..head(length) };
            let mut filling = lead.store(permit(), new, None);
            let reader = filling.object().reader();
            for piece in body.chunks(1500) {
                if filling.push(piece) == PushOutcome::Abandoned || random.below(50) == 0 {
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
    // Some keys are much more popular than others.
    let index = random.below(KEYS).min(random.below(KEYS)) as usize;
    let key = key(&index.to_string());
    let cache = &shared.cache;
    let floor = shared.floor[index].load(Ordering::SeqCst);
    let old = match cache.lookup(&key, &mut plain, 0) {
        CacheLookup::Object(object) if random.below(4) > 0 => {
            assert!(version_of(&object).is_none_or(|version| version >= floor));
            return;
        }
        CacheLookup::Object(object) => Some(object),
        _ => None,
    };
    let options = BeginOptions { coalesce: random.below(10) > 0, rejected: old.as_ref() };
    match cache.begin(&key, &mut plain, options, 0) {
        FetchDecision::Lead(lead) | FetchDecision::Alone(lead) => match old {
            Some(old) if old.whole().is_some() && random.below(2) == 0 => {
                // Revalidated: as old as it was.
                let tags = Tags::new(vec![index as u64 % TAGS]);
                drop(lead.freshen(permit(), &old, NewObject { tags, ..head(None) }, None));
            }
            _ => fetch(shared, index, lead, random),
        },
        FetchDecision::Wait(ticket) => match random.below(4) {
            0 => drop(ticket),
            _ => {
                if let WaiterOutcome::Ready(object) = block_on(ticket)
                    && cache.may_use(&object)
                {
                    assert!(version_of(&object).is_none_or(|version| version >= floor));
                }
            }
        },
        FetchDecision::Object(_) | FetchDecision::Full => {}
    }
}

/// Makes the objects of `keys` out of date, then calls `purge` to invalidate them.
fn outdate(shared: &Shared, keys: impl Iterator<Item = usize>, purge: impl FnOnce()) {
    let versions: Vec<_> =
        keys.map(|key| (key, shared.served[key].fetch_add(1, Ordering::SeqCst) + 1)).collect();
    purge();
    for (key, version) in versions {
        shared.floor[key].fetch_max(version, Ordering::SeqCst);
    }
}

/// Matches the objects of one key.
#[derive(Debug)]
struct OfKey(KeyBuf);

impl Test for OfKey {
    fn matches(&self, object: &Record) -> bool {
        object.key() == self.0.bytes()
    }
}

fn invalidate(shared: &Shared, random: &mut Random) {
    let (all, cache) = (0..KEYS as usize, &shared.cache);
    let ban = |which| NewBan { text: format!("{which:?}").into(), which, ..NewBan::default() };
    let index = random.below(KEYS) as usize;
    match random.below(50) {
        0 => outdate(shared, all, || _ = cache.clear()),
        1 => outdate(shared, all, || _ = cache.ban(ban(BanSelector::default()))),
        2..10 => {
            let tag = index as u64 % TAGS;
            let tagged = all.filter(|key| *key as u64 % TAGS == tag);
            let tags = Some(Tags::new(vec![tag, TAGS + tag]));
            let which = BanSelector { tags, test: None };
            outdate(shared, tagged, || _ = cache.ban(ban(which)));
        }
        10..18 => {
            let test = Some(Arc::new(OfKey(key(&index.to_string()))) as Arc<dyn Test>);
            let which = BanSelector { tags: None, test };
            outdate(shared, std::iter::once(index), || _ = cache.ban(ban(which)));
        }
        _ => outdate(shared, std::iter::once(index), || {
            cache.invalidate(&key(&index.to_string()));
        }),
    }
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
                // Time passes fast, so that bans are forgotten while fetches are under way.
                for now_ms in (0..).step_by(30_000).take_while(|_| !done.load(Ordering::Relaxed)) {
                    shared.cache.sweep(u32::MAX, now_ms, &mut std::thread::yield_now);
                }
            });
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
        shared.cache.sweep(u32::MAX, u64::MAX, &mut || ());
        let stats = shared.cache.stats();
        assert_eq!((stats.bytes, stats.objects), (0, 0), "{stats:?}");
    }
}
