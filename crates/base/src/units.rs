//! Units: durations and sizes in the notation of settings: `10s`, `100ms`, `1d`, `64KiB`, `1GiB`.

use std::fmt;

/// The reason why a duration or size could not be parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The number is missing or malformed.
    Number,
    /// The number is below 0.
    Negative,
    /// The unit after the number is missing or unknown.
    Unit,
    /// The value is larger than can be represented.
    TooLarge,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Number => "expected a number",
            Self::Negative => "it cannot be less than 0",
            Self::Unit => "missing or unknown unit",
            Self::TooLarge => "value too large",
        })
    }
}

impl std::error::Error for Error {}

const DURATIONS: [(&str, u64); 7] = [
    ("ms", 1),
    ("s", 1000),
    ("m", 60_000),
    ("h", 3_600_000),
    ("d", 86_400_000),
    ("w", 604_800_000),
    ("y", 31_536_000_000),
];

const SIZES: [(&str, u64); 9] = [
    ("B", 1),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("KB", 1000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
];

/// Units of other programs, and their meaning here.
const DURATIONS_MEANT: [(&str, &str); 16] = [
    ("msec", "ms"),
    ("sec", "s"),
    ("secs", "s"),
    ("second", "s"),
    ("seconds", "s"),
    ("min", "m"),
    ("mins", "m"),
    ("minute", "m"),
    ("minutes", "m"),
    ("hr", "h"),
    ("hour", "h"),
    ("hours", "h"),
    ("day", "d"),
    ("days", "d"),
    ("week", "w"),
    ("year", "y"),
];

const SIZES_MEANT: [(&str, &str); 12] = [
    ("k", "KiB"),
    ("kb", "KiB"),
    ("kib", "KiB"),
    ("m", "MiB"),
    ("mb", "MiB"),
    ("mib", "MiB"),
    ("g", "GiB"),
    ("gb", "GiB"),
    ("gib", "GiB"),
    ("t", "TiB"),
    ("tb", "TiB"),
    ("tib", "TiB"),
];

/// The duration of `text` in the units of other programs; `10 sec` means `10s`.
pub fn duration_meant(text: &str) -> Option<String> {
    meant(text, &DURATIONS_MEANT)
}

/// The size of `text` in the units of other programs; `1G` means `1GiB`, as in nginx.
pub fn size_meant(text: &str) -> Option<String> {
    meant(text, &SIZES_MEANT)
}

fn meant(text: &str, units: &[(&str, &str)]) -> Option<String> {
    let (number, unit) = split(text.trim());
    let (_, unit) = units.iter().find(|(own, _)| own.eq_ignore_ascii_case(unit))?;
    (!number.is_empty()).then(|| format!("{number}{unit}"))
}

/// A number, and the rest.
fn split(text: &str) -> (&str, &str) {
    let at = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(at);
    (number, unit.trim_start())
}

/// Parses a duration such as `100ms`, `1.5s`, `10m`, `1d` to milliseconds.
///
/// Units: `ms s m h d w y` (as in Varnish, with a year of 365 days). A bare `0` needs no unit.
pub fn parse_duration_ms(text: &str) -> Result<u64, Error> {
    parse(text, &DURATIONS)
}

/// Parses a size such as `64KiB`, `1.5GiB`, `250MB` to bytes. A bare number is bytes.
pub fn parse_size(text: &str) -> Result<u64, Error> {
    match text.trim().parse::<u64>() {
        Ok(bytes) => Ok(bytes),
        Err(_) => parse(text, &SIZES),
    }
}

fn parse(text: &str, units: &[(&str, u64)]) -> Result<u64, Error> {
    let text = text.trim();
    let (number, unit) = split(text);
    if text.strip_prefix('-').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit())) {
        return Err(Error::Negative);
    }
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || fraction.contains('.') || number.ends_with('.') {
        return Err(Error::Number);
    }
    let whole: u64 = whole.parse().map_err(|_| Error::TooLarge)?;
    if unit.is_empty() && whole == 0 && fraction.is_empty() {
        return Ok(0);
    }
    let scale =
        units.iter().find(|(name, _)| *name == unit).map(|(_, scale)| *scale).ok_or(Error::Unit)?;
    // Nine decimals are finer than any unit here needs.
    let digits = &fraction[..fraction.len().min(9)];
    let part = digits.parse::<u64>().ok().map_or(0, |d| {
        (u128::from(d) * u128::from(scale) / 10u128.pow(digits.len() as u32)) as u64
    });
    whole.checked_mul(scale).and_then(|v| v.checked_add(part)).ok_or(Error::TooLarge)
}

