//! Logging: lines for standard error, standard output and the daemon's log.
//!
//! `eprintln!` writes a line in several parts, which mix between threads, and `println!` panics
//! when the reader has gone, as behind `| head`. A line must be one write, and a lost line no
//! error.

use std::fmt::Arguments;
use std::io::{self, Write};
use std::panic::Location;
use std::sync::OnceLock;

/// Writes a line to standard error in one piece; arguments are those of `format!`.
#[macro_export]
macro_rules! say {
    ($($text:tt)*) => {
        $crate::logging::line(format_args!($($text)*))
    };
}

/// Writes a line to standard output in one piece; arguments are those of `format!`.
#[macro_export]
macro_rules! show {
    ($($text:tt)*) => {
        $crate::logging::shown(format_args!($($text)*))
    };
}

/// Logs an event of the daemon: a [`Priority`] such as `Warn`, then the arguments of `format!`.
/// Without a log it is a line on standard error.
#[macro_export]
macro_rules! tell {
    ($priority:ident, $($text:tt)*) => {
        $crate::logging::tell($crate::logging::Priority::$priority, format_args!($($text)*))
    };
}

macro_rules! priorities {
    ($($variant:ident $word:literal $about:literal;)*) => {
        /// The weight of a line, as syslog(3) counts it, under the names that nginx has.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Priority { $(#[doc = $about] $variant,)* #[doc = "What helps to find a mistake."] #[default] Debug, }

        impl Priority {
            /// All priorities, the most severe first.
            pub const ALL: &[Self] = &[$(Self::$variant,)* Self::Debug];

            /// Its name in settings and log files.
            pub fn word(self) -> &'static str {
                match self { $(Self::$variant => $word,)* Self::Debug => "debug" }
            }
        }
    };
}

priorities! {
    Emerg "emerg" "Nothing works any more.";
    Alert "alert" "Somebody must act at once.";
    Crit "crit" "A part of the whole has failed.";
    Error "error" "Something has failed that should work.";
    Warn "warn" "Something is not as it should be.";
    Notice "notice" "Something has changed that an operator wants to know.";
    Info "info" "Something happened as it should.";
}

impl Priority {
    /// Its number in syslog, from 0.
    pub fn number(self) -> u8 {
        self as u8
    }

    /// The priority in a number of syslog(3), without its facility.
    pub fn of_syslog(number: i64) -> Self {
        let at = number.rem_euclid(8) as usize;
        Self::ALL.get(at).copied().unwrap_or_default()
    }
}

/// The destination of log lines.
pub trait Log: Send + Sync {
    /// Logs one or several lines. `kind` is the place in the program. Must not wait.
    fn tell(&self, kind: &'static Location<'static>, priority: Priority, text: Arguments<'_>);

    /// Writes all buffered lines, and `why` the process ends if the log is not standard error.
    fn finish(&self, why: Option<&str>);
}

static LOG: OnceLock<Box<dyn Log>> = OnceLock::new();

/// Sets the log for all later lines. Returns false if a log has been set already.
pub fn set_log(log: Box<dyn Log>) -> bool {
    LOG.set(log).is_ok()
}

/// Logs a line, as [`tell!`](crate::tell) does.
#[track_caller]
pub fn tell(priority: Priority, text: Arguments<'_>) {
    match LOG.get() {
        Some(log) => log.tell(Location::caller(), priority, text),
        None => line(text),
    }
}

/// Ends the log; later lines go to standard error. `why` is the error that ends the process.
pub fn finish(why: Option<&str>) {
    if let Some(log) = LOG.get() {
        log.finish(why);
    }
}

/// Writes a line to standard output. It is lost if the reader has gone.
pub fn shown(text: Arguments<'_>) {
    _ = to(&mut io::stdout().lock(), text);
}

/// Writes a line to standard error. It is lost if the reader has gone, because no other place is
/// left.
pub fn line(text: Arguments<'_>) {
    _ = to(&mut io::stderr().lock(), text);
}

fn to(out: &mut impl Write, text: Arguments<'_>) -> io::Result<()> {
    out.write_all(format!("{text}\n").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Collects the bytes of each write.
    #[derive(Default)]
    struct Pieces(Vec<Vec<u8>>);

    impl Write for Pieces {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.push(bytes.to_vec());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_line_is_one_write_whatever_is_in_it() {
        let mut pieces = Pieces::default();
        let ban = "req.url ~ \"\\.css$\"";
        to(&mut pieces, format_args!("{}: ban {ban:?}: {}", "peer", 7)).expect("written");
        let line = b"peer: ban \"req.url ~ \\\"\\\\.css$\\\"\": 7\n".to_vec();
        assert_eq!(pieces.0, [line]);
    }

    #[test]
    fn priorities_are_those_of_syslog() {
        for (number, word) in
            [(0, "emerg"), (3, "error"), (4, "warn"), (7, "debug"), (8 + 6, "info")]
        {
            assert_eq!(Priority::of_syslog(number).word(), word);
            assert_eq!(i64::from(Priority::of_syslog(number).number()), number % 8);
        }
        assert_eq!(Priority::of_syslog(-1), Priority::Debug);
        assert!(Priority::Error < Priority::Warn);
    }
}
