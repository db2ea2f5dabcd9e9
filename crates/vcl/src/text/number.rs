//! Numbers, durations, sizes and times in strings. As in Varnish, numbers have the limits of
//! structured fields (RFC 8941): fifteen digits, or twelve before and three after the point; `+` is
//! never accepted.

use super::calendar;

/// A number, and the text behind it.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Number<'t> {
    value: f64,
    /// The whole number, if there is no fraction.
    whole: Option<i64>,
    has_point: bool,
    rest: &'t [u8],
}

/// Most digits of a whole number.
const WHOLE_DIGITS_MAX: usize = 15;
/// Most digits before the point of a number with a fraction.
const DIGITS_BEFORE_POINT_MAX: usize = 12;
/// Digits behind the point that are used.
const DIGITS_AFTER_POINT: usize = 3;

/// Parses a number at the beginning of `text`, after blanks.
fn number(text: &[u8], digits_max: usize) -> Option<Number<'_>> {
    let text = text.trim_ascii_start();
    let (sign, text) = match text.strip_prefix(b"-") {
        Some(rest) => (-1, rest),
        None => (1, text),
    };
    let (whole, rest) = digits(text);
    let point = rest.strip_prefix(b".");
    let (fraction, rest) = point.map_or((&rest[..0], rest), digits);
    let fits = whole.len() <= if point.is_some() { DIGITS_BEFORE_POINT_MAX } else { digits_max };
    if !fits || whole.len() + fraction.len() == 0 {
        return None;
    }
    let kept = &fraction[..fraction.len().min(DIGITS_AFTER_POINT)];
    let part = value_of(kept) as f64 / 10_f64.powi(kept.len() as i32);
    Some(Number {
        value: f64::from(sign) * (value_of(whole) as f64 + part),
        has_point: point.is_some(),
        whole: fraction.is_empty().then(|| i64::from(sign) * value_of(whole)),
        rest,
    })
}

fn digits(text: &[u8]) -> (&[u8], &[u8]) {
    let end = text.iter().position(|b| !b.is_ascii_digit()).unwrap_or(text.len());
    text.split_at(end)
}

/// Value of at most fifteen digits.
fn value_of(digits: &[u8]) -> i64 {
    digits.iter().fold(0, |n, digit| n * 10 + i64::from(digit - b'0'))
}

/// Parses an INT. Blanks around it and a point at its end are ignored.
pub fn int(text: &[u8]) -> Option<i64> {
    let number = number(text, WHOLE_DIGITS_MAX)?;
    number.whole.filter(|_| is_blank(number.rest))
}

/// Parses a REAL.
pub fn real(text: &[u8]) -> Option<f64> {
    let number = number(text, DIGITS_BEFORE_POINT_MAX)?;
    is_blank(number.rest).then_some(number.value)
}

/// Parses a DURATION to seconds: a number with the unit `ms`, `s`, `m`, `h`, `d`, `w` or `y`.
pub fn duration(text: &[u8]) -> Option<f64> {
    let number = number(text, WHOLE_DIGITS_MAX)?;
    let factor = match number.rest.trim_ascii() {
        b"ms" => 1e-3,
        b"s" => 1.0,
        b"m" => 60.0,
        b"h" => 3600.0,
        b"d" => 86_400.0,
        b"w" => 604_800.0,
        b"y" => 31_536_000.0,
        _ => return None,
    };
    Some(number.value * factor)
}

/// Parses BYTES: a number, optionally with `k`, `m`, `g`, `t` or `p` for powers of 1024 and `b`, in
/// any case. A fraction needs such a power, and is truncated to bytes.
pub fn bytes(text: &[u8]) -> Option<i64> {
    let number = number(text, WHOLE_DIGITS_MAX)?;
    let unit = number.rest.trim_ascii().to_ascii_lowercase();
    let power = match unit.strip_suffix(b"b").unwrap_or(&unit) {
        b"" => return number.whole.filter(|n| *n >= 0 && !number.has_point),
        b"k" => 1,
        b"m" => 2,
        b"g" => 3,
        b"t" => 4,
        b"p" => 5,
        _ => return None,
    };
    let bytes = (number.value * 1024_f64.powi(power)).floor();
    (bytes >= 0.0 && bytes < i64::MAX as f64).then_some(bytes as i64)
}

/// Parses a TIME to seconds since 1970: a date in one of HTTP's forms or `1994-11-06T08:49:37`, or
/// a number of seconds above 0. See [`calendar::read`].
pub fn time(text: &[u8], short_days: bool) -> Option<f64> {
    match real(text) {
        Some(secs) => Some(secs).filter(|secs| *secs > 0.0),
        None => calendar::read(text, short_days).filter(|secs| *secs != 0.0),
    }
}

fn is_blank(rest: &[u8]) -> bool {
    rest.trim_ascii().is_empty()
}
