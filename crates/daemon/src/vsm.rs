//! varnishd's shared memory, the part by which `varnishadm -n DIR` and `varnishreload` find the
//! CLI: its address and the file of its secret, in the working directory.
//!
//! Counters and logs are not in it: use `larder stat` and `larder log`.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

/// The folder of the manager's segments, and its index, by varnishd's names.
pub(crate) const FOLDER: &str = "_.vsm_mgt";
const INDEX: &str = "_.index";
/// The unit of a segment's length, in bytes.
const ALIGNMENT: usize = 8;

/// Publishes in `workdir` the CLI's address and the file of its secret, in place of those of the
/// process `predecessor`. A varnishd running there keeps its own.
///
/// # Errors
/// The reason why it cannot be published.
pub(crate) fn publish(
    workdir: &Path,
    address: SocketAddr,
    secret: Option<&Path>,
    predecessor: Option<u32>,
) -> io::Result<()> {
    let folder = workdir.join(FOLDER);
    if is_anothers(&folder, predecessor) {
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, "another daemon's is there"));
    }
    match fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    DirBuilder::new().mode(0o750).create(&folder)?;
    let write = |name: &str, text: &[u8]| {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o640).open(folder.join(name))?.write_all(text)
    };
    let at = format!("{} {}\n", address.ip(), address.port());
    let secret = secret.map(|secret| secret.as_os_str().as_encoded_bytes());
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let mut index = format!("# {} {}\n", std::process::id(), now.unwrap_or_default().as_secs());
    for (name, text) in [("-T", Some(at.as_bytes())), ("-S", secret)] {
        let Some(text) = text else { continue };
        // Readers want a final zero byte.
        let mut segment = text.to_vec();
        segment.resize((text.len() + 1).next_multiple_of(ALIGNMENT), 0);
        let file = format!("_.Arg{name}");
        write(&file, &segment)?;
        index.push_str(&format!("+ {file} 0 {} Arg {name}\n", segment.len()));
    }
    // A reader of the index finds every file that it names.
    write("_.new", index.as_bytes())?;
    fs::rename(folder.join("_.new"), folder.join(INDEX))
}

/// Removes what [`publish`] wrote.
pub(crate) fn withdraw(workdir: &Path) {
    let folder = workdir.join(FOLDER);
    if !is_anothers(&folder, None) {
        // It names a process that is about to end, which readers detect.
        _ = fs::remove_dir_all(folder);
    }
}

/// Returns true if a process other than this one and `predecessor` wrote the index and is still
/// running.
fn is_anothers(folder: &Path, predecessor: Option<u32>) -> bool {
    let index = fs::read_to_string(folder.join(INDEX)).unwrap_or_default();
    let pid = index.split_whitespace().nth(1).and_then(|pid| pid.parse::<u32>().ok());
    let others = pid.filter(|pid| *pid != std::process::id() && Some(*pid) != predecessor);
    others.is_some_and(|pid| Path::new(&format!("/proc/{pid}")).exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_and_a_secret_are_said_as_varnishd_says_them_and_another_daemons_stay() {
        let folder = std::env::temp_dir().join(format!("larder-vsm-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let address = SocketAddr::from(([127, 0, 0, 1], 6082));
        let read = |name: &str| fs::read_to_string(folder.join(FOLDER).join(name)).expect(name);
        publish(&folder, address, Some(Path::new("/etc/varnish/secret")), None)
            .expect("it is said");
        publish(&folder, address, Some(Path::new("/etc/varnish/secret")), None).expect("and again");
        let index = read(INDEX);
        let (head, rest) = index.split_once('\n').expect("lines");
        assert!(head.starts_with(&format!("# {} ", std::process::id())), "{head}");
        assert_eq!(rest, "+ _.Arg-T 0 16 Arg -T\n+ _.Arg-S 0 24 Arg -S\n");
        assert_eq!(read("_.Arg-T"), "127.0.0.1 6082\n\0");
        assert_eq!(read("_.Arg-S"), "/etc/varnish/secret\0\0\0\0\0");
        // Process 1 always runs.
        fs::write(folder.join(FOLDER).join(INDEX), "# 1 1700000000\n").expect("written");
        assert!(publish(&folder, address, None, None).is_err());
        withdraw(&folder);
        assert_eq!(read(INDEX), "# 1 1700000000\n");
        publish(&folder, address, None, Some(1)).expect("this one replaces process 1");
        fs::write(folder.join(FOLDER).join(INDEX), "# 4194305 1700000000\n").expect("written");
        withdraw(&folder);
        assert!(!folder.join(FOLDER).exists());
        fs::remove_dir_all(folder).expect("removed");
    }
}
