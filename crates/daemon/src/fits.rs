//! Warnings about a configuration that asks for what its machine has not: memory, directories, the
//! right to connect to an origin's socket.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::Path;

use config::sizing::Machine;
use config::{Config, Diagnostic};

use crate::account::{self, Runner};

/// Entering a directory and connecting to a socket, as bits of a mode (path_resolution(7),
/// unix(7)).
const ENTER: u32 = 0o1;
const CONNECT: u32 = 0o2;

/// Making files in a directory.
const WRITE: u32 = 0o2;

/// Everything that is missing on `machine`, and for `runner`, if that is not root.
pub(crate) fn unmet(
    config: &Config,
    machine: &Machine,
    runner: Option<&Runner>,
) -> Vec<Diagnostic> {
    let mut found: Vec<_> = too_much_memory(config, machine).into_iter().collect();
    for folder in &config.folders {
        let why = match std::fs::metadata(&folder.path) {
            Ok(meta) if meta.is_dir() => continue,
            Ok(_) => "it is not a directory".to_owned(),
            // Its files may be another user's, or only the application's.
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => continue,
            Err(error) => error.to_string(),
        };
        let message = format!("`{}`: {}: {why}", folder.setting, folder.path.display());
        found.push(folder.place.warning(message));
    }
    if let Some(user) = runner {
        for socket in &config.sockets {
            let Some(advice) = shut(&socket.path, user) else { continue };
            let (setting, path, name) = (&socket.setting, socket.path.display(), &user.name);
            let message = format!("`{setting}`: {path}: {name} may not connect to it");
            let mut told = socket.place.warning(message);
            told.help = Some(advice);
            found.push(told);
        }
    }
    found
}

/// Everything that would keep a start from serving as `config` says, for `runner`, if that is not
/// root: a user that does not exist, and a cache directory that it may not make or use.
pub(crate) fn refused(config: &Config, runner: Option<&Runner>) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    if let (Some(why), Some(place)) = (account::unknown(&config.run), &config.run.place) {
        let mut told = place.error(why);
        let name = config.run.user.as_deref().unwrap_or(account::USUAL);
        told.help = Some(format!(
            "make one: `useradd --system --no-create-home --shell /usr/sbin/nologin {name}`"
        ));
        found.push(told);
    }
    let volumes = config.disk.iter().flat_map(|disk| &disk.volumes);
    for (user, volume) in
        runner.into_iter().flat_map(|user| volumes.clone().map(move |v| (user, v)))
    {
        let Some(why) = unwritable(&volume.path, user) else { continue };
        let (path, name) = (volume.path.display(), &user.name);
        let mut told = volume.place.error(format!("the disk cache in {path}: {why}"));
        told.help = Some(format!("as root: `install -d -o {name} -m 700 {path}`"));
        found.push(told);
    }
    found
}

/// The reason why `user` may not keep files in `folder`, which may have to be made first.
fn unwritable(folder: &Path, user: &Runner) -> Option<String> {
    let there = folder.ancestors().find(|above| above.exists())?;
    let name = &user.name;
    let mut above: Vec<_> = there.ancestors().skip(1).collect();
    above.reverse();
    for entered in above {
        if !may(entered, &fs::metadata(entered).ok()?, user, ENTER) {
            return Some(format!("{name} may not enter {}", entered.display()));
        }
    }
    let it = fs::metadata(there).ok()?;
    let is_free = may(there, &it, user, WRITE) && may(there, &it, user, ENTER);
    match (is_free, there == folder) {
        (true, _) => None,
        (false, true) => Some(format!("{name} may not write there")),
        (false, false) => Some(format!("{name} may not make it in {}", there.display())),
    }
}

/// Advice for `user`, who may not connect to the socket at `path`; `None` if it may, and for a
/// socket that is not there, since its server may begin later.
fn shut(path: &Path, user: &Runner) -> Option<String> {
    let denied = |place: &Path| format!("{} may not enter {}", user.name, place.display());
    let real = match fs::canonicalize(path) {
        Ok(real) => real,
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            return path.parent().map(denied);
        }
        Err(_) => return None,
    };
    let mut folders: Vec<_> = real.ancestors().skip(1).collect();
    folders.reverse();
    for folder in folders {
        if !may(folder, &fs::metadata(folder).ok()?, user, ENTER) {
            return Some(denied(folder));
        }
    }
    let socket = fs::metadata(&real).ok().filter(|it| it.file_type().is_socket())?;
    (!may(&real, &socket, user, CONNECT)).then(|| origin::socket_advice(&socket, &user.name))
}

fn may(path: &Path, it: &Metadata, user: &Runner, bit: u32) -> bool {
    let class = match (it.uid() == user.uid, user.gids.contains(&it.gid())) {
        (true, _) => 6,
        (_, true) => 3,
        _ => 0,
    };
    // Where there is an access list the mode does not say who is in it (acl(5)).
    let has_list =
        || rustix::fs::getxattr(path, "system.posix_acl_access", &mut [0_u8; 0][..]).is_ok();
    it.mode() >> class & bit != 0 || has_list()
}

fn too_much_memory(config: &Config, machine: &Machine) -> Option<Diagnostic> {
    let (wanted, there) = (machine.memory_bytes(config.memory.size), machine.memory_bytes);
    (wanted > there).then(|| {
        let (wanted, there) = (mebibytes(wanted), mebibytes(there));
        let message = format!("memory: {wanted} are more than the {there} that there are");
        let mut told = config.memory.place.warning(message);
        told.help = Some(
            "this machine, or the control group of the daemon, has no more: the kernel would end \
             the daemon once its cache is that large; without the setting it takes half"
                .to_owned(),
        );
        told
    })
}

