//! A script of an origin, for one request or one connection.

/// A step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Writes the bytes.
    Send(Vec<u8>),
    /// Writes the bytes one at a time.
    Trickle {
        /// Bytes to write.
        bytes: Vec<u8>,
        /// Pause after each byte, in milliseconds.
        pause_ms: u64,
    },
    /// Writes the bytes repeatedly.
    Repeat {
        /// Bytes to write.
        bytes: Vec<u8>,
        /// The number of times.
        times: usize,
    },
    /// Waits this many milliseconds.
    DelayMs(u64),
    /// Writes a 200 with these field lines, each with its CRLF. The body is the number of the
    /// answer, and the request with its body. `{n}` in the lines stands for the number.
    Mirror(String),
    /// Reads the rest of the request; for scripts that begin before its body.
    ReadRequest,
    /// Sends FIN and continues.
    FinishSending,
    /// Sends nothing and waits until the peer closes.
    Hang,
    /// Closes. If received bytes are unread, the kernel sends RST instead of FIN.
    Close,
    /// Sends RST (`SO_LINGER` of zero).
    Reset,
}

/// A list of actions, built by chaining.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    pub(super) actions: Vec<Action>,
    pub(super) reads_body: bool,
}

impl Default for Script {
    fn default() -> Self {
        Self { actions: Vec::new(), reads_body: true }
    }
}

impl Script {
    /// Makes a script that sends `bytes` after the request.
    pub fn respond(bytes: impl Into<Vec<u8>>) -> Self {
        Self::default().send(bytes)
    }

    /// A 200 with `Cache-Control: max-age=300` and `body`.
    pub fn cacheable(body: &str) -> Self {
        Self::ok("Cache-Control: max-age=300\r\n", body)
    }

    /// A 200 with the given field lines, each with its CRLF, a `Content-Length` and `body`.
    pub fn ok(fields: &str, body: &str) -> Self {
        let length = body.len();
        Self::respond(format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: {length}\r\n\r\n{body}"))
    }

    /// A 200 with the given field lines. Its body shows the request and a unique number, so that a
    /// test sees which request it answers. `{n}` in the lines stands for the number.
    pub fn mirror(fields: &str) -> Self {
        Self::default().then(Action::Mirror(fields.to_owned()))
    }

    /// Makes the script begin after the request's head, with the body unread.
    #[must_use]
    pub fn without_reading_body(mut self) -> Self {
        self.reads_body = false;
        self
    }

    /// Appends an action.
    #[must_use]
    pub fn then(mut self, action: Action) -> Self {
        self.actions.push(action);
        self
    }

    /// Writes `bytes`.
    #[must_use]
    pub fn send(self, bytes: impl Into<Vec<u8>>) -> Self {
        self.then(Action::Send(bytes.into()))
    }

    /// Writes `bytes` one at a time with a pause of `pause_ms` after each.
    #[must_use]
    pub fn trickle(self, bytes: impl Into<Vec<u8>>, pause_ms: u64) -> Self {
        self.then(Action::Trickle { bytes: bytes.into(), pause_ms })
    }

    /// Writes `bytes` `times` times.
    #[must_use]
    pub fn repeat(self, bytes: impl Into<Vec<u8>>, times: usize) -> Self {
        self.then(Action::Repeat { bytes: bytes.into(), times })
    }

    /// Pauses.
    #[must_use]
    pub fn delay_ms(self, pause_ms: u64) -> Self {
        self.then(Action::DelayMs(pause_ms))
    }

    /// Ends with FIN.
    #[must_use]
    pub fn close(self) -> Self {
        self.then(Action::Close)
    }

    /// Ends with RST.
    #[must_use]
    pub fn reset(self) -> Self {
        self.then(Action::Reset)
    }

    /// Sends nothing more, with the connection open.
    #[must_use]
    pub fn hang(self) -> Self {
        self.then(Action::Hang)
    }
}
