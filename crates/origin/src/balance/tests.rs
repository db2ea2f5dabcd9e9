//! Tests of the selection of servers.

use super::*;
use crate::config::{Address, EjectConfig, OriginConfig, ProbeConfig, Protocol, ServerConfig};
use crate::deadline::Deadline;
use crate::error::{Error, TimeoutStep};
use crate::health::HealthOverride;
use crate::shared_pool::Terms as _;
use rt::time::Instant;

fn servers(weights: &[u32], change: impl FnOnce(&mut OriginConfig)) -> Vec<Arc<Server>> {
    let server = |(n, weight): (usize, &u32)| ServerConfig {
        address: Address::Tcp { host: format!("10.0.0.{}", n + 1), port: 80 },
        protocol: Protocol::Http,
        weight: *weight,
        backup: false,
        tls: false,
    };
    let list: Vec<_> = weights.iter().enumerate().map(server).collect();
    let mut config = OriginConfig::with_limits("o", list, &base::Limits::default());
    config.eject = EjectConfig { failures: 1, for_ms: 1_000, ..EjectConfig::default() };
    change(&mut config);
    config.servers.iter().map(|s| Arc::new(Server::new(s.clone(), &config))).collect()
}

fn plain(weights: &[u32]) -> Vec<Arc<Server>> {
    servers(weights, |_| {})
}

fn spread(balancer: &Balancer, servers: &[Arc<Server>], picks: u64) -> Vec<usize> {
    let mut counts = vec![0; servers.len()];
    for hash in 0..picks {
        counts[balancer.pick(servers, mix(hash), &[], 0).expect("a server")] += 1;
    }
    counts
}

fn eject(server: &Server, now_ms: u64) {
    server.failed(&Error::ClosedBeforeHead { server: "s".into() }, now_ms);
}

#[test]
fn round_robin_follows_the_weights_exactly_and_smoothly() {
    let servers = plain(&[5, 1, 1]);
    let balancer = Balancer::new(Balance::RoundRobin, 3);
    let picks: Vec<_> =
        (0..7).map(|_| balancer.pick(&servers, 0, &[], 0).expect("a server")).collect();
    assert_eq!(picks, [0, 0, 1, 0, 2, 0, 0]);
    assert_eq!(spread(&balancer, &servers, 700), [500, 100, 100]);
}

#[test]
fn a_server_that_has_recovered_gets_its_share_little_by_little() {
    for how in [Balance::RoundRobin, Balance::LeastRequests, Balance::Hash] {
        let servers = servers(&[1, 1], |config| config.slow_start_ms = 10_000);
        let balancer = Balancer::new(how, 2);
        let share = |now_ms: u64| {
            let at = |hash| balancer.pick(&servers, mix(hash), &[], now_ms).expect("a server");
            (0..1_000).filter(|hash| at(*hash) == 0).count()
        };
        let usual = 430..570;
        assert!(usual.contains(&share(0)), "{how:?}: nothing has failed");
        eject(&servers[0], 0);
        assert_eq!(share(500), 0);
        servers[0].succeeded(2_000);
        assert!((1..40).contains(&share(2_000)), "{how:?}");
        // A third of the other's weight is a quarter of all.
        assert!((190..310).contains(&share(5_333)), "{how:?}");
        assert!(usual.contains(&share(12_000)), "{how:?}");
    }
}

#[test]
fn an_ejected_server_leaves_its_turns_to_all_others() {
    let servers = plain(&[1, 1, 1]);
    eject(&servers[1], 0);
    let balancer = Balancer::new(Balance::RoundRobin, 3);
    assert_eq!(spread(&balancer, &servers, 100), [50, 0, 50]);
}

#[test]
fn the_least_loaded_server_is_chosen_by_weight() {
    let servers = plain(&[1, 3]);
    let balancer = Balancer::new(Balance::LeastRequests, 2);
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let config = OriginConfig::with_limits("o", Vec::new(), &base::Limits::default());
    let mut held = Vec::new();
    for _ in 0..40 {
        let at = balancer.pick(&servers, 0, &[], 0).expect("a server");
        let total = Deadline::new(TimeoutStep::Total, Instant::now(), 60_000);
        let counters = base::Counters::default();
        let permit = servers[at].permit(&config, None, total, &counters);
        held.push(runtime.block_on(permit).expect("room"));
    }
    assert_eq!((servers[0].in_flight(), servers[1].in_flight()), (10, 30));
    drop(held);
    assert_eq!((servers[0].in_flight(), servers[1].in_flight()), (0, 0));
}

