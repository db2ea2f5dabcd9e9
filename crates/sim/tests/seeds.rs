//! A fixed number of schedules in every run of the tests, and the promise that a seed decides all.

#[test]
fn schedules_keep_every_promise() {
    for seed in 0..200 {
        if let Err(failure) = sim::run(seed, false) {
            panic!("{failure}");
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_schedule() {
    for seed in 0..20 {
        let [first, second] = [(); 2].map(|()| sim::run(seed, false).map(|tally| tally.digest));
        assert_eq!(first.map_err(|f| f.broken), second.map_err(|f| f.broken), "seed {seed}");
    }
}
