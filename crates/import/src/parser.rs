//! The parser: from words to directives. Its caller follows includes, and gives their files.

use std::sync::Arc;

use crate::error::Error;
use crate::lexer::{Lexer, Token, WordFault};
use crate::syntax::{Directive, Place};

/// Blocks within each other: nginx has at most five or six of its own, and nested locations.
const DEPTH_MAX: usize = 32;

/// Directives of a configuration: ten times those of the largest that are known.
const DIRECTIVES_MAX: usize = 200_000;

/// Files that an `include` stands for, and where their directives go.
pub(crate) trait Includes {
    /// Reads the directives of the files that `directive` includes.
    fn include(
        &mut self,
        directive: &Directive,
        parser: &mut Parser,
    ) -> Result<Vec<Directive>, Error>;
}

/// An `include` is a directive like any other: for texts that stand alone.
#[derive(Debug)]
pub(crate) struct NoIncludes;

impl Includes for NoIncludes {
    fn include(&mut self, _: &Directive, _: &mut Parser) -> Result<Vec<Directive>, Error> {
        Ok(Vec::new())
    }
}

/// A reader of texts that numbers the directives of all of them.
#[derive(Debug, Default)]
pub(crate) struct Parser {
    next_id: usize,
    depth: usize,
}

impl Parser {
    /// Reads the directives of `text`, a whole file that begins at `line` of what has its name.
    pub(crate) fn file(
        &mut self,
        name: &Arc<str>,
        text: &str,
        line: u32,
        includes: &mut dyn Includes,
    ) -> Result<Vec<Directive>, Error> {
        let mut reader = FileReader { file: name, lexer: Lexer::new(text, line), includes };
        self.block(&mut reader, None)
    }

    /// The directives up to the end of the block that was opened at `opened`, or of the file.
    fn block(
        &mut self,
        reader: &mut FileReader<'_>,
        opened: Option<Place>,
    ) -> Result<Vec<Directive>, Error> {
        let mut directives = Vec::new();
        loop {
            let Some((place, token)) = reader.next()? else {
                return match opened {
                    None => Ok(directives),
                    Some(place) => Err(reader.fault(place, "expected a `}` that ends this block")),
                };
            };
            match token {
                Token::Word(name) => self.directive(reader, place, name, &mut directives)?,
                Token::Close if opened.is_some() => return Ok(directives),
                Token::Close => {
                    return Err(reader.fault(place, "expected a directive, not `}`: none is open"));
                }
                Token::Open => {
                    return Err(reader.fault(place, "expected the name of a directive before `{`"));
                }
                Token::End => {
                    return Err(reader.fault(place, "expected the name of a directive before `;`"));
                }
            }
        }
    }

    /// Reads the rest of a directive, and what it includes.
    fn directive(
        &mut self,
        reader: &mut FileReader<'_>,
        place: Place,
        name: String,
        to: &mut Vec<Directive>,
    ) -> Result<(), Error> {
        if self.next_id == DIRECTIVES_MAX {
            return Err(reader.limit(place, "directives", DIRECTIVES_MAX));
        }
        let id = self.next_id;
        self.next_id += 1;
        let file = Arc::clone(reader.file);
        let mut directive = Directive { id, file, place, name, args: Vec::new(), block: None };
        loop {
            let behind = reader.lexer.place();
            match reader.next()? {
                None => {
                    let expected = "expected `;` or `{` behind this directive";
                    return Err(reader.fault(place, expected));
                }
                Some((_, Token::Word(word))) => directive.args.push(word),
                Some((_, Token::End)) => break,
                Some((at, Token::Close)) => {
                    let place = if at.line == behind.line { at } else { behind };
                    return Err(reader.fault(place, "expected `;` before `}`"));
                }
                Some((at, Token::Open)) if directive.name.ends_with("_by_lua_block") => {
                    let text = reader.lexer.foreign_block();
                    let expected = "expected a `}` that ends this block of Lua";
                    directive.args.push(text.ok_or_else(|| reader.fault(at, expected))?);
                    break;
                }
                Some((at, Token::Open)) => {
                    if self.depth == DEPTH_MAX {
                        return Err(reader.limit(at, "blocks within each other", DEPTH_MAX));
                    }
                    self.depth += 1;
                    directive.block = Some(self.block(reader, Some(at))?);
                    self.depth -= 1;
                    break;
                }
            }
        }
        let included = if directive.name == "include" && directive.block.is_none() {
            reader.includes.include(&directive, self)?
        } else {
            Vec::new()
        };
        to.push(directive);
        to.extend(included);
        Ok(())
    }
}

struct FileReader<'r> {
    file: &'r Arc<str>,
    lexer: Lexer<'r>,
    includes: &'r mut dyn Includes,
}

impl FileReader<'_> {
    fn next(&mut self) -> Result<Option<(Place, Token)>, Error> {
        let next = self.lexer.next();
        next.map_err(|WordFault { place, expected }| self.fault(place, expected))
    }

    fn fault(&self, place: Place, expected: &'static str) -> Error {
        Error::Syntax { file: self.file.to_string(), place, expected }
    }

    fn limit(&self, place: Place, what: &'static str, most: usize) -> Error {
        Error::Limit { file: self.file.to_string(), place, what, most }
    }
}

/// Reads one text that stands alone, as `name`.
///
/// # Errors
/// A fault of its grammar, with its place, or a limit.
pub fn parse(name: &str, text: &str) -> Result<Vec<Directive>, Error> {
    Parser::default().file(&Arc::from(name), text, 1, &mut NoIncludes)
}
