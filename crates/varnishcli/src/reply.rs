//! Replies: a status, a length, a text.

use std::fmt::Write as _;

/// The result of a request (varnish-cli(7), `vcli.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The line cannot be cut into words.
    Syntax = 100,
    /// There is no such command.
    Unknown = 101,
    /// The command is there, but not this way of it.
    Unimplemented = 102,
    /// Arguments are missing.
    TooFew = 104,
    /// There are more arguments than the command takes.
    TooMany = 105,
    /// An argument is wrong.
    Argument = 106,
    /// The client must show that it knows the secret.
    Auth = 107,
    /// It is done.
    Ok = 200,
    /// The same, and not all of what there is to say is said.
    Truncated = 201,
    /// It cannot be done now.
    Cannot = 300,
    /// The connection ends after this reply.
    Close = 500,
}

/// A reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The result of the request.
    pub status: Status,
    /// Text of the reply.
    pub text: String,
}

impl Reply {
    /// A reply of this status and text.
    pub fn new(status: Status, text: impl Into<String>) -> Self {
        Self { status, text: text.into() }
    }

    /// It is done, and this is what there is to say.
    pub fn ok(text: impl Into<String>) -> Self {
        Self::new(Status::Ok, text)
    }

    /// No more than `cli_limit` allows, as varnishd cuts: one byte less than the limit is left of
    /// what is longer.
    #[must_use]
    pub fn cut(mut self, limit: usize) -> Self {
        if self.text.len() > limit {
            // What is sent is UTF-8 still.
            let end = self.text.floor_char_boundary(limit.saturating_sub(1));
            self.text.truncate(end);
            if self.status == Status::Ok {
                self.status = Status::Truncated;
            }
        }
        self
    }

    /// As it is sent: a line of thirteen bytes with status and length, the text, an end of line.
    pub fn to_wire(&self) -> String {
        let mut wire = String::with_capacity(self.text.len() + 14);
        // Writing to a String cannot fail.
        _ = write!(wire, "{:<3} {:<8}\n{}\n", self.status as u16, self.text.len(), self.text);
        wire
    }
}
