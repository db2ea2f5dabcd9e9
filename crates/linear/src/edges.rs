//! Edges of the subjects in which a pattern matches: the few texts that all of them begin or end
//! with, as far as the pattern tells.

use regex_syntax::ParserBuilder;
use regex_syntax::hir::literal::{ExtractKind, Extractor};
use regex_syntax::hir::{Hir, Look};

use crate::{Options, pcre_syntax};

/// An edge of a subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Edge {
    Start,
    End,
}

/// Texts at an edge: each subject that `pattern` matches has one of them there. `None` if they are
/// not known, as for a pattern that matches anywhere.
pub(crate) fn texts_at(edge: Edge, pattern: &str, options: Options) -> Option<Vec<Vec<u8>>> {
    let hir = parse(pattern, options)?;
    let (is_bound, kind) = match edge {
        Edge::Start => {
            (hir.properties().look_set_prefix().contains(Look::Start), ExtractKind::Prefix)
        }
        Edge::End => (hir.properties().look_set_suffix().contains(Look::End), ExtractKind::Suffix),
    };
    if !is_bound {
        return None;
    }
    let texts = Extractor::new().kind(kind).extract(&hir);
    Some(texts.literals()?.iter().map(|text| text.as_bytes().to_vec()).collect())
}

fn parse(pattern: &str, options: Options) -> Option<Hir> {
    ParserBuilder::new()
        .unicode(options.unicode)
        .utf8(false)
        .case_insensitive(options.ignore_case)
        .dot_matches_new_line(options.dot_is_any)
        .build()
        .parse(&pcre_syntax::plain(pattern))
        .ok()
}

#[cfg(test)]
mod tests {
    use crate::{Options, Regex};

    fn texts(found: Option<Vec<Vec<u8>>>) -> Option<Vec<String>> {
        found.map(|all| all.iter().map(|text| text.escape_ascii().to_string()).collect())
    }

    #[test]
    fn texts_at_edges_are_known_of_patterns_that_are_bound_there() {
        let of = |list: &[&str]| Some(list.iter().map(|text| (*text).to_owned()).collect());
        for (pattern, starts, ends) in [
            ("^/user/[01]", of(&["/user/0", "/user/1"]), None),
            ("^/user/.*x$", of(&["/user/"]), of(&["x"])),
            ("/user", None, None),
            ("^/(de|fr)/", of(&["/de/", "/fr/"]), None),
            ("\\.(zip|tar)$", None, of(&[".zip", ".tar"])),
            ("^/a|b", None, None),
            ("^/a|^/b", of(&["/a", "/b"]), None),
            ("(?m)^/a$", None, None),
            ("^/x$", of(&["/x"]), of(&["/x"])),
            ("^", of(&[""]), None),
        ] {
            let regex = Regex::new(pattern, Options::default()).expect("a pattern");
            assert_eq!(texts(regex.starts()), starts, "{pattern}");
            assert_eq!(texts(regex.ends()), ends, "{pattern}");
        }
    }

    #[test]
    fn texts_at_edges_are_in_either_case_where_the_pattern_is() {
        let options = Options { ignore_case: true, ..Options::default() };
        let starts = texts(Regex::new("^/a", options).expect("a pattern").starts());
        assert_eq!(starts, Some(vec!["/A".to_owned(), "/a".to_owned()]));
    }
}
