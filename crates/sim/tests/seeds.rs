//! Seeds: a fixed number of schedules in every run of the tests, and the check that a seed repeats.

#[test]
fn schedules_keep_every_promise() {
    // Seeds with special pages: texts that need more memory than is left (220, 621), texts that are
    // delivered before they are complete (407), and a body that is not compressed (502).
    for seed in (0..200).chain([220, 407, 502, 621]) {
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

#[test]
fn what_a_forecast_says_is_what_happens() {
    let mut kinds = [0; 5];
    for seed in 0..400 {
        let compared = sim::compare_forecasts(seed).unwrap_or_else(|broken| panic!("{broken}"));
        for (all, of_seed) in kinds.iter_mut().zip(compared.kinds) {
            *all += of_seed;
        }
    }
    // Immediate answers, fetches, waits, tunnels and purges.
    assert!(kinds.iter().all(|count| *count > 10), "{kinds:?}");
}
