//! Patterns of files in `include`: `*`, `?` and `[...]` within a segment, as in the C library.

use std::path::{Path, PathBuf};

/// Tells whether the path `name` fits `pattern`, segment by segment.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<_>, Vec<_>) =
        (pattern.split('/').collect(), name.split('/').collect());
    pattern.len() == name.len() && pattern.iter().zip(&name).all(|(p, n)| segment(p, n))
}

/// The files that fit `pattern`, in the order of their names.
pub(crate) fn files(pattern: &str) -> Vec<String> {
    let mut found =
        vec![if pattern.starts_with('/') { PathBuf::from("/") } else { PathBuf::new() }];
    for part in pattern.split('/').filter(|part| !part.is_empty()) {
        if part.contains(['*', '?', '[']) {
            found = found.iter().flat_map(|folder| entries(folder, part)).collect();
        } else {
            found.iter_mut().for_each(|path| path.push(part));
        }
    }
    found.retain(|path| path.is_file());
    found.iter().map(|path| path.to_string_lossy().into_owned()).collect()
}

fn entries(folder: &Path, pattern: &str) -> Vec<PathBuf> {
    let own = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let names = std::fs::read_dir(own).into_iter().flatten().flatten();
    let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.filter(|name| segment(pattern, name)).collect();
    names.sort();
    names.into_iter().map(|name| folder.join(name)).collect()
}

/// Tells whether a name fits a pattern of one segment. A name that begins with a dot fits only a
/// pattern that does.
fn segment(pattern: &str, name: &str) -> bool {
    if name.starts_with('.') && !pattern.starts_with('.') {
        return false;
    }
    let (pattern, name): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), name.chars().collect());
    // The last `*`, and how much of the name it has taken.
    let (mut p, mut n, mut star) = (0, 0, None);
    while n < name.len() {
        let one = pattern.get(p..).and_then(|rest| fits_one(rest, name[n]));
        if pattern.get(p) == Some(&'*') {
            star = Some((p, n));
            p += 1;
        } else if let Some(length) = one {
            p += length;
            n += 1;
        } else if let Some((at, taken)) = star {
            star = Some((at, taken + 1));
            (p, n) = (at + 1, taken + 1);
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

/// The length of the pattern's first part, if it fits `letter`.
fn fits_one(pattern: &[char], letter: char) -> Option<usize> {
    match pattern.first()? {
        '?' => Some(1),
        '[' => {
            let end = pattern.iter().skip(2).position(|c| *c == ']').map(|at| at + 2);
            let Some(end) = end else { return (letter == '[').then_some(1) };
            let is_not = matches!(pattern[1], '!' | '^');
            let set = &pattern[if is_not { 2 } else { 1 }..end];
            let is_in = set.contains(&letter)
                || set.windows(3).any(|w| w[1] == '-' && (w[0]..=w[2]).contains(&letter));
            (is_in != is_not).then_some(end + 1)
        }
        own => (*own == letter).then_some(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_stay_within_a_segment() {
        for (pattern, name) in [
            ("/a/*.conf", "/a/b.conf"),
            ("/a/*/x", "/a/b/x"),
            ("/a/[ab-d]?", "/a/cx"),
            ("/a/[!x]", "/a/y"),
            ("/*a*b*", "/xaybz"),
            ("/[", "/["),
        ] {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [
            ("/a/*", "/a/b/c"),
            ("/a/*", "/a/.hidden"),
            ("/a/*.conf", "/a/b.conf~"),
            ("/a/[ab]", "/a/c"),
            ("/a/?", "/a/"),
        ] {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
    }
}
