//! The parser of log formats: a format's text becomes its parts.

mod names;

use std::ops::Range;

use super::error::PatternError;
use super::item::{FormatItem, Unit};
use super::part::{Escape, FormatPart};
use super::time::DateFormat;
use crate::heads::HeadSide;
use crate::query::NamedField;
use crate::vsl;
use names::{FORMATTERS, VARIABLES, closest};

/// The message and the help of a mistake whose span is not known yet.
type Unknown = (String, Option<String>);

/// Facts that `%{Varnish:NAME}x` names.
const FACTS: [&str; 5] = ["time_firstbyte", "hitmiss", "handling", "side", "vxid"];

/// The parts so far, and the position in the text.
struct FormatParser<'a> {
    text: &'a str,
    at: usize,
    parts: Vec<FormatPart>,
    /// True if the text has formatters of varnishncsa: then its escapes of characters hold, too.
    has_formatters: bool,
}

/// Parses a format of varnishncsa, of nginx, or with parts of both.
pub(super) fn parts(text: &str) -> Result<Vec<FormatPart>, PatternError> {
    let has_formatters = text.contains('%');
    let mut reading = FormatParser { text, at: 0, parts: Vec::new(), has_formatters };
    while let Some(c) = reading.rest().chars().next() {
        let from = reading.at;
        reading.at += c.len_utf8();
        let read = match c {
            '%' => reading.formatter(),
            '$' => reading.variable(),
            '\\' if has_formatters => {
                reading.escaped();
                Ok(())
            }
            c => {
                reading.literal(c);
                Ok(())
            }
        };
        read.map_err(|(message, help)| {
            let span = reading.span_of_mistake(from);
            PatternError { span, message, help }
        })?;
    }
    Ok(reading.parts)
}

impl<'a> FormatParser<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// The span from `from` to the position, at least one character.
    fn span_of_mistake(&self, from: usize) -> Range<usize> {
        let first = self.text[from..].chars().next().map_or(0, char::len_utf8);
        from..self.at.max(from + first)
    }

    fn literal(&mut self, c: char) {
        if !matches!(self.parts.last(), Some(FormatPart::Text(_))) {
            self.parts.push(FormatPart::Text(Vec::new()));
        }
        if let Some(FormatPart::Text(text)) = self.parts.last_mut() {
            text.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }

    /// Reads the character behind a backslash, as varnishncsa does.
    fn escaped(&mut self) {
        let c = match self.rest().chars().next() {
            Some('n') => '\n',
            Some('t') => '\t',
            Some('"') => '"',
            _ => return self.literal('\\'),
        };
        self.at += 1;
        self.literal(c);
    }

    /// Reads a formatter behind its `%`.
    fn formatter(&mut self) -> Result<(), Unknown> {
        if let Some(inner) = self.rest().strip_prefix('{') {
            // A date's format may have a `%` of its own, but no brace.
            let Some((name, after)) = inner.split_once('}') else {
                let rest = self.rest();
                self.at = self.text.len();
                return Err((format!("`%{rest}`: the `}}` is missing"), None));
            };
            let kind = after.chars().next();
            self.at += name.len() + 2 + kind.map_or(0, char::len_utf8);
            let item = braced(name, kind)?;
            self.parts.push(FormatPart::Item(item, Escape::Varnish));
            return Ok(());
        }
        let Some(c) = self.rest().chars().next() else {
            return Err(("the format ends with `%`: `%%` is a percent sign".to_owned(), None));
        };
        self.at += c.len_utf8();
        // Apache's `%>s` is the status of the last of several internal redirects.
        if matches!(c, '>' | '<') && self.rest().starts_with('s') {
            self.at += 1;
            self.parts.push(FormatPart::Item(FormatItem::Status, Escape::Varnish));
            return Ok(());
        }
        if c == '%' {
            self.literal('%');
            return Ok(());
        }
        let Some((_, item)) = FORMATTERS.iter().find(|(own, _)| *own == c) else {
            let known: Vec<_> = FORMATTERS.iter().map(|(c, _)| format!("%{c}")).collect();
            let message = format!("`%{c}` is no formatter");
            return Err((message, Some(format!("there are {}", known.join(" ")))));
        };
        self.parts.push(FormatPart::Item(item(), Escape::Varnish));
        Ok(())
    }

    /// Reads a variable behind its `$`.
    fn variable(&mut self) -> Result<(), Unknown> {
        let rest = self.rest();
        let name = match rest.strip_prefix('{') {
            Some(inner) => {
                let Some((name, _)) = inner.split_once('}') else {
                    self.at = self.text.len();
                    return Err((format!("`${rest}`: the `}}` is missing"), None));
                };
                self.at += name.len() + 2;
                name
            }
            None => {
                let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
                let name = &rest[..rest.find(|c| !is_name(c)).unwrap_or(rest.len())];
                // Next to varnishncsa's formatters a `$` may be literal.
                let is_word = name.starts_with(|c: char| !c.is_ascii_digit());
                if self.has_formatters && !is_word {
                    self.literal('$');
                    return Ok(());
                }
                self.at += name.len();
                name
            }
        };
        let item = variable(name)?;
        self.parts.push(FormatPart::Item(item, Escape::Nginx));
        Ok(())
    }
}

