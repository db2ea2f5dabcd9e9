//! Lexer: cuts one source file into tokens as Varnish 7.1 does. It never fails: a fault is reported
//! at once and leaves a [`TokenKind::Bad`], about which the parser stays silent.

use crate::report::Report;
use crate::source::{SourceFile, SourceSpan};

/// Most bytes of one file. The largest known files have some hundred kilobytes of access lists.
pub const MAX_FILE: usize = 8 << 20;
/// Most bytes of one token, such as a synthetic page in a long string.
pub const MAX_TOKEN: usize = 1 << 20;

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// An identifier: a letter, then letters, digits, `_` and `-`.
    Identifier,
    /// Digits.
    Int,
    /// Digits, a dot, optional digits.
    Real,
    /// A string in one of its three forms.
    Str,
    /// `:base64:`
    Blob,
    /// An operator or bracket of one or two characters.
    Sign(&'static str),
    /// A faulty token, which has been reported.
    Bad,
    /// The end of the program.
    End,
}

/// A token with its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// The kind.
    pub kind: TokenKind,
    /// Position in the sources.
    pub span: SourceSpan,
}

/// Signs, longer ones before their prefixes. Some have no meaning in VCL: as tokens they let the
/// parser advise on the right ones.
const SIGNS: &[&str] = &[
    "++", "--", "+=", "-=", "*=", "/=", "==", "!=", "<=", ">=", "<<", ">>", "&&", "||", "!~", "{",
    "}", "(", ")", "*", "+", "-", "/", "%", ">", "<", "=", ";", "!", "&", ".", "|", "~", ",",
];

/// Tokens of file number `file`. The parser appends [`TokenKind::End`] after it has spliced
/// included files in.
pub fn tokens(file: u32, source: &SourceFile, report: &mut Report) -> Vec<Token> {
    let mut lexer = Lexer {
        text: &source.text,
        file,
        at: 0,
        report,
        tokens: Vec::new(),
        odd_quote: false,
        question: false,
    };
    if source.text.len() > MAX_FILE {
        let message = format!("the file has more than {} MiB", MAX_FILE >> 20);
        lexer.report.error(lexer.span(0, 0), message);
        return Vec::new();
    }
    lexer.skip_byte_order_mark();
    while lexer.at < lexer.text.len() {
        lexer.next();
    }
    lexer.tokens
}

/// The content between the quotes of a string token.
pub fn string(token: &[u8]) -> &[u8] {
    let strip = |open: &[u8], close: &[u8]| token.strip_prefix(open)?.strip_suffix(close);
    strip(b"\"\"\"", b"\"\"\"")
        .or_else(|| strip(b"{\"", b"\"}"))
        .or_else(|| strip(b"\"", b"\""))
        .unwrap_or(token)
}

struct Lexer<'a> {
    text: &'a [u8],
    file: u32,
    at: usize,
    report: &'a mut Report,
    tokens: Vec<Token>,
    /// Set if the last string was not closed: the next quote of its kind is probably its end.
    odd_quote: bool,
    /// Set after a `?`, to which a `:` belongs.
    question: bool,
}

impl<'a> Lexer<'a> {
    fn span(&self, start: usize, end: usize) -> SourceSpan {
        // A file has at most `MAX_FILE` bytes.
        SourceSpan { file: self.file, start: start as u32, end: end as u32 }
    }

