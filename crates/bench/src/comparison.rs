//! Comparison of servers over interleaved rounds: ratios, each with an interval.
//!
//! Rounds are paired, because a disturbance of the machine affects both servers of a round. The
//! ratio is the Hodges-Lehmann estimate over the logarithms of the rounds' ratios. Its interval is
//! that of the signed-rank test with the exact distribution. So single disturbed rounds move
//! neither far.

use std::fmt;

use crate::result::Round;

/// Confidence of an interval, if there are enough rounds.
pub const CONFIDENCE: f64 = 0.999;
/// A smaller difference is not reported, whatever the interval: two runs of the same program differ
/// by this much, depending on where its pages are in memory.
pub const FLOOR: f64 = 0.01;
/// Rounds from which the interval has [`CONFIDENCE`].
pub const ROUNDS: usize = 12;

/// A figure of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// Responses per second.
    Rate,
    /// The mean latency.
    Mean,
    /// The median latency.
    Median,
    /// The 99th percentile of the latency.
    P99,
}

impl Figure {
    /// All, in the order of a table.
    pub const ALL: [Self; 4] = [Self::Rate, Self::Mean, Self::Median, Self::P99];

    /// The name in a table.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rate => "requests/s",
            Self::Mean => "mean",
            Self::Median => "p50",
            Self::P99 => "p99",
        }
    }

    /// The figure of `round`; `None` if nothing was completed.
    pub fn of(self, round: &Round) -> Option<f64> {
        let latency = round.last_byte.as_ref()?;
        let value = match self {
            Self::Rate => round.rate(),
            Self::Mean => latency.mean,
            Self::Median => finer(latency, 0.5).unwrap_or(latency.p50 as f64),
            Self::P99 => finer(latency, 0.99).unwrap_or(latency.p99 as f64),
        };
        (value > 0.0).then_some(value)
    }
}

/// A percentile interpolated between whole microseconds. Where responses take some tens of
/// microseconds, one microsecond is some percent.
fn finer(latency: &crate::latency::Latency, quantile: f64) -> Option<f64> {
    let histogram = latency.histogram().ok()?;
    let value = histogram.value_at_quantile(quantile);
    let below = histogram.count_between(0, value.saturating_sub(1)) as f64;
    let at = histogram.count_at(value) as f64;
    let wanted = quantile * histogram.len() as f64;
    let part = if at > 0.0 { ((wanted - below) / at).clamp(0.0, 1.0) } else { 0.5 };
    Some(value as f64 - 0.5 + part)
}

/// The ratio of a figure of one server to that of the first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// The estimate.
    pub ratio: f64,
    /// The lower end of its interval.
    pub low: f64,
    /// The upper end of its interval.
    pub high: f64,
    /// Confidence of the interval.
    pub confidence: f64,
}

impl Ratio {
    /// Compares `others` with `firsts`, round by round; `None` if no round has both figures.
    pub fn of(firsts: &[Option<f64>], others: &[Option<f64>]) -> Option<Self> {
        let logs: Vec<f64> = firsts
            .iter()
            .zip(others)
            .filter_map(|(first, other)| Some((other.as_ref()? / first.as_ref()?).ln()))
            .filter(|log| log.is_finite())
            .collect();
        let count = logs.len();
        if count == 0 {
            return None;
        }
        let mut averages: Vec<f64> = logs
            .iter()
            .enumerate()
            .flat_map(|(at, one)| logs.iter().skip(at).map(move |other| (one + other) / 2.0))
            .collect();
        averages.sort_by(f64::total_cmp);
        let (rank, confidence) = rank(count);
        let at = |index: usize| averages.get(index).copied().unwrap_or_default();
        let last = averages.len() - 1;
        let middle = (at(last / 2) + at(last.div_ceil(2))) / 2.0;
        Some(Self {
            ratio: middle.exp(),
            low: at(rank).exp(),
            high: at(last - rank).exp(),
            confidence,
        })
    }

    /// Returns true if the servers differ.
    pub fn differs(&self) -> bool {
        (self.low > 1.0 || self.high < 1.0) && (self.ratio - 1.0).abs() > FLOOR
    }
}

/// The number of averages that the interval leaves out at each end, and its confidence. The
/// signed-rank statistic of `count` rounds is below that number with half the probability that
/// [`CONFIDENCE`] leaves.
fn rank(count: usize) -> (usize, f64) {
    // The number of ways to get each sum of ranks, of 2^count in all.
    let most = count * (count + 1) / 2;
    let mut ways = vec![0.0_f64; most + 1];
    if let Some(none) = ways.first_mut() {
        *none = 1.0;
    }
    for rank in 1..=count {
        for sum in (rank..=most).rev() {
            let more = ways.get(sum - rank).copied().unwrap_or_default();
            if let Some(ways) = ways.get_mut(sum) {
                *ways += more;
            }
        }
    }
    let all = 2_f64.powi(i32::try_from(count).unwrap_or(i32::MAX));
    let (mut below, mut rank) = (0.0, 0);
    let tail = (1.0 - CONFIDENCE) / 2.0;
    for ways in &ways {
        if (below + ways) / all > tail {
            break;
        }
        below += ways;
        rank += 1;
    }
    if rank == 0 {
        // Too few rounds: the interval is the whole range, with the confidence that this has.
        return (0, 1.0 - 2.0 / all);
    }
    (rank - 1, 1.0 - 2.0 * below / all)
}

