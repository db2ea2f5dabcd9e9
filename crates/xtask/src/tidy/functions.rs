//! Functions of a source, found by counting braces in masked code.

use std::ops::{Range, RangeInclusive};

/// A function with a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Function {
    /// The name.
    pub(crate) name: String,
    /// The line of its `fn`, from 1.
    pub(crate) line: usize,
    /// Number of lines from there to its closing brace, inclusive.
    pub(crate) length: usize,
    /// True if only tests compile it.
    pub(crate) test: bool,
}

/// The functions in `code`, a masked source.
pub(crate) fn functions(code: &str) -> Vec<Function> {
    let mut found = Vec::new();
    let tests = test_regions(code);
    for (at, _) in code.match_indices("fn ") {
        if code[..at].chars().next_back().is_some_and(|c| c.is_alphanumeric() || c == '_') {
            continue;
        }
        let Some(end) = body_end(&code[at..]).map(|end| at + end) else { continue };
        let name =
            code[at + 3..].chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        let line = line_of(code, at);
        let length = line_of(code, end) - line + 1;
        found.push(Function { name, line, length, test: tests.iter().any(|t| t.contains(&at)) });
    }
    found
}

/// The lines of items under `#[cfg(test)]` or a test attribute.
pub(super) fn test_lines(code: &str) -> Vec<RangeInclusive<usize>> {
    let lines = |region: &Range<usize>| line_of(code, region.start)..=line_of(code, region.end);
    test_regions(code).iter().map(lines).collect()
}

/// The offsets of these items, each up to its closing brace.
fn test_regions(code: &str) -> Vec<Range<usize>> {
    ["#[cfg(test)]", "#[test]", "#[tokio::test"]
        .iter()
        .flat_map(|mark| code.match_indices(mark).map(|(start, _)| start))
        .filter_map(|start| body_end(&code[start..]).map(|end| start..start + end))
        .collect()
}

/// Offset of the brace that closes the first body in `code`; `None` for an item without a body.
fn body_end(code: &str) -> Option<usize> {
    let (mut depth, mut nested) = (0usize, 0usize);
    for (at, character) in code.char_indices() {
        match character {
            '(' | '[' => nested += 1,
            ')' | ']' => nested = nested.saturating_sub(1),
            ';' if depth == 0 && nested == 0 => return None,
            '{' => depth += 1,
            '}' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

/// The line, from 1, of offset `at`.
pub(super) fn line_of(code: &str, at: usize) -> usize {
    code[..at].matches('\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(code: &str) -> Vec<(String, usize, usize, bool)> {
        functions(code).into_iter().map(|f| (f.name, f.line, f.length, f.test)).collect()
    }

    #[test]
    fn lengths_run_from_signature_to_closing_brace() {
        let code = "fn a() {\n}\n\npub(crate) fn b(\n  x: [u8; 3],\n) {\n  if x { y() }\n}\n";
        assert_eq!(shape(code), [("a".into(), 1, 2, false), ("b".into(), 4, 5, false)]);
    }

    #[test]
    fn declarations_without_body_and_function_pointers_are_no_functions() {
        assert_eq!(shape("trait T {\n fn a(&self);\n fn b(f: fn(u8) -> u8) {\n }\n}\n").len(), 1);
    }

    #[test]
    fn functions_under_a_test_attribute_are_marked() {
        let code = "fn a() {}\n#[cfg(test)]\nmod tests {\n fn b() {}\n #[test]\n fn c() {}\n}\nfn d() {}\n";
        let tests: Vec<bool> = functions(code).iter().map(|f| f.test).collect();
        assert_eq!(tests, [false, true, true, false]);
    }

    #[test]
    fn a_test_module_in_a_file_of_its_own_marks_nothing_after_it() {
        assert!(!functions("#[cfg(test)]\nmod tests;\n\nfn a() {\n}\n")[0].test);
    }
}
