//! Numbers and their units. Limits are those of structured fields (RFC 8941), as in Varnish 7;
//! larger numbers are never accepted.

use super::{ParseResult, Parser, ReportedFault};
use crate::ast::{Expr, ExprKind};
use crate::lex::{self, Token, TokenKind};

/// Digits of an integer: RFC 8941, section 3.3.1.
const INT_DIGITS: usize = 15;
/// Digits before and after the dot: RFC 8941, section 3.3.2.
const REAL_DIGITS: (usize, usize) = (12, 3);

/// The unit that may mean minutes or megabytes.
const MINUTE: &str = "m";

/// Seconds of each unit.
const DURATIONS: &[(&str, f64)] = &[
    ("ms", 0.001),
    ("s", 1.0),
    (MINUTE, 60.0),
    ("h", 3600.0),
    ("d", 86_400.0),
    ("w", 604_800.0),
    ("y", 31_536_000.0),
];

/// Upper limit of sizes, exclusive: 2^63.
const BYTES_END: f64 = 9_223_372_036_854_775_808.0;

/// Powers of two of each unit. `m` alone is minutes, except where BYTES are expected.
const SIZES: &[(&str, u32)] = &[
    ("b", 0),
    ("k", 10),
    ("kb", 10),
    ("mb", 20),
    ("g", 30),
    ("gb", 30),
    ("t", 40),
    ("tb", 40),
    ("p", 50),
    ("pb", 50),
];

impl Parser<'_> {
    /// A number with its unit.
    pub(super) fn number(&mut self) -> ParseResult<Expr> {
        let token = self.bump();
        let text = self.text(token);
        let value = self.value(token, text);
        let unit = self.token();
        if unit.kind != TokenKind::Identifier || is_operator(self.text(unit)) {
            let kind = match token.kind {
                TokenKind::Int => ExprKind::Int(value as i64),
                _ => ExprKind::Real(value),
            };
            return Ok(Expr { kind, span: token.span });
        }
        let word = self.text(unit);
        let span = token.span.to(unit.span);
        if word == MINUTE {
            self.bump();
            return Ok(Expr { kind: ExprKind::Minutes(value), span });
        }
        if let Some((_, seconds)) = DURATIONS.iter().find(|(name, _)| *name == word) {
            self.bump();
            return Ok(Expr { kind: ExprKind::Duration(value * seconds), span });
        }
        let lower = word.to_ascii_lowercase();
        if word == "M" || SIZES.iter().any(|(name, _)| *name == lower) {
            self.bump();
            let shift = SIZES.iter().find(|(name, _)| *name == lower).map_or(20, |(_, s)| *s);
            let bytes = value * (1_u64 << shift) as f64;
            if shift == 0 && value.fract() != 0.0 {
                self.report.error(span, "there are no fractions of bytes");
            } else if bytes >= BYTES_END {
                self.report.error(span, "more bytes than a number can count").expected("< 8192PB");
            }
            return Ok(Expr { kind: ExprKind::Bytes(bytes as i64), span });
        }
        Err(self.unknown_unit(token, unit, word))
    }

    /// The value; too many digits are reported and count as 0.
    fn value(&mut self, token: Token, text: &str) -> f64 {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let message = match token.kind {
            TokenKind::Int if whole.len() > INT_DIGITS => {
                format!("a whole number of more than {INT_DIGITS} digits")
            }
            TokenKind::Real if whole.len() > REAL_DIGITS.0 => {
                format!("a number of more than {} digits before its dot", REAL_DIGITS.0)
            }
            TokenKind::Real if fraction.len() > REAL_DIGITS.1 => {
                format!("a number of more than {} digits behind its dot", REAL_DIGITS.1)
            }
            // An integer of 15 digits is exact in 53 bits.
            _ => return text.parse().unwrap_or(0.0),
        };
        self.report.error(token.span, message);
        0.0
    }

    fn unknown_unit(&mut self, number: Token, unit: Token, word: &str) -> ReportedFault {
        let digits = self.text(number);
        let lower = word.to_ascii_lowercase();
        let exponent = matches!(word.as_bytes(), [b'e' | b'E', rest @ ..]
            if rest.iter().all(u8::is_ascii_digit));
        let help = if number.span.end != unit.span.start && self.begins_line(unit) {
            // The next statement begins here: `set x = 1` lacks its `;`.
            return self.semicolon().err().unwrap_or(ReportedFault);
        } else if exponent {
            "numbers have no exponent: write all digits".to_owned()
        } else if digits == "0" && lower.starts_with('x') {
            "numbers are decimal".to_owned()
        } else if let Some((name, _)) = DURATIONS.iter().find(|(name, _)| *name == lower) {
            format!("`{digits}{name}`: units of time are small letters")
        } else {
            "units of time are ms, s, m, h, d, w and y; of bytes B, KB, MB, GB and TB".to_owned()
        };
        if let Some(entry) = self.fault(&format!("`{word}` is no unit")) {
            entry.expected("a unit, or an operator between the two").help(help);
        }
        ReportedFault
    }

    pub(super) fn literal_blob(&mut self) -> ParseResult<Expr> {
        let span = self.bump().span;
        let colons = self.bytes(span);
        let base64 = &colons[1..colons.len() - 1];
        // The lexer makes a blob token only of valid base64.
        let bytes = lex::decode(base64).unwrap_or_default();
        Ok(Expr { kind: ExprKind::Blob(bytes.into()), span })
    }
}

/// Words of other languages that look like operators, for advice.
fn is_operator(word: &str) -> bool {
    matches!(word, "and" | "or" | "AND" | "OR" | "eq")
}
