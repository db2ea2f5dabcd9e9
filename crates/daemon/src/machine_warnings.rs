//! Machine warnings: a configuration asks for memory, directories or sockets that the machine or
//! the user's rights do not provide.

use std::collections::HashMap;
use std::fs;
use std::net::{IpAddr, ToSocketAddrs as _, UdpSocket};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::Path;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};
use std::{io, thread};

use config::sizing::Machine;
use config::{Config, Diagnostic, DiskVolume, NamedHost};

use crate::account::{self, ENTER, Runner};
use crate::folder_ownership;

/// The right to connect to a socket, as a bit of a mode (unix(7)).
const CONNECT: u32 = 0o2;

/// The right to create files in a directory.
const WRITE: u32 = 0o2;

/// Everything missing on `machine`, and for `runner`, if that is not root.
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
            // The files may be another user's, or only the application's.
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => continue,
            Err(error) => error.to_string(),
        };
        let message = format!("`{}`: {}: {why}", folder.setting, folder.path.display());
        found.push(folder.place.warning(message));
    }
    if let Some(user) = runner {
        found.extend(unread_roots(config, user));
        for socket in &config.sockets {
            let Some(advice) = unconnectable(&socket.path, user) else { continue };
            let (setting, path, name) = (&socket.setting, socket.path.display(), &user.name);
            let message = format!("`{setting}`: {path}: {name} may not connect to it");
            let mut told = socket.place.warning(message);
            told.help = Some(advice);
            found.push(told);
        }
    }
    found
}

/// Everything that would keep a start from serving `config` as `runner`: a user that does not
/// exist, and a cache directory that the user may not create or use.
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
    let Some(user) = runner else { return found };
    let is_root = rustix::process::geteuid().is_root();
    for volume in config.disk.iter().flat_map(|disk| &disk.volumes) {
        // Root creates it and gives it away when it starts the daemon.
        if is_root {
            let unfit = folder_ownership::foresee(&volume.path, user).err();
            found.extend(unfit.map(|unfit| unfit.diagnostic(volume, &user.name)));
            continue;
        }
        // An existing folder may be that of the service, which another user runs.
        if volume.path.exists() {
            continue;
        }
        let Some(why) = unwritable(&volume.path, user) else { continue };
        let (path, name) = (volume.path.display(), &user.name);
        let mut told = volume.place.error(format!("the disk cache in {path}: {why}"));
        told.help = Some(format!("as root: `install -d -o {name} -m 700 {path}`"));
        found.push(told);
    }
    found
}

/// Units of the package that start the daemon as its user, without root to create folders.
pub(crate) const UNITS: [&str; 3] = [
    "/etc/systemd/system/larder.service",
    "/usr/lib/systemd/system/larder.service",
    "/lib/systemd/system/larder.service",
];

/// Warnings about cache directories that root would create or give to `user`, and that one of
/// `units` cannot.
pub(crate) fn left_to_root(
    config: &Config,
    user: &Runner,
    units: &[impl AsRef<Path>],
) -> Vec<Diagnostic> {
    let Some(unit) = units.iter().map(AsRef::as_ref).find(|unit| unit.exists()) else {
        return Vec::new();
    };
    let volumes = config.disk.iter().flat_map(|disk| &disk.volumes);
    let told = |volume: &DiskVolume| {
        let is_users = fs::metadata(&volume.path).is_ok_and(|it| it.uid() == user.uid);
        if is_users || folder_ownership::foresee(&volume.path, user).is_err() {
            return None;
        }
        let (path, name) = (volume.path.display(), &user.name);
        let mut told = volume.place.warning(format!(
            "the disk cache in {path}: root makes it and gives it to {name}, but {} starts the \
             daemon without root",
            unit.display()
        ));
        told.help = Some(format!("as root: `install -d -o {name} -m 700 {path}`"));
        Some(told)
    };
    volumes.filter_map(told).collect()
}