#[test]
fn idle_servers_share_by_turns() {
    let servers = plain(&[1, 1]);
    let balancer = Balancer::new(Balance::LeastRequests, 2);
    assert_eq!(spread(&balancer, &servers, 100), [50, 50]);
}

#[test]
fn hashes_spread_by_weight_and_stay_where_they_are() {
    let servers = plain(&[1, 1, 2]);
    let balancer = Balancer::new(Balance::Hash, 3);
    let counts = spread(&balancer, &servers, 10_000);
    for (count, expected) in counts.iter().zip([2_500_usize, 2_500, 5_000]) {
        assert!(count.abs_diff(expected) < 300, "{counts:?}");
    }
    assert_eq!(spread(&balancer, &servers, 10_000), counts);
}

#[test]
fn only_the_share_of_a_server_that_leaves_moves() {
    let servers = plain(&[1, 1, 1]);
    let balancer = Balancer::new(Balance::Hash, 3);
    let pick = |hash| balancer.pick(&servers, mix(hash), &[], 0).expect("a server");
    let before: Vec<_> = (0..1_000).map(pick).collect();
    eject(&servers[2], 0);
    for (hash, old) in (0..).zip(before) {
        let new = pick(hash);
        assert!(if old == 2 { new != 2 } else { new == old }, "{hash}: {old} to {new}");
    }
}

#[test]
fn another_server_is_preferred_for_a_retry() {
    let servers = plain(&[1, 1]);
    for how in [Balance::RoundRobin, Balance::LeastRequests, Balance::Hash] {
        let balancer = Balancer::new(how, 2);
        for _ in 0..10 {
            assert_eq!(balancer.pick(&servers, 7, &[1], 0), Some(0), "{how:?}");
            assert!(balancer.pick(&servers, 7, &[0, 1], 0).is_some(), "{how:?}");
        }
    }
}

#[test]
fn a_half_open_server_is_tried_once() {
    let servers = plain(&[1, 1]);
    eject(&servers[1], 0);
    let balancer = Balancer::new(Balance::Hash, 2);
    let trials =
        (0..100).filter(|hash| balancer.pick(&servers, *hash, &[], 1_000) == Some(1)).count();
    assert_eq!(trials, 1);
}

#[test]
fn when_all_are_ejected_all_are_tried() {
    let servers = plain(&[1, 1]);
    eject(&servers[0], 0);
    eject(&servers[1], 0);
    let balancer = Balancer::new(Balance::RoundRobin, 2);
    assert_eq!(spread(&balancer, &servers, 10), [5, 5]);
}

#[test]
fn when_probes_call_all_sick_there_is_none() {
    let servers = servers(&[1, 1], |config| config.probe = Some(ProbeConfig::default()));
    let balancer = Balancer::new(Balance::RoundRobin, 2);
    assert_eq!(spread(&balancer, &servers, 10), [5, 5], "not probed yet");
    let probed = |at: usize| servers[at].probes.as_ref().expect("a probed server");
    probed(0).record(false, 8, 3);
    assert_eq!(spread(&balancer, &servers, 10), [0, 10]);
    probed(1).record(false, 8, 3);
    assert_eq!(balancer.pick(&servers, 0, &[], 0), None);
}

#[test]
fn an_origin_without_servers_has_none() {
    for how in [Balance::RoundRobin, Balance::LeastRequests, Balance::Hash] {
        assert_eq!(Balancer::new(how, 0).pick(&[], 0, &[], 0), None);
    }
}

