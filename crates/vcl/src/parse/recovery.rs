//! Faults, and where to go on after one.

use super::{Failed, Parsed, Parser};
use crate::lex::{Kind, Token};
use crate::report::Entry;
use crate::source::Span;

/// Words that begin a statement.
const STATEMENTS: &[&str] = &["set", "unset", "call", "return", "if", "new"];

impl Parser<'_> {
    /// A fault at this token; none when it or the one before has been complained about.
    pub(super) fn fault(&mut self, message: &str) -> Option<&mut Entry> {
        let token = self.token();
        if token.kind == Kind::Bad || self.before().kind == Kind::Bad {
            return None;
        }
        Some(self.report.error(token.span, message))
    }

    /// The fault that [`Self::unexpected`] has just reported.
    pub(super) fn last_fault(&mut self) -> Option<&mut Entry> {
        if self.token().kind == Kind::Bad || self.before().kind == Kind::Bad {
            return None;
        }
        self.report.last()
    }

    /// Something else stands here than `expected`.
    pub(super) fn unexpected(&mut self, expected: &str) -> Failed {
        let found = self.shown(self.token());
        let help = self.advice();
        if let Some(entry) = self.fault(&format!("expected {expected}, found {found}")) {
            entry.expected(expected);
            if let Some(help) = help {
                entry.help(help);
            }
        }
        Failed
    }

    /// A token as an error names it.
    pub(super) fn shown(&self, token: Token) -> String {
        let text = String::from_utf8_lossy(self.bytes(token.span));
        match token.kind {
            Kind::End => "the end of the file".to_owned(),
            Kind::Str if text.len() > 30 || text.contains('\n') => "a string".to_owned(),
            Kind::Str => format!("the string {text}"),
            _ if text.len() > 60 => "a long word".to_owned(),
            _ => format!("`{text}`"),
        }
    }

    /// Advice about a word or sign that is right in other languages but not in VCL.
    fn advice(&self) -> Option<&'static str> {
        let token = self.token();
        let next = self.peek(1);
        let adjacent = token.span.end == next.span.start;
        Some(match (token.kind, next.kind) {
            (Kind::Sign("="), Kind::Sign("~")) if adjacent => "`~` matches a pattern",
            (Kind::Sign("="), Kind::Sign(">")) if adjacent => "`>=` is \"at least\"",
            (Kind::Sign(">"), _) if self.text(self.before()) == "<" => "`!=` is \"not equal\"",
            (Kind::Sign("="), _) if matches!(self.text(self.before()), "==" | "!=") => {
                "two signs are enough: `==`, `!=`"
            }
            (Kind::Sign("="), _) => "`==` compares",
            (Kind::Sign("=="), _) if self.before_is_target() => "`=` sets",
            (Kind::Sign("&"), _) => "`&&` is \"and\"",
            (Kind::Sign("|"), _) => "`||` is \"or\"",
            (Kind::Sign("==" | "!=" | "<" | ">" | "<=" | ">=" | "~" | "!~"), _) => {
                "a comparison has two sides; put parentheses around the first one"
            }
            (Kind::Sign("!"), _) if self.text(self.before()) == "!" => "one `!` is enough",
            (Kind::Sign("%"), Kind::Sign("=")) if adjacent => {
                "there are `=`, `+=`, `-=`, `*=` and `/=`"
            }
            (Kind::Sign("!"), _) => "`!` stands before a whole comparison; `(!x)` goes elsewhere",
            (Kind::Sign("++"), _) => "`+= 1` adds one; `+` joins strings",
            (Kind::Sign("--"), _) => "`-= 1` takes one away; `- -1` needs a space",
            (Kind::Word, _) if self.text(self.before()) == "not" => "`!` is \"not\"",
            (Kind::Word, _) => match self.text(token) {
                "and" | "AND" => "`&&` is \"and\"",
                "or" | "OR" => "`||` is \"or\"",
                "not" | "NOT" => "`!` is \"not\"",
                "eq" => "`==` compares",
                _ => return None,
            },
            _ => return None,
        })
    }

    /// Returns true if the word before this token is the target of a `set`.
    fn before_is_target(&self) -> bool {
        let mut at = self.at;
        while at > 0 {
            at -= 1;
            match self.tokens[at].kind {
                Kind::Word if self.text(self.tokens[at]) == "set" => return true,
                Kind::Word | Kind::Sign(".") => {}
                _ => return false,
            }
        }
        false
    }

    /// `;` after a statement, or something that shows that it was forgotten.
    pub(super) fn semicolon(&mut self) -> Parsed<()> {
        if self.take(";").is_some() {
            return Ok(());
        }
        let (token, before) = (self.token(), self.before());
        if token.kind == Kind::Bad || before.kind == Kind::Bad {
            return Err(Failed);
        }
        let ends = matches!(token.kind, Kind::End | Kind::Sign("}"));
        if (token.kind == Kind::Word && self.begins_line(token)) || ends {
            let end = Span { start: before.span.end, ..before.span };
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

    /// Blanks before the first thing of the line that `span` begins in.
    pub(super) fn indent(&self, span: Span) -> usize {
        let text = &self.sources.file(span.file).text;
        let before = &text[..span.start as usize];
        let line = before.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
        text[line..].iter().take_while(|b| matches!(b, b' ' | b'\t')).count()
    }

    /// Returns true if a declaration begins here. In the place of a statement, it shows that a `}`
    /// is missing.
    pub(super) fn at_declaration(&self) -> bool {
        if self.token().kind != Kind::Word || self.peek(1).kind != Kind::Word {
            return false;
        }
        let body = match (self.text(self.token()), self.peek(2).kind) {
            ("sub" | "probe" | "backend" | "acl", Kind::Sign("{")) => true,
            ("acl", Kind::Sign("+" | "-")) => true,
            ("backend", Kind::Word) => matches!(self.text(self.peek(2)), "none" | "None"),
            _ => false,
        };
        body && self.begins_line(self.token())
    }

    /// Leaves a statement that began at token `start`: goes on after its `;`, before the `}` around
    /// it, or before a statement or declaration that begins a line.
    pub(super) fn leave_statement(&mut self, start: usize) {
        let mut depth = 0_u32;
        if self.at == start {
            depth += u32::from(self.at_sign("{"));
            self.bump();
        }
        while !self.at_end() {
            let token = self.token();
            match token.kind {
                Kind::Sign(";") if depth == 0 => {
                    self.bump();
                    return;
                }
                Kind::Sign("{") => depth += 1,
                Kind::Sign("}") if depth == 0 => return,
                Kind::Sign("}") => {
                    depth -= 1;
                    if depth == 0 && self.peek(1).kind != Kind::Sign(";") {
                        self.bump();
                        return;
                    }
                }
                Kind::Word if self.at_declaration() => return,
                Kind::Word
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

    /// Leaves a declaration that began at token `start`: goes on after its `;` or `}`, or before
    /// one that begins a line.
    pub(super) fn leave_declaration(&mut self, start: usize) {
        let mut depth = 0_u32;
        while !self.at_end() {
            if self.at > start && self.at_declaration() {
                return;
            }
            match self.bump().kind {
                Kind::Sign(";") if depth == 0 => return,
                Kind::Sign("{") => depth += 1,
                Kind::Sign("}") if depth <= 1 => return,
                Kind::Sign("}") => depth -= 1,
                _ => {}
            }
        }
    }

    /// Goes to the `{` that follows a condition, before the end of the statement.
    pub(super) fn leave_condition(&mut self) -> bool {
        while !self.at_end() && !self.at_declaration() {
            match self.token().kind {
                Kind::Sign("{") => return true,
                Kind::Sign(";" | "}") => return false,
                _ => self.bump(),
            };
        }
        false
    }
}
