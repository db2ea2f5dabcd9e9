//! Parser: from source files to the syntax tree, with all grammar faults reported. After a fault it
//! continues at the next statement or declaration. Names, types and places are the checker's. It
//! never recurses deeper than [`MAX_DEPTH`].

mod acl;
mod backend;
mod declaration;
mod expression;
mod include;
mod name;
mod number;
mod recovery;
mod statement;

use crate::ast::{Ast, Declaration};
use crate::input::{Input, ProgramRole};
use crate::lex::{self, Token, TokenKind};
use crate::report::Report;
use crate::source::{SourceFile, SourceSpan, Sources};

pub use include::{MAX_FILES, MAX_PROGRAM};

/// Most nested blocks, parentheses and calls. Programs written by hand stay below ten.
pub const MAX_DEPTH: u32 = 100;
/// Most operators of one expression, including its parentheses.
pub const MAX_OPERATORS: u32 = 1000;
/// The builtin VCL, which runs when a program's subroutine has not returned.
pub const BUILTIN: &str = include_str!("builtin.vcl");
/// The place of the builtin VCL behind an extra: each subroutine hands on to the declared step.
const BEHIND_EXTRA: &str = include_str!("behind_extra.vcl");
/// Name of the builtin VCL in errors.
pub const BUILTIN_NAME: &str = "<builtin>";

/// Parses a program and its includes. Their sources become files 0 and up of `sources`.
///
/// After faults the tree is partial: its names and types can be checked, but not missing or unused
/// names. `None` if nothing could be parsed.
pub fn parse(input: &Input<'_>, sources: &mut Sources, report: &mut Report) -> Option<Ast> {
    let file = sources.add(SourceFile {
        name: input.name.into(),
        text: input.text.into(),
        included_at: None,
    });
    let mut tokens = include::splice(input, file, sources, report);
    // Sources are limited to far less than 4 GiB.
    let end = input.text.len().min(lex::MAX_FILE) as u32;
    tokens.push(Token { kind: TokenKind::End, span: SourceSpan { file, start: end, end } });
    if tokens.len() == 1 && report.has_errors() {
        return None;
    }
    Some(Parser::new(tokens, sources, report).program())
}

/// Parses the builtin VCL, or what stands for it behind an extra. It becomes the last file of
/// `sources`.
pub fn parse_builtin(sources: &mut Sources, role: ProgramRole) -> Vec<Declaration> {
    let mut report = Report::default();
    let text = match role {
        ProgramRole::Whole => BUILTIN,
        ProgramRole::Extra => BEHIND_EXTRA,
    };
    let builtin =
        SourceFile { name: BUILTIN_NAME.into(), text: text.as_bytes().into(), included_at: None };
    let file = sources.add(builtin);
    let mut tokens = lex::tokens(file, sources.file(file), &mut report);
    let end = text.len() as u32;
    tokens.push(Token { kind: TokenKind::End, span: SourceSpan { file, start: end, end } });
    Parser::new(tokens, sources, &mut report).program().items
}

/// Marker: a fault has been reported, and the caller has to recover.
#[derive(Clone, Copy, Debug)]
struct ReportedFault;

type ParseResult<T> = Result<T, ReportedFault>;

struct Parser<'a> {
    tokens: Vec<Token>,
    at: usize,
    sources: &'a Sources,
    report: &'a mut Report,
    /// Depth of nested blocks, parentheses and calls.
    depth: u32,
    /// Operators of the current expression.
    operators: u32,
    /// True if a block was left without its `}`: the enclosing blocks are left too.
    unclosed: bool,
    /// A `{` and a `}` further to the left that closed it, probably another block's.
    odd_close: Option<(SourceSpan, SourceSpan)>,
}

impl<'a> Parser<'a> {
    fn new(tokens: Vec<Token>, sources: &'a Sources, report: &'a mut Report) -> Self {
        Self {
            tokens,
            at: 0,
            sources,
            report,
            depth: 0,
            operators: 0,
            unclosed: false,
            odd_close: None,
        }
    }

    /// The token `ahead` of the current one; the end repeats.
    fn peek(&self, ahead: usize) -> Token {
        self.tokens[(self.at + ahead).min(self.tokens.len() - 1)]
    }

    fn token(&self) -> Token {
        self.peek(0)
    }

    /// The token before the current one; for the first one itself.
    fn before(&self) -> Token {
        self.tokens[self.at.saturating_sub(1)]
    }

    fn bump(&mut self) -> Token {
        let token = self.token();
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        token
    }

    fn bytes(&self, span: SourceSpan) -> &'a [u8] {
        &self.sources.file(span.file).text[span.start as usize..span.end as usize]
    }

    /// The text of an identifier, number or sign, which is ASCII.
    fn text(&self, token: Token) -> &'a str {
        std::str::from_utf8(self.bytes(token.span)).unwrap_or_default()
    }

    fn at_end(&self) -> bool {
        self.token().kind == TokenKind::End
    }

    fn at_sign(&self, sign: &str) -> bool {
        matches!(self.token().kind, TokenKind::Sign(s) if s == sign)
    }

    fn at_keyword(&self, word: &str) -> bool {
        self.token().kind == TokenKind::Identifier && self.text(self.token()) == word
    }

    fn take(&mut self, sign: &str) -> Option<Token> {
        self.at_sign(sign).then(|| self.bump())
    }

    fn expect(&mut self, sign: &str) -> ParseResult<Token> {
        match self.take(sign) {
            Some(token) => Ok(token),
            None => Err(self.unexpected(&format!("`{sign}`"))),
        }
    }

    /// Runs `inside` one level deeper.
    fn nested<T>(&mut self, inside: impl FnOnce(&mut Self) -> ParseResult<T>) -> ParseResult<T> {
        if self.depth >= MAX_DEPTH {
            let span = self.token().span;
            let entry = self.report.error(span, "nested too deep");
            entry.note(format!("at most {MAX_DEPTH} blocks, parentheses and calls"));
            return Err(ReportedFault);
        }
        self.depth += 1;
        let result = inside(self);
        self.depth -= 1;
        result
    }
}

#[cfg(test)]
mod tests;