    fn rest(&self) -> &'a [u8] {
        &self.text[self.at..]
    }

    /// Adds a token of `length` bytes at the current position.
    fn push(&mut self, kind: TokenKind, length: usize) {
        let span = self.span(self.at, self.at + length);
        let kind = if length > MAX_TOKEN {
            let message = format!("a name or string of more than {} KiB", MAX_TOKEN >> 10);
            self.report.error(self.span(self.at, self.at + 1), message);
            TokenKind::Bad
        } else {
            kind
        };
        self.tokens.push(Token { kind, span });
        self.at += length;
    }

    /// Reports `shown` bytes at the current position, and skips `length` bytes.
    fn bad(&mut self, length: usize, shown: usize, message: &str, help: &str) {
        let span = self.span(self.at, self.at + shown);
        let entry = self.report.error(span, message);
        if !help.is_empty() {
            entry.help(help);
        }
        self.tokens.push(Token { kind: TokenKind::Bad, span });
        self.at += length;
    }

    /// Skips `length` bytes that belong to a reported fault.
    fn bad_again(&mut self, length: usize) {
        let span = self.span(self.at, self.at + length);
        self.tokens.push(Token { kind: TokenKind::Bad, span });
        self.at += length;
    }

    fn skip_byte_order_mark(&mut self) {
        if self.text.starts_with(b"\xef\xbb\xbf") {
            let span = self.span(0, 3);
            self.report
                .error(span, "the file begins with a byte order mark")
                .help("save it as UTF-8 without one; VCL takes no bytes before `vcl 4.1;`");
            self.at = 3;
        }
    }

    fn next(&mut self) {
        let rest = self.rest();
        match rest[0] {
            b' ' | b'\t'..=b'\r' => self.at += 1,
            b'#' => self.line_comment(),
            b'/' if rest.get(1) == Some(&b'/') => self.line_comment(),
            b'/' if rest.get(1) == Some(&b'*') => self.long_comment(),
            b'C' if rest.get(1) == Some(&b'{') => self.inline_c(),
            b':' => self.blob(),
            b'{' if rest.get(1) == Some(&b'"') => self.long_string(2, b"\"}"),
            b'"' if rest.starts_with(b"\"\"\"") => self.long_string(3, b"\"\"\""),
            b'"' => self.short_string(),
            b'a'..=b'z' | b'A'..=b'Z' => {
                let word = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
                let length = rest.iter().take_while(|b| word(b)).count();
                self.push(TokenKind::Identifier, length);
            }
            b'0'..=b'9' => self.number(),
            _ => match SIGNS.iter().find(|sign| rest.starts_with(sign.as_bytes())) {
                Some(sign) => self.push(TokenKind::Sign(sign), sign.len()),
                None => self.stray(),
            },
        }
    }

    fn line_comment(&mut self) {
        self.at += self.rest().iter().take_while(|b| **b != b'\n').count();
    }

    fn long_comment(&mut self) {
        let inside = &self.rest()[2..];
        let mut end = find(inside, b"*/");
        if let Some(open) = find(inside, b"/*").filter(|open| end.is_none_or(|end| *open < end)) {
            let (first, second) = (self.span(self.at, self.at + 2), self.at + 2 + open);
            let second = self.span(second, second + 2);
            self.report
                .error(second, "a comment within a comment")
                .label(first, "the outer one begins here")
                .help("comments do not nest: end the first one, or use `#` within it");
            end = nested_end(inside).or(end);
        }
        match end {
            Some(end) => self.at += end + 4,
            None => {
                let rest = self.rest().len();
                self.bad(rest, 2, "a comment without end", "end it with `*/`");
            }
        }
    }

    fn inline_c(&mut self) {
        let end = find(self.rest(), b"}C");
        let length = end.map_or_else(|| self.rest().len(), |end| end + 2);
        let code = self.rest()[..length].to_ascii_lowercase();
        self.bad(length, 2, "inline C cannot be used", replacement(&code));
        if let Some(entry) = self.report.last() {
            entry.note("Larder runs VCL itself: there is no C compiler and no foreign code");
            if end.is_none() {
                entry.note("its end `}C` is missing, too");
            }
        }
    }

    fn blob(&mut self) {
        let inside = &self.rest()[1..];
        let base64 = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'=');
        let length = inside.iter().take_while(|b| base64(b)).count();
        match inside.get(length) {
            Some(b':') if decode(&inside[..length]).is_some() => {
                self.push(TokenKind::Blob, length + 2);
            }
            Some(b':') => {
                let help = "a BLOB has four characters of base64 for each three bytes, `=` only \
                            at its end: `:SGVsbG8=:`";
                self.bad(
                    length + 2,
                    length + 2,
                    "what stands between the colons is no base64",
                    help,
                );
            }
            _ if std::mem::take(&mut self.question) => self.bad_again(1),
            _ if inside.first() == Some(&b'=') => {
                self.bad(2, 2, "`:=` is no operator", "`=` alone sets a variable");
            }
            _ => {
                let help = "a BLOB is base64 between two colons: `:SGVsbG8=:`";
                self.bad(1, 1, "a colon begins a BLOB, and none is here", help);
            }
        }
    }

    fn long_string(&mut self, open: usize, close: &[u8]) {
        let inside = &self.rest()[open..];
        let (found, nul) = (find(inside, close), inside.iter().position(|b| *b == 0));
        match (found, nul) {
            (Some(end), None) => self.push(TokenKind::Str, open + end + close.len()),
            (Some(end), Some(nul)) if end < nul => {
                self.push(TokenKind::Str, open + end + close.len());
            }
            (Some(end), Some(_)) => {
                let length = open + end + close.len();
                self.bad(length, open, "a NUL byte in a string", "VCL's strings end at NUL");
            }
            (None, _) => {
                let rest = self.rest().len();
                let help = format!("end it with `{}`", String::from_utf8_lossy(close));
                self.bad(rest, open, "a long string without end", &help);
            }
        }
    }

    fn short_string(&mut self) {
        let inside = &self.rest()[1..];
        let length = inside.iter().take_while(|b| !matches!(b, b'"' | b'\n' | b'\r' | 0)).count();
        match inside.get(length) {
            Some(b'"') => self.push(TokenKind::Str, length + 2),
            Some(0) => self.bad(length + 2, length + 2, "a NUL byte in a string", ""),
            _ if std::mem::take(&mut self.odd_quote) => self.bad_again(length + 1),
            end => {
                self.odd_quote = true;
                let help = match end.is_some() && find(inside, b"\"").is_some() {
                    true => {
                        "end it with `\"` on the same line; a string of several lines, or with \
                             quotes in it, stands between `{\"` and `\"}`"
                    }
                    false => "end it with `\"`",
                };
                self.bad(length + 1, length + 1, "a string without end", help);
            }
        }
    }

    fn number(&mut self) {
        let digits = |bytes: &[u8]| bytes.iter().take_while(|b| b.is_ascii_digit()).count();
        let whole = digits(self.rest());
        if self.rest().get(whole) != Some(&b'.') {
            return self.push(TokenKind::Int, whole);
        }
        let fraction = digits(&self.rest()[whole + 1..]);
        self.push(TokenKind::Real, whole + 1 + fraction);
    }

    /// A run of bytes that begin no token, reported once.
    fn stray(&mut self) {
        self.question |= self.rest()[0] == b'?';
        let rest = self.rest();
        let first = rest[0];
        if first == b'\'' {
            let line = rest[1..].iter().position(|b| *b == b'\n').unwrap_or(rest.len() - 1);
            let close = rest[1..=line].iter().position(|b| *b == b'\'');
            let length = close.map_or(1, |at| at + 2);
            let help = "strings stand in double quotes: `\"text\"`";
            return self.bad(length, length, "single quotes make no string", help);
        }
        let row = rest.iter().take_while(|b| **b == first || (first >= 0x80 && **b >= 0x80));
        let length = row.count();
        let shown = match first {
            0x21..=0x7e => format!("`{}`", char::from(first)),
            0x80.. => String::from_utf8(rest[..length].to_vec())
                .map_or_else(|_| format!("the byte 0x{first:02x}"), |text| format!("`{text}`")),
            _ => format!("the byte 0x{first:02x}"),
        };
        let help = match first {
            b'?' => "VCL has no `a ? b : c`: use `if` and `else`",
            b'_' => "names begin with a letter",
            b'\\' => "a string goes over several lines between `{\"` and `\"}`",
            0x80.. => "outside of strings and comments VCL is ASCII",
            _ => "",
        };
        self.bad(length, length, &format!("{shown} means nothing in VCL"), help);
    }
}