/// Roots of files that `user` may not enter.
fn unread_roots(config: &Config, user: &Runner) -> Vec<Diagnostic> {
    let of_sites = config.sites.iter().flat_map(|site| &site.files);
    let of_origins = config.origins.iter().filter_map(|origin| match &origin.scripts {
        Some(scripts) => scripts.files.as_ref(),
        None => origin.files.as_ref(),
    });
    let roots = of_sites.chain(of_origins);
    let mut roots: Vec<_> = roots.map(|files| files.root.as_path()).collect();
    roots.sort_unstable();
    roots.dedup();
    let told = |root: &Path| {
        let folder = config.folders.iter().find(|folder| folder.path == root)?;
        let barred = user.barred(root)?;
        let (setting, name) = (&folder.setting, &user.name);
        let message = format!(
            "`{setting}`: {}: {name} may not enter {}, so that its files are not served",
            root.display(),
            barred.display()
        );
        let mut told = folder.place.warning(message);
        told.help = Some(format!(
            "let {name} in: `setfacl -m u:{name}:x {}` for each folder on the way, `rX` for files; \
             or run it as a user who may: `[run] user`",
            barred.display()
        ));
        Some(told)
    };
    roots.into_iter().filter_map(told).collect()
}

/// The time limit for looking up all names of origins.
const LOOK_UP: Duration = Duration::from_secs(3);

/// The result of a lookup: addresses, or the reason why there are none.
type NameLookup = Result<Vec<IpAddr>, String>;

/// Servers of origins that a start would not find, or that are the daemon itself under another
/// name. Names are looked up at the same time by the machine's resolver; one that takes too long is
/// not judged.
pub(crate) fn unresolvable_servers(config: &Config) -> Vec<Diagnostic> {
    let (tell, told) = channel();
    let mut names: Vec<_> = config.hosts.iter().map(|it| (it.host.clone(), it.port)).collect();
    names.sort_unstable();
    names.dedup();
    for (host, port) in names {
        let tell = tell.clone();
        // If no thread can be started, the name is not judged.
        _ = thread::Builder::new().spawn(move || {
            let looked = (host.as_str(), port).to_socket_addrs();
            let looked = looked.map(|all| all.map(|at| at.ip()).collect());
            _ = tell.send((host, looked.map_err(|error| error.to_string())));
        });
    }
    drop(tell);
    let (mut found, end) = (HashMap::new(), Instant::now() + LOOK_UP);
    while let Ok((host, looked)) = told.recv_timeout(end.saturating_duration_since(Instant::now()))
    {
        found.insert(host, looked);
    }
    judge_hosts(config, |host| found.get(host), is_local)
}

/// Returns true if this machine has the address.
fn is_local(ip: IpAddr) -> bool {
    ip.is_loopback() || UdpSocket::bind((ip, 0)).is_ok()
}

fn judge_hosts<'l>(
    config: &Config,
    looked: impl Fn(&str) -> Option<&'l NameLookup>,
    is_local: impl Fn(IpAddr) -> bool,
) -> Vec<Diagnostic> {
    let own = |ip: IpAddr, port: u16| {
        let addresses = config.listen.iter().flat_map(|spec| spec.addresses.iter().copied());
        addresses
            .filter(|at| at.port() == port && port != 0)
            .find(|at| at.ip() == ip || at.ip().is_unspecified() && is_local(ip))
    };
    let judge = |it: &NamedHost| {
        let (setting, host) = (&it.setting, &it.host);
        let addresses = match looked(host)? {
            Ok(addresses) if !addresses.is_empty() => addresses,
            other => {
                let why = other.as_ref().err().map_or("there is none", |why| why.as_str());
                let message = format!("`{setting}`: no address is found for {host}: {why}");
                let mut told = it.place.warning(message);
                told.help = Some(
                    "the daemon starts without an address and repeats the lookup; requests for its \
                     origin are answered 502 until then"
                        .to_owned(),
                );
                return Some(told);
            }
        };
        // The configuration's reader judges what needs no lookup.
        if host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback()) {
            return None;
        }
        let (ip, at) = addresses.iter().find_map(|ip| Some((ip, own(*ip, it.port)?)))?;
        let message = format!("`{setting}`: {host} is {ip}, this daemon's own listener {at}");
        let mut told = it.place.warning(message);
        told.help =
            Some("a request that comes back to a site with this origin is answered 508".to_owned());
        Some(told)
    };
    config.hosts.iter().filter_map(judge).collect()
}

