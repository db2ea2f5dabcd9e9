//! Tells a program in VCL from a configuration in TOML by the text of the file.

/// Words that a program begins with, those of VCL 3 included.
const FIRST_WORDS: [&str; 9] =
    ["vcl", "backend", "director", "probe", "acl", "sub", "import", "include", "C{"];

/// Returns true for a program, false for a configuration, and `None` if the beginning of `text`
/// fits neither.
pub fn is_program(text: &str) -> Option<bool> {
    let text = after_comments(text.trim_start_matches('\u{feff}'));
    let end = text.find(|c: char| c.is_whitespace() || matches!(c, '=' | '.' | '['));
    let (word, rest) = text.split_at(end.unwrap_or(text.len()));
    let next = rest.trim_start_matches([' ', '\t']).chars().next();
    match next {
        // A table, or a key and its value.
        Some('=' | '.') => Some(false),
        Some('[') if word.is_empty() => Some(false),
        _ if FIRST_WORDS.contains(&word) => Some(true),
        _ => None,
    }
}

/// The text after white space and comments of both languages.
fn after_comments(mut text: &str) -> &str {
    loop {
        text = text.trim_start();
        text = if text.starts_with('#') || text.starts_with("//") {
            text.split_once('\n').map_or("", |(_, rest)| rest)
        } else if let Some(rest) = text.strip_prefix("/*") {
            rest.split_once("*/").map_or("", |(_, rest)| rest)
        } else {
            return text;
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_word_that_is_no_comment_tells() {
        for program in [
            "vcl 4.1;",
            "# nothing\n// at = all\n/* [x] */ vcl 4.0;",
            "backend a { .host = \"b\"; }",
            "\u{feff}sub vcl_recv {}",
            "import std;",
            "vcl",
        ] {
            assert_eq!(is_program(program), Some(true), "{program}");
        }
        for configuration in
            ["listen = 80", "# vcl 4.1;\n[[site]]", "[cache]", "vcl = \"a.vcl\"", "acl.x = 1"]
        {
            assert_eq!(is_program(configuration), Some(false), "{configuration}");
        }
        for neither in ["", "# only\n", "/* open", "hello world"] {
            assert_eq!(is_program(neither), None, "{neither}");
        }
    }
}
