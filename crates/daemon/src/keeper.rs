//! The keeper: a process that stays root beside a daemon that is not. It opens the configured files
//! that only root may read, such as renewed keys, and removes what the daemon leaves behind.
//!
//! A daemon started by root starts its keeper. One that never was root finds it behind a socket,
//! where the service manager starts a keeper for each connection.
//!
//! The keeper must never open any other file. It reads the configuration file itself, and takes no
//! path on the daemon's word. No part of the way to a file may belong to another user than root.

mod allowlist;
mod open_purpose;

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, socket_with, socketpair, sockopt,
};
use tokio::signal::unix::{SignalKind, signal};

use crate::{account, passed_descriptors};
use allowlist::FileAllowlist;
pub(crate) use open_purpose::OpenPurpose;

/// Longest request: its number, a letter, and a path (`PATH_MAX`).
const QUESTION_MAX: usize = 4 + 1 + 4096;

/// The permission bits of all other users.
const EVERYONE: u32 = 0o007;

/// The timeout of a request: a file may be on a slow disk.
const PATIENCE: Duration = Duration::from_secs(5);

/// The keeper of this process, once there is one.
static KEEPER: OnceLock<Mutex<Keeper>> = OnceLock::new();

/// The daemon's end of the connection.
#[derive(Debug)]
struct Keeper {
    /// `None` while the keeper cannot be reached.
    socket: Option<OwnedFd>,
    /// The socket to reach another keeper by when this one is gone.
    path: Option<PathBuf>,
    /// The number of the latest request. A late reply carries an earlier one.
    asked: u32,
}

/// The arguments that the keeper is started with.
#[derive(Clone, Debug, Default)]
pub struct KeeperArgs {
    /// Configuration file whose files may be opened, and which may be itself.
    config: Option<PathBuf>,
    /// Further file that may be read; repeatable.
    file: Vec<PathBuf>,
    /// File or folder that is taken away when the daemon has ended; repeatable.
    clear: Vec<PathBuf>,
}

impl KeeperArgs {
    /// The arguments of `larder keeper --config FILE --file FILE --clear PATH`.
    pub fn new(config: Option<PathBuf>, file: Vec<PathBuf>, clear: Vec<PathBuf>) -> Self {
        Self { config, file, clear }
    }

    /// Starts the keeper beside this process. It ends with this process.
    ///
    /// # Errors
    /// The reason why it could not be started.
    pub fn start(&self) -> io::Result<()> {
        let flags = SocketFlags::CLOEXEC;
        let (own, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        sockopt::set_socket_timeout(&own, sockopt::Timeout::Recv, Some(PATIENCE))?;
        let mut command = Command::new("/proc/self/exe");
        command.arg0("larder").arg("keeper");
        for (flag, paths) in [("--file", &self.file), ("--clear", &self.clear)] {
            paths.iter().for_each(|path| _ = command.arg(flag).arg(path));
        }
        self.config.iter().for_each(|path| _ = command.arg("--config").arg(path));
        // A process group of its own: a terminal's interrupt is for the daemon.
        command.env_clear().process_group(0);
        command.stdin(Stdio::from(theirs)).stdout(Stdio::null()).spawn()?;
        // A second keeper would get no requests.
        _ = KEEPER.set(Mutex::new(Keeper { socket: Some(own), path: None, asked: 0 }));
        Ok(())
    }
}

/// The keeper of this process while a process that may replace this one asks it. Files that need it
/// wait until this is dropped.
#[derive(Debug)]
pub(crate) struct LentKeeper(MutexGuard<'static, Keeper>);

/// The longest wait for the keeper. While it is lent, the threads of operators' requests must not
/// wait for it.
const LOAN_PATIENCE: Duration = Duration::from_secs(1);

/// Lends the keeper that this process has started; `None` without one.
pub(crate) fn lend() -> Option<LentKeeper> {
    let keeper = KEEPER.get()?.lock();
    keeper.path.is_none().then_some(LentKeeper(keeper))
}

impl LentKeeper {
    /// The connection to the keeper; `None` if the keeper is gone.
    pub(crate) fn socket(&self) -> Option<BorrowedFd<'_>> {
        self.0.socket.as_ref().map(AsFd::as_fd)
    }

    /// Leaves the keeper to the other process for good.
    pub(crate) fn give_away(mut self) {
        self.0.socket = None;
    }
}

/// Takes over the keeper that the process before this one has started.
pub(crate) fn take_over(socket: OwnedFd) {
    // Content read in this way was for root only.
    account::refuse_dumps();
    // A late answer to the other process must not be taken for one to this.
    let asked = std::process::id().wrapping_shl(12);
    _ = KEEPER.set(Mutex::new(Keeper { socket: Some(socket), path: None, asked }));
}

/// Connects to the keeper behind the socket at `path`. A failure is repeated when a file is needed.
pub(crate) fn reach(path: &Path) {
    // Content read in this way was for root only.
    account::refuse_dumps();
    let mut keeper = Keeper { socket: None, path: Some(path.to_owned()), asked: 0 };
    if let Err(error) = keeper.connect() {
        log_unavailable(&keeper.unreachable(error));
    }
    _ = KEEPER.set(Mutex::new(keeper));
}

/// Logs that there is no keeper, and the reason.
pub(crate) fn log_unavailable(why: &str) {
    base::tell!(Warn, "larder: warning: files that only root may read are not read: {why}");
}

/// Returns true if only root can put another program at `path`.
pub(crate) fn is_roots_program(path: &Path) -> bool {
    allowlist::is_roots(path, OpenPurpose::Read)
}

fn connect(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, Some(PATIENCE))?;
    // While other processes wait for it, the kernel delays the connection.
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Send, Some(PATIENCE))?;
    rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket)
}

