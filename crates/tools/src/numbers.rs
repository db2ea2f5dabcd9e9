//! Numbers of tools, formatted for people: counts, bytes, times, ages.

use base::units::DurationMs;

/// Formats a count with separated thousands.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Formats bytes in a suitable unit.
pub(crate) fn bytes(number: f64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = number;
    let mut unit = 0;
    while value >= 1000.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    let decimals = usize::from(unit > 0 && value < 100.0);
    format!("{value:.decimals$} {}", units[unit])
}

/// Formats microseconds in a suitable unit.
pub(crate) fn time(us: f64) -> String {
    match us {
        us if us < 1000.0 => format!("{us:.0} us"),
        us if us < 1e6 => format!("{:.1} ms", us / 1e3),
        us => format!("{:.2} s", us / 1e6),
    }
}

/// Rounds an age down to the largest unit in which it is at least two.
pub(crate) fn rounded_age(secs: u64) -> DurationMs {
    let unit = [86_400, 3_600, 60].into_iter().find(|unit| secs >= 2 * unit).unwrap_or(1);
    DurationMs((secs / unit * unit).saturating_mul(1000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_readable() {
        assert_eq!([grouped(0), grouped(999), grouped(1_234_567)], ["0", "999", "1,234,567"]);
        assert_eq!([bytes(5.0), bytes(1536.0), bytes(2e9)], ["5 B", "1.5 KiB", "1.9 GiB"]);
        assert_eq!([time(7.0), time(1500.0), time(2.5e6)], ["7 us", "1.5 ms", "2.50 s"]);
    }
}
