//! Times in the formats of strftime(3) and varnishncsa(1), in UTC.

use message::calendar::CalendarTime;

/// Conversions that abbreviate several others.
const LONGER: &[(char, &str)] = &[
    ('c', "%a %b %e %H:%M:%S %Y"),
    ('D', "%m/%d/%y"),
    ('F', "%Y-%m-%d"),
    ('h', "%b"),
    ('R', "%H:%M"),
    ('r', "%I:%M:%S %p"),
    ('T', "%H:%M:%S"),
    ('X', "%H:%M:%S"),
    ('x', "%m/%d/%y"),
];

/// The format of a time.
#[derive(Clone, Debug)]
pub(super) enum DateFormat {
    /// One number: since 1970, or the fraction of the second.
    Number(Number),
    /// Literal characters and conversions; true marks a conversion.
    Parts(Vec<(bool, char)>),
}

/// A time as one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Number {
    Seconds,
    Millis,
    Micros,
    MillisOfSecond,
    MicrosOfSecond,
    /// Seconds with three decimals.
    SecondsMillis,
}

impl DateFormat {
    /// Reads a format of strftime(3), or one of varnishncsa's extensions.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let number = match text {
            "sec" => Some(Number::Seconds),
            "msec" => Some(Number::Millis),
            "usec" => Some(Number::Micros),
            "msec_frac" => Some(Number::MillisOfSecond),
            "usec_frac" => Some(Number::MicrosOfSecond),
            _ => None,
        };
        if let Some(number) = number {
            return Ok(Self::Number(number));
        }
        let mut parts = Vec::new();
        conversions(text, &mut parts)?;
        Ok(Self::Parts(parts))
    }

    /// Makes a format whose conversions are all known.
    pub(super) fn parts(text: &'static str) -> Self {
        let mut parts = Vec::new();
        _ = conversions(text, &mut parts);
        Self::Parts(parts)
    }

    /// Seconds since 1970 with three decimals.
    pub(super) fn millis() -> Self {
        Self::Number(Number::SecondsMillis)
    }

    /// Formats the time `us`, in microseconds since 1970.
    pub(super) fn text(&self, us: u64) -> String {
        match self {
            Self::Number(Number::Seconds) => (us / 1_000_000).to_string(),
            Self::Number(Number::Millis) => (us / 1000).to_string(),
            Self::Number(Number::Micros) => us.to_string(),
            Self::Number(Number::MillisOfSecond) => format!("{:03}", us / 1000 % 1000),
            Self::Number(Number::MicrosOfSecond) => format!("{:06}", us % 1_000_000),
            Self::Number(Number::SecondsMillis) => {
                format!("{}.{:03}", us / 1_000_000, us / 1000 % 1000)
            }
            Self::Parts(parts) => {
                let moment = CalendarTime::at((us / 1_000_000).cast_signed());
                parts.iter().map(|(is_own, c)| part(&moment, *is_own, *c)).collect()
            }
        }
    }
}

fn conversions(text: &str, parts: &mut Vec<(bool, char)>) -> Result<(), String> {
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            parts.push((false, c));
            continue;
        }
        let c = chars.next().unwrap_or(' ');
        if let Some((_, longer)) = LONGER.iter().find(|(own, _)| *own == c) {
            conversions(longer, parts)?;
        } else if "aAbBCdeHIjklmMnpPsStuwyYzZ%".contains(c) {
            parts.push((true, c));
        } else {
            return Err(format!("`%{c}` is no part of a date here"));
        }
    }
    Ok(())
}

/// Formats one character; `is_own` marks a conversion.
fn part(moment: &CalendarTime, is_own: bool, c: char) -> String {
    match c {
        _ if !is_own => c.to_string(),
        'Z' => "UTC".to_owned(),
        c => moment.part(c).unwrap_or_else(|| c.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_year_is_too_late() {
        let of = |text| DateFormat::parse(text).expect("a format");
        assert_eq!(of("%F %T").text(253_402_300_800 * 1_000_000), "10000-01-01 00:00:00");
        assert!(!of("%c %j").text(u64::MAX).is_empty());
    }
}
