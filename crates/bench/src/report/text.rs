//! Text of reports: formatted numbers and times.

/// The unit of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// Microseconds, shown in a suitable unit.
    Time,
    /// A plain number.
    Number,
    /// Percent.
    Percent,
}

impl Unit {
    /// Formats a value of an axis.
    pub(super) fn show(self, value: f64) -> String {
        match self {
            Self::Time => time(value),
            Self::Number => number(value),
            Self::Percent => format!("{}%", plain(value)),
        }
    }
}

/// Formats a time in microseconds in a suitable unit.
pub fn time(micros: f64) -> String {
    match micros {
        _ if micros < 1e3 => format!("{} µs", plain(micros)),
        _ if micros < 1e6 => format!("{} ms", plain(micros / 1e3)),
        _ => format!("{} s", plain(micros / 1e6)),
    }
}

/// Formats a number with three significant digits, or with all digits of its whole part.
fn plain(value: f64) -> String {
    let digits = match value.abs() {
        size if size >= 100.0 || size == 0.0 => 0,
        size if size >= 10.0 => 1,
        _ => 2,
    };
    let text = format!("{value:.digits$}");
    if text.contains('.') {
        return text.trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    text
}

/// Formats a number with separated thousands.
pub(super) fn number(value: f64) -> String {
    if value.abs() < 1000.0 {
        return plain(value);
    }
    let digits = format!("{value:.0}");
    let mut out = String::new();
    for (digit, at) in digits.chars().zip(0..) {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Escapes text for a cell of a Markdown table.
pub(super) fn cell(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '|' | '\\' | '`' | '*' | '_' | '<' | '[' => {
                out.push('\\');
                out.push(c);
            }
            '\n' | '\r' => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_as_people_write_them() {
        assert_eq!(time(1.0), "1 µs");
        assert_eq!(time(1234.0), "1.23 ms");
        assert_eq!(time(20_000.0), "20 ms");
        assert_eq!(time(1_500_000.0), "1.5 s");
        assert_eq!(number(1_234_567.0), "1,234,567");
        assert_eq!(number(0.5), "0.5");
        assert_eq!(number(12.34), "12.3");
        assert_eq!(Unit::Percent.show(99.0), "99%");
        assert_eq!(cell("a|b\nc"), "a\\|b c");
    }
}
