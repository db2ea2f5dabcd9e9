//! Properties of the cache over a lower tier, compared with a plain model under random events.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// An event that happens to a key or to the whole cache.
#[derive(Clone, Debug)]
enum Op {
    Store(usize),
    Get(usize),
    Lend(usize),
    Purge(usize),
    Soft(usize),
    Ban(usize),
    Copy,
    Press,
    Restart,
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Compared with a map: no purged or superseded response is promoted, and no other is lost.
    #[test]
    fn a_random_walk_over_both_tiers_is_a_walk_over_a_map(
        ops in proptest::collection::vec(
            prop_oneof![
                4 => (0..5_usize).prop_map(Op::Store),
                6 => (0..5_usize).prop_map(Op::Get),
                4 => (0..5_usize).prop_map(Op::Lend),
                1 => (0..5_usize).prop_map(Op::Purge),
                1 => (0..5_usize).prop_map(Op::Soft),
                1 => (0..5_usize).prop_map(Op::Ban),
                2 => Just(Op::Copy),
                3 => Just(Op::Press),
                1 => Just(Op::Restart),
            ],
            0..80,
        ),
    ) {
        let (mut tier, mut cache) = over(64 * MIB);
        let mut map: BTreeMap<usize, Vec<u8>> = BTreeMap::new();
        // The journal of bans, and the keys that have been purged softly: those in memory stay.
        let (mut bans, mut stale) = (Vec::new(), [false; 5]);
        let ban_of = |number, at: usize| NewBan {
            number,
            text: at.to_string().into(),
            which: BanSelector { tags: Some(Tags::new(vec![at as u64])), test: None },
            ..NewBan::default()
        };
        for (turn, op) in ops.into_iter().enumerate() {
            match op {
                Op::Store(at) => {
                    let body = pattern(turn * 100);
                    let new = NewObject { tags: Tags::new(vec![at as u64]), ..head(None) };
                    if !is_in_memory(&cache, &at.to_string()) {
                        store(&cache, &at.to_string(), new, &body);
                        map.insert(at, body);
                        stale[at] = false;
                    }
                }
                Op::Get(at) => {
                    let name = at.to_string();
                    let object = match cache.lookup(&key(&name), &mut of("a"), 0) {
                        CacheLookup::Object(object) => Some(object),
                        _ => raise(&cache, &tier, &name),
                    };
                    let body = object.as_ref().and_then(|object| bytes_of(object));
                    match (&body, map.get(&at)) {
                        (Some(body), Some(current)) => prop_assert!(body == current),
                        (None, None) => {}
                        (None, Some(_)) => prop_assert!(stale[at], "{at} is lost"),
                        (Some(_), None) => prop_assert!(false, "{at} was purged"),
                    }
                    let is_fresh = object.is_some_and(|object| object.is_fresh(0));
                    prop_assert!(!(is_fresh && stale[at]), "{at} was purged softly");
                }
                Op::Lend(at) if !is_in_memory(&cache, &at.to_string()) => {
                    let lent = serve_below(&cache, &tier, &at.to_string());
                    let body = lent.and_then(|object| bytes_of(&object));
                    prop_assert!(body.is_none() || body.as_ref() == map.get(&at), "{at}");
                    let is_lost = body.is_none() && map.contains_key(&at) && !stale[at];
                    prop_assert!(!is_lost, "{at} is lost");
                }
                Op::Lend(_) => {}
                Op::Purge(at) => {
                    cache.invalidate(&key(&at.to_string()));
                    map.remove(&at);
                }
                Op::Soft(at) => {
                    cache.soft_invalidate(&key(&at.to_string()), 0);
                    stale[at] = true;
                }
                Op::Ban(at) => {
                    let ban = cache.ban(ban_of(0, at));
                    bans.push((ban.number(), at));
                    map.remove(&at);
                }
                Op::Copy => {
                    copy(&cache);
                    prop_assert_eq!(copy(&cache), 0);
                }
                Op::Press => press(&cache),
                Op::Restart => {
                    copy(&cache);
                    (tier, cache) = tier.restart(0);
                    // The earlier ones have been tested already.
                    let passed = tier.passed().unwrap_or(0);
                    for (number, at) in bans.iter().filter(|(number, _)| *number > passed) {
                        cache.ban(ban_of(*number, *at));
                    }
                }
            }
            cache.check();
        }
    }
}
