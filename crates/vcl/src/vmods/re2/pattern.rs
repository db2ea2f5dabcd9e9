//! Pattern in RE2's syntax, rewritten for Larder's engine: equal syntax stays, different syntax is
//! spelled out, unsupported syntax is rejected. It never changes what a pattern matches.

use crate::regex::PrecedingElement;

/// Options for reading a pattern.
#[derive(Clone, Copy, Debug)]
pub(super) struct Syntax {
    /// True for UTF-8 and Unicode characters; false for bytes of Latin-1.
    pub utf8: bool,
    /// True if the pattern has no operators.
    pub literal: bool,
    /// True if plain groups do not capture.
    pub never_capture: bool,
    /// True if letters match in either case.
    pub ignore_case: bool,
}

/// A pattern rewritten for the engine.
#[derive(Debug, Default)]
pub(super) struct RewrittenPattern {
    /// The pattern, without names of groups.
    pub text: String,
    /// Names of groups, with their numbers.
    pub names: Vec<(Box<str>, usize)>,
    /// Number of capturing groups.
    pub groups: usize,
}

/// Largest number in `{n,m}`, and largest product of nested ones.
const REPEAT_MAX: u32 = 1000;

/// Rewrites `pattern`.
///
/// # Errors
/// The fault of the pattern.
pub(super) fn rewrite(pattern: &[u8], syntax: Syntax) -> Result<RewrittenPattern, String> {
    let rest: Vec<char> = match syntax.utf8 {
        true => str::from_utf8(pattern).map_err(|_| "invalid UTF-8".to_owned())?.chars().collect(),
        false => pattern.iter().copied().map(char::from).collect(),
    };
    let mut reader = Reader {
        rest: &rest,
        syntax,
        out: RewrittenPattern::default(),
        flags: String::new(),
        before: PrecedingElement::Nothing,
        weight: 1,
        open: vec![1],
        folds: syntax.ignore_case,
        is_wide: false,
    };
    reader.read()?;
    if reader.folds && reader.is_wide && !syntax.utf8 {
        return Err("characters beyond ASCII in either case are supported in UTF-8 only".to_owned());
    }
    Ok(reader.out)
}

struct Reader<'p> {
    rest: &'p [char],
    syntax: Syntax,
    out: RewrittenPattern,
    /// Flags `(?i)` that apply from the next item on; RE2 lets the item before them be repeated.
    flags: String,
    before: PrecedingElement,
    /// Most repetitions within the last item.
    weight: u32,
    /// Most repetitions within the items of each open group so far, the whole pattern first.
    open: Vec<u32>,
    /// True if letters match in either case somewhere.
    folds: bool,
    /// True if the pattern has characters beyond ASCII.
    is_wide: bool,
}