/// One line of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// The figure.
    pub figure: Figure,
    /// The server that is compared with the first.
    pub name: String,
    /// The median of the first server's rounds.
    pub first: f64,
    /// The median of this server's rounds.
    pub other: f64,
    /// The ratio.
    pub ratio: Ratio,
}

/// Servers compared with the first of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The first server.
    pub first: String,
    /// Lines, by server and figure.
    pub lines: Vec<Line>,
}

impl Comparison {
    /// Compares servers by their rounds, which were measured in turns.
    pub fn of(servers: &[(String, Vec<Round>)], figures: &[Figure]) -> Self {
        let Some(((first, rounds), others)) = servers.split_first() else {
            return Self { first: String::new(), lines: Vec::new() };
        };
        let of = |rounds: &[Round], figure: Figure| {
            rounds.iter().map(|round| figure.of(round)).collect::<Vec<_>>()
        };
        let mut lines = Vec::new();
        for (name, other) in others {
            for figure in figures {
                let (firsts, others) = (of(rounds, *figure), of(other, *figure));
                if let Some(ratio) = Ratio::of(&firsts, &others) {
                    let (first, other) = (median(&firsts), median(&others));
                    lines.push(Line { figure: *figure, name: name.clone(), first, other, ratio });
                }
            }
        }
        Self { first: first.clone(), lines }
    }
}

fn median(values: &[Option<f64>]) -> f64 {
    let mut known: Vec<f64> = values.iter().copied().flatten().collect();
    known.sort_by(f64::total_cmp);
    known.get(known.len() / 2).copied().unwrap_or_default()
}

impl fmt::Display for Comparison {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.lines {
            let Line { figure, name, first, other, ratio } = line;
            let Ratio { ratio: middle, low, high, confidence } = ratio;
            let sentence = if ratio.differs() {
                format!("{:+.1}%", (middle - 1.0) * 100.0)
            } else {
                "no difference seen".to_owned()
            };
            writeln!(
                out,
                "{:<10} {} {first:.1}, {name} {other:.1}: ratio {middle:.3} ({low:.3} to {high:.3}, \
                 {:.1}% sure): {sentence}",
                figure.name(),
                self.first,
                confidence * 100.0,
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounds of two servers on a noisy machine: both get the machine's noise, and each its own.
    fn differs(seed: u64, rounds: usize, own: f64, machine: f64, ratio: f64) -> bool {
        let mut draws = fastrand::Rng::with_seed(seed);
        // The sum of four uniform draws is close to a normal distribution, with a spread of 0.577.
        let mut noise = |spread: f64| {
            let sum: f64 = (0..4).map(|_| draws.f64() - 0.5).sum();
            1.0 + sum / 0.577 * spread
        };
        let (mut firsts, mut others) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            let common = 1000.0 * noise(machine);
            firsts.push(Some(common * noise(own)));
            others.push(Some(common * noise(own) * ratio));
        }
        Ratio::of(&firsts, &others).is_some_and(|ratio| ratio.differs())
    }

    #[test]
    fn identical_servers_do_not_differ_and_five_percent_are_seen() {
        let of = |ratio| (0..400).filter(|seed| differs(*seed, 20, 0.02, 0.1, ratio)).count();
        assert!(of(1.0) <= 2, "{} of 400 identical pairs differ", of(1.0));
        assert!(of(1.05) >= 390, "{} of 400 pairs with 5% differ", of(1.05));
        assert!(of(0.95) >= 390, "{} of 400 pairs with 5% differ", of(0.95));
    }

    #[test]
    fn one_round_that_went_wrong_changes_nothing() {
        let mut firsts = vec![Some(100.0); 20];
        let others: Vec<_> = (0..20).map(|nth| Some(100.0 + f64::from(nth % 3))).collect();
        firsts[7] = Some(10.0);
        let ratio = Ratio::of(&firsts, &others).expect("rounds");
        assert!((0.99..1.03).contains(&ratio.ratio), "{ratio:?}");
    }

    #[test]
    fn the_interval_says_how_sure_it_is() {
        let (rank_of_few, few) = rank(5);
        assert_eq!((rank_of_few, few), (0, 1.0 - 2.0 / 32.0));
        let (_, enough) = rank(ROUNDS);
        assert!(enough >= CONFIDENCE, "{enough}");
        let (_, less) = rank(ROUNDS - 2);
        assert!(less < CONFIDENCE, "{less}");
        assert_eq!(Ratio::of(&[None], &[Some(1.0)]), None);
    }
}
