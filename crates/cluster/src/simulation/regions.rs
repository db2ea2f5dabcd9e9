//! Clusters over several regions: the claims about them, figures, and proof that the checks can
//! fail.

use std::hint::black_box;

use super::network::{Kind, MessageVolume};
use super::shape::{Bug, Shape, told};
use super::simulated_cluster::SimulatedCluster;
use super::tally::RunFigures;
use super::{runs, seeds};
use crate::members::{AppliedRuns, Card, Members};

#[test]
fn regions_keep_the_promise_and_converge() {
    runs(seeds(6), &Shape::regions(24, 4));
}

#[test]
fn the_checks_find_a_node_with_a_bug() {
    for (bug, says) in [
        (Bug::PassesOverGaps, "served"),
        (Bug::TrustsWithoutEnd, "the stream has had"),
        (Bug::SpeaksTooSoon, "was acknowledged by all"),
    ] {
        let shape = Shape { bug: Some(bug), ..Shape::regions(12, 3) };
        let mut broken =
            (0..20).filter_map(|seed| SimulatedCluster::new(seed, shape.clone()).run().err());
        assert!(broken.any(|broken| broken.contains(says)), "{bug:?} was not found");
    }
}

/// A given number of nodes with default times: first without faults, with the figures of
/// docs/lab/cluster.md, and then with faults.
#[test]
fn nodes_under_constant_purges_show_no_more_cards() {
    let nodes = told("CLUSTER_NODES").unwrap_or(20) as usize;
    let regions = told("CLUSTER_REGIONS").unwrap_or(2) as usize;
    let shape = Shape::many(nodes, regions, told("CLUSTER_ISOLATION_MS").unwrap_or(30_000));
    let seed = told("CLUSTER_SEED").unwrap_or(0);
    println!("{nodes} nodes in {regions} regions, seed {seed}, {} ms", shape.max_isolation_ms);
    members(nodes);
    let [quiet, .., busy] =
        [0, 1, 10].map(|purges| calm(seed, shape.clone().calm(purges, 50), purges));
    assert!(quiet > 0 && busy <= quiet + quiet / 10, "{quiet} cards, and with purges {busy}");
    let counts = SimulatedCluster::new(seed, shape).run().unwrap_or_else(|why| panic!("{why}"));
    let mut in_force_ms: Vec<_> = counts.in_force_ms.iter().flatten().copied().collect();
    println!("with troubles: applied {}", spread(&mut in_force_ms));
    println!(
        "with troubles: {} purges, {} responses, {} from caches, {} `all`, {} `quorum`, {} doubts",
        counts.made, counts.served, counts.from_cache, counts.all, counts.quorum, counts.doubts,
    );
}

/// Measures a cluster without faults, once all nodes have begun. Returns the number of cards.
fn calm(seed: u64, shape: Shape, purges: u64) -> u64 {
    let (from_ms, end_ms) = (20_000, shape.troubles_ms);
    let mut world = SimulatedCluster::new(seed, shape);
    let ended = world.run_until(from_ms);
    world.counts = RunFigures::new(world.shape.regions);
    ended.and_then(|()| world.run_until(end_ms)).unwrap_or_else(|why| panic!("{why}"));
    let seconds = (end_ms - from_ms) as f64 / 1_000.0;
    println!("{purges} purges a second, {seconds} s:");
    let counts = &mut world.counts;
    println!("  `all` acknowledged: {}", spread(&mut counts.all_ms));
    let mut sum = [[MessageVolume::default(); 2]; 4];
    for (region, passed) in counts.traffic.regions.iter().enumerate() {
        let far_ms = world.network.far_ms[region];
        let in_force = spread(&mut counts.in_force_ms[region]);
        let [to, from] = [0, 1].map(|way| {
            let all = passed.iter().map(|ways| ways[way]);
            let (messages, bytes) =
                all.fold((0, 0), |sum, one| (sum.0 + one.messages, sum.1 + one.bytes));
            format!("{:.0}/s {:.2} Mbit/s", messages as f64 / seconds, mbit(bytes, seconds))
        });
        println!("  region {region} {far_ms} ms: in force {in_force}; out {to}; in {from}");
        for (kind, ways) in passed.iter().enumerate() {
            for (way, one) in ways.iter().enumerate() {
                sum[kind][way].messages += one.messages;
                sum[kind][way].bytes += one.bytes;
            }
        }
    }
    for kind in Kind::ALL {
        let [to, from] = sum[kind as usize].map(|one| {
            let per_second = one.messages as f64 / seconds;
            format!("{per_second:.0}/s {:.2} Mbit/s", mbit(one.bytes, seconds))
        });
        println!("  {kind:?}: to the stream {to}, from it {from}");
    }
    sum[Kind::Cards as usize][0].messages
}

fn mbit(bytes: u64, seconds: f64) -> f64 {
    bytes as f64 * 8.0 / 1_000_000.0 / seconds
}

/// The median, the 99th percentile, and the longest.
fn spread(times_ms: &mut [u64]) -> String {
    times_ms.sort_unstable();
    let at = |part: f64| times_ms.get(((times_ms.len() as f64 - 1.0) * part) as usize).copied();
    let [middle, late, longest] = [0.5, 0.99, 1.0].map(|part| at(part).unwrap_or(0));
    format!("{middle} / {late} / {longest} ms of {}", times_ms.len())
}

/// The cost of the members for the node that remembers them.
fn members(count: usize) {
    let card = |n: usize| Card {
        name: format!("fra1-web-{n:04}"),
        version: "1.10.0".to_owned(),
        peer: "192.0.2.100:7800".to_owned(),
        shows: "0123456789abcdef".repeat(4),
        max_isolation_ms: 30_000,
        ..Card::default()
    };
    let before = resident_bytes();
    let mut all = vec![Members::default(); 100];
    for own in &mut all {
        (0..count).for_each(|n| assert!(own.heard(card(n), 0)));
    }
    let each = (resident_bytes() - before) / all.len() as u64;
    println!("{count} members: {each} bytes in memory; a card has {}", card(0).encode().len());
    let own = &mut all[0];
    let cards: Vec<_> = (0..count).map(card).collect();
    timed("a card", || _ = own.heard(black_box(&cards[count / 2]).clone(), 1));
    let half: AppliedRuns = (0..count / 2).map(|n| card(n).run).collect();
    timed("the names of the half that is missing", || _ = black_box(own.missing(&half, 1)));
    timed("that half is missing", || _ = black_box(own.have_all(&half, 1)));
}

fn timed(what: &str, mut one: impl FnMut()) {
    const TIMES: u64 = 2_000;
    let from_us = rt::micros();
    (0..TIMES).for_each(|_| one());
    println!("  {what}: {} ns", (rt::micros() - from_us) * 1_000 / TIMES);
}

fn resident_bytes() -> u64 {
    let told = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = told.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages.unwrap_or(0) * 4_096
}
