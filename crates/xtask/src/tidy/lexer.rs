//! A small lexer of Rust. It separates code, comments and literals, so that a rule about one
//! ignores the others.

/// The parts of a source, each with the other parts blanked and all line ends kept.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Masked {
    /// Code; literals keep their quotes.
    pub(crate) code: String,
    /// Comments, their slashes included.
    pub(crate) comments: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum SourcePart {
    Code,
    Comment,
    Literal,
}

/// Separates the parts of `source`.
pub(crate) fn mask(source: &str) -> Masked {
    let mut lexer = Lexer {
        rest: source,
        before: ' ',
        masked: Masked { code: String::new(), comments: String::new() },
    };
    while !lexer.rest.is_empty() {
        lexer.step();
    }
    lexer.masked
}

struct Lexer<'a> {
    rest: &'a str,
    /// The character before `rest`, which distinguishes `br"` from a name that ends in `br`.
    before: char,
    masked: Masked,
}

impl Lexer<'_> {
    fn step(&mut self) {
        let rest = self.rest;
        if rest.starts_with("//") {
            self.take(rest.find('\n').unwrap_or(rest.len()), SourcePart::Comment);
        } else if rest.starts_with("/*") {
            self.take(block_comment(rest), SourcePart::Comment);
        } else if let Some(length) = raw_string(rest).filter(|_| !is_word(self.before)) {
            self.literal(length);
        } else if rest.starts_with('"') {
            self.literal(quoted(rest, '"'));
        } else if rest.starts_with('\'') && is_char(rest) {
            self.literal(quoted(rest, '\''));
        } else {
            self.take(rest.chars().next().map_or(0, char::len_utf8), SourcePart::Code);
        }
    }

    /// Skips a literal. Its quotes count as code, so that the literal is not blank.
    fn literal(&mut self, length: usize) {
        self.take(1, SourcePart::Code);
        self.take(length.saturating_sub(2), SourcePart::Literal);
        self.take(usize::from(length > 1), SourcePart::Code);
    }

    fn take(&mut self, length: usize, part: SourcePart) {
        let (taken, rest) = self.rest.split_at(length.min(self.rest.len()));
        for character in taken.chars() {
            let blank = if character == '\n' { '\n' } else { ' ' };
            let shown = |own: SourcePart| if part == own { character } else { blank };
            self.masked.code.push(shown(SourcePart::Code));
            self.masked.comments.push(shown(SourcePart::Comment));
            self.before = character;
        }
        self.rest = rest;
    }
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// Length of the block comment at the start, with nested ones.
fn block_comment(text: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < text.len() {
        let rest = &text.as_bytes()[at..];
        if rest.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    text.len()
}

/// Length of the raw string at the start, if there is one. Its end has the same number of `#`.
fn raw_string(text: &str) -> Option<usize> {
    let after = text.strip_prefix('b').or_else(|| text.strip_prefix('c')).unwrap_or(text);
    let body = after.strip_prefix('r')?;
    let hashes = body.len() - body.trim_start_matches('#').len();
    let content = body[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let length = content.find(&end).map_or(content.len(), |at| at + end.len());
    Some(text.len() - content.len() + length)
}

/// Length of the literal at the start, up to the next unescaped `quote`.
fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, character) in text.char_indices().skip(1) {
        if escaped {
            escaped = false;
        } else if character == '\\' {
            escaped = true;
        } else if character == quote {
            return at + quote.len_utf8();
        }
    }
    text.len()
}

/// Returns true if the quote at the start begins a character, not a lifetime.
fn is_char(text: &str) -> bool {
    let mut characters = text.chars().skip(1);
    match characters.next() {
        Some('\\') => true,
        Some(_) => characters.next() == Some('\''),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(source: &str) -> String {
        mask(source).code
    }

    #[test]
    fn strings_comments_and_characters_are_blanked() {
        assert_eq!(code("a(\"{\", '{', b'}'); // {"), "a(\" \", ' ', b' ');     ");
        assert_eq!(code("x /* { /* } */ } */ y"), format!("x{}y", " ".repeat(19)));
        assert_eq!(mask("x // why").comments, "  // why");
    }

    #[test]
    fn raw_strings_end_at_their_own_number_of_hashes() {
        let masked = code("f(r#\"a\" { \"#, br\"{\") {");
        assert_eq!(masked.matches('{').count(), 1);
        assert_eq!(code("number\"{\""), "number\" \"");
    }

    #[test]
    fn lifetimes_are_code_and_escaped_quotes_end_nothing() {
        assert_eq!(code("fn f<'a>(x: &'a str) {}"), "fn f<'a>(x: &'a str) {}");
        assert_eq!(code(r#"f("\"{", '\'') {"#).matches('{').count(), 1);
    }

    #[test]
    fn every_line_stays_where_it_was() {
        let source = "a\n/* b\n c */\n\"d\ne\"\nf";
        assert_eq!(code(source).lines().count(), source.lines().count());
        assert_eq!(mask(source).comments.lines().count(), 6);
    }
}
