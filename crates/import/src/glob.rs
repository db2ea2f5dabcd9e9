//! Patterns of files in `include`: `*`, `?` and `[...]` within a segment, as in the C library.

use std::path::{Path, PathBuf};

use base::fnmatch::{Options, fnmatch};

/// As the C library's glob(3) has it: a star stays in its segment, and only a dot fits a leading
/// dot.
const OPTIONS: Options = Options { pathname: true, period: true, noescape: false };

/// Tells whether the path `name` fits `pattern`.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    fnmatch(pattern.as_bytes(), name.as_bytes(), OPTIONS)
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
    let mut names: Vec<String> = names.filter(|name| matches(pattern, name)).collect();
    names.sort();
    names.into_iter().map(|name| folder.join(name)).collect()
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