/// Opens a file: as this process's user, and where that is refused, through the keeper.
///
/// # Errors
/// As of opening it. If the keeper is unavailable, the error is that of this process, with a note
/// about the keeper.
pub(crate) fn open(path: &Path, how: OpenPurpose) -> io::Result<File> {
    match (how.open(path), KEEPER.get()) {
        (Err(error), Some(keeper)) if is_refused(&error) => {
            let Some(mut keeper) = keeper.try_lock_for(LOAN_PATIENCE) else {
                let why = format!("{}, and an upgrade has the keeper", without_code(&error));
                return Err(io::Error::new(error.kind(), why));
            };
            match keeper.open(path, how) {
                Ok(file) => Ok(file),
                // The keeper does not open this file: the error is as without a keeper.
                Err(NotOpened::Refused(Errno::ACCESS | Errno::PERM)) => Err(error),
                Err(NotOpened::Refused(other)) => Err(other.into()),
                Err(NotOpened::Unreachable(why)) => {
                    let told = format!("{}, and {}", without_code(&error), keeper.unreachable(why));
                    Err(io::Error::new(error.kind(), told))
                }
            }
        }
        (done, _) => done,
    }
}

/// Returns true if this process may not open the file, but the keeper might. For a new file, a
/// folder closed to the service (`ProtectSystem=` of systemd.exec(5)) is on a read-only file
/// system.
fn is_refused(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
}

/// The text of a system's error, without its number.
pub(crate) fn without_code(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}

/// Reads a file through [`open`].
///
/// # Errors
/// As of opening and reading it.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path, OpenPurpose::Read)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads a file of at most `most` bytes, which is the value of `limit`.
///
/// # Errors
/// The reason why it cannot be used.
pub(crate) fn read_bounded(path: &Path, limit: &str, most: u64) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    open(path, OpenPurpose::Read)
        .and_then(|open| open.take(most.saturating_add(1)).read_to_end(&mut bytes))
        .map_err(|error| error.to_string())?;
    if bytes.len() as u64 > most {
        let most = base::units::Bytes(most);
        return Err(format!("the file is longer than {most} (limit: {limit})"));
    }
    Ok(bytes)
}

/// Reads a file with a secret, which must not be readable for every user.
///
/// # Errors
/// The reason why it cannot be used.
pub(crate) fn read_secret(path: &Path) -> Result<Vec<u8>, String> {
    let mode = metadata(path).map_err(|error| error.to_string())?.mode();
    if mode & EVERYONE != 0 {
        return Err("everyone may read it: `chmod 640` it, and write a new one".to_owned());
    }
    read(path).map_err(|error| error.to_string())
}

/// Returns the metadata of a file; in a closed folder, the file is opened for it.
///
/// # Errors
/// As of asking or opening.
pub(crate) fn metadata(path: &Path) -> io::Result<std::fs::Metadata> {
    match std::fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            open(path, OpenPurpose::Read)?.metadata()
        }
        done => done,
    }
}

/// The reason why the keeper opened no file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NotOpened {
    /// The keeper's reply.
    Refused(Errno),
    /// The keeper could not be reached, or did not reply.
    Unreachable(Errno),
}

impl From<Errno> for NotOpened {
    fn from(errno: Errno) -> Self {
        Self::Unreachable(errno)
    }
}