/// A duration in milliseconds, printed in the largest unit that divides it: `90s`, `100ms`, `1d`.
#[derive(Clone, Copy, Debug)]
pub struct DurationMs(pub u64);

impl fmt::Display for DurationMs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.write_str("0s");
        }
        let unit = DURATIONS[..5].iter().rev().find(|(_, scale)| self.0.is_multiple_of(*scale));
        let (name, scale) = unit.copied().unwrap_or(("ms", 1));
        write!(f, "{}{name}", self.0 / scale)
    }
}

/// A size in bytes, printed in the largest binary unit that divides it: `64KiB`, `1500B`.
#[derive(Clone, Copy, Debug)]
pub struct Bytes(pub u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = SIZES[..5].iter().rev().find(|(_, s)| self.0 != 0 && self.0.is_multiple_of(*s));
        let (name, scale) = unit.copied().unwrap_or(("B", 1));
        write!(f, "{}{name}", self.0 / scale)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_of_other_programs_are_known() {
        for (text, meant) in [("1G", "1GiB"), ("512 m", "512MiB"), ("1.5kb", "1.5KiB")] {
            assert_eq!(parse_size(text), Err(Error::Unit), "{text}");
            assert_eq!(size_meant(text).as_deref(), Some(meant));
            assert!(parse_size(meant).is_ok());
        }
        for (text, meant) in [("10 sec", "10s"), ("5min", "5m"), ("1 Hour", "1h")] {
            assert_eq!(parse_duration_ms(text), Err(Error::Unit), "{text}");
            assert_eq!(duration_meant(text).as_deref(), Some(meant));
            assert!(parse_duration_ms(meant).is_ok());
        }
        assert_eq!(
            (size_meant("G"), size_meant("1 gigabyte"), duration_meant("soon")),
            (None, None, None)
        );
    }

    #[test]
    fn a_negative_number_is_reported() {
        assert_eq!(parse_duration_ms("-1s"), Err(Error::Negative));
        assert_eq!(parse_size("-5MiB"), Err(Error::Negative));
        assert_eq!(parse_size("-"), Err(Error::Number));
    }

    #[test]
    fn durations_read_as_written() {
        for (text, ms) in [
            ("0", 0),
            ("100ms", 100),
            ("1s", 1000),
            ("1.5s", 1500),
            ("2m", 120_000),
            ("1d", 86_400_000),
        ] {
            assert_eq!(parse_duration_ms(text), Ok(ms), "{text}");
        }
        for text in ["", "s", "1", "1x", "1.", ".5s", "1..5s", "-1s"] {
            assert!(parse_duration_ms(text).is_err(), "{text}");
        }
        assert_eq!(parse_duration_ms("99999999999999999999s"), Err(Error::TooLarge));
    }

    #[test]
    fn sizes_read_as_written() {
        for (text, bytes) in [
            ("0", 0),
            ("1024", 1024),
            ("64KiB", 65536),
            ("1.5GiB", 1_610_612_736),
            ("2MB", 2_000_000),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
        assert!(parse_size("12 parsecs").is_err());
    }

    #[test]
    fn values_show_in_their_largest_unit() {
        assert_eq!(DurationMs(90_000).to_string(), "90s");
        assert_eq!(DurationMs(86_400_000).to_string(), "1d");
        assert_eq!(DurationMs(0).to_string(), "0s");
        assert_eq!(Bytes(65536).to_string(), "64KiB");
        assert_eq!(Bytes(1500).to_string(), "1500B");
        assert_eq!(Bytes(0).to_string(), "0B");
    }
}
