//! Recovery after faults: their messages, and the place where parsing continues. One fault never
//! causes a second message at its token.

use super::{ParseResult, Parser, ReportedFault};
use crate::lex::{Token, TokenKind};
use crate::report::Finding;
use crate::source::SourceSpan;

/// Keywords of statements.
const STATEMENTS: &[&str] = &["set", "unset", "call", "return", "if", "new"];

impl Parser<'_> {
    /// A new error at the current token; `None` if this token or the one before has been reported.
    pub(super) fn fault(&mut self, message: &str) -> Option<&mut Finding> {
        let token = self.token();
        if token.kind == TokenKind::Bad || self.before().kind == TokenKind::Bad {
            return None;
        }
        Some(self.report.error(token.span, message))
    }

    /// The error that [`Self::unexpected`] has just reported.
    pub(super) fn last_fault(&mut self) -> Option<&mut Finding> {
        if self.token().kind == TokenKind::Bad || self.before().kind == TokenKind::Bad {
            return None;
        }
        self.report.last()
    }

    /// Reports the current token where `expected` should stand.
    pub(super) fn unexpected(&mut self, expected: &str) -> ReportedFault {
        let found = self.shown(self.token());
        let help = self.advice();
        if let Some(entry) = self.fault(&format!("expected {expected}, found {found}")) {
            entry.expected(expected);
            if let Some(help) = help {
                entry.help(help);
            }
        }
        ReportedFault
    }

    /// A token as an error names it.
    pub(super) fn shown(&self, token: Token) -> String {
        let text = String::from_utf8_lossy(self.bytes(token.span));
        match token.kind {
            TokenKind::End => "the end of the file".to_owned(),
            TokenKind::Str if text.len() > 30 || text.contains('\n') => "a string".to_owned(),
            TokenKind::Str => format!("the string {text}"),
            _ if text.len() > 60 => "a long name".to_owned(),
            _ => format!("`{text}`"),
        }
    }

    /// Advice on a word or sign of other languages.
    fn advice(&self) -> Option<&'static str> {
        let token = self.token();
        let next = self.peek(1);
        let adjacent = token.span.end == next.span.start;
        Some(match (token.kind, next.kind) {
            (TokenKind::Sign("="), TokenKind::Sign("~")) if adjacent => "`~` matches a pattern",
            (TokenKind::Sign("="), TokenKind::Sign(">")) if adjacent => "`>=` is \"at least\"",
            (TokenKind::Sign(">"), _) if self.text(self.before()) == "<" => "`!=` is \"not equal\"",
            (TokenKind::Sign("="), _) if matches!(self.text(self.before()), "==" | "!=") => {
                "two signs are enough: `==`, `!=`"
            }
            (TokenKind::Sign("="), _) => "`==` compares",
            (TokenKind::Sign("=="), _) if self.before_is_target() => "`=` sets",
            (TokenKind::Sign("&"), _) => "`&&` is \"and\"",
            (TokenKind::Sign("|"), _) => "`||` is \"or\"",
            (TokenKind::Sign("==" | "!=" | "<" | ">" | "<=" | ">=" | "~" | "!~"), _) => {
                "a comparison has two sides; put parentheses around the first one"
            }
            (TokenKind::Sign("!"), _) if self.text(self.before()) == "!" => "one `!` is enough",
            (TokenKind::Sign("%"), TokenKind::Sign("=")) if adjacent => {
                "there are `=`, `+=`, `-=`, `*=` and `/=`"
            }
            (TokenKind::Sign("!"), _) => {
                "`!` stands before a whole comparison; `(!x)` goes elsewhere"
            }
            (TokenKind::Sign("++"), _) => "`+= 1` adds one; `+` joins strings",
            (TokenKind::Sign("--"), _) => "`-= 1` takes one away; `- -1` needs a space",
            (TokenKind::Identifier, _) if self.text(self.before()) == "not" => "`!` is \"not\"",
            (TokenKind::Identifier, _) => match self.text(token) {
                "and" | "AND" => "`&&` is \"and\"",
                "or" | "OR" => "`||` is \"or\"",
                "not" | "NOT" => "`!` is \"not\"",
                "eq" => "`==` compares",
                _ => return None,
            },
            _ => return None,
        })
    }

    /// Returns true if the token before is the target of a `set`.
    fn before_is_target(&self) -> bool {
        let mut at = self.at;
        while at > 0 {
            at -= 1;
            match self.tokens[at].kind {
                TokenKind::Identifier if self.text(self.tokens[at]) == "set" => return true,
                TokenKind::Identifier | TokenKind::Sign(".") => {}
                _ => return false,
            }
        }
        false
    }

    /// Expects `;` after a statement, or reports that it is missing.
    pub(super) fn semicolon(&mut self) -> ParseResult<()> {
        if self.take(";").is_some() {
            return Ok(());
        }
        let (token, before) = (self.token(), self.before());
        if token.kind == TokenKind::Bad || before.kind == TokenKind::Bad {
            return Err(ReportedFault);
        }
        let ends = matches!(token.kind, TokenKind::End | TokenKind::Sign("}"));
        if (token.kind == TokenKind::Identifier && self.begins_line(token)) || ends {
            let end = SourceSpan { start: before.span.end, ..before.span };
            self.report.error(end, "a `;` is missing").expected("`;`");
            return Ok(());
        }
        Err(self.unexpected("`;`"))
    }

    /// Returns true if `token` is the first of its line.
    pub(super) fn begins_line(&self, token: Token) -> bool {
        let text = &self.sources.file(token.span.file).text[..token.span.start as usize];
        let blank = |b: &&u8| matches!(b, b' ' | b'\t' | b'\r');
        text.iter().rev().find(|b| !blank(b)).is_none_or(|b| *b == b'\n')
    }

    /// Number of blanks at the beginning of the line in which `span` begins.
    pub(super) fn indent(&self, span: SourceSpan) -> usize {
        let text = &self.sources.file(span.file).text;
        let before = &text[..span.start as usize];
        let line = before.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
        text[line..].iter().take_while(|b| matches!(b, b' ' | b'\t')).count()
    }

    /// Returns true if a declaration begins here. In place of a statement it means that a `}` is
    /// missing.
    pub(super) fn at_declaration(&self) -> bool {
        if self.token().kind != TokenKind::Identifier || self.peek(1).kind != TokenKind::Identifier
        {
            return false;
        }
        let body = match (self.text(self.token()), self.peek(2).kind) {
            ("sub" | "probe" | "backend" | "acl", TokenKind::Sign("{")) => true,
            ("acl", TokenKind::Sign("+" | "-")) => true,
            ("backend", TokenKind::Identifier) => {
                matches!(self.text(self.peek(2)), "none" | "None")
            }
            _ => false,
        };
        body && self.begins_line(self.token())
    }

    /// Skips the rest of a statement that began at token `start`: continues after its `;`, before
    /// the enclosing `}`, or before a statement or declaration at a line's beginning.
    pub(super) fn leave_statement(&mut self, start: usize) {
        let mut depth = 0_u32;
        if self.at == start {
            depth += u32::from(self.at_sign("{"));
            self.bump();
        }
        while !self.at_end() {
            let token = self.token();
            match token.kind {
                TokenKind::Sign(";") if depth == 0 => {
                    self.bump();
                    return;
                }
                TokenKind::Sign("{") => depth += 1,
                TokenKind::Sign("}") if depth == 0 => return,
                TokenKind::Sign("}") => {
                    depth -= 1;
                    if depth == 0 && self.peek(1).kind != TokenKind::Sign(";") {
                        self.bump();
                        return;
                    }
                }
                TokenKind::Identifier if self.at_declaration() => return,
                TokenKind::Identifier
                    if depth == 0
                        && STATEMENTS.contains(&self.text(token))
                        && self.begins_line(token) =>
                {
                    return;
                }
                _ => {}
            }
            self.bump();
        }
    }

    /// Skips the rest of a declaration that began at token `start`: continues after its `;` or `}`,
    /// or before a declaration at a line's beginning.
    pub(super) fn leave_declaration(&mut self, start: usize) {
        let mut depth = 0_u32;
        while !self.at_end() {
            if self.at > start && self.at_declaration() {
                return;
            }
            match self.bump().kind {
                TokenKind::Sign(";") if depth == 0 => return,
                TokenKind::Sign("{") => depth += 1,
                TokenKind::Sign("}") if depth <= 1 => return,
                TokenKind::Sign("}") => depth -= 1,
                _ => {}
            }
        }
    }

    /// Skips to the `{` behind a condition. Returns false at the statement's end.
    pub(super) fn leave_condition(&mut self) -> bool {
        while !self.at_end() && !self.at_declaration() {
            match self.token().kind {
                TokenKind::Sign("{") => return true,
                TokenKind::Sign(";" | "}") => return false,
                _ => self.bump(),
            };
        }
        false
    }
}