impl Keeper {
    /// The message that the keeper could not be reached, with the reason `why` and the remedy.
    fn unreachable(&self, why: Errno) -> String {
        let Some(path) = &self.path else {
            return format!(
                "the daemon's keeper has ended (a restart of the daemon starts another): {why}"
            );
        };
        let mend = match why {
            Errno::NOENT | Errno::CONNREFUSED => "`systemctl start larder-keeper.socket` starts it",
            Errno::ACCESS => "`SocketUser=` of larder-keeper.socket says who may",
            _ => "`journalctl -u 'larder-keeper@*'` may say why",
        };
        format!("the daemon's keeper cannot be reached ({mend}): {}: {why}", path.display())
    }

    fn connect(&mut self) -> Result<(), Errno> {
        self.socket = self.path.as_deref().map(connect).transpose()?;
        Ok(())
    }

    /// Requests a file; reconnects if the keeper is gone and another may be there.
    fn open(&mut self, path: &Path, how: OpenPurpose) -> Result<File, NotOpened> {
        if self.socket.is_none() {
            self.connect()?;
        }
        match self.ask(path, how) {
            Err(NotOpened::Unreachable(Errno::PIPE | Errno::CONNRESET | Errno::NOTCONN))
                if self.path.is_some() =>
            {
                self.connect()?;
                self.ask(path, how)
            }
            answer => answer,
        }
    }

    fn ask(&mut self, path: &Path, how: OpenPurpose) -> Result<File, NotOpened> {
        self.asked = self.asked.wrapping_add(1);
        let number = self.asked.to_le_bytes();
        let question = [&number[..], &[how.letter()], path.as_os_str().as_bytes()].concat();
        if question.len() > QUESTION_MAX {
            return Err(NotOpened::Refused(Errno::NAMETOOLONG));
        }
        let socket = self.socket.as_ref().ok_or(Errno::NOTCONN)?;
        passed_descriptors::send(socket, &[IoSlice::new(&question)], &[])?;
        loop {
            let (mut answered, mut word) = ([0; 4], [0; 4]);
            let into = &mut [IoSliceMut::new(&mut answered), IoSliceMut::new(&mut word)];
            let (length, files) = passed_descriptors::receive(socket, into)?;
            if length != answered.len() + word.len() {
                return Err(NotOpened::Unreachable(Errno::PIPE));
            }
            let file = files.into_iter().next_back();
            if answered != number {
                continue;
            }
            return match i32::from_le_bytes(word) {
                0 => file.map(File::from).ok_or(NotOpened::Unreachable(Errno::BADF)),
                errno => Err(NotOpened::Refused(Errno::from_raw_os_error(errno))),
            };
        }
    }
}

/// `larder keeper`: answers on standard input until the daemon has ended.
///
/// # Errors
/// Standard input is no socket.
pub fn run(args: &KeeperArgs) -> Result<(), String> {
    account::harden();
    let failed = |error: io::Error| format!("larder keeper: {error}");
    // The signal that stops the daemon may reach all of its processes: this one ends after the
    // daemon.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(failed)?;
    let _within = runtime.enter();
    let kinds = [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()];
    let _ignored = kinds.map(signal);
    let clear: Vec<_> = args.clear.iter().filter_map(|path| LeftoverFile::of(path)).collect();
    let mut allowed = FileAllowlist::new(args.config.clone(), args.file.clone());
    let stdin = io::stdin();
    let answered = answer_all(stdin.as_fd(), &mut allowed);
    clear.iter().for_each(LeftoverFile::clear);
    answered.map_err(|error| failed(error.into()))
}

fn answer_all(daemon: impl AsFd, allowed: &mut FileAllowlist) -> Result<(), Errno> {
    let mut question = [0; QUESTION_MAX];
    loop {
        let into = &mut [IoSliceMut::new(&mut question)];
        let length = match passed_descriptors::receive(&daemon, into) {
            Ok((length, _)) => length,
            Err(Errno::INTR) => continue,
            Err(Errno::CONNRESET) => return Ok(()),
            Err(error) => return Err(error),
        };
        let Some((number, [letter, path @ ..])) = question[..length].split_first_chunk::<4>()
        else {
            return Ok(());
        };
        let path = Path::new(std::ffi::OsStr::from_bytes(path));
        let opened = match OpenPurpose::of(*letter) {
            Some(how) if allowed.may(path, how) => how.open(path),
            _ => Err(Errno::ACCESS.into()),
        };
        let errno = match &opened {
            Ok(_) => 0,
            Err(error) => error.raw_os_error().unwrap_or(Errno::IO.raw_os_error()),
        };
        let (word, file) = (errno.to_le_bytes(), opened.as_ref().ok().map(AsFd::as_fd));
        let answer = [IoSlice::new(number), IoSlice::new(&word)];
        match passed_descriptors::send(&daemon, &answer, file.as_slice()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return Ok(()),
        }
    }
}

