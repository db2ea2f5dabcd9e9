//! Adaptive window: the number of fetches that one origin gets at the same time while it is warmed,
//! found by additive increase and multiplicative decrease (as TCP does, RFC 5681 3.1) of what its
//! first-byte times allow.
//!
//! Knows no clock and no lock.

/// Fewest first-byte times whose median is compared.
const ROUND_MIN: usize = 4;
/// First-byte times that are kept at most.
const ROUND_MAX: usize = 64;
/// A median beyond the baseline by half of it is a rise. Less is the noise of four samples.
const RISE_DIVISOR: u64 = 2;
/// Microseconds by which a median may differ from the baseline in any case: scheduling alone takes
/// as long.
const NOISE_US: u64 = 5_000;
/// The part by which the baseline rises with each round. So an origin that has become slower for
/// good gets a wider window again after some dozens of rounds.
const DRIFT_DIVISOR: u64 = 64;

/// The window of one origin.
#[derive(Debug)]
pub(crate) struct AdaptiveWindow {
    size: u64,
    /// The lowest median so far; `None` before the first round.
    baseline_us: Option<u64>,
    /// The last median.
    median_us: Option<u64>,
    /// The first-byte times of this round.
    round: Vec<u64>,
}

impl Default for AdaptiveWindow {
    fn default() -> Self {
        Self { size: 1, baseline_us: None, median_us: None, round: Vec::new() }
    }
}

impl AdaptiveWindow {
    /// Fetches at the same time, at least one.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// The median first-byte time of the last round, in microseconds.
    pub(crate) fn median_us(&self) -> Option<u64> {
        self.median_us
    }

    /// Takes the first-byte time of a fetch. The window grows to `most` at most.
    pub(crate) fn note(&mut self, first_byte_us: u64, most: u64) {
        self.round.push(first_byte_us);
        if (self.round.len() as u64) < self.size.clamp(ROUND_MIN as u64, ROUND_MAX as u64) {
            return;
        }
        self.round.sort_unstable();
        let median = self.round[self.round.len() / 2];
        self.round.clear();
        let baseline = self.baseline_us.unwrap_or(median);
        if median > baseline.saturating_add(baseline / RISE_DIVISOR).saturating_add(NOISE_US) {
            self.halve();
        } else if self.size < most {
            self.size += 1;
        }
        let drifted = baseline.saturating_add(baseline / DRIFT_DIVISOR);
        self.baseline_us = Some(median.min(drifted));
        self.median_us = Some(median);
    }

    /// Halves the window: the origin is slower than it was, or has failed.
    pub(crate) fn halve(&mut self) {
        self.size = (self.size / 2).max(1);
        self.round.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Notes a whole round of this time.
    fn round(window: &mut AdaptiveWindow, us: u64, most: u64) {
        let samples = window.size().clamp(ROUND_MIN as u64, ROUND_MAX as u64);
        (0..samples).for_each(|_| window.note(us, most));
    }

    #[test]
    fn it_grows_by_one_with_each_round_and_is_halved_by_a_rise() {
        let mut window = AdaptiveWindow::default();
        let sizes: Vec<u64> = (0..7)
            .map(|_| {
                round(&mut window, 20_000, 6);
                window.size()
            })
            .collect();
        assert_eq!(sizes, [2, 3, 4, 5, 6, 6, 6]);
        // Noise is no rise.
        round(&mut window, 30_000, 6);
        assert_eq!((window.size(), window.median_us()), (6, Some(30_000)));
        round(&mut window, 60_000, 6);
        assert_eq!(window.size(), 3);
        round(&mut window, 60_000, 6);
        assert_eq!(window.size(), 1);
        round(&mut window, 60_000, 6);
        assert_eq!(window.size(), 1, "one is always possible");
        round(&mut window, 20_000, 6);
        assert_eq!(window.size(), 2);
    }

    #[test]
    fn an_origin_that_stays_slower_gets_a_wider_window_in_the_end() {
        let mut window = AdaptiveWindow::default();
        (0..5).for_each(|_| round(&mut window, 20_000, 8));
        let rounds = (0..400).take_while(|_| {
            round(&mut window, 80_000, 8);
            window.size() < 8
        });
        let rounds = rounds.count();
        assert!((20..200).contains(&rounds), "{rounds}");
    }

    proptest! {
        #[test]
        fn it_stays_between_one_and_the_most(
            steps in prop::collection::vec((0u64..1_000_000, any::<bool>()), 0..300),
            most in 1u64..9,
        ) {
            let mut window = AdaptiveWindow::default();
            for (us, fails) in steps {
                match fails {
                    true => window.halve(),
                    false => window.note(us, most),
                }
                prop_assert!((1..=most).contains(&window.size()));
                prop_assert!(window.round.len() <= ROUND_MAX);
            }
        }
    }
}
