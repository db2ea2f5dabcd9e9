//! Names: identifiers joined by dots, and quoted header names. Their meaning is never checked here.

use super::{ParseResult, Parser, ReportedFault};
use crate::ast::Name;
use crate::lex::{self, TokenKind};
use crate::source::SourceSpan;

/// Messages with headers.
const MESSAGES: &[&str] = &["req", "bereq", "beresp", "resp", "obj", "req_top"];

/// First parts of variables.
const SCOPES: &[&str] = &[
    "bereq", "beresp", "client", "local", "now", "obj", "remote", "req", "req_top", "resp", "sess",
    "server", "storage",
];

/// Functions of the language.
const FUNCTIONS: &[&str] = &["ban", "hash_data", "regsub", "regsuball", "synthetic"];

/// The parts of a name that were read so far.
struct NameParts<'a> {
    words: Vec<&'a str>,
    /// Number of the quoted part.
    quoted: Option<usize>,
    span: SourceSpan,
}

impl<'a> Parser<'a> {
    /// A name, with or without dots: a variable, a function, a method.
    pub(super) fn name(&mut self) -> ParseResult<Name> {
        if self.token().kind == TokenKind::Str {
            return Err(self.quoted_name());
        }
        let first = self.identifier("a name")?;
        let mut parts = NameParts { words: vec![&first.1], quoted: None, span: first.0 };
        while self.at_sign(".") {
            self.part(&mut parts)?;
        }
        let second = parts.words.get(1);
        let is_header = second.is_some_and(|word| word.eq_ignore_ascii_case("http"))
            && has(MESSAGES, parts.words[0]);
        if is_header {
            self.check_header(&parts)?;
        }
        let text = match parts.words.as_slice() {
            [word] if has(FUNCTIONS, word) && self.at_sign("(") => word.to_ascii_lowercase(),
            [word] => (*word).to_owned(),
            words => dotted(words, self.at_sign("(")),
        };
        Ok(Name { text: text.into(), span: parts.span })
    }

    /// The name of a declaration; the checker rejects dots in it.
    pub(super) fn own_name(&mut self, of: &str) -> ParseResult<Name> {
        match self.token().kind {
            TokenKind::Identifier => self.name(),
            TokenKind::Str => Err(self.quoted_name()),
            _ => Err(self.unexpected(&format!("the name of {of}"))),
        }
    }

    fn quoted_name(&mut self) -> ReportedFault {
        let text = lex::string(self.bytes(self.token().span));
        let help = format!("`{}`", String::from_utf8_lossy(text));
        if let Some(entry) = self.fault("names do not stand in quotes")
            && is_field_name(text)
        {
            entry.help(help);
        }
        ReportedFault
    }

    fn identifier(&mut self, expected: &str) -> ParseResult<(SourceSpan, &'a str)> {
        if self.token().kind != TokenKind::Identifier {
            return Err(self.unexpected(expected));
        }
        let token = self.bump();
        Ok((token.span, self.text(token)))
    }

    /// A dot and the part behind it.
    fn part(&mut self, parts: &mut NameParts<'a>) -> ParseResult<()> {
        let header = parts.words.len() == 2 && parts.words[1].eq_ignore_ascii_case("http");
        let next = self.peek(1);
        match next.kind {
            TokenKind::Identifier => parts.words.push(self.text(next)),
            TokenKind::Str if header => {
                let bytes = lex::string(self.bytes(next.span));
                if !is_field_name(bytes) {
                    self.bump();
                    if let Some(entry) = self.fault("no header can have this name") {
                        entry.help("letters, digits and !#$%&'*+-.^_`|~");
                    }
                    return Err(ReportedFault);
                }
                parts.quoted = Some(2);
                parts.words.push(std::str::from_utf8(bytes).unwrap_or_default());
            }
            TokenKind::Str => {
                self.bump();
                let text = lex::string(self.bytes(next.span));
                let help = match is_field_name(text) {
                    true => {
                        let name = parts.words.join(".");
                        format!("`{name}.{}`", String::from_utf8_lossy(text))
                    }
                    false => "`+` joins strings".to_owned(),
                };
                if let Some(entry) = self.fault("only the name of a header stands in quotes") {
                    entry.help(help);
                }
                return Err(ReportedFault);
            }
            _ => {
                self.bump();
                let failed = self.unexpected("a name after the dot");
                if header && let Some(entry) = self.last_fault() {
                    entry.help(
                        "a header name that begins with no letter stands in quotes: \
                                `req.http.\"0name\"`",
                    );
                }
                return Err(failed);
            }
        }
        self.bump();
        self.bump();
        parts.span = parts.span.to(next.span);
        Ok(())
    }

    /// Rejects `req.http.a.b` without quotes: it does not mean the header `a.b`.
    fn check_header(&mut self, parts: &NameParts<'_>) -> ParseResult<()> {
        let words = &parts.words;
        let called = self.at_sign("(");
        let allowed = match called {
            true if parts.quoted.is_some() && words.len() == 3 => 0,
            true => 4,
            false => 3,
        };
        let message = match words.len() {
            2 => "a header's name is missing",
            n if n <= allowed => return Ok(()),
            _ if allowed == 0 => "a header cannot be called",
            _ if called => "a header's name with dots stands in quotes",
            _ if words.len() == 4 && matches!(words[3], "lower" | "upper") => {
                "a method is called with parentheses"
            }
            _ => "a header's name with dots stands in quotes",
        };
        let base = format!("{}.http", words[0]);
        let help = match words.len() {
            2 => format!("`{base}.Name` is one header; there is no variable for all of them"),
            4 if message.starts_with("a method") => format!("`{}()`", words.join(".")),
            _ => format!("`{base}.\"{}\"`", words[2..].join(".")),
        };
        self.report.error(parts.span, message).help(help);
        Err(ReportedFault)
    }
}

/// Returns true if `word` is one of `words`, compared without case as in Varnish.
fn has(words: &[&str], word: &str) -> bool {
    words.iter().any(|other| other.eq_ignore_ascii_case(word))
}

/// A name with dots. Its first part, and a called method, become lower case; the parts between
/// stay, such as names of headers and storages.
fn dotted(words: &[&str], is_called: bool) -> String {
    if !has(SCOPES, words[0]) {
        return words.join(".");
    }
    let is_storage = words[0].eq_ignore_ascii_case("storage");
    let is_small = |at: usize| match at {
        0 => true,
        1 => !is_storage,
        at => is_called && at + 1 == words.len(),
    };
    let word = |(at, word): (usize, &&str)| match is_small(at) {
        true => word.to_ascii_lowercase(),
        false => (*word).to_owned(),
    };
    words.iter().enumerate().map(word).collect::<Vec<_>>().join(".")
}

/// RFC 9110, section 5.1.
fn is_field_name(bytes: &[u8]) -> bool {
    let token = |b: &u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(b);
    !bytes.is_empty() && bytes.iter().all(token)
}
