//! Words of nginx's grammar, each with its place: as nginx's own reader takes them, with its quotes
//! and escapes.

use crate::syntax::Place;

/// One piece of a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    /// A word, without its quotes.
    Word(String),
    /// `;`
    End,
    /// `{`
    Open,
    /// `}`
    Close,
}

/// A fault in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WordFault {
    pub(crate) place: Place,
    pub(crate) expected: &'static str,
}

/// A reader of words.
#[derive(Debug)]
pub(crate) struct Lexer<'t> {
    rest: &'t str,
    place: Place,
}

impl<'t> Lexer<'t> {
    /// Begins with a text whose first line has the number `line`.
    pub(crate) fn new(text: &'t str, line: u32) -> Self {
        // A mark of the byte order stands at the start of files from Windows.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        Self { rest: text, place: Place { line, column: 1 } }
    }

    /// The place of what comes next.
    pub(crate) fn place(&self) -> Place {
        self.place
    }

    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn take(&mut self) -> Option<char> {
        let letter = self.peek()?;
        self.rest = &self.rest[letter.len_utf8()..];
        if letter == '\n' {
            self.place = Place { line: self.place.line + 1, column: 1 };
        } else {
            self.place.column += 1;
        }
        Some(letter)
    }

    fn skip_space(&mut self) {
        while let Some(letter) = self.peek() {
            match letter {
                '#' => {
                    while self.peek().is_some_and(|letter| letter != '\n') {
                        self.take();
                    }
                }
                _ if letter.is_whitespace() => _ = self.take(),
                _ => return,
            }
        }
    }

    /// The next piece and its place; `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<(Place, Token)>, WordFault> {
        self.skip_space();
        let place = self.place;
        let Some(letter) = self.peek() else { return Ok(None) };
        let token = match letter {
            ';' => self.one(Token::End),
            '{' => self.one(Token::Open),
            '}' => self.one(Token::Close),
            '"' | '\'' => Token::Word(self.quoted(letter)?),
            _ => Token::Word(self.bare()),
        };
        Ok(Some((place, token)))
    }

    fn one(&mut self, token: Token) -> Token {
        self.take();
        token
    }

    fn quoted(&mut self, quote: char) -> Result<String, WordFault> {
        let place = self.place;
        self.take();
        let mut word = String::new();
        loop {
            match self.take() {
                None => {
                    let expected = "expected the quote that ends this word";
                    return Err(WordFault { place, expected });
                }
                Some(letter) if letter == quote => break,
                Some('\\') => self.escape(&mut word),
                Some(letter) => word.push(letter),
            }
        }
        let is_end = |c: char| c.is_whitespace() || matches!(c, ';' | '{' | ')');
        if self.peek().is_none_or(is_end) {
            return Ok(word);
        }
        let expected = "expected a space, `;` or `{` behind a quoted word";
        Err(WordFault { place: self.place, expected })
    }

    fn bare(&mut self) -> String {
        let mut word = String::new();
        while let Some(letter) = self.peek() {
            match letter {
                ';' | '{' => break,
                _ if letter.is_whitespace() => break,
                '\\' => {
                    self.take();
                    self.escape(&mut word);
                }
                '$' => {
                    self.take();
                    word.push('$');
                    // `${name}` is a variable, not the beginning of a block.
                    if self.peek() == Some('{') {
                        self.take();
                        word.push('{');
                    }
                }
                _ => {
                    self.take();
                    word.push(letter);
                }
            }
        }
        word
    }

    /// Takes the letter behind a backslash, and the backslash where nginx keeps it.
    fn escape(&mut self, word: &mut String) {
        match self.take() {
            Some(letter @ ('"' | '\'' | '\\')) => word.push(letter),
            Some('t') => word.push('\t'),
            Some('r') => word.push('\r'),
            Some('n') => word.push('\n'),
            Some(letter) => word.extend(['\\', letter]),
            None => word.push('\\'),
        }
    }

    /// The text of a block in another language (Lua), whose `{` was just taken, up to its `}`;
    /// `None` if that is missing.
    pub(crate) fn foreign_block(&mut self) -> Option<String> {
        let (mut depth, mut text) = (1_u32, String::new());
        loop {
            let letter = self.take()?;
            match letter {
                '{' => depth += 1,
                '}' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return Some(text);
            }
            text.push(letter);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<Token> {
        let mut lexer = Lexer::new(text, 1);
        std::iter::from_fn(|| lexer.next().expect("well-formed")).map(|(_, token)| token).collect()
    }

    fn word(text: &str) -> Token {
        Token::Word(text.to_owned())
    }

    #[test]
    fn words_end_at_spaces_and_marks_and_quotes_keep_them() {
        assert_eq!(
            words("a b;# c ;\n{}"),
            [word("a"), word("b"), Token::End, Token::Open, Token::Close]
        );
        assert_eq!(words("\"a b;\" 'c\"d'"), [word("a b;"), word("c\"d")]);
        assert_eq!(words("${a}b a#b a}"), [word("${a}b"), word("a#b"), word("a}")]);
    }

    #[test]
    fn a_backslash_is_kept_where_nginx_keeps_it() {
        assert_eq!(words(r"\.php$ \d\s"), [word(r"\.php$"), word(r"\d\s")]);
        assert_eq!(words(r#""\"\\\n" a\;b"#), [word("\"\\\n"), word(r"a\;b")]);
    }

    #[test]
    fn faults_have_places() {
        let fault = |text| {
            let mut lexer = Lexer::new(text, 1);
            loop {
                match lexer.next() {
                    Err(fault) => return (fault.place.line, fault.place.column),
                    Ok(None) => panic!("{text}: no fault"),
                    Ok(Some(_)) => {}
                }
            }
        };
        assert_eq!(fault("a\n  \"b;\n"), (2, 3));
        assert_eq!(fault("\"a\"b;"), (1, 4));
    }
}
