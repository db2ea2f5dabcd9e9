//! Journal of servers: events besides responses, such as FastCGI's error stream, which has PHP's
//! own log, and changes of health by probes.

use std::fmt::{self, Write as _};

/// A receiver of servers' messages, for the log. Called on core threads: it must not block.
pub trait Journal: Send + Sync {
    /// Records the error text of one request.
    fn said(&self, said: &ServerMessage<'_>);

    /// Records that probes have made a server healthy or sick. Called on the thread of the probes.
    fn probed(&self, turn: &HealthChange<'_>);

    /// Records that a server sends heads with line ends without CR, which are accepted; once per
    /// server.
    fn line_feeds(&self, server: &str);
}

/// A server that probes have made healthy or sick: `Backend_health` of Varnish's log.
#[derive(Clone, Copy, Debug)]
pub struct HealthChange<'a> {
    /// The name of its origin.
    pub origin: &'a str,
    /// Its address as configured.
    pub server: &'a str,
    /// The server is healthy now.
    pub healthy: bool,
    /// The number of good probes among the latest.
    pub good: u32,
    /// The number of latest probes that count.
    pub window: u32,
    /// The number of good probes of a healthy server.
    pub threshold: u32,
    /// The duration of the last probe, in seconds.
    pub seconds: f64,
    /// The reason why the last probe was not good; `None` if it was good.
    pub why: Option<&'a str>,
}

impl fmt::Display for HealthChange<'_> {
    /// One line without its end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let HealthChange { origin, server, good, window, threshold, seconds, .. } = self;
        let now = if self.healthy { "healthy" } else { "sick" };
        write!(f, "Backend_health {origin} {server} went {now}: {good} of {window} probes good, ")?;
        write!(f, "{threshold} needed, {seconds:.6} s: {}", self.why.unwrap_or("good"))
    }
}

/// A message of a server on FastCGI's error stream.
#[derive(Clone, Copy, Debug)]
pub struct ServerMessage<'a> {
    /// The server, the request and its client: on one line, without control characters.
    pub about: &'a str,
    /// The text as received, including control bytes.
    pub text: &'a [u8],
    /// The number of further bytes, which were dropped.
    pub dropped: u64,
}

impl fmt::Display for ServerMessage<'_> {
    /// One line for each line of the text; bytes that are not text are escaped, so that a server
    /// cannot forge lines.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = self.text.split(|b| *b == b'\n').map(<[u8]>::trim_ascii);
        for line in lines.filter(|line| !line.is_empty()) {
            write!(f, "{}: ", self.about)?;
            for c in String::from_utf8_lossy(line).chars() {
                match c {
                    c if c.is_control() => write!(f, "{}", c.escape_default())?,
                    c => f.write_char(c)?,
                }
            }
            f.write_str("\n")?;
        }
        if self.dropped > 0 {
            writeln!(f, "{}: {} bytes more (limit: stderr_bytes)", self.about, self.dropped)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_names_the_request_and_none_can_be_forged() {
        let said = ServerMessage {
            about: "php:9000: GET http://a/b",
            text: b"PHP Warning: x\r\n\n\x1b[2Jred\xff\nlast",
            dropped: 7,
        };
        let expected = "php:9000: GET http://a/b: PHP Warning: x\n\
                        php:9000: GET http://a/b: \\u{1b}[2Jred\u{fffd}\n\
                        php:9000: GET http://a/b: last\n\
                        php:9000: GET http://a/b: 7 bytes more (limit: stderr_bytes)\n";
        assert_eq!(said.to_string(), expected);
    }
}
