//! Declarations: `vcl 4.1;`, `import`, and those with a name and braces. Nothing is declared here;
//! the tree only lists them.

use super::{ParseResult, Parser, ReportedFault};
use crate::ast::{Ast, Declaration, Name};
use crate::lex::{self, Token, TokenKind};
use crate::source::SourceSpan;

/// Keywords of declarations at the top level.
const DECLARATIONS: &[&str] =
    &["acl", "backend", "import", "include", "probe", "sub", "unused", "vcl"];

impl Parser<'_> {
    /// A whole program.
    pub(super) fn program(mut self) -> Ast {
        let mut ast = Ast { version: 41, items: Vec::new() };
        match self.at_keyword("vcl") {
            true => {
                let start = self.at;
                match self.version(None) {
                    Ok(version) => ast.version = version,
                    Err(ReportedFault) => self.leave_declaration(start),
                }
            }
            false => self.missing_version(),
        }
        while !self.at_end() {
            let start = self.at;
            let found = self.declaration(ast.version, &mut ast.items);
            (self.depth, self.unclosed) = (0, false);
            if found.is_err() {
                if self.at == start {
                    self.bump();
                }
                self.leave_declaration(start);
            }
        }
        ast
    }

    fn missing_version(&mut self) {
        let message = "the program does not begin with its version";
        if let Some(entry) = self.fault(message) {
            entry.expected("`vcl 4.1;`").help(
                "put `vcl 4.1;` before everything else; a program written for Varnish 3 needs \
                 more changes: Varnish's manual has them under \"Upgrading to Varnish 4.0\"",
            );
        }
    }

    /// `vcl 4.1;`; in an included file the version must not exceed `top`.
    fn version(&mut self, top: Option<u32>) -> ParseResult<u32> {
        let word = self.bump();
        let number = self.token();
        let version = match (number.kind, self.text(number)) {
            (TokenKind::Real, "4.0") => 40,
            (TokenKind::Real, "4.1") => 41,
            (TokenKind::Real, other) => {
                self.report
                    .error(number.span, format!("VCL {other} is not known"))
                    .expected("4.0 or 4.1")
                    .help("this is the version of the language, not of Varnish");
                self.bump();
                let _ = self.semicolon();
                return Ok(41);
            }
            _ => return Err(self.unexpected("`4.0` or `4.1`")),
        };
        self.bump();
        if let Some(top) = top.filter(|top| version > *top) {
            let message = format!("VCL 4.{} in a program of VCL 4.{}", version - 40, top - 40);
            self.report
                .error(word.span.to(number.span), message)
                .help("the first file says the highest version: begin that with `vcl 4.1;`");
        }
        if !self.at_sign(";") {
            let end = SourceSpan { start: number.span.end, ..number.span };
            self.report.error(end, "a `;` is missing").expected("`;`");
            return Ok(version);
        }
        self.bump();
        Ok(version)
    }

    fn declaration(&mut self, version: u32, items: &mut Vec<Declaration>) -> ParseResult<()> {
        let token = self.token();
        if token.kind != TokenKind::Identifier {
            return self.no_declaration(token);
        }
        match self.text(token) {
            "vcl" => self.version(Some(version)).map(drop),
            "import" => self.import().map(|item| items.push(item)),
            "acl" => self.acl(items),
            "backend" => self.backend(items),
            "probe" => self.probe(items),
            "sub" => self.sub(items),
            "unused" => self.unused().map(|name| items.push(Declaration::Unused(name))),
            word => Err(self.unknown_declaration(word)),
        }
    }

    /// Reports a sign, string or number in place of a declaration.
    fn no_declaration(&mut self, token: Token) -> ParseResult<()> {
        let after_brace = self.text(self.before()) == "}";
        match token.kind {
            TokenKind::Bad => {}
            TokenKind::Sign(";") => {
                if let Some(entry) = self.fault("a `;` with nothing before it") {
                    entry.help(match after_brace {
                        true => "no `;` follows a `}`",
                        false => "take it out",
                    });
                }
            }
            TokenKind::Sign("}") => {
                let odd = self.odd_close.take();
                if let Some(entry) = self.fault("this `}` closes nothing") {
                    if let Some((open, close)) = odd {
                        entry.label(open, "this was closed").label(close, "by this");
                    }
                    entry.help("take it out, or look for a `{` that is missing above");
                }
            }
            _ => {
                if let Some(entry) = self.fault("no declaration begins like this") {
                    entry.expected("`sub`, `backend`, `acl`, `probe` or `import`");
                }
                return Err(ReportedFault);
            }
        }
        self.bump();
        Ok(())
    }

    fn unknown_declaration(&mut self, word: &str) -> ReportedFault {
        let statement = matches!(word, "set" | "unset" | "call" | "return" | "if" | "new");
        let Some(entry) = self.fault(&format!("no declaration begins with `{word}`")) else {
            return ReportedFault;
        };
        entry.expected("`sub`, `backend`, `acl`, `probe` or `import`");
        if statement {
            entry.help("statements stand within a subroutine: `sub vcl_recv { ... }`");
        } else if word == "director" {
            entry.help(
                "directors come from a VMOD: `import directors;` and in `sub vcl_init` `new name = \
                 directors.round_robin();` with a `name.add_backend(...);` for each backend",
            );
        } else if let Some(name) = DECLARATIONS.iter().find(|name| word.starts_with(*name)) {
            entry.help(format!("did you mean `{name}`?"));
        } else {
            entry.did_you_mean(word, DECLARATIONS.iter().copied());
        }
        self.bump();
        ReportedFault
    }

    fn import(&mut self) -> ParseResult<Declaration> {
        self.bump();
        if self.token().kind == TokenKind::Str {
            let name = String::from_utf8_lossy(lex::string(self.bytes(self.token().span)));
            let help = format!("`import {name};`");
            if let Some(entry) = self.fault("a module's name stands without quotes") {
                entry.help(help);
            }
            return Err(ReportedFault);
        }
        let module = self.own_name("a module")?;
        let alias = match self.at_keyword("as") {
            true => {
                self.bump();
                Some(self.own_name("a module")?)
            }
            false => None,
        };
        let from = match self.at_keyword("from") {
            true => {
                self.bump();
                let (bytes, span) = self.string("the module's path")?;
                Some((String::from_utf8_lossy(&bytes).into(), span))
            }
            false => None,
        };
        if self.at_keyword("as") && from.is_some() {
            if let Some(entry) = self.fault("`as` stands before `from`") {
                entry.help("`import module as name from \"path\";`");
            }
            return Err(ReportedFault);
        }
        self.semicolon()?;
        Ok(Declaration::Import { module, alias, from })
    }

    /// `unused name;`
    pub(super) fn unused(&mut self) -> ParseResult<Name> {
        self.bump();
        let name = self.own_name("something declared")?;
        self.semicolon()?;
        Ok(name)
    }

    fn sub(&mut self, items: &mut Vec<Declaration>) -> ParseResult<()> {
        self.bump();
        let mut name = self.own_name("a subroutine")?;
        // Names are compared without case, and Varnish calls these subroutines by name.
        if name.text.get(..4).is_some_and(|begin| begin.eq_ignore_ascii_case("vcl_")) {
            name.text.make_ascii_lowercase();
        }
        if self.at_sign("(") {
            if let Some(entry) = self.fault("subroutines have no parameters") {
                let help =
                    format!("`sub {} {{ ... }}`; headers carry values: `req.http.X`", name.text);
                entry.help(help);
            }
            return Err(ReportedFault);
        }
        let body = self.block()?;
        items.push(Declaration::Sub { name, body });
        Ok(())
    }

    /// The content of a string.
    pub(super) fn string(&mut self, expected: &str) -> ParseResult<(Box<[u8]>, SourceSpan)> {
        if self.token().kind != TokenKind::Str {
            return Err(self.unexpected(&format!("{expected} in quotes")));
        }
        let token = self.bump();
        Ok((lex::string(self.bytes(token.span)).into(), token.span))
    }

    /// Reports the end of the program or a declaration in place of the `}` of `open`.
    pub(super) fn unclosed(&mut self, open: Token) -> bool {
        if !self.at_end() {
            let deeper = || self.indent(self.token().span) > self.indent(open.span);
            if !self.at_declaration() || deeper() {
                return false;
            }
        }
        if !self.unclosed {
            self.unclosed = true;
            let message = match self.at_end() {
                true => "a `}` is missing at the end of the file".to_owned(),
                false => format!("a `}}` is missing before this `{}`", self.text(self.token())),
            };
            let odd = self.odd_close.take();
            if let Some(entry) = self.fault(&message) {
                match odd {
                    Some((open, close)) => entry
                        .label(open, "this was closed")
                        .label(close, "by this, which stands further to the left"),
                    None => entry.label(open.span, "this is still open"),
                };
            }
        }
        true
    }
}
