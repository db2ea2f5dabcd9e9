//! Lines for standard error, which is a service's log, and for standard output. `eprintln!` writes
//! one in pieces, and pieces of several threads mix; `println!` panics where nobody reads any more,
//! as behind `| head`.

use std::fmt::Arguments;
use std::io::{self, Write};

/// Writes a line to standard error in one piece; arguments are those of `format!`.
#[macro_export]
macro_rules! say {
    ($($text:tt)*) => {
        $crate::say::line(format_args!($($text)*))
    };
}

/// Writes a line to standard output in one piece; arguments are those of `format!`.
#[macro_export]
macro_rules! show {
    ($($text:tt)*) => {
        $crate::say::shown(format_args!($($text)*))
    };
}

/// Writes a line to standard output. One that nobody takes is lost: whoever read has what they
/// wanted.
pub fn shown(text: Arguments<'_>) {
    _ = to(&mut io::stdout().lock(), text);
}

/// Writes a line to standard error. One that nobody takes is lost: there is no other place to say
/// so.
pub fn line(text: Arguments<'_>) {
    _ = to(&mut io::stderr().lock(), text);
}

fn to(out: &mut impl Write, text: Arguments<'_>) -> io::Result<()> {
    out.write_all(format!("{text}\n").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keeps what each write brings.
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
}