#[test]
fn an_operators_word_goes_before_probes_and_failures() {
    let probe = ProbeConfig { window: 1, threshold: 1, ..ProbeConfig::default() };
    let servers = servers(&[1, 1], |config| config.probe = Some(probe));
    let balancer = Balancer::new(Balance::RoundRobin, 2);
    let picks = || {
        let mut picked: Vec<_> =
            (0..4).filter_map(|_| balancer.pick(&servers, 0, &[], 0)).collect();
        picked.dedup();
        picked
    };
    for order in [HealthOverride::Drain, HealthOverride::Down] {
        servers[0].set_order(order);
        assert_eq!(picks(), [1], "{order:?}");
        assert!(!servers[0].is_healthy(0) && !servers[0].keeps_connections());
    }
    let window = servers[0].probes.as_ref().expect("probed");
    window.record(false, 1, 1);
    servers[0].set_order(HealthOverride::Auto);
    assert_eq!(picks(), [1], "sick by its probe");
    servers[0].set_order(HealthOverride::Up);
    servers[1].set_order(HealthOverride::Down);
    assert_eq!(picks(), [0]);
    servers[0].set_order(HealthOverride::Drain);
    assert_eq!(picks(), []);
}

#[test]
fn the_likely_server_is_the_next_one_and_asking_takes_no_turn() {
    for how in [Balance::RoundRobin, Balance::LeastRequests, Balance::Hash] {
        let servers = plain(&[5, 1, 3]);
        let balancer = Balancer::new(how, 3);
        for n in 0..50 {
            let now_ms = n * 100;
            if n == 20 {
                eject(&servers[0], now_ms);
            }
            let likely = balancer.likely(&servers, mix(n), now_ms);
            assert_eq!(balancer.likely(&servers, mix(n), now_ms), likely);
            assert_eq!(balancer.pick(&servers, mix(n), &[], now_ms), likely, "{how:?} {n}");
        }
    }
}

/// Servers; those from the number `first` on are backups.
fn with_backups(servers_in_all: usize, first: usize) -> Vec<Arc<Server>> {
    servers(&vec![1; servers_in_all], |config| {
        config.servers[first..].iter_mut().for_each(|server| server.backup = true);
        config.probe = Some(ProbeConfig::default());
    })
}

fn probed(server: &Server, good: bool) {
    server.probes.as_ref().expect("a probed server").record(good, 1, 1);
}

const ALL_KINDS: [Balance; 3] = [Balance::RoundRobin, Balance::LeastRequests, Balance::Hash];

#[test]
fn a_backup_gets_requests_only_while_no_other_server_is_in_use() {
    for how in ALL_KINDS {
        let servers = with_backups(4, 2);
        let balancer = Balancer::new(how, 4);
        let picked = |now_ms| {
            let pick = |hash| balancer.pick(&servers, mix(hash), &[], now_ms).expect("a server");
            let mut picked: Vec<_> = (0..64).map(pick).collect();
            picked.sort_unstable();
            picked.dedup();
            picked
        };
        assert_eq!(picked(0), [0, 1], "{how:?}");
        probed(&servers[0], false);
        assert_eq!(picked(0), [1], "{how:?}: one is sick");
        eject(&servers[1], 0);
        assert_eq!(picked(0), [2, 3], "{how:?}: the other is ejected");
        eject(&servers[2], 0);
        assert_eq!(picked(0), [3], "{how:?}: a backup is ejected");
        assert_eq!(picked(1_000), [1, 2, 3], "{how:?}: trials are due, one each");
        servers[1].succeeded(1_000);
        assert_eq!(picked(1_000), [1], "{how:?}: one is back");
    }
}

#[test]
fn a_trial_of_a_backup_waits_until_it_is_needed() {
    let servers = with_backups(2, 1);
    let balancer = Balancer::new(Balance::RoundRobin, 2);
    eject(&servers[1], 0);
    assert_eq!(spread(&balancer, &servers, 10), [10, 0]);
    let pick = |tried: &[usize]| balancer.pick(&servers, 0, tried, 5_000);
    assert_eq!((pick(&[]), pick(&[0])), (Some(0), Some(1)));
}

