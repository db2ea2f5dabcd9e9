//! As whom the daemon runs: started as root it opens its ports and becomes somebody else, for good.
//!
//! The change goes through the C library, so that every thread makes it. What the daemon writes
//! later is given to that user before.

use std::ffi::CString;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use config::Run;
use nix::unistd::{
    Gid, Group, Uid, User, getegid, getgrouplist, getgroups, initgroups, setresgid, setresuid,
};
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, chownat, fstat, openat};
use rustix::process::{
    DumpableBehavior, Resource, Rlimit, geteuid, set_dumpable_behavior, setrlimit,
};

/// The user of a daemon that is told none.
pub(crate) const USUAL: &str = "larder";

/// Folders within each other that are given away.
const DEPTH: u32 = 8;

/// The user that is to run the daemon, as the command line says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RunAs {
    /// Whom the configuration names, or the usual user.
    #[default]
    Configured,
    /// This one.
    Named(String),
    /// Whoever has started it.
    Same,
}

/// A user that runs a daemon, and what it is let in as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Runner {
    pub(crate) name: String,
    pub(crate) uid: u32,
    pub(crate) gids: Vec<u32>,
}

impl Runner {
    /// The user of a daemon that is started here as `run` says; `None` for root, who is let in
    /// everywhere, and for one who cannot be found out.
    pub(crate) fn foreseen(run: &Run) -> Option<Self> {
        if !geteuid().is_root() {
            return Self::own();
        }
        let user = user(run.user.as_deref().unwrap_or(USUAL)).ok()??;
        let group = |name: &String| Group::from_name(name).ok()?.map(|group| group.gid);
        let gid = run.group.as_ref().map_or(Some(user.gid), group)?;
        let name = CString::new(user.name.as_str()).ok()?;
        Self::of(user, getgrouplist(&name, gid).ok()?)
    }

    /// The user of this process; `None` as for others.
    pub(crate) fn own() -> Option<Self> {
        let user = User::from_uid(Uid::effective()).ok()??;
        let mut gids = getgroups().ok()?;
        gids.push(getegid());
        Self::of(user, gids)
    }

    fn of(user: User, gids: Vec<Gid>) -> Option<Self> {
        let gids = gids.into_iter().map(Gid::as_raw).collect();
        let runner = Self { name: user.name, uid: user.uid.as_raw(), gids };
        (runner.uid != 0).then_some(runner)
    }
}

/// Somebody to become.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Account {
    name: String,
    uid: Uid,
    gid: Gid,
}

impl Account {
    /// Whom to become; nobody where the daemon stays who it is. What is not as it should be is told
    /// on standard error.
    ///
    /// # Errors
    /// A user or group that does not exist.
    pub(crate) fn of(run: &Run, wanted: &RunAs) -> Result<Option<Self>, String> {
        let named = match wanted {
            RunAs::Configured => run.user.as_deref(),
            RunAs::Named(name) => Some(name.as_str()),
            RunAs::Same => return Ok(None),
        };
        if !geteuid().is_root() {
            let is_another = |name: &&str| {
                let found = User::from_name(name).ok().flatten();
                found.is_none_or(|user| user.uid.as_raw() != geteuid().as_raw())
            };
            if let Some(name) = named.filter(|name| *name != "root").filter(is_another) {
                base::tell!(
                    Warn,
                    "larder: warning: only root can become `{name}`: it runs as it is"
                );
            }
            return Ok(None);
        }
        let name = named.unwrap_or(USUAL);
        if name == "root" {
            return Ok(None);
        }
        let Some(user) = user(name)? else {
            if named.is_some() {
                return Err(format!("larder: there is no user `{name}` to run as"));
            }
            base::tell!(
                Warn,
                "larder: warning: it runs as root: there is no user `{USUAL}`. Make one (useradd \
                 --system --no-create-home --shell /usr/sbin/nologin {USUAL}), or name another: \
                 `[run] user`"
            );
            return Ok(None);
        };
        let gid = match &run.group {
            None => user.gid,
            Some(name) => match Group::from_name(name) {
                Ok(Some(group)) => group.gid,
                Ok(None) => return Err(format!("larder: there is no group `{name}` to run as")),
                Err(error) => return Err(format!("larder: group `{name}`: {error}")),
            },
        };
        Ok(Some(Self { name: user.name, uid: user.uid, gid }))
    }