/// Position of `needle` in `hay`.
fn find(hay: &[u8], needle: &[u8]) -> Option<usize> {
    hay.windows(needle.len()).position(|window| window == needle)
}

/// End of a comment whose content begins with `text`, if nested comments are balanced.
fn nested_end(text: &[u8]) -> Option<usize> {
    let (mut depth, mut at) = (1, 0);
    while let Some(pair) = text.get(at..at + 2) {
        at += match pair {
            b"*/" if depth == 1 => return Some(at),
            b"*/" => {
                depth -= 1;
                2
            }
            b"/*" => {
                depth += 1;
                2
            }
            _ => 1,
        };
    }
    None
}

/// Advice on the VCL that replaces inline C. Identifiers in the code select it.
fn replacement(code: &[u8]) -> &'static str {
    const KNOWN: &[(&[&str], &str)] = &[
        (
            &["geoip", "maxmind"],
            "instead: `import geoip2;` looks an address up in a database in MaxMind's format",
        ),
        (
            &["syslog", "openlog"],
            "instead: `import std;` and `std.syslog(priority, text)` or `std.log(text)`",
        ),
        (
            &["gethdr", "sethdr", "vrt_http_header", "hdr_"],
            "instead: `set req.http.Name = ...`, `regsub()`, or `import header;` for fields of \
             several lines",
        ),
        (&["random", "rand("], "instead: `import std;` and `std.random(low, high)`"),
        (
            &["gettimeofday", "clock_gettime", "strftime", "time("],
            "instead: `now` is the time, `now + 1h` is a later time, `std.timestamp(\"Name\")` \
             logs the time",
        ),
        (&["getenv"], "instead: `import std;` and `std.getenv(name)`"),
        (
            &["md5", "sha1", "sha256", "base64"],
            "instead: `import digest;` hashes, `import blob;` \
                                                encodes and decodes",
        ),
        (&["tolower", "toupper"], "instead: `req.http.Name.lower()` and `.upper()`"),
        (&["strstr"], "instead: `import std;` and `std.strstr(text, part)`, or `~` with a pattern"),
        (&["atoi", "strto"], "instead: `import std;` and `std.integer(text, fallback)`"),
        (&["socket", "tcp_"], "instead: `import tcp;` sets what a connection may do"),
    ];
    let has = |word: &&str| find(code, word.as_bytes()).is_some();
    KNOWN.iter().find(|(words, _)| words.iter().any(has)).map_or(
        "VMODs such as std, header, str and var take its place: see the reference page of VMODs",
        |(_, help)| help,
    )
}

/// Decodes base64 of canonical length, with `=` only as padding.
pub fn decode(base64: &[u8]) -> Option<Vec<u8>> {
    let (body, padding) = match base64 {
        [body @ .., b'=', b'='] => (body, 2),
        [body @ .., b'='] => (body, 1),
        body => (body, 0),
    };
    if !base64.len().is_multiple_of(4) {
        return None;
    }
    let mut bytes = Vec::with_capacity(base64.len() / 4 * 3);
    let (mut bits, mut held) = (0_u32, 0);
    for byte in body {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = (bits << 6) | u32::from(value);
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held) as u8);
        }
    }
    (held == padding * 2).then_some(bytes)
}

#[cfg(test)]
mod tests;