/// Parses a formatter with braces; `kind` is the character behind them.
fn braced(name: &str, kind: Option<char>) -> Result<FormatItem, Unknown> {
    let shown = format!("`%{{{name}}}{}`", kind.map(String::from).unwrap_or_default());
    let wrong = |why: &str| Err((format!("{shown}: {why}"), None));
    match kind {
        Some('i' | 'o' | 'C') if name.is_empty() => wrong("the braces need a name"),
        Some('i') => Ok(FormatItem::Field(HeadSide::Req, name.to_ascii_lowercase().into())),
        Some('o') => Ok(FormatItem::Field(HeadSide::Resp, name.to_ascii_lowercase().into())),
        Some('C') => Ok(FormatItem::Cookie(name.into())),
        Some('t') => DateFormat::parse(name)
            .map(FormatItem::BeganAs)
            .map_err(|why| (format!("{shown}: {why}"), None)),
        Some('T') => match name {
            "s" => Ok(FormatItem::Took(Unit::Seconds)),
            "ms" => Ok(FormatItem::Took(Unit::Millis)),
            "us" => Ok(FormatItem::Took(Unit::Micros)),
            _ => wrong("the unit must be s, ms or us"),
        },
        Some('x') => extended(name, &shown),
        _ => wrong("one of i, o, C, t, T and x must follow the braces"),
    }
}

/// Parses `tag`, `tag:prefix`, `tag[field]` or `tag:prefix[field]`.
fn vsl_record(text: &str, shown: &str) -> Result<FormatItem, Unknown> {
    let (text, field) = match text.strip_suffix(']').and_then(|text| text.rsplit_once('[')) {
        None => (text, None),
        Some((text, number)) => match number.parse().ok().filter(|number: &usize| *number > 0) {
            Some(number) => (text, Some(number)),
            None => return Err((format!("{shown}: a field is a number from 1 on"), None)),
        },
    };
    let (tag, prefix) = match text.split_once(':') {
        Some((tag, prefix)) => (tag, Some(prefix.as_bytes().to_vec())),
        None => (text, None),
    };
    let known = || vsl::TAGS.iter().chain(vsl::OTHERS).copied();
    if !known().any(|own| own.eq_ignore_ascii_case(tag)) {
        let help = closest(tag, known()).map(|close| format!("did you mean `{close}`?"));
        return Err((format!("{shown}: there is no tag `{tag}`"), help));
    }
    Ok(FormatItem::Vsl(tag.to_owned(), prefix, field))
}

