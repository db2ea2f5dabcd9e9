//! Programs of the system, which a test machine may lack or forbid.

use std::process::{Command, Stdio};

/// Output of a program that ran to its end; `None` if it could not run, or failed.
pub(crate) fn run(program: &str, arguments: &[&str]) -> Option<String> {
    let mut command = Command::new(program);
    command.args(arguments).env("PATH", "/usr/sbin:/sbin:/usr/bin:/bin").stdin(Stdio::null());
    let output = command.stderr(Stdio::null()).output().ok()?;
    let said = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| said.trim().to_owned())
}
