//! Histograms of request times on a logarithmic scale, from a microsecond to a hundred seconds.

use crate::record::Record;

/// Powers of ten that the scale covers.
pub const DECADES: usize = 8;
/// Buckets per power of ten.
const STEPS: usize = 20;
const BUCKETS: usize = DECADES * STEPS;
/// The quantiles that reports show, with their names.
pub const PARTS: [(&str, f64); 4] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)];

/// Counts of times by bucket. Counts decay when [`fade`](Self::fade) is called.
#[derive(Clone, Debug)]
pub struct Histogram {
    counts: [f64; BUCKETS],
}

impl Default for Histogram {
    fn default() -> Self {
        Self { counts: [0.0; BUCKETS] }
    }
}

impl Histogram {
    /// Counts a time. A time outside the scale counts in the first or last bucket.
    pub fn add(&mut self, us: u64) {
        let step = (us.max(1) as f64).log10() * STEPS as f64;
        self.counts[(step as usize).min(BUCKETS - 1)] += 1.0;
    }

    /// Multiplies all counts by `by`.
    pub fn fade(&mut self, by: f64) {
        self.counts.iter_mut().for_each(|count| *count *= by);
    }

    /// The sum of all counts.
    pub fn total(&self) -> f64 {
        self.counts.iter().sum()
    }

    /// The time in microseconds that the share `part` of all counts does not exceed, at the scale's
    /// precision; `None` if the histogram is empty.
    pub fn quantile_us(&self, part: f64) -> Option<f64> {
        let wanted = self.total() * part;
        let mut sum = 0.0;
        let at = self.counts.iter().position(|count| {
            sum += count;
            sum > 0.0 && sum >= wanted
        })?;
        Some(10_f64.powf((at + 1) as f64 / STEPS as f64))
    }

    /// The counts in `width` columns of equal width; at most one column per bucket.
    pub fn columns(&self, width: usize) -> Vec<f64> {
        let width = width.clamp(1, BUCKETS);
        let mut columns = vec![0.0; width];
        for (at, count) in self.counts.iter().enumerate() {
            columns[at * width / BUCKETS] += count;
        }
        columns
    }
}

/// Two histograms: hits, and all other requests.
#[derive(Clone, Debug, Default)]
pub struct HitHistograms {
    /// Requests answered from the cache, without an origin.
    pub hits: Histogram,
    /// All other requests.
    pub others: Histogram,
}

impl HitHistograms {
    /// Counts the time `us` of a record.
    pub fn add(&mut self, record: &Record<'_>, us: u64) {
        if record.served.is_hit() { self.hits.add(us) } else { self.others.add(us) }
    }

    /// Multiplies all counts by `by`.
    pub fn fade(&mut self, by: f64) {
        self.hits.fade(by);
        self.others.fade(by);
    }
}

/// The number of requests and the quantiles of their times, as JSON for other programs.
pub fn quantiles(histogram: &Histogram) -> serde_json::Value {
    let mut map = serde_json::Map::new();
    map.insert("count".to_owned(), (histogram.total() as u64).into());
    for (name, part) in PARTS {
        let us = histogram.quantile_us(part).map(|us| us as u64);
        map.insert(format!("{name}_us"), us.into());
    }
    serde_json::Value::Object(map)
}

/// Draws two histograms as `varnishhist` does: `height` lines of at most `width` characters and a
/// scale below. Hits are `|`; misses are `#` and stand on top of them.
pub fn draw(hits: &Histogram, misses: &Histogram, width: usize, height: usize) -> Vec<String> {
    // Each power of ten has the same width, and each column the same number of buckets: otherwise
    // some columns would stand out.
    let fits = |decade: &usize| STEPS.is_multiple_of(*decade) && decade * DECADES <= width;
    let decade = (1..=STEPS).rev().find(fits).unwrap_or(1);
    let width = decade * DECADES;
    let (low, high) = (hits.columns(width), misses.columns(width));
    let most = low.iter().zip(&high).map(|(a, b)| a + b).fold(0.0, f64::max);
    // A count above zero fills at least one cell.
    let cells = |sum: f64| match most > 0.0 && sum > 0.0 {
        true => ((sum / most * height as f64).round() as usize).max(1),
        false => 0,
    };
    let mut lines = Vec::with_capacity(height + 2);
    for row in (0..height).rev() {
        let cell = |at: usize| {
            let (below, all) = (cells(low[at]), cells(low[at] + high[at]));
            // Misses take the top cell where both would share it.
            let below = if high[at] > 0.0 { below.min(all.saturating_sub(1)) } else { below };
            match row {
                row if row < below => '|',
                row if row < all => '#',
                _ => ' ',
            }
        };
        let line: String = (0..width).map(cell).collect();
        lines.push(line.trim_end().to_owned());
    }
    let mark = |at: usize| if at.is_multiple_of(decade) { '+' } else { '-' };
    lines.push((0..width).map(mark).collect());
    let names = ["1us", "10us", "100us", "1ms", "10ms", "100ms", "1s", "10s"];
    let scale: String = names.iter().map(|name| format!("{name:<decade$.decade$}")).collect();
    lines.push(scale.trim_end().to_owned());
    lines
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn quantiles_are_within_a_step() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.quantile_us(0.5), None);
        (1..=1000).for_each(|ms| histogram.add(ms * 1000));
        for (part, us) in [(0.5, 500e3), (0.99, 990e3), (1.0, 1e6)] {
            let found = histogram.quantile_us(part).expect("some");
            assert!(found >= us * 0.99 && found <= us * 1.26, "{part}: {found}");
        }
    }

    #[test]
    fn hits_stand_below_misses_over_a_true_scale() {
        let (mut hits, mut misses) = (Histogram::default(), Histogram::default());
        (0..30).for_each(|_| hits.add(15));
        (0..10).for_each(|_| misses.add(150_000));
        misses.add(15);
        let lines = draw(&hits, &misses, 80, 4);
        assert_eq!(lines.len(), 6);
        assert_eq!(lines[4], "+---------".repeat(8));
        assert!(lines[5].starts_with("1us       10us      100us     1ms"));
        let column = |at: usize| -> String {
            lines.iter().take(4).map(|line| line.chars().nth(at).unwrap_or(' ')).collect()
        };
        assert_eq!(column(11), "#|||");
        assert_eq!(column(51), "   #");
    }

    proptest! {
        #[test]
        fn any_times_fit_any_screen(
            times in proptest::collection::vec(any::<u64>(), 0..50),
            width in 0_usize..300,
            height in 0_usize..50,
        ) {
            let mut histogram = Histogram::default();
            times.iter().for_each(|us| histogram.add(*us));
            let lines = draw(&histogram, &Histogram::default(), width, height);
            prop_assert_eq!(lines.len(), height + 2);
            prop_assert!(lines.iter().all(|line| line.len() <= width.max(DECADES)));
            prop_assert_eq!(histogram.total(), times.len() as f64);
        }
    }
}