/// Parses the name in `%{name}x`.
fn extended(name: &str, shown: &str) -> Result<FormatItem, Unknown> {
    let own = |why: String| (format!("{shown}: {why}"), None);
    match name.split_once(':') {
        Some(("Varnish", "time_firstbyte")) => Ok(FormatItem::FirstByte(Unit::SecondsMicros)),
        Some(("Varnish", "hitmiss")) => Ok(FormatItem::HitMiss),
        Some(("Varnish", "handling")) => Ok(FormatItem::Handling),
        Some(("Varnish", "side")) => Ok(FormatItem::ClientOrBackend),
        Some(("Varnish", "vxid")) => Ok(FormatItem::Number),
        Some(("VCL_Log", key)) if !key.is_empty() => Ok(FormatItem::Logged(key.into())),
        Some(("Larder", field)) => NamedField::named(field).map(FormatItem::Own).map_err(own),
        Some(("VSL", record)) => vsl_record(record, shown),
        None if name == "SSL_PROTOCOL" => Ok(FormatItem::TlsProtocol),
        None if name == "SSL_CIPHER" => Ok(FormatItem::TlsSuite),
        other => {
            let close = other.and_then(|(_, fact)| closest(fact, FACTS));
            let help = match close {
                Some(close) => format!("did you mean `%{{Varnish:{close}}}x`?"),
                None => {
                    let known = FACTS.map(|fact| format!("Varnish:{fact}")).join(", ");
                    format!(
                        "there are {known}, VCL_Log:KEY, Larder:FIELD, SSL_PROTOCOL and SSL_CIPHER"
                    )
                }
            };
            Err((format!("{shown} is not known"), Some(help)))
        }
    }
}

/// Prefixes of variables whose rest is a name.
const PREFIXES: [&str; 6] = ["http_", "sent_http_", "upstream_http_", "arg_", "cookie_", "larder_"];

fn variable(name: &str) -> Result<FormatItem, Unknown> {
    if let Some(item) = prefixed(name) {
        return item.map_err(|why| (format!("`${name}`: {why}"), None));
    }
    if let Some((_, item)) = VARIABLES.iter().find(|(own, _)| *own == name) {
        return Ok(item());
    }
    if name.is_empty() {
        let help = "a percent sign in the format, as `%%`, makes `$` literal";
        return Err(("`$` without a name".to_owned(), Some(help.to_owned())));
    }
    let known = || VARIABLES.iter().map(|(name, _)| *name);
    let help = match closest(name, known()) {
        Some(close) => format!("did you mean `${close}`?"),
        None => {
            let known: Vec<_> = known().collect();
            let prefixes: Vec<_> = PREFIXES.iter().map(|p| format!("{p}NAME")).collect();
            format!("there are {}, and {}", known.join(", "), prefixes.join(", "))
        }
    };
    Err((format!("`${name}` is not known"), Some(help)))
}

/// Parses a variable with one of these prefixes; `None` for any other variable.
fn prefixed(name: &str) -> Option<Result<FormatItem, String>> {
    if let Some(field) = name.strip_prefix("larder_") {
        return Some(NamedField::named_with_underscores(field).map(FormatItem::Own));
    }
    for (prefix, item) in [
        ("arg_", FormatItem::Argument as fn(Vec<u8>) -> FormatItem),
        ("cookie_", FormatItem::Cookie),
    ] {
        if let Some(own) = name.strip_prefix(prefix).filter(|own| !own.is_empty()) {
            return Some(Ok(item(own.into())));
        }
    }
    let sides = [
        ("http_", HeadSide::Req),
        ("sent_http_", HeadSide::Resp),
        ("upstream_http_", HeadSide::Beresp),
    ];
    sides.into_iter().find_map(|(prefix, side)| {
        let field = name.strip_prefix(prefix).filter(|field| !field.is_empty())?;
        Some(Ok(FormatItem::Joined(side, field.to_ascii_lowercase().replace('_', "-").into())))
    })
}
