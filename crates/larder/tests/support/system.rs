//! Programs of the system, which a test machine may lack or may not be allowed to run.

use std::process::{Command, Stdio};

/// Runs a program. Returns its output; `None` if it cannot be run, or fails.
pub(crate) fn run(program: &str, arguments: &[&str]) -> Option<String> {
    let mut command = Command::new(program);
    command.args(arguments).env("PATH", "/usr/sbin:/sbin:/usr/bin:/bin").stdin(Stdio::null());
    let output = command.stderr(Stdio::null()).output().ok()?;
    let said = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| said.trim().to_owned())
}
