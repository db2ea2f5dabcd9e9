//! Formats of `strfromd`(3): `%`, optionally a point and digits, and one of `aAeEfFgG`. Other
//! formats are never accepted.

/// Default number of digits behind the point.
const USUAL: usize = 6;

/// Most digits of a format: beyond those of any number there are only zeros.
const DIGITS_MAX: usize = 1100;

/// Formats `number`; `None` for an invalid format.
pub(super) fn write(format: &[u8], number: f64) -> Option<String> {
    let (kind, rest) = format.strip_prefix(b"%")?.split_last()?;
    let digits = match rest {
        [] => None,
        [b'.', digits @ ..] if digits.iter().all(u8::is_ascii_digit) => {
            let n = digits
                .iter()
                .fold(0_usize, |n, b| n.saturating_mul(10).saturating_add(usize::from(b - b'0')));
            Some(n.min(DIGITS_MAX))
        }
        _ => return None,
    };
    let text = match kind.to_ascii_lowercase() {
        _ if !b"aAeEfFgG".contains(kind) => return None,
        _ if number.is_nan() => "nan".to_owned(),
        _ if number.is_infinite() => "inf".to_owned(),
        b'a' => hexadecimal(number.abs(), digits),
        b'e' => scientific(number.abs(), digits.unwrap_or(USUAL)),
        b'f' => format!("{:.*}", digits.unwrap_or(USUAL), number.abs()),
        _ => general(number.abs(), digits.unwrap_or(USUAL).max(1)),
    };
    let sign = if number.is_sign_negative() { "-" } else { "" };
    let text = format!("{sign}{text}");
    Some(if kind.is_ascii_uppercase() { text.to_ascii_uppercase() } else { text })
}

/// `d.ddde+dd`
fn scientific(number: f64, digits: usize) -> String {
    let text = format!("{number:.digits$e}");
    match text.split_once('e') {
        Some((mantissa, exponent)) => {
            let exponent: i32 = exponent.parse().unwrap_or_default();
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{mantissa}e{sign}{:02}", exponent.unsigned_abs())
        }
        None => text,
    }
}

/// The shorter of both notations, without trailing zeros.
fn general(number: f64, digits: usize) -> String {
    let rounded = scientific(number, digits - 1);
    let exponent: i32 =
        rounded.split_once('e').and_then(|(_, e)| e.parse().ok()).unwrap_or_default();
    if exponent < -4 || exponent >= i32::try_from(digits).unwrap_or(i32::MAX) {
        let (mantissa, exponent) = rounded.split_once('e').unwrap_or((&rounded, "+00"));
        return format!("{}e{exponent}", without_zeros(mantissa));
    }
    let behind = usize::try_from(digits as i64 - 1 - i64::from(exponent)).unwrap_or_default();
    without_zeros(&format!("{number:.behind$}")).to_owned()
}

fn without_zeros(text: &str) -> &str {
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => text,
    }
}

/// `0x1.8p+1`, rounded to `digits` behind the point, or exact.
fn hexadecimal(number: f64, digits: Option<usize>) -> String {
    const FRACTION_BITS: u32 = 52;
    let bits = number.to_bits();
    let (exponent, fraction) = (bits >> FRACTION_BITS, bits & ((1 << FRACTION_BITS) - 1));
    let (mut mantissa, exponent) = match (exponent, fraction) {
        (0, 0) => (0, 0),
        (0, fraction) => (fraction, -1022),
        (exponent, fraction) => (fraction | 1 << FRACTION_BITS, exponent as i64 - 1023),
    };
    if let Some(digits) = digits.filter(|digits| *digits < 13) {
        let off = FRACTION_BITS - 4 * digits as u32;
        let (kept, cut, half) = (mantissa >> off, mantissa & ((1 << off) - 1), 1_u64 << (off - 1));
        let up = cut > half || cut == half && kept & 1 == 1;
        mantissa = (kept + u64::from(up)) << off;
    }
    let whole = mantissa >> FRACTION_BITS;
    let all = format!("{:013x}", mantissa & ((1 << FRACTION_BITS) - 1));
    let shown = match digits {
        None => all.trim_end_matches('0').to_owned(),
        Some(digits) if digits <= 13 => all[..digits].to_owned(),
        Some(digits) => format!("{all:0<digits$}"),
    };
    let point = if shown.is_empty() { "" } else { "." };
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("0x{whole:x}{point}{shown}p{sign}{}", exponent.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Results of strfromd(3) in the GNU C library.
    #[test]
    fn numbers_are_written_as_the_c_library_does() {
        for (format, number, expected) in [
            ("%f", 3.5, "3.500000"),
            ("%.0f", 2.5, "2"),
            ("%.10f", -0.1, "-0.1000000000"),
            ("%e", 123_456.0, "1.234560e+05"),
            ("%.3E", 0.000_012_345, "1.234E-05"),
            ("%e", 1e100, "1.000000e+100"),
            ("%g", 100_000.0, "100000"),
            ("%g", 1_000_000.0, "1e+06"),
            ("%g", 0.0001, "0.0001"),
            ("%g", 0.000_01, "1e-05"),
            ("%.3g", 1234.5, "1.23e+03"),
            ("%.0g", 0.25, "0.2"),
            ("%G", 1e-10, "1E-10"),
            ("%a", 3.0, "0x1.8p+1"),
            ("%a", 0.0, "0x0p+0"),
            ("%.2a", 1.999, "0x2.00p+0"),
            ("%A", 0.1, "0X1.999999999999AP-4"),
            ("%f", f64::NAN, "nan"),
            ("%F", f64::NEG_INFINITY, "-INF"),
        ] {
            assert_eq!(write(format.as_bytes(), number).as_deref(), Some(expected), "{format}");
        }
        for bad in ["", "%", "f", "%d", "%5f", "%.xf", "%f ", "%%"] {
            assert_eq!(write(bad.as_bytes(), 1.0), None, "{bad}");
        }
    }
}
