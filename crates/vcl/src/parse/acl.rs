//! `acl name +flags { entries }`: its grammar only. Masks and addresses are checked later.

use super::{ParseResult, Parser, ReportedFault};
use crate::ast::{AclDeclaration, AclEntry, AclFlag, Declaration, Name};
use crate::lex::TokenKind;
use crate::source::SourceSpan;

impl Parser<'_> {
    /// Parses a list. After a fault inside the list is still declared, so that its uses are no
    /// further errors.
    pub(super) fn acl(&mut self, items: &mut Vec<Declaration>) -> ParseResult<()> {
        self.bump();
        let name = self.own_name("an access list")?;
        let mut acl = AclDeclaration { name, flags: Vec::new(), entries: Vec::new() };
        let read = self.acl_inside(&mut acl);
        items.push(Declaration::Acl(acl));
        read
    }

    fn acl_inside(&mut self, acl: &mut AclDeclaration) -> ParseResult<()> {
        while self.at_sign("+") || self.at_sign("-") {
            acl.flags.push(self.acl_flag()?);
        }
        let open = self.expect("{")?;
        while self.take("}").is_none() {
            if self.unclosed(open) {
                break;
            }
            let start = self.at;
            match self.acl_entry() {
                Ok(entry) => acl.entries.push(entry),
                Err(ReportedFault) => self.leave_statement(start),
            }
        }
        Ok(())
    }

    fn acl_flag(&mut self) -> ParseResult<AclFlag> {
        let sign = self.bump();
        let word = self.token();
        if word.kind != TokenKind::Identifier || word.span.start != sign.span.end {
            return Err(self.unexpected("a flag right behind its sign, as `+log`"));
        }
        self.bump();
        let name = Name { text: self.text(word).into(), span: word.span };
        let mut inner = Vec::new();
        if self.take("(").is_some() {
            while self.at_sign("+") || self.at_sign("-") {
                inner.push(self.nested(Self::acl_flag)?);
            }
            self.expect(")")?;
        }
        Ok(AclFlag { is_on: sign.kind == TokenKind::Sign("+"), name, inner })
    }

    fn acl_entry(&mut self) -> ParseResult<AclEntry> {
        let first = self.token().span;
        let mut negated = self.take("!").is_some();
        let optional = self.take("(").is_some();
        if optional && !negated {
            negated = self.take("!").is_some();
        }
        let (mut host, at) = self.acl_host()?;
        let mut mask = self.mask_in_quotes(&mut host, at)?;
        if self.at_sign("/") {
            if mask.is_some() {
                self.fault("a second mask");
                return Err(ReportedFault);
            }
            self.bump();
            mask = Some(self.acl_mask()?);
        }
        if optional {
            self.expect(")")?;
            if self.at_sign("/") {
                if let Some(entry) = self.fault("a mask stands within the parentheses") {
                    entry.help("`(\"host\"/24);`");
                }
                return Err(ReportedFault);
            }
        }
        let span = first.to(self.before().span);
        self.acl_end()?;
        Ok(AclEntry { negated, optional, host: (host, at), mask, span })
    }

    fn acl_host(&mut self) -> ParseResult<(Box<str>, SourceSpan)> {
        let token = self.token();
        if token.kind == TokenKind::Str {
            let (bytes, span) = self.string("an address")?;
            let Ok(text) = std::str::from_utf8(&bytes) else {
                self.report.error(span, "no address and no host name");
                return Err(ReportedFault);
            };
            return Ok((text.into(), span));
        }
        if matches!(token.kind, TokenKind::Int | TokenKind::Real | TokenKind::Identifier) {
            if let Some(entry) = self.fault("addresses stand in quotes") {
                entry.expected("an address in quotes").help("`\"192.0.2.0\"/24;`");
            }
            return Err(ReportedFault);
        }
        Err(self.unexpected("an address in quotes"))
    }

    /// Takes the mask out of a string such as `"10.0.0.0/8"`.
    fn mask_in_quotes(
        &mut self,
        host: &mut Box<str>,
        at: SourceSpan,
    ) -> ParseResult<Option<(u32, SourceSpan)>> {
        let Some((address, bits)) = host.split_once('/') else { return Ok(None) };
        let quotes = (self.bytes(at).len() - host.len()) / 2;
        let start = at.start + (quotes + address.len() + 1) as u32;
        let span = SourceSpan { start, end: start + bits.len() as u32, ..at };
        if bits.is_empty() || !bits.bytes().all(|b| b.is_ascii_digit()) {
            self.report.error(span, "the mask is no number of bits").help("`\"10.0.0.0\"/8;`");
            return Err(ReportedFault);
        }
        let bits = bits.parse().unwrap_or(u32::MAX);
        *host = address.into();
        Ok(Some((bits, span)))
    }

    fn acl_mask(&mut self) -> ParseResult<(u32, SourceSpan)> {
        let token = self.token();
        if token.kind != TokenKind::Int {
            let failed = self.unexpected("the mask as a number of bits");
            if let Some(entry) = self.last_fault() {
                entry.help("`\"10.0.0.0\"/8;`: no quotes, and no mask with dots");
            }
            return Err(failed);
        }
        self.bump();
        // A number too large for `u32` is too large for a mask, which the checker reports.
        Ok((self.text(token).parse().unwrap_or(u32::MAX), token.span))
    }

    fn acl_end(&mut self) -> ParseResult<()> {
        if self.at_sign(",") {
            if let Some(entry) = self.fault("entries end with `;`, not with `,`") {
                entry.expected("`;`");
            }
            self.bump();
            return Ok(());
        }
        self.semicolon()
    }
}