/// A file or folder that the daemon may leave behind.
struct LeftoverFile {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl LeftoverFile {
    fn of(path: &Path) -> Option<Self> {
        let found = std::fs::symlink_metadata(path).ok()?;
        Some(Self { path: path.to_owned(), device: found.dev(), inode: found.ino() })
    }

    /// Removes it, unless another file has taken its place.
    fn clear(&self) {
        let Ok(found) = std::fs::symlink_metadata(&self.path) else { return };
        if (found.dev(), found.ino()) == (self.device, self.inode) {
            _ = match found.is_dir() {
                true => std::fs::remove_dir_all(&self.path),
                false => std::fs::remove_file(&self.path),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use rustix::net::{bind, listen};

    use super::*;

    fn pair() -> (OwnedFd, OwnedFd) {
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
            .expect("a pair")
    }

    fn answer(to: &OwnedFd, number: u32, errno: i32, file: Option<&File>) {
        let (number, word) = (number.to_le_bytes(), errno.to_le_bytes());
        let (parts, file) = ([IoSlice::new(&number), IoSlice::new(&word)], file.map(AsFd::as_fd));
        passed_descriptors::send(to, &parts, file.as_slice()).expect("it is sent");
    }

    #[test]
    fn a_keeper_that_is_away_is_reported_with_what_helps() {
        let mut keeper = Keeper { socket: None, path: Some("/run/k".into()), asked: 0 };
        for (why, helps) in [
            (Errno::NOENT, "systemctl start"),
            (Errno::CONNREFUSED, "systemctl start"),
            (Errno::ACCESS, "SocketUser="),
            (Errno::PIPE, "journalctl"),
        ] {
            let told = keeper.unreachable(why);
            assert!(told.contains(helps) && told.ends_with(&format!(": /run/k: {why}")), "{told}");
        }
        keeper.path = None;
        assert!(keeper.unreachable(Errno::PIPE).contains("a restart of the daemon"));
    }

    #[test]
    fn an_answer_that_comes_too_late_is_not_taken_for_the_next() {
        let (own, theirs) = pair();
        let wait = Some(Duration::from_millis(1));
        sockopt::set_socket_timeout(&own, sockopt::Timeout::Recv, wait).expect("a timeout");
        let mut keeper = Keeper { socket: Some(own), path: None, asked: 0 };
        let late = keeper.open(Path::new("/slow"), OpenPurpose::Read);
        assert!(late.is_err_and(|error| error == NotOpened::Unreachable(Errno::AGAIN)));
        let file = File::open("/proc/self/stat").expect("a file");
        answer(&theirs, 1, 0, Some(&file));
        answer(&theirs, 2, Errno::NOENT.raw_os_error(), None);
        let next = keeper.open(Path::new("/next"), OpenPurpose::Read);
        assert!(next.is_err_and(|error| error == NotOpened::Refused(Errno::NOENT)));
    }

    #[test]
    fn another_keeper_is_reached_when_one_is_gone() {
        let folder = std::env::temp_dir().join(format!("larder-keeper-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let (path, named) = (folder.join("socket"), folder.join("named"));
        std::fs::write(&named, "text").expect("a file");
        let mut keeper = Keeper { socket: None, path: Some(path.clone()), asked: 0 };
        let none = keeper.open(&named, OpenPurpose::Read);
        assert!(
            none.is_err_and(|error| error == NotOpened::Unreachable(Errno::NOENT)),
            "nobody listens yet"
        );
        let flags = SocketFlags::CLOEXEC;
        let door =
            socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).expect("a socket");
        bind(&door, &SocketAddrUnix::new(&path).expect("an address")).expect("it is bound");
        listen(&door, 4).expect("it listens");
        // Each keeper answers one request and ends.
        let keepers = std::thread::spawn(move || {
            for _ in 0..2 {
                let daemon = rustix::net::accept(&door).expect("a daemon");
                let mut question = [0; QUESTION_MAX];
                let into = &mut [IoSliceMut::new(&mut question)];
                let (length, _) = passed_descriptors::receive(&daemon, into).expect("a question");
                let (number, rest) = question[..length].split_first_chunk().expect("one");
                let file = File::open(std::ffi::OsStr::from_bytes(&rest[1..])).expect("a file");
                answer(&daemon, u32::from_le_bytes(*number), 0, Some(&file));
            }
        });
        for _ in 0..2 {
            let file = keeper.open(&named, OpenPurpose::Read).expect("it is opened");
            assert_eq!(io::read_to_string(file).expect("text"), "text");
        }
        keepers.join().expect("both have answered");
        let nobody = keeper.open(&named, OpenPurpose::Read);
        assert!(nobody.is_err_and(|error| error == NotOpened::Unreachable(Errno::CONNREFUSED)));
        std::fs::remove_dir_all(&folder).expect("it goes");
    }
}