/// A size for people.
pub(crate) fn mebibytes(bytes: u64) -> String {
    format!("{} MiB", bytes >> 20)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::os::unix::net::UnixListener;
    use std::path::PathBuf;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    fn told(text: &str) -> Vec<String> {
        let rest = "[[origin]]\nname = \"app\"\nservers = \"http://app\"\n[[site]]\nhost = \"*\"\n\
                    origin = \"app\"\n";
        let (config, _) = config::load_str(&format!("{text}\n{rest}"), "larder.toml").expect(text);
        let machine = Machine { memory_bytes: 1 << 30, cpus: 1 };
        unmet(&config, &machine, None).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn more_memory_than_there_is_is_told_with_its_place() {
        assert_eq!(told("[memory]\nsize = \"1GiB\""), [""; 0]);
        assert_eq!(told(""), [""; 0]);
        let said = told("[memory]\nsize = \"2GiB\"").concat();
        assert!(said.contains("memory: 2048 MiB are more than the 1024 MiB"), "{said}");
        assert!(said.contains("larder.toml:2:8"), "{said}");
    }

    /// A folder that is gone with its test.
    struct Folder(PathBuf);

    impl Folder {
        fn new() -> Self {
            static NEXT: AtomicU32 = AtomicU32::new(0);
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let name = format!("larder-fits-{}-{number}", std::process::id());
            let folder = std::env::temp_dir().join(name);
            fs::create_dir_all(&folder).expect("a folder");
            Self(fs::canonicalize(folder).expect("a folder"))
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            _ = fs::remove_dir_all(&self.0);
        }
    }

    /// Somebody else than who runs this, in group 4321.
    fn other() -> Runner {
        let uid = rustix::process::geteuid().as_raw() + 1;
        Runner { name: "larder".to_owned(), uid, gids: vec![4321] }
    }

    #[test]
    fn sockets_and_their_directories_let_in_whom_their_modes_name() {
        let folder = Folder::new();
        let (user, path) = (other(), folder.0.as_path().join("php.sock"));
        let mode = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a mode");
        };
        assert_eq!(shut(&path, &user), None, "its server may begin later");
        let _listener = UnixListener::bind(&path).expect("a socket");
        mode(folder.0.as_path(), 0o711);
        mode(&path, 0o660);
        let said = shut(&path, &user).expect("shut");
        assert!(said.contains("the socket"), "{said}");
        mode(&path, 0o662);
        assert_eq!(shut(&path, &user), None);
        // Links, as Debian has one to PHP's socket, are as what they lead to.
        let link = folder.0.as_path().join("link");
        std::os::unix::fs::symlink(&path, &link).expect("a link");
        assert_eq!(shut(&link, &user), None);
        mode(folder.0.as_path(), 0o710);
        let said = shut(&link, &user).expect("shut");
        assert_eq!(said, format!("larder may not enter {}", folder.0.as_path().display()));
        mode(folder.0.as_path(), 0o711);
        // What is no socket is no matter of rights.
        assert_eq!(shut(folder.0.as_path(), &user), None);
    }

    #[test]
    fn the_first_class_of_a_mode_that_is_the_users_counts() {
        let folder = Folder::new();
        let path = folder.0.as_path().join("php.sock");
        let _listener = UnixListener::bind(&path).expect("a socket");
        let it = fs::metadata(&path).expect("a socket");
        let owner = Runner { uid: it.uid(), ..other() };
        let member = Runner { gids: vec![it.gid()], ..other() };
        for (mode, expected) in [
            (0o600, [true, false, false]),
            (0o060, [false, true, false]),
            (0o002, [false, false, true]),
            (0o606, [true, false, true]),
        ] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("a mode");
            let it = fs::metadata(&path).expect("a socket");
            let found = [&owner, &member, &other()].map(|user| may(&path, &it, user, CONNECT));
            assert_eq!(found, expected, "{mode:o}");
        }
    }

    /// An access list that names one user (acl(5)), as the kernel has it.
    fn list(uid: u32) -> Vec<u8> {
        let none = u32::MAX;
        let entries: [(u16, u16, u32); 5] =
            [(1, 6, none), (2, 6, uid), (4, 0, none), (16, 6, none), (32, 0, none)];
        let mut bytes = 2_u32.to_le_bytes().to_vec();
        for (tag, rights, id) in entries {
            bytes.extend(tag.to_le_bytes());
            bytes.extend(rights.to_le_bytes());
            bytes.extend(id.to_le_bytes());
        }
        bytes
    }

    #[test]
    fn an_access_list_is_not_judged() {
        let folder = Folder::new();
        let path = folder.0.as_path().join("php.sock");
        let _listener = UnixListener::bind(&path).expect("a socket");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("a mode");
        fs::set_permissions(folder.0.as_path(), fs::Permissions::from_mode(0o711)).expect("a mode");
        assert!(shut(&path, &other()).is_some());
        let name = "system.posix_acl_access";
        let flags = rustix::fs::XattrFlags::empty();
        if let Err(error) = rustix::fs::setxattr(&path, name, &list(other().uid), flags) {
            eprintln!("skipped: no access lists here: {error}");
            return;
        }
        assert_eq!(shut(&path, &other()), None);
    }
}
