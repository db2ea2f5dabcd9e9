//! Socket advice: the owner of a unix socket that may not be connected to, as PHP-FPM's often is,
//! and what to change. It must never change permissions itself.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Connecting requires the permission to write (unix(7)).
const GROUP_MAY_CONNECT: u32 = 0o020;

/// `error` of connecting to the socket at `path`, with advice if permissions are the cause.
pub(crate) fn explained(path: &Path, error: io::Error) -> io::Error {
    if error.kind() != io::ErrorKind::PermissionDenied {
        return error;
    }
    let user = fs::metadata("/proc/self").ok().and_then(|own| name("/etc/passwd", own.uid()));
    let user = user.as_deref().unwrap_or("USER");
    let advice = fs::metadata(path).map_or_else(|_| no_way(user), |it| socket_advice(&it, user));
    io::Error::new(error.kind(), format!("{error}: {advice}"))
}

/// Advice for `user`, who may not connect to the socket.
pub fn socket_advice(socket: &fs::Metadata, user: &str) -> String {
    let group = name("/etc/group", socket.gid());
    advice(group.as_deref(), socket.gid(), socket.mode(), user)
}

fn no_way(user: &str) -> String {
    format!("{user} may not enter the directory of the socket")
}

fn advice(group: Option<&str>, gid: u32, mode: u32, user: &str) -> String {
    let mode = mode & 0o777;
    match group {
        _ if gid == 0 || mode & GROUP_MAY_CONNECT == 0 => format!(
            "the socket has mode {mode:04o}, and {user} is let in neither as owner nor by a group: \
             PHP-FPM's pool says who may (listen.group, listen.mode)"
        ),
        Some(group) => format!(
            "the socket is for group {group}: `usermod -aG {group} {user}` and a restart of the \
             daemon let it in"
        ),
        None => {
            format!("the socket is for the group with number {gid}, and {user} is not a member")
        }
    }
}

/// The name of a number in a file such as `/etc/group`.
fn name(file: &str, number: u32) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    text.lines().find_map(|line| {
        let mut parts = line.split(':');
        let (name, own) = (parts.next()?, parts.nth(1)?);
        (own.parse() == Ok(number)).then(|| name.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_that_may_connect_is_the_one_to_join() {
        let said = advice(Some("www-data"), 33, 0o140_660, "larder");
        assert!(said.contains("group www-data: `usermod -aG www-data larder`"), "{said}");
        let said = advice(None, 1234, 0o660, "larder");
        assert!(said.contains("number 1234") && !said.contains("usermod"), "{said}");
    }

    #[test]
    fn no_group_is_named_that_does_not_help_or_that_may_everything() {
        for (gid, mode) in [(33, 0o600), (33, 0o640), (0, 0o660)] {
            let said = advice(Some("any"), gid, mode, "larder");
            assert!(!said.contains("usermod"), "{said}");
            assert!(
                said.contains(&format!("{mode:04o}")) && said.contains("listen.group"),
                "{said}"
            );
        }
    }

    #[test]
    fn only_errors_of_rights_have_advice_and_their_kind_stays() {
        let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
        let before = refused.to_string();
        assert_eq!(explained(Path::new("/"), refused).to_string(), before);
        let denied = explained(Path::new("/"), io::ErrorKind::PermissionDenied.into());
        assert_eq!(denied.kind(), io::ErrorKind::PermissionDenied);
        // The root directory belongs to the group root.
        assert!(denied.to_string().contains("listen.group"), "{denied}");
    }

    #[test]
    fn numbers_have_their_names() {
        assert_eq!(name("/etc/group", 0).as_deref(), Some("root"));
        assert_eq!(name("/etc/passwd", 0).as_deref(), Some("root"));
        assert_eq!(name("/etc/group", u32::MAX), None);
    }
}
