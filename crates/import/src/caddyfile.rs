//! The grammar of a Caddyfile: lines of words, and blocks behind a brace at the end of a line.

use std::sync::Arc;

use crate::error::Error;
use crate::syntax::{Directive, Place};

/// Blocks within each other.
const DEPTH_MAX: usize = 32;

/// Directives of a Caddyfile: ten times those of the largest that are known.
const DIRECTIVES_MAX: usize = 50_000;

/// Name of the block without one at the start, which has options of the whole server.
pub(crate) const GLOBAL: &str = "(options)";

/// Words of a line, and where it begins.
struct LineWords {
    place: Place,
    words: Vec<String>,
}

/// Reads a Caddyfile.
///
/// # Errors
/// A brace or quote that is missing, or a limit.
pub(crate) fn parse(name: &str, text: &str) -> Result<Vec<Directive>, Error> {
    let lines = lines(name, text)?;
    let file: Arc<str> = Arc::from(name);
    let mut reader = CaddyReader { file, lines: lines.into_iter(), next_id: 0 };
    let mut all = reader.block(0, None)?;
    // One site may stand without braces.
    let is_bare = all.first().is_some_and(|own| own.block.is_none() && !own.name.starts_with('('));
    if is_bare {
        let mut site = all.remove(0);
        site.block = Some(all);
        all = vec![site];
    }
    Ok(all)
}

struct CaddyReader {
    file: Arc<str>,
    lines: std::vec::IntoIter<LineWords>,
    next_id: usize,
}

impl CaddyReader {
    fn block(&mut self, depth: usize, opened: Option<Place>) -> Result<Vec<Directive>, Error> {
        let mut all = Vec::new();
        while let Some(LineWords { place, mut words }) = self.lines.next() {
            let limit =
                |what, most| Error::Limit { file: self.file.to_string(), place, what, most };
            if words == ["}"] {
                let expected = "expected a directive, not `}`: none is open";
                return match opened {
                    Some(_) => Ok(all),
                    None => Err(self.fault(place, expected)),
                };
            }
            if self.next_id == DIRECTIVES_MAX {
                return Err(limit("directives", DIRECTIVES_MAX));
            }
            if depth == DEPTH_MAX {
                return Err(limit("blocks within each other", DEPTH_MAX));
            }
            let opens = words.last().is_some_and(|word| word == "{");
            if opens {
                words.pop();
            }
            let id = self.next_id;
            self.next_id += 1;
            let mut words = words.into_iter();
            let name = words.next().unwrap_or_else(|| GLOBAL.to_owned());
            let block = if opens { Some(self.block(depth + 1, Some(place))?) } else { None };
            let args = words.collect();
            all.push(Directive { id, file: Arc::clone(&self.file), place, name, args, block });
        }
        match opened {
            None => Ok(all),
            Some(place) => Err(self.fault(place, "expected a `}` that ends this block")),
        }
    }

    fn fault(&self, place: Place, expected: &'static str) -> Error {
        Error::Syntax { file: self.file.to_string(), place, expected }
    }
}

/// The lines that are not empty, without comments. A backslash at the end joins two.
fn lines(name: &str, text: &str) -> Result<Vec<LineWords>, Error> {
    let mut all: Vec<LineWords> = Vec::new();
    let mut joins = false;
    let mut letters = Letters { rest: text.trim_start_matches('\u{feff}'), line: 1 };
    while !letters.rest.is_empty() {
        let place = Place { line: letters.line, column: 1 };
        let mut words = Vec::new();
        let mut goes_on = false;
        while let Some(word) = letters.word(name)? {
            goes_on = word == "\\";
            if !goes_on {
                words.push(word);
            }
        }
        match all.last_mut().filter(|_| joins) {
            Some(last) => last.words.append(&mut words),
            None if words.is_empty() => {}
            None => all.push(LineWords { place, words }),
        }
        joins = goes_on;
    }
    Ok(all)
}

struct Letters<'t> {
    rest: &'t str,
    line: u32,
}

impl Letters<'_> {
    fn take(&mut self) -> Option<char> {
        let letter = self.rest.chars().next()?;
        self.rest = &self.rest[letter.len_utf8()..];
        if letter == '\n' {
            self.line += 1;
        }
        Some(letter)
    }

    /// The next word of the line; `None` at its end, which is taken.
    fn word(&mut self, name: &str) -> Result<Option<String>, Error> {
        loop {
            match self.rest.chars().next() {
                None => return Ok(None),
                Some('\n') => {
                    self.take();
                    return Ok(None);
                }
                Some('#') => {
                    let end = self.rest.find('\n').unwrap_or(self.rest.len());
                    self.rest = &self.rest[end..];
                }
                Some(letter) if letter.is_whitespace() => _ = self.take(),
                Some(quote @ ('"' | '`')) => {
                    self.take();
                    return self.quoted(name, quote).map(Some);
                }
                Some(_) => {
                    let end = self.rest.find(char::is_whitespace).unwrap_or(self.rest.len());
                    let (word, rest) = self.rest.split_at(end);
                    self.rest = rest;
                    return Ok(Some(word.to_owned()));
                }
            }
        }
    }

    fn quoted(&mut self, name: &str, quote: char) -> Result<String, Error> {
        let place = Place { line: self.line, column: 1 };
        let mut word = String::new();
        loop {
            match self.take() {
                None => {
                    let expected = "expected the quote that ends this word";
                    return Err(Error::Syntax { file: name.to_owned(), place, expected });
                }
                Some(letter) if letter == quote => return Ok(word),
                Some('\\') if quote == '"' => match self.take() {
                    Some('"') => word.push('"'),
                    Some(letter) => word.extend(['\\', letter]),
                    None => {}
                },
                Some(letter) => word.push(letter),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_blocks_are_directives() {
        let text = "{\n  email a@b.test\n}\n# none\na.test, b.test {\n  respond \"x # y\" 200\n  \
                    handle /a/* {\n    root * `/srv x`\n  }\n}\n";
        let all = parse("x", text).expect("well-formed");
        let names: Vec<_> = all.iter().map(|own| own.name.as_str()).collect();
        assert_eq!(names, [GLOBAL, "a.test,"]);
        let site = all[1].children();
        assert_eq!(site[0].args, ["x # y", "200"]);
        assert_eq!(site[1].children()[0].args, ["*", "/srv x"]);
        let bare = parse("x", ":80\nfile_server\n").expect("well-formed");
        assert_eq!((bare.len(), bare[0].children().len()), (1, 1));
        for text in ["a {\n", "}\n", "a \"b\n"] {
            assert!(matches!(parse("x", text), Err(Error::Syntax { .. })), "{text}");
        }
    }
}
