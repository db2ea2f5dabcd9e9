//! Paths that a source uses: in its `use` lines and in its code.

use std::collections::{BTreeMap, BTreeSet};

/// A path, segment by segment.
type Path = Vec<String>;

/// The names of one source.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Uses {
    /// The path behind each name that `use` imports.
    brought: BTreeMap<String, Path>,
    used: BTreeSet<Path>,
}

impl Uses {
    /// The path behind a name that `use` imports.
    pub(super) fn brought(&self, name: &str) -> Option<&[String]> {
        self.brought.get(name).map(Vec::as_slice)
    }

    /// The used paths.
    pub(super) fn used(&self) -> impl Iterator<Item = &[String]> {
        self.used.iter().map(Vec::as_slice)
    }
}

/// Finds the paths in `code`, a masked source.
pub(super) fn uses(code: &str) -> Uses {
    let tokens = tokens(code);
    let (mut uses, mut at) = (Uses::default(), 0);
    let (mut handed, mut words) = (BTreeSet::new(), BTreeSet::new());
    while at < tokens.len() {
        let before = at.checked_sub(1).map_or("", |before| tokens[before]);
        let is_followed = |by: &str| tokens.get(at + 1) == Some(&by);
        match tokens[at] {
            "use" if !is_followed("<") => {
                let mut leaves = Vec::new();
                at = tree(&tokens, at + 1, &mut Path::new(), &mut leaves);
                let is_handed = matches!(before, "pub" | ")");
                for (name, path) in leaves {
                    if is_handed {
                        handed.insert(name.clone());
                    }
                    uses.brought.insert(name, path);
                }
            }
            "mod" if tokens.get(at + 2) == Some(&";") => at += 3,
            word if is_word(word) => {
                words.insert(word);
                let mut path = vec![word.to_owned()];
                while is_path(&tokens, at) {
                    at += 2;
                    path.push(tokens[at].to_owned());
                }
                if path.len() > 1 && !matches!(before, "::" | ".") {
                    uses.used.insert(path);
                }
                at += 1;
            }
            _ => at += 1,
        }
    }
    for (name, path) in &uses.brought {
        if !handed.contains(name) || words.contains(name.as_str()) {
            uses.used.insert(path.clone());
        }
    }
    uses
}

/// Returns true if the path continues behind token `at`.
fn is_path(tokens: &[&str], at: usize) -> bool {
    tokens.get(at + 1) == Some(&"::") && tokens.get(at + 2).is_some_and(|word| is_word(word))
}

/// Parses the tree of a `use` from token `at` on, below `above`. Returns the position behind it.
fn tree(
    tokens: &[&str],
    mut at: usize,
    above: &mut Path,
    leaves: &mut Vec<(String, Path)>,
) -> usize {
    let depth = above.len();
    while let Some(&token) = tokens.get(at) {
        match token {
            "{" => {
                at += 1;
                while tokens.get(at).is_some_and(|token| *token != "}") {
                    at = tree(tokens, at, above, leaves);
                    at += usize::from(tokens.get(at) == Some(&","));
                }
                above.truncate(depth);
                return at + 1;
            }
            "," | ";" | "}" => break,
            "as" => {
                let name = tokens.get(at + 1).unwrap_or(&"_");
                leaves.push(((*name).to_owned(), above.clone()));
                above.truncate(depth);
                return at + 2;
            }
            "::" => {}
            // A glob: its names are unknown here.
            "*" => above.push("*".to_owned()),
            "self" if depth > 0 || !above.is_empty() => {}
            word => above.push(word.to_owned()),
        }
        at += 1;
    }
    if let Some(name) = above.last().filter(|_| above.len() > depth || depth > 0) {
        leaves.push((name.clone(), above.clone()));
    }
    above.truncate(depth);
    at
}

fn is_word(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Splits code into names, `::`, and single characters.
fn tokens(code: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = code;
    while let Some(first) = rest.chars().next() {
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        let length = match first {
            c if is_part(c) => rest.find(|c| !is_part(c)).unwrap_or(rest.len()),
            ':' if rest.starts_with("::") => 2,
            c => c.len_utf8(),
        };
        let (token, after) = rest.split_at(length);
        if !first.is_whitespace() {
            tokens.push(token);
        }
        rest = after;
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(code: &str) -> Vec<String> {
        uses(code).used().map(|path| path.join("::")).collect()
    }

    #[test]
    fn trees_are_read_and_names_may_be_others() {
        let read = uses("use a::{self, b::{C, D as E}, f};\nuse g as h;\n");
        let brought: Vec<_> =
            read.brought.iter().map(|(name, path)| format!("{name}={}", path.join("::"))).collect();
        assert_eq!(brought, ["C=a::b::C", "E=a::b::D", "a=a", "f=a::f", "h=g"]);
    }

    #[test]
    fn paths_count_and_members_methods_and_modules_do_not() {
        let code = "mod one;\nfn f() -> two::Three { self.four(); five::<u8>(); T::six().seven }";
        assert_eq!(used(code), ["T::six", "two::Three"]);
    }

    #[test]
    fn what_is_handed_on_counts_where_it_is_used_too() {
        assert_eq!(used("mod a;\npub use a::B;\npub(crate) use a::c;\n"), Vec::<String>::new());
        assert_eq!(used("pub use a::B;\nstruct D(B);\n"), ["a::B"]);
    }
}
