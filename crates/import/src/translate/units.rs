//! nginx's numbers: times, sizes and switches.

/// Milliseconds of a time such as `30d`, `1h30m`, `500ms` or `60`, in seconds without a unit.
pub(crate) fn time_ms(text: &str) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    let (mut total, mut rest) = (0_u64, text);
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let number: u64 = rest[..end].parse().ok()?;
        rest = &rest[end..];
        let unit_end = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let unit = match rest[..unit_end].trim() {
            "ms" => 1,
            "" | "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            "w" => 604_800_000,
            "M" => 30 * 86_400_000,
            "y" => 365 * 86_400_000,
            _ => return None,
        };
        total = total.checked_add(number.checked_mul(unit)?)?;
        rest = &rest[unit_end..];
    }
    Some(total)
}

/// A time in TOML, with the largest unit that needs no fraction.
pub(crate) fn duration(ms: u64) -> String {
    let units = [(86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1_000, "s")];
    let unit = units.into_iter().find(|(unit, _)| ms > 0 && ms.is_multiple_of(*unit));
    match unit {
        Some((unit, name)) => format!("\"{}{name}\"", ms / unit),
        None if ms == 0 => "\"0s\"".to_owned(),
        None => format!("\"{ms}ms\""),
    }
}

/// A duration of the configuration for a time of nginx, such as `1h 30m`.
pub(crate) fn time(text: &str) -> Option<String> {
    time_ms(text).map(duration)
}

/// Bytes of a size such as `8k`, `10m` or `1g`.
pub(crate) fn size_bytes(text: &str) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..digits].parse().ok()?;
    let unit = match text[digits..].to_ascii_lowercase().as_str() {
        "" => 1,
        "k" => 1 << 10,
        "m" => 1 << 20,
        "g" => 1 << 30,
        _ => return None,
    };
    number.checked_mul(unit)
}

/// A size in TOML.
pub(crate) fn size(bytes: u64) -> String {
    let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let unit = units.into_iter().find(|(unit, _)| bytes > 0 && bytes.is_multiple_of(*unit));
    match unit {
        Some((unit, name)) => format!("\"{}{name}\"", bytes / unit),
        None => format!("\"{bytes}B\""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes_are_those_of_nginx() {
        for (text, ms) in [
            ("30d", 30 * 86_400_000),
            ("1h30m", 5_400_000),
            ("60", 60_000),
            ("500ms", 500),
            ("1M", 30 * 86_400_000),
        ] {
            assert_eq!(time_ms(text), Some(ms), "{text}");
        }
        for wrong in ["", "x", "5x", "-1", "99999999999999999999"] {
            assert_eq!(time_ms(wrong), None, "{wrong}");
        }
        assert_eq!(time("90m").as_deref(), Some("\"90m\""));
        assert_eq!(time("0").as_deref(), Some("\"0s\""));
        assert_eq!(time("1500ms").as_deref(), Some("\"1500ms\""));
        assert_eq!(size_bytes("8k"), Some(8192));
        assert_eq!(size(size_bytes("2G").expect("a size")), "\"2GiB\"");
        assert_eq!(size(100), "\"100B\"");
        assert_eq!(size_bytes("1t"), None);
    }
}