#[test]
fn a_retry_goes_to_a_backup_when_the_others_have_been_tried() {
    let servers = with_backups(3, 2);
    for how in ALL_KINDS {
        let balancer = Balancer::new(how, 3);
        for (tried, expected) in [(&[][..], &[0, 1][..]), (&[0], &[1]), (&[1, 0], &[2])] {
            let at = balancer.pick(&servers, 7, tried, 0).expect("a server");
            assert!(expected.contains(&at), "{how:?}: {at} after {tried:?}");
        }
        let at = balancer.pick(&servers, 7, &[0, 1, 2], 0).expect("a server");
        assert!(at < 2, "{how:?}: all were tried, and {at} is first");
    }
}

#[test]
fn when_all_are_ejected_backups_come_after_the_others() {
    let servers = with_backups(2, 1);
    let balancer = Balancer::new(Balance::RoundRobin, 2);
    eject(&servers[0], 0);
    eject(&servers[1], 0);
    assert_eq!(spread(&balancer, &servers, 10), [10, 0]);
    probed(&servers[0], false);
    assert_eq!(spread(&balancer, &servers, 10), [0, 10]);
    probed(&servers[1], false);
    assert_eq!(balancer.pick(&servers, 0, &[], 0), None);
}

proptest::proptest! {
    /// A plain model: the set that must contain the choice.
    #[test]
    fn the_choice_is_always_from_the_first_set_that_is_not_empty(
        states in proptest::collection::vec((0_u8..3, proptest::bool::ANY), 1..7),
        tried in proptest::collection::vec(0_usize..7, 0..4),
        hash in proptest::num::u64::ANY,
    ) {
        for how in ALL_KINDS {
            let servers = servers(&vec![1; states.len()], |config| {
                for (server, (_, backup)) in config.servers.iter_mut().zip(&states) {
                    server.backup = *backup;
                }
                config.probe = Some(ProbeConfig::default());
            });
            for (server, (state, _)) in servers.iter().zip(&states) {
                match state {
                    1 => eject(server, 0),
                    2 => probed(server, false),
                    _ => {}
                }
            }
            let of = |allowed: &dyn Fn(usize, u8, bool) -> bool| -> Vec<usize> {
                let each = states.iter().enumerate();
                each.filter(|(at, (state, backup))| allowed(*at, *state, *backup))
                    .map(|(at, _)| at)
                    .collect()
            };
            let fresh = |at: usize| !tried.contains(&at);
            let sets = [
                of(&|at, state, backup| state == 0 && fresh(at) && !backup),
                of(&|at, state, backup| state == 0 && fresh(at) && backup),
                of(&|_, state, backup| state == 0 && !backup),
                of(&|_, state, backup| state == 0 && backup),
                of(&|at, state, backup| state == 1 && fresh(at) && !backup),
                of(&|at, state, backup| state == 1 && fresh(at) && backup),
                of(&|_, state, backup| state == 1 && !backup),
                of(&|_, state, backup| state == 1 && backup),
            ];
            let chosen = Balancer::new(how, servers.len()).pick(&servers, hash, &tried, 0);
            let expected = sets.into_iter().find(|set| !set.is_empty());
            match (chosen, expected) {
                (Some(at), Some(set)) => proptest::prop_assert!(set.contains(&at)),
                (chosen, expected) => proptest::prop_assert_eq!(chosen, expected.map(|set| set[0])),
            }
        }
    }
}

#[test]
fn room_is_that_of_the_servers_in_use() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let _entered = runtime.enter();
    let list: Vec<_> = with_backups(2, 1).iter().map(|server| server.config.clone()).collect();
    let mut config = OriginConfig::with_limits("o", list, &base::Limits::default());
    config.max_connections = 1;
    config.probe = Some(ProbeConfig::default());
    let origin = crate::origin::Origin::new(config);
    let [first, backup] = origin.shared() else { panic!("two servers") };
    assert!(origin.has_room(0) && !origin.is_full(0));
    let total = Deadline::new(TimeoutStep::Total, Instant::now(), 60_000);
    let counters = base::Counters::default();
    let permit = first.permit(origin.config(), None, total, &counters);
    let held = runtime.block_on(permit).expect("room");
    assert!(!origin.has_room(0) && origin.is_full(0), "the backup is not in use");
    probed(first, false);
    assert!(origin.has_room(0), "now it is");
    probed(backup, false);
    assert!(!origin.has_room(0) && !origin.is_full(0), "no server is in use");
    drop(held);
}
