//! Scales of charts: values to coordinates, with round ticks.

/// An axis of a chart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Scale {
    low: f64,
    high: f64,
    logarithmic: bool,
    /// Coordinates of both ends.
    from: f64,
    to: f64,
}

/// A scale is logarithmic if its largest value exceeds the smallest by this factor.
const WIDE: f64 = 20.0;

impl Scale {
    /// Makes a scale for `values` at coordinates `from` to `to`; logarithmic for a wide range.
    pub(super) fn of(values: impl Iterator<Item = f64> + Clone, from: f64, to: f64) -> Self {
        let known = values.filter(|value| value.is_finite());
        let low = known.clone().fold(f64::INFINITY, f64::min);
        let high = known.fold(f64::NEG_INFINITY, f64::max);
        if !low.is_finite() {
            return Self { low: 0.0, high: 1.0, logarithmic: false, from, to };
        }
        if low > 0.0 && high / low >= WIDE {
            return Self { low: floor(low), high: ceil(high), logarithmic: true, from, to };
        }
        Self { low, high: if high > low { high } else { low + 1.0 }, logarithmic: false, from, to }
    }

    /// Makes a linear scale from 0 to a round number above all `values`.
    pub(super) fn from_zero(values: impl Iterator<Item = f64>, from: f64, to: f64) -> Self {
        let most = values.filter(|value| value.is_finite()).fold(0.0, f64::max);
        let most = if most > 0.0 { most } else { 1.0 };
        let step = step(most);
        let high = (most / step).ceil() * step;
        Self { low: 0.0, high, logarithmic: false, from, to }
    }

    /// The coordinate of `value`, clamped to the scale.
    pub(super) fn place(&self, value: f64) -> f64 {
        let part = if self.logarithmic {
            (value.max(self.low) / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        self.from + part.clamp(0.0, 1.0) * (self.to - self.from)
    }

    /// Round values for ticks.
    pub(super) fn ticks(&self) -> Vec<f64> {
        if !self.logarithmic {
            let step = step(self.high - self.low);
            let first = (self.low / step).ceil();
            let last = ((self.high / step) + 1e-9).floor();
            let count = (last - first) as u32;
            return (0..=count).map(|nth| (first + f64::from(nth)) * step).collect();
        }
        let decades = (self.high / self.low).log10();
        let digits: &[f64] = if decades <= 3.0 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let mut ten = 10_f64.powf(self.low.log10().floor());
        let mut ticks = Vec::new();
        while ten <= self.high * 1.000_001 {
            let each = digits.iter().map(|digit| digit * ten);
            let inside = (self.low * 0.999_999)..=(self.high * 1.000_001);
            ticks.extend(each.filter(|tick| inside.contains(tick)));
            ten *= 10.0;
        }
        ticks
    }
}

/// The step for about five ticks over `span`: 1, 2 or 5 times a power of ten.
fn step(span: f64) -> f64 {
    let rough = span / 5.0;
    let ten = 10_f64.powf(rough.log10().floor());
    let digit = [1.0, 2.0, 5.0].into_iter().find(|digit| digit * ten >= rough * 0.999_999);
    digit.unwrap_or(10.0) * ten
}

/// The round number (1, 2 or 5 times a power of ten) at or below `value`.
fn floor(value: f64) -> f64 {
    let ten = 10_f64.powf(value.log10().floor());
    let digit = [5.0, 2.0].into_iter().find(|digit| digit * ten <= value * 1.000_001);
    digit.unwrap_or(1.0) * ten
}

/// The round number at or above `value`.
fn ceil(value: f64) -> f64 {
    let ten = 10_f64.powf(value.log10().floor());
    let digit = [1.0, 2.0, 5.0].into_iter().find(|digit| digit * ten >= value * 0.999_999);
    digit.unwrap_or(10.0) * ten
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_few() {
        let ticks = |values: &[f64]| Scale::of(values.iter().copied(), 0.0, 100.0).ticks();
        assert_eq!(ticks(&[1.0, 400.0]), [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0]);
        assert_eq!(ticks(&[10.0, 75.0]), [20.0, 40.0, 60.0]);
        assert_eq!(ticks(&[7.0]), [7.0, 7.2, 7.4, 7.6000000000000005, 7.800000000000001, 8.0]);
        assert_eq!(ticks(&[1.0, 1e6]).len(), 7);
        let zero = Scale::from_zero([0.0, 870.0].into_iter(), 0.0, 100.0);
        assert_eq!(zero.ticks(), [0.0, 200.0, 400.0, 600.0, 800.0, 1000.0]);
        assert_eq!(Scale::from_zero(std::iter::empty(), 0.0, 1.0).ticks().len(), 6);
    }

    #[test]
    fn places_are_in_order_and_inside() {
        let scale = Scale::of([1.0, 1000.0].into_iter(), 10.0, 100.0);
        assert_eq!(scale.place(1.0), 10.0);
        assert!((scale.place(31.622_776_6) - 55.0).abs() < 1e-6);
        assert_eq!(scale.place(1e9), 100.0);
        assert_eq!(scale.place(0.0), 10.0);
    }
}
