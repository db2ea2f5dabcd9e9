//! The tree of a configuration in nginx's grammar: directives with their words, blocks and places.
//! Nothing here knows what a directive means.

use std::fmt;
use std::sync::Arc;

/// A place in a file, both numbers counted from 1, columns in characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The line.
    pub line: u32,
    /// The column.
    pub column: u32,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// A directive: a name, its arguments, and perhaps a block of others.
#[derive(Clone, Debug)]
pub struct Directive {
    /// Its number among all directives of the configuration, from 0.
    pub id: usize,
    /// Name of its file.
    pub file: Arc<str>,
    /// Place of its name.
    pub place: Place,
    /// Its name.
    pub name: String,
    /// Its arguments, without quotes and escapes.
    pub args: Vec<String>,
    /// The directives of its block; `None` where a `;` ends it.
    pub block: Option<Vec<Self>>,
}

impl Directive {
    /// The argument at `at`, or an empty one.
    pub fn arg(&self, at: usize) -> &str {
        self.args.get(at).map_or("", String::as_str)
    }

    /// The directives of the block; none where there is no block.
    pub fn children(&self) -> &[Self] {
        self.block.as_deref().unwrap_or_default()
    }

    /// The directive in one line, without the contents of its block.
    pub fn line(&self) -> String {
        let mut text = quoted(&self.name);
        for arg in &self.args {
            text.push(' ');
            text.push_str(&quoted(arg));
        }
        text.push_str(if self.block.is_some() { " { ... }" } else { ";" });
        text
    }

    /// `file:line`, as reports name a directive.
    pub fn location(&self) -> String {
        format!("{}:{}", self.file, self.place.line)
    }

    /// Calls `see` for this directive and for all in its block.
    pub fn visit<'d>(&'d self, see: &mut dyn FnMut(&'d Self)) {
        see(self);
        self.children().iter().for_each(|child| child.visit(see));
    }

    /// Tells whether the other says the same, wherever it stands.
    pub fn says_same(&self, other: &Self) -> bool {
        self.name == other.name
            && self.args == other.args
            && self.block.is_some() == other.block.is_some()
            && say_same(self.children(), other.children())
    }
}

/// Tells whether two lists of directives say the same.
pub fn say_same(one: &[Directive], other: &[Directive]) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(one, other)| one.says_same(other))
}

/// Writes directives so that they are read as the same again.
pub fn print(directives: &[Directive]) -> String {
    let mut text = String::new();
    print_at(directives, 0, &mut text);
    text
}

fn print_at(directives: &[Directive], depth: usize, text: &mut String) {
    for directive in directives {
        text.push_str(&"    ".repeat(depth));
        text.push_str(&quoted(&directive.name));
        for arg in &directive.args {
            text.push(' ');
            text.push_str(&quoted(arg));
        }
        match &directive.block {
            None => text.push_str(";\n"),
            Some(block) => {
                text.push_str(" {\n");
                print_at(block, depth + 1, text);
                text.push_str(&"    ".repeat(depth));
                text.push_str("}\n");
            }
        }
    }
}

/// A word as it is written: in quotes where it would not be read as one otherwise.
fn quoted(word: &str) -> String {
    // A mark of the byte order is none at the start of a file only.
    let special = |c: char| {
        c.is_whitespace() || c == '\u{feff}' || matches!(c, ';' | '{' | '}' | '"' | '\'' | '#')
    };
    if !word.is_empty() && !word.contains(special) && !word.contains('\\') {
        return word.to_owned();
    }
    // nginx takes a backslash away only before these, so others are written as they are.
    if !word.contains(special) && is_plain_with_backslashes(word) {
        return word.to_owned();
    }
    let mut text = String::from("\"");
    for c in word.chars() {
        if matches!(c, '"' | '\\') {
            text.push('\\');
        }
        text.push(c);
    }
    text.push('"');
    text
}

/// Tells whether every backslash is followed by something that it does not change.
fn is_plain_with_backslashes(word: &str) -> bool {
    let mut letters = word.chars();
    while let Some(letter) = letters.next() {
        if letter == '\\'
            && letters.next().is_none_or(|next| matches!(next, '\\' | 't' | 'r' | 'n'))
        {
            return false;
        }
    }
    !word.is_empty()
}
