//! Output of a tool to standard output, which may be a closed pipe.

use std::io::{self, IsTerminal, Write};

/// Returns true if standard output is a terminal.
pub(crate) fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Writes to standard output. Returns false if its reader is gone, as behind `| head`.
///
/// # Errors
/// Any other write error, as a message.
pub fn print(bytes: &[u8]) -> Result<bool, String> {
    let mut out = io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(format!("larder: cannot write: {error}")),
    }
}
