//! `backend name { .attribute = value; }` and `probe name { ... }`, which share a grammar.
//! Attributes are checked later.

use super::{ParseResult, Parser, ReportedFault};
use crate::ast::{Declaration, Expr, ExprKind, Field, FieldValue, Name};
use crate::lex::{self, TokenKind};
use crate::source::SourceSpan;

impl Parser<'_> {
    pub(super) fn backend(&mut self, items: &mut Vec<Declaration>) -> ParseResult<()> {
        self.bump();
        let name = self.own_name("a backend")?;
        if self.at_keyword("none") || self.at_keyword("None") {
            self.bump();
            items.push(Declaration::Backend { name, fields: None });
            return self.semicolon();
        }
        let fields = self.fields()?.0;
        items.push(Declaration::Backend { name, fields: Some(fields) });
        Ok(())
    }

    pub(super) fn probe(&mut self, items: &mut Vec<Declaration>) -> ParseResult<()> {
        self.bump();
        let name = self.own_name("a probe")?;
        let fields = self.fields()?.0;
        items.push(Declaration::Probe { name, fields });
        Ok(())
    }

    /// `{ fields }`
    fn fields(&mut self) -> ParseResult<(Vec<Field>, SourceSpan)> {
        let open = self.expect("{")?;
        let mut fields = Vec::new();
        loop {
            if let Some(close) = self.take("}") {
                return Ok((fields, open.span.to(close.span)));
            }
            if self.unclosed(open) {
                return Ok((fields, open.span));
            }
            let start = self.at;
            match self.nested(Self::field) {
                Ok(field) => fields.push(field),
                Err(ReportedFault) => self.leave_statement(start),
            }
        }
    }

    fn field(&mut self) -> ParseResult<Field> {
        if self.token().kind == TokenKind::Identifier {
            let help = format!("`.{} = ...;`", self.text(self.token()));
            if let Some(entry) = self.fault("an attribute begins with a dot") {
                entry.help(help);
            }
            return Err(ReportedFault);
        }
        if self.at_sign(";") && self.text(self.before()) == "}" {
            if let Some(entry) = self.fault("no `;` follows a `}`") {
                entry.help("take it out");
            }
            return Err(ReportedFault);
        }
        self.expect(".")?;
        let word = self.token();
        if word.kind != TokenKind::Identifier {
            return Err(self.unexpected("the name of an attribute"));
        }
        self.bump();
        let name = Name { text: self.text(word).into(), span: word.span };
        self.expect("=")?;
        if self.at_sign("{") {
            let (fields, span) = self.fields()?;
            return Ok(Field { name, value: FieldValue::Probe(fields, span) });
        }
        let value = match &*name.text {
            "request" => self.strings()?,
            _ => FieldValue::Expr(self.constant()?),
        };
        self.field_end()?;
        Ok(Field { name, value })
    }

    /// One or more strings, each a line of a request.
    fn strings(&mut self) -> ParseResult<FieldValue> {
        let mut strings = vec![self.string("a line of the request")?];
        while self.token().kind == TokenKind::Str {
            strings.push(self.string("a line of the request")?);
        }
        Ok(FieldValue::Strings(strings))
    }

    /// A constant: attributes cannot have expressions, since backends exist before the first
    /// request.
    fn constant(&mut self) -> ParseResult<Expr> {
        let token = self.token();
        let span = token.span;
        let kind = match token.kind {
            TokenKind::Int | TokenKind::Real => return self.number(),
            TokenKind::Str => ExprKind::String(lex::string(self.bytes(span)).into()),
            TokenKind::Blob => return self.literal_blob(),
            TokenKind::Identifier => {
                let name = self.name()?;
                let span = name.span;
                return Ok(Expr { kind: ExprKind::Name(name), span });
            }
            TokenKind::Sign("-") => {
                self.fault("no attribute of a backend or probe is negative");
                return Err(ReportedFault);
            }
            _ => return Err(self.unexpected("a constant")),
        };
        self.bump();
        Ok(Expr { kind, span })
    }

    fn field_end(&mut self) -> ParseResult<()> {
        let calculates =
            matches!(self.token().kind, TokenKind::Sign("+" | "-" | "*" | "/" | "%" | "(" | "."));
        if calculates || self.token().kind == TokenKind::Str {
            let numbers = matches!(self.before().kind, TokenKind::Int | TokenKind::Real);
            if let Some(entry) = self.fault("attributes take one constant, and no calculations") {
                entry.expected("`;`");
                if numbers {
                    entry.help("addresses stand in quotes: `.host = \"127.0.0.1\";`");
                }
            }
            return Err(ReportedFault);
        }
        self.semicolon()
    }
}