impl Reader<'_> {
    fn next(&mut self) -> Option<char> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    /// Skips `text`, if it comes next.
    fn pass(&mut self, text: &str) -> bool {
        let mut rest = self.rest;
        for wanted in text.chars() {
            match rest.split_first() {
                Some((first, behind)) if *first == wanted => rest = behind,
                _ => return false,
            }
        }
        self.rest = rest;
        true
    }

    fn read(&mut self) -> Result<(), String> {
        while let Some(first) = self.next() {
            if self.syntax.literal {
                self.literal(first);
                continue;
            }
            match first {
                '\\' => self.escaped()?,
                '[' => self.class()?,
                '(' => self.open()?,
                ')' => self.close()?,
                '|' => {
                    self.emit("|");
                    self.before = PrecedingElement::Nothing;
                }
                '^' | '$' | '.' => self.item(first.encode_utf8(&mut [0; 4])),
                '*' | '+' | '?' => self.quantifier(first.encode_utf8(&mut [0; 4]), 1)?,
                '{' => match self.counted()? {
                    Some((text, most)) => self.quantifier(&text, most)?,
                    None => self.literal('{'),
                },
                other => self.literal(other),
            }
        }
        if self.open.len() > 1 {
            return Err("missing closing )".to_owned());
        }
        Ok(())
    }

    /// Appends to the pattern, after pending flags.
    fn emit(&mut self, text: &str) {
        self.out.text.push_str(&std::mem::take(&mut self.flags));
        self.out.text.push_str(text);
    }

    /// Appends an item that can be repeated.
    fn item(&mut self, text: &str) {
        self.emit(text);
        (self.before, self.weight) = (PrecedingElement::Item, 1);
    }

    fn literal(&mut self, c: char) {
        let text = self.spelled(c);
        self.item(&text);
    }

    /// A literal character, escaped where necessary.
    fn spelled(&mut self, c: char) -> String {
        self.is_wide |= !c.is_ascii();
        let code = u32::from(c);
        match self.syntax.utf8 {
            _ if c.is_ascii_alphanumeric() => c.to_string(),
            true => format!("\\x{{{code:x}}}"),
            false => format!("\\x{code:02x}"),
        }
    }

    fn quantifier(&mut self, text: &str, most: u32) -> Result<(), String> {
        match self.before {
            PrecedingElement::Nothing => {
                return Err("no argument for repetition operator".to_owned());
            }
            PrecedingElement::Quantifier => return Err("bad repetition operator".to_owned()),
            PrecedingElement::Item => self.before = PrecedingElement::Quantifier,
        }
        self.weight = self.weight.saturating_mul(most.max(1));
        if self.weight > REPEAT_MAX {
            return Err("invalid repetition size".to_owned());
        }
        if let Some(group) = self.open.last_mut() {
            *group = self.weight.max(*group);
        }
        self.out.text.push_str(text);
        if self.pass("?") {
            self.out.text.push('?');
        }
        Ok(())
    }

    /// Reads behind `{`: a quantifier, and its largest count. `None` if the brace is a character.
    fn counted(&mut self) -> Result<Option<(String, u32)>, String> {
        let Some(end) = self.rest.iter().position(|c| *c == '}') else { return Ok(None) };
        let text: String = self.rest[..end].iter().collect();
        let number = |n: &str| {
            let is_one = n.bytes().all(|b| b.is_ascii_digit())
                && (n == "0" || !n.starts_with('0'))
                && n.len() < 9;
            n.parse::<u32>().ok().filter(|_| is_one)
        };
        let (min, max) = text.split_once(',').unwrap_or((&text, &text));
        let most = number(max).or_else(|| max.is_empty().then_some(u32::MAX));
        let (Some(min), Some(max)) = (number(min), most) else { return Ok(None) };
        self.rest = &self.rest[end + 1..];
        let most = if max == u32::MAX { min } else { max };
        if min > REPEAT_MAX || most > REPEAT_MAX || min > max {
            return Err(format!("invalid repetition size: {{{text}}}"));
        }
        Ok(Some((format!("{{{text}}}"), most)))
    }

    fn open(&mut self) -> Result<(), String> {
        if self.pass("?P<") {
            self.name()?;
            self.out.groups += 1;
            self.emit("(");
        } else if self.pass("?") {
            return self.flags();
        } else if self.syntax.never_capture {
            self.emit("(?:");
        } else {
            self.out.groups += 1;
            self.emit("(");
        }
        self.begin();
        Ok(())
    }

    fn begin(&mut self) {
        self.open.push(1);
        self.before = PrecedingElement::Nothing;
    }

    /// The name of the next group.
    fn name(&mut self) -> Result<(), String> {
        let mut name = String::new();
        loop {
            match self.next() {
                Some('>') if !name.is_empty() => break,
                Some(c) if c.is_ascii_alphanumeric() || c == '_' => name.push(c),
                _ => return Err("invalid named capture group".to_owned()),
            }
        }
        self.out.names.push((name.into(), self.out.groups + 1));
        Ok(())
    }

    /// Reads behind `(?`: flags, for a group or for the rest of the current one.
    fn flags(&mut self) -> Result<(), String> {
        let (mut on, mut off) = (Vec::new(), Vec::new());
        // At most one minus, which a flag must follow.
        let (mut is_negative, mut has_flag) = (false, true);
        let end = loop {
            match self.next() {
                Some(flag @ ('i' | 'm' | 's' | 'U')) => {
                    has_flag = true;
                    on.retain(|set| *set != flag);
                    off.retain(|set| *set != flag);
                    if is_negative { off.push(flag) } else { on.push(flag) }
                }
                Some('-') if !is_negative => (is_negative, has_flag) = (true, false),
                Some(end @ (':' | ')')) if has_flag => break end,
                _ => return Err("invalid perl operator: (?".to_owned()),
            }
        };
        self.folds |= on.contains(&'i');
        let mut text: String = on.iter().collect();
        if !off.is_empty() {
            text.push('-');
            text.extend(off);
        }
        if end == ':' {
            self.emit(&format!("(?{text}:"));
            self.begin();
        } else if !text.is_empty() {
            self.flags.push_str(&format!("(?{text})"));
        }
        Ok(())
    }

    fn close(&mut self) -> Result<(), String> {
        if self.open.len() == 1 {
            return Err("unexpected )".to_owned());
        }
        let inner = self.open.pop().unwrap_or(1);
        self.flags.clear();
        self.item(")");
        self.weight = inner;
        if let Some(group) = self.open.last_mut() {
            *group = inner.max(*group);
        }
        Ok(())
    }

    /// Reads an escape outside of classes.
    fn escaped(&mut self) -> Result<(), String> {
        match self.rest.first() {
            Some('A') => self.assertion("\\A"),
            Some('z') => self.assertion("\\z"),
            // RE2's word boundary is ASCII's. The engine would read a brace behind it.
            Some('b') => self.assertion("(?-u:\\b)"),
            Some('B') => self.assertion("(?-u:\\B)"),
            Some('C') => self.assertion("(?s-u:.)"),
            Some('Q') => {
                self.rest = &self.rest[1..];
                while !self.pass("\\E") {
                    let Some(c) = self.next() else { break };
                    self.literal(c);
                }
            }
            Some(letter) if perl_class(*letter).is_some() => {
                let class = perl_class(*letter).unwrap_or_default();
                self.assertion(class);
            }
            _ => {
                let c = self.escape()?;
                self.literal(c);
            }
        }
        Ok(())
    }

    /// Reads a letter that stands for `text`.
    fn assertion(&mut self, text: &str) {
        self.rest = &self.rest[1..];
        self.item(text);
    }

    /// The character that an escape stands for.
    fn escape(&mut self) -> Result<char, String> {
        let first = self.next().ok_or("trailing \\")?;
        let code = match first {
            '1'..='7' if !self.rest.first().is_some_and(is_octal) => return Err(bad_escape(first)),
            '0'..='7' => self.digits(first.to_digit(8).unwrap_or(0), 8, 2),
            'x' if self.pass("{") => {
                let code = match self.rest.first() {
                    Some(digit) if digit.is_ascii_hexdigit() => self.digits(0, 16, usize::MAX),
                    _ => return Err(bad_escape('x')),
                };
                if !self.pass("}") {
                    return Err(bad_escape('x'));
                }
                code
            }
            'x' => match self.rest {
                [a, b, ..] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit() => {
                    self.digits(0, 16, 2)
                }
                _ => return Err(bad_escape('x')),
            },
            'a' => 7,
            'f' => 12,
            'n' => 10,
            'r' => 13,
            't' => 9,
            'v' => 11,
            'p' | 'P' => {
                return Err("classes of Unicode (\\p) are not supported here".to_owned());
            }
            other if other.is_ascii() && !other.is_ascii_alphanumeric() => u32::from(other),
            other => return Err(bad_escape(other)),
        };
        let most = if self.syntax.utf8 { u32::from(char::MAX) } else { 0xff };
        char::from_u32(code).filter(|_| code <= most).ok_or_else(|| bad_escape(first))
    }

    /// Continues `number` by at most `most` digits.
    fn digits(&mut self, mut number: u32, base: u32, most: usize) -> u32 {
        for _ in 0..most {
            let Some(digit) = self.rest.first().and_then(|c| c.to_digit(base)) else { break };
            number = number.saturating_mul(base).saturating_add(digit);
            self.rest = &self.rest[1..];
        }
        number
    }

    /// Reads a class behind `[`.
    fn class(&mut self) -> Result<(), String> {
        let mut text = String::from("[");
        if self.pass("^") {
            text.push('^');
        }
        let mut is_first = true;
        loop {
            if !is_first && self.pass("]") {
                break;
            }
            is_first = false;
            match self.rest {
                [] => return Err("missing closing ]".to_owned()),
                ['[', ':', ..] => match self.named_class()? {
                    Some(name) => text.push_str(&name),
                    None => self.range(&mut text)?,
                },
                ['\\', letter, ..] if perl_class(*letter).is_some() => {
                    text.push_str(perl_class(*letter).unwrap_or_default());
                    self.rest = &self.rest[2..];
                }
                _ => self.range(&mut text)?,
            }
        }
        text.push(']');
        self.item(&text);
        Ok(())
    }

    /// `[:alpha:]`, if it comes next.
    fn named_class(&mut self) -> Result<Option<String>, String> {
        let end = self.rest[2..].windows(2).position(|two| two == [':', ']']);
        let Some(end) = end else { return Ok(None) };
        let name: String = self.rest[2..2 + end].iter().collect();
        if !NAMED_CLASSES.contains(&name.strip_prefix('^').unwrap_or(&name)) {
            return Err(format!("invalid character class range: [:{name}:]"));
        }
        self.rest = &self.rest[end + 4..];
        Ok(Some(format!("[:{name}:]")))
    }

    /// A character of a class, or a range.
    fn range(&mut self, text: &mut String) -> Result<(), String> {
        let low = self.class_character()?;
        text.push_str(&self.spelled(low));
        if matches!(self.rest, ['-', next, ..] if *next != ']') {
            self.rest = &self.rest[1..];
            let high = self.class_character()?;
            if high < low {
                return Err("invalid character class range".to_owned());
            }
            text.push('-');
            text.push_str(&self.spelled(high));
        }
        Ok(())
    }

    fn class_character(&mut self) -> Result<char, String> {
        match self.next() {
            Some('\\') => self.escape(),
            Some(c) => Ok(c),
            None => Err("missing closing ]".to_owned()),
        }
    }
}

fn is_octal(c: &char) -> bool {
    c.is_digit(8)
}

fn bad_escape(c: char) -> String {
    format!("invalid escape sequence: \\{c}")
}

/// The class of an escaped letter: ASCII's, without the vertical tab, which the engine counts as a
/// space.
fn perl_class(letter: char) -> Option<&'static str> {
    Some(match letter {
        'd' => "[0-9]",
        'D' => "[^0-9]",
        's' => "[\\t\\n\\x0c\\r\\x20]",
        'S' => "[^\\t\\n\\x0c\\r\\x20]",
        'w' => "[0-9A-Za-z_]",
        'W' => "[^0-9A-Za-z_]",
        _ => return None,
    })
}

const NAMED_CLASSES: &[&str] = &[
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct",
    "space", "upper", "word", "xdigit",
];