    /// Has every thread become this user, with the groups it is a member of. There is no way back.
    ///
    /// # Errors
    /// Why it cannot; then the process must end.
    pub(crate) fn become_it(&self) -> Result<(), String> {
        let failed = |error: nix::Error| format!("larder: cannot become `{}`: {error}", self.name);
        let name = CString::new(self.name.as_str()).map_err(|e| format!("larder: {e}"))?;
        initgroups(&name, self.gid).map_err(failed)?;
        setresgid(self.gid, self.gid, self.gid).map_err(failed)?;
        setresuid(self.uid, self.uid, self.uid).map_err(failed)?;
        // The kernel has set it to what it usually is.
        refuse_dumps();
        let root = Uid::from_raw(0);
        if !self.uid.is_root() && setresuid(root, root, root).is_ok() {
            return Err("larder: it could become root again".to_owned());
        }
        Ok(())
    }

    /// Makes a folder, if it is not there, and gives it away with what is in it.
    pub(crate) fn give_folder(&self, folder: &Path) {
        use std::os::unix::fs::DirBuilderExt as _;
        if !folder.exists() {
            // Whoever needs it will say why it cannot be had.
            _ = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
        }
        self.give(folder);
    }

    /// Gives a file or folder of root's away, and what is in it. Links are neither followed nor
    /// given: somebody else might have made them.
    pub(crate) fn give(&self, path: &Path) {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        if let Ok(handle) = openat(CWD, path, flags, Mode::empty()) {
            self.give_handle(&handle, DEPTH);
        }
    }

    fn give_handle(&self, handle: &OwnedFd, depth: u32) {
        let Ok(found) = fstat(handle) else { return };
        let kind = FileType::from_raw_mode(found.st_mode);
        let is_sole =
            found.st_nlink == 1 && matches!(kind, FileType::RegularFile | FileType::Socket);
        if found.st_uid == 0 && (is_sole || kind == FileType::Directory) {
            let uid = rustix::fs::Uid::from_raw(self.uid.as_raw());
            let gid = rustix::fs::Gid::from_raw(self.gid.as_raw());
            // What stays root's says so when it is used.
            _ = chownat(handle, "", Some(uid), Some(gid), AtFlags::EMPTY_PATH);
        }
        let is_theirs = found.st_uid == 0 || found.st_uid == self.uid.as_raw();
        if kind != FileType::Directory || !is_theirs || depth == 0 {
            return;
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let Ok(folder) = openat(handle, ".", flags, Mode::empty()) else { return };
        let Ok(entries) = Dir::read_from(&folder) else { return };
        for entry in entries.flatten() {
            let name = entry.file_name();
            if [&b"."[..], b".."].contains(&name.to_bytes()) {
                continue;
            }
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            if let Ok(inner) = openat(folder.as_fd(), name, flags, Mode::empty()) {
                self.give_handle(&inner, depth - 1);
            }
        }
    }
}

fn user(name: &str) -> Result<Option<User>, String> {
    User::from_name(name).map_err(|error| format!("larder: user `{name}`: {error}"))
}

/// The user or group of `run` that does not exist, in words.
pub(crate) fn unknown(run: &Run) -> Option<String> {
    let is_lacking = |name: &&String| matches!(user(name), Ok(None));
    if let Some(name) = run.user.as_ref().filter(is_lacking) {
        return Some(format!("there is no user `{name}` to run as"));
    }
    let is_lacking = |name: &&String| matches!(Group::from_name(name), Ok(None));
    let group = run.group.as_ref().filter(is_lacking);
    group.map(|name| format!("there is no group `{name}` to run as"))
}

/// Has the process never gain rights by what it runs, and leave nothing of its memory, which has
/// keys in it. Call it before there are other threads.
pub(crate) fn harden() {
    // A kernel that cannot do these costs a defence, nothing else.
    _ = rustix::thread::set_no_new_privs(true);
    _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    // Whoever runs it himself may look at it with his own tools.
    if geteuid().is_root() {
        refuse_dumps();
    }
}

/// Has the process leave nothing of its memory, and nobody but root look into it.
pub(crate) fn refuse_dumps() {
    _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
}
