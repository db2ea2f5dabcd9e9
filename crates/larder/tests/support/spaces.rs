//! Two network namespaces with a cable between them: the daemon's machine and another one.

use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

use testkit::larder::binary;

/// The daemon's addresses.
pub(crate) const NEAR: [&str; 2] = ["10.83.1.1", "fd83::1"];
/// The client's addresses.
const FAR: [&str; 2] = ["10.83.1.2", "fd83::2"];

/// The namespaces, removed with it.
pub(crate) struct Spaces {
    near: String,
    far: String,
}

impl Spaces {
    /// Creates both; `None` where that is not possible, which is printed.
    pub(crate) fn new() -> Option<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = |end: &str| format!("larder-{}-{number}-{end}", std::process::id());
        let spaces = Self { near: name("near"), far: name("far") };
        spaces.make().map_err(|why| eprintln!("skipped: no network namespaces: {why}")).ok()?;
        Some(spaces)
    }

    fn make(&self) -> Result<(), String> {
        let Self { near, far } = self;
        for space in [near, far] {
            ip(&format!("netns add {space}"))?;
        }
        ip(&format!("-n {near} link add cable type veth peer name cable netns {far}"))?;
        for (space, addresses) in [(near, NEAR), (far, FAR)] {
            ip(&format!("-n {space} link set lo up"))?;
            ip(&format!("-n {space} addr add {}/24 dev cable", addresses[0]))?;
            ip(&format!("-n {space} addr add {}/64 dev cable nodad", addresses[1]))?;
            ip(&format!("-n {space} link set cable up"))?;
        }
        Ok(())
    }

    /// A command in the daemon's namespace that ends with the binary.
    pub(crate) fn daemon(&self) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.near]).arg(binary().expect("a binary"));
        command
    }

    /// Runs curl in the other one: returns the status, 0 without a response, and the text.
    pub(crate) fn curl(&self, arguments: &[&str]) -> (u16, String) {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.far, "curl", "--silent", "--max-time", "30"]);
        command.args(["--write-out", "\n%{http_code}"]).args(arguments);
        let Output { stdout, .. } = command.output().expect("curl starts");
        let told = String::from_utf8_lossy(&stdout).into_owned();
        let (text, status) = told.rsplit_once('\n').unwrap_or_default();
        (status.parse().expect("a status"), text.to_owned())
    }
}

impl Drop for Spaces {
    fn drop(&mut self) {
        for space in [&self.near, &self.far] {
            // It may not exist.
            _ = ip(&format!("netns del {space}"));
        }
    }
}

/// Runs one command of `ip`.
fn ip(command: &str) -> Result<(), String> {
    let done = Command::new("ip").args(command.split(' ')).output();
    let done = done.map_err(|error| format!("ip: {error}"))?;
    let said = String::from_utf8_lossy(&done.stderr).trim().to_owned();
    if done.status.success() { Ok(()) } else { Err(said) }
}
