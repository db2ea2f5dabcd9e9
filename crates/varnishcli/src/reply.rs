//! Reply of the CLI: status, length and text, in Varnish's wire format. Its text is always valid
//! UTF-8.

use std::fmt::Write as _;

/// Status of a reply (varnish-cli(7), `vcli.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The line cannot be split into words.
    Syntax = 100,
    /// Unknown command.
    Unknown = 101,
    /// The command is known, but not with these arguments.
    Unimplemented = 102,
    /// Too few arguments.
    TooFew = 104,
    /// Too many arguments.
    TooMany = 105,
    /// An argument is wrong.
    Argument = 106,
    /// The client must authenticate.
    Auth = 107,
    /// The command succeeded.
    Ok = 200,
    /// The command succeeded, and its text is truncated at `cli_limit`.
    Truncated = 201,
    /// The command cannot be executed now.
    Cannot = 300,
    /// The connection is closed after this reply.
    Close = 500,
}

/// A reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Status of the reply.
    pub status: Status,
    /// Text of the reply.
    pub text: String,
}

impl Reply {
    /// A reply with this status and text.
    pub fn new(status: Status, text: impl Into<String>) -> Self {
        Self { status, text: text.into() }
    }

    /// A reply with status 200.
    pub fn ok(text: impl Into<String>) -> Self {
        Self::new(Status::Ok, text)
    }

    /// Truncates the text to `cli_limit` bytes as varnishd does: a longer text keeps one byte less
    /// than the limit.
    #[must_use]
    pub fn cut(mut self, limit: usize) -> Self {
        if self.text.len() > limit {
            // The text stays valid UTF-8.
            let end = self.text.floor_char_boundary(limit.saturating_sub(1));
            self.text.truncate(end);
            if self.status == Status::Ok {
                self.status = Status::Truncated;
            }
        }
        self
    }

    /// The wire format: a line of thirteen bytes with status and length, the text, a line feed.
    pub fn to_wire(&self) -> String {
        let mut wire = String::with_capacity(self.text.len() + 14);
        // Writing to a String cannot fail.
        _ = write!(wire, "{:<3} {:<8}\n{}\n", self.status as u16, self.text.len(), self.text);
        wire
    }
}
