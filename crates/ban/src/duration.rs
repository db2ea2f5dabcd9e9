//! Duration literals of ban expressions: a decimal number and a unit, as Varnish writes them. Other
//! spellings are never accepted.

/// Units and their milliseconds, as in vcl(7); a year is 365 days.
const UNITS: [(&str, f64); 7] = [
    ("ms", 1.0),
    ("s", 1_000.0),
    ("m", 60_000.0),
    ("h", 3_600_000.0),
    ("d", 86_400_000.0),
    ("w", 604_800_000.0),
    ("y", 31_536_000_000.0),
];

/// Milliseconds of `text`; `None` if `text` is no duration.
pub(crate) fn parse_ms(text: &str) -> Option<f64> {
    let number_len = text.bytes().take_while(|b| matches!(b, b'0'..=b'9' | b'.' | b'-')).count();
    let (number, unit) = text.split_at(number_len);
    let (_, unit_ms) = UNITS.iter().find(|(name, _)| *name == unit)?;
    let digits = number.strip_prefix('-').unwrap_or(number);
    // Varnish accepts at most 15 digits.
    let is_number = digits.bytes().filter(u8::is_ascii_digit).count().wrapping_sub(1) < 15;
    if !is_number || digits.contains('-') {
        return None;
    }
    Some(number.parse::<f64>().ok()? * unit_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_decimal_number_and_a_unit() {
        for (text, ms) in [
            ("10ms", 10.0),
            ("1.5h", 5_400_000.0),
            (".5s", 500.0),
            ("1.s", 1_000.0),
            ("-1s", -1_000.0),
            ("2w", 1_209_600_000.0),
            ("1y", 31_536_000_000.0),
        ] {
            assert_eq!(parse_ms(text), Some(ms), "{text}");
        }
        for text in ["", "1", "s", ".s", "-s", "1S", "1ss", "+1s", "1e3s", "0x1s", "1.1.1s", "1 s"]
        {
            assert_eq!(parse_ms(text), None, "{text}");
        }
        assert_eq!(parse_ms("99999999999999999999y"), None);
    }
}