/// The reason why `user` may not create `folder`.
fn unwritable(folder: &Path, user: &Runner) -> Option<String> {
    let there = folder.ancestors().find(|above| above.exists())?;
    let name = &user.name;
    if let Some(barred) = there.parent().and_then(|above| user.barred(above)) {
        return Some(format!("{name} may not enter {}", barred.display()));
    }
    let it = fs::metadata(there).ok()?;
    let is_free = user.may(there, &it, WRITE) && user.may(there, &it, ENTER);
    (!is_free).then(|| format!("{name} may not make it in {}", there.display()))
}

/// Advice for `user`, which may not connect to the socket at `path`; `None` if it may, or if the
/// socket does not exist, since its server may start later.
fn unconnectable(path: &Path, user: &Runner) -> Option<String> {
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
        if !user.may(folder, &fs::metadata(folder).ok()?, ENTER) {
            return Some(denied(folder));
        }
    }
    let socket = fs::metadata(&real).ok().filter(|it| it.file_type().is_socket())?;
    (!user.may(&real, &socket, CONNECT)).then(|| origin::socket_advice(&socket, &user.name))
}

fn too_much_memory(config: &Config, machine: &Machine) -> Option<Diagnostic> {
    let (wanted, there) = (machine.memory_bytes(config.memory.size), machine.memory_bytes);
    (wanted > there).then(|| {
        let (wanted, there) = (mebibytes(wanted), mebibytes(there));
        let message = format!("memory: {wanted} are more than this machine's {there}");
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
    fn more_memory_than_there_is_is_reported_with_its_place() {
        assert_eq!(told("[memory]\nsize = \"1GiB\""), [""; 0]);
        assert_eq!(told(""), [""; 0]);
        let said = told("[memory]\nsize = \"2GiB\"").concat();
        assert!(said.contains("memory: 2048 MiB are more than this machine's 1024 MiB"), "{said}");
        assert!(said.contains("larder.toml:2:8"), "{said}");
    }

    #[test]
    fn hosts_without_address_and_other_names_of_a_listener_are_reported() {
        let text = "listen = \"127.0.0.1:8080\"\n[[origin]]\nname = \"app\"\nservers = [\n\
                    \"http://app.test:8080\",\n\"http://own.test:8080\",\n\
                    \"http://own.test:8081\",\n\"http://none.test\",\n\"http://late.test\",\n]\n\
                    [[site]]\nhost = \"*\"\norigin = \"app\"\n";
        let (config, _) = config::load_str(text, "larder.toml").expect(text);
        let ip = |text: &str| text.parse::<IpAddr>().expect("an address");
        let looked: HashMap<_, NameLookup> = [
            ("app.test", Ok(vec![ip("192.0.2.1")])),
            ("own.test", Ok(vec![ip("192.0.2.1"), ip("127.0.0.1")])),
            ("none.test", Err("Name or service not known".to_owned())),
        ]
        .into();
        let found = judge_hosts(&config, |host| looked.get(host), |_| false);
        let told: Vec<_> = found.iter().map(ToString::to_string).collect();
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[0].contains("own.test is 127.0.0.1, this daemon's own listener"), "{told:?}");
        assert!(told[0].contains("larder.toml:6:"), "{told:?}");
        assert!(told[1].contains("no address is found for none.test: Name or"), "{told:?}");
        // A port on all addresses has each name of the machine.
        let all = text.replace("127.0.0.1:8080", ":8080");
        let (config, _) = config::load_str(&all, "larder.toml").expect(text);
        let of = |is_local: &dyn Fn(IpAddr) -> bool| {
            judge_hosts(&config, |host| looked.get(host), is_local).len()
        };
        assert_eq!(of(&|_| false), 1);
        assert_eq!(of(&|own| own == ip("192.0.2.1")), 3);
    }

    /// A folder that is removed with its test.
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

    /// A user other than the test's, in group 4321.
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
        assert_eq!(unconnectable(&path, &user), None, "its server may begin later");
        let _listener = UnixListener::bind(&path).expect("a socket");
        mode(folder.0.as_path(), 0o711);
        mode(&path, 0o660);
        let said = unconnectable(&path, &user).expect("shut");
        assert!(said.contains("the socket"), "{said}");
        mode(&path, 0o662);
        assert_eq!(unconnectable(&path, &user), None);
        // A link, such as Debian's to PHP's socket, counts as its target.
        let link = folder.0.as_path().join("link");
        std::os::unix::fs::symlink(&path, &link).expect("a link");
        assert_eq!(unconnectable(&link, &user), None);
        mode(folder.0.as_path(), 0o710);
        let said = unconnectable(&link, &user).expect("shut");
        assert_eq!(said, format!("larder may not enter {}", folder.0.as_path().display()));
        mode(folder.0.as_path(), 0o711);
        // A path that is no socket has no right to connect.
        assert_eq!(unconnectable(folder.0.as_path(), &user), None);
    }

    #[test]
    fn a_root_is_barred_where_its_user_cannot_enter_one_folder_of_the_way() {
        let folder = Folder::new();
        let www = folder.0.join("home/www");
        fs::create_dir_all(&www).expect("folders");
        let mode = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a mode");
        };
        let (own, home) = (folder.0.as_path(), folder.0.join("home"));
        for (at, bits, expected) in [
            (own, 0o711, None),
            (home.as_path(), 0o700, Some(home.as_path())),
            (home.as_path(), 0o711, None),
            (www.as_path(), 0o750, Some(www.as_path())),
            (own, 0o700, Some(own)),
        ] {
            mode(at, bits);
            assert_eq!(other().barred(&www), expected, "{} {bits:o}", at.display());
        }
    }

    #[test]
    fn a_cache_directory_that_only_root_would_make_is_reported_where_a_unit_starts_the_daemon() {
        let folder = Folder::new();
        fs::set_permissions(&folder.0, fs::Permissions::from_mode(0o755)).expect("a mode");
        let (unit, volume) = (folder.0.join("larder.service"), folder.0.join("cache"));
        let text = format!(
            "[disk]\npath = \"{}\"\nsize = \"1GiB\"\n[[site]]\nhost = \"*\"\n\
             origin = \"http://127.0.0.1:1\"\n",
            volume.display()
        );
        let (config, _) = config::load_str(&text, "larder.toml").expect("good");
        let told = |user: &Runner| left_to_root(&config, user, &[&unit]);
        assert_eq!(told(&other()).len(), 0, "there is no unit");
        fs::write(&unit, "").expect("a file");
        let found = told(&other());
        assert_eq!(found.len(), 1);
        assert!(found[0].to_string().contains("larder.toml:2:8"), "{}", found[0]);
        assert!(found[0].help.as_ref().is_some_and(|help| help.contains("install -d -o larder")));
        fs::create_dir(&volume).expect("a folder");
        let owner = Runner { uid: fs::metadata(&volume).expect("a folder").uid(), ..other() };
        assert_eq!(told(&owner).len(), 0);
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
            let found = [&owner, &member, &other()].map(|user| user.may(&path, &it, CONNECT));
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
        assert!(unconnectable(&path, &other()).is_some());
        let name = "system.posix_acl_access";
        let flags = rustix::fs::XattrFlags::empty();
        if let Err(error) = rustix::fs::setxattr(&path, name, &list(other().uid), flags) {
            eprintln!("skipped: no access lists here: {error}");
            return;
        }
        assert_eq!(unconnectable(&path, &other()), None);
    }
}
