//! Syntax errors: lines that are no TOML.

use toml::de::DeTable;

use crate::reader::Reader;

/// Notes `errors`, one for each line that is not among `lines` yet.
pub(super) fn syntax_errors(
    reader: &mut Reader,
    errors: &[toml::de::Error],
    lines: &mut Vec<usize>,
) {
    let end = reader.source.text.len();
    for error in errors {
        let span = error.span().unwrap_or(end..end);
        let before = &reader.source.text.as_bytes()[..span.start.min(end)];
        let line = before.iter().filter(|b| **b == b'\n').count();
        if !lines.contains(&line) {
            lines.push(line);
            reader.error(span, error.message());
        }
    }
}

/// Blanks a line with a key and its value. Other lines stay: a header or a name decides on the
/// meaning of further lines.
pub(super) fn blank(text: &mut String, number: usize) -> bool {
    let start = match number {
        0 => 0,
        _ => match text.match_indices('\n').nth(number - 1) {
            Some((at, _)) => at + 1,
            None => return false,
        },
    };
    let end = text[start..].find('\n').map_or(text.len(), |len| start + len);
    let is_key = |key: &str| {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
        !key.is_empty() && key != "name" && key.bytes().all(plain)
    };
    // A line inside an open bracket or quote is no line of its own.
    let begins = || DeTable::parse_recoverable(&text[..start]).1.is_empty();
    if !text[start..end].split_once('=').is_some_and(|(key, _)| is_key(key.trim())) || !begins() {
        return false;
    }
    text.replace_range(start..end, &" ".repeat(end - start));
    true
}
