//! Socket help for a user whose daemon does not answer: sockets of other daemons, or the way to
//! start one.

use std::fs;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// Most sockets that the help names.
const NAMED_MAX: usize = 3;

/// The reason for which the daemon at `socket` does not answer, and what to do.
pub(crate) fn unanswered(socket: &Path, error: &io::Error) -> String {
    let said = format!("larder: no running daemon answers at {}: {error}", socket.display());
    if error.kind() == io::ErrorKind::PermissionDenied {
        return format!("{said}\n  = help: it is for root and the daemon's user: try it with sudo");
    }
    let others = others(socket);
    let help = match others.as_slice() {
        [] => "start one with `larder serve --config FILE`, `larder serve --origin URL` or, as a \
               service, `systemctl start larder`; for one that was started with `--admin-socket \
               PATH`, say the same here"
            .to_owned(),
        [one] => format!("a daemon answers at {0}: add `--admin-socket {0}`", one.display()),
        several => {
            let all: Vec<_> = several.iter().map(|path| path.display().to_string()).collect();
            format!("daemons answer at {}: name one with `--admin-socket`", all.join(", "))
        }
    };
    format!("{said}\n  = help: {help}")
}

/// Admin sockets of other daemons that this user may connect to.
fn others(socket: &Path) -> Vec<PathBuf> {
    let mut found = vec![PathBuf::from("/run/larder/admin.sock")];
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = entry.file_name();
        if name.to_str().is_none_or(|name| !name.bytes().all(|b| b.is_ascii_digit())) {
            continue;
        }
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let words: Vec<_> = line.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
        let words: Vec<_> = words.iter().map(AsRef::as_ref).collect();
        // Relative paths refer to the daemon's working folder.
        let started_in = fs::read_link(entry.path().join("cwd")).unwrap_or_default();
        found.extend(named(&words).map(|path| started_in.join(path)));
    }
    found.sort();
    found.dedup();
    found.retain(|path| path != socket && UnixStream::connect(path).is_ok());
    found.truncate(NAMED_MAX);
    found
}

/// The admin socket in a daemon's command line.
fn named(words: &[&str]) -> Option<PathBuf> {
    let [program, verb, rest @ ..] = words else { return None };
    let is_daemon = Path::new(program).file_name().is_some_and(|name| name == "larder");
    if !is_daemon || *verb != "serve" {
        return None;
    }
    let after = |flag: &str| rest.iter().skip_while(|word| **word != flag).nth(1).copied();
    let joined = || rest.iter().find_map(|word| word.strip_prefix("--admin-socket="));
    let socket = after("--admin-socket").or_else(joined).map(PathBuf::from);
    socket.or_else(|| after("-n").map(|folder| Path::new(folder).join("admin.sock")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_daemons_socket_is_read_from_its_command_line() {
        let of = |line: &str| named(&line.split(' ').collect::<Vec<_>>());
        let at = |path: &str| Some(PathBuf::from(path));
        assert_eq!(of("/usr/bin/larder serve --admin-socket /a --config x"), at("/a"));
        assert_eq!(of("larder serve --origin x --admin-socket=b"), at("b"));
        assert_eq!(of("larder serve -a :80 -n /var/x -b none"), at("/var/x/admin.sock"));
        for other in ["larder serve", "larder stat --admin-socket /a", "vi serve -n x", ""] {
            assert_eq!(of(other), None, "{other}");
        }
    }
}
