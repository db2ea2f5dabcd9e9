//! "Did you mean": the known name closest to an unknown one.

/// The name among `known` that `written` is most likely a slip of, if any is close.
pub(crate) fn closest<'a>(
    written: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let letters = written.chars().count();
    // A third of the letters may be wrong, in short words one.
    let tolerance = (letters / 3).max(1);
    known
        .into_iter()
        .filter(|name| letters.abs_diff(name.chars().count()) <= tolerance)
        .map(|name| (distance(written, name), name))
        .filter(|(distance, name)| *distance <= tolerance && *distance < name.chars().count())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// Edits between `a` and `b`: a letter added, removed, replaced, or two neighbours swapped (optimal
/// string alignment). Upper and lower case, and `-` and `_`, count as equal.
fn distance(a: &str, b: &str) -> usize {
    let fold = |s: &str| s.to_ascii_lowercase().replace('-', "_");
    strsim::osa_distance(&fold(a), &fold(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_find_the_name_meant() {
        let known = ["listen", "limits", "workers", "origin", "site", "x_cache"];
        for (written, meant) in [
            ("lsten", Some("listen")),
            ("litsen", Some("listen")),
            ("Listen", Some("listen")),
            ("x-cache", Some("x_cache")),
            ("orign", Some("origin")),
            ("sites", Some("site")),
            ("worker", Some("workers")),
            ("zzz", None),
            ("", None),
            ("a", None),
        ] {
            assert_eq!(closest(written, known), meant, "{written}");
        }
    }

    #[test]
    fn distances_count_edits() {
        for (a, b, edits) in
            [("", "", 0), ("", "ab", 2), ("ab", "ba", 1), ("abc", "adc", 1), ("a", "b", 1)]
        {
            assert_eq!(distance(a, b), edits, "{a} {b}");
            assert_eq!(distance(b, a), edits, "{b} {a}");
        }
    }
}
