//! The account that the daemon runs as: started as root, it opens its ports and switches to another
//! user for good.
//!
//! The change goes through the C library, so that it covers every thread. What the daemon writes
//! later is given to that user before (`folder_ownership`).

use std::ffi::CString;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use config::ServiceAccount;
use nix::unistd::{
    Gid, Group, Uid, User, getegid, getgrouplist, getgroups, initgroups, setresgid, setresuid,
};
use rustix::process::{
    DumpableBehavior, Resource, Rlimit, geteuid, set_dumpable_behavior, setrlimit,
};

/// The user of a daemon for which no user is configured.
pub(crate) const USUAL: &str = "larder";

/// The user of such a daemon on a machine without [`USUAL`]: every system has this user, and it
/// owns nothing.
const LEAST: &str = "nobody";

/// The advice for a machine without the usual user.
const MAKE: &str = "make one (useradd --system --no-create-home --shell /usr/sbin/nologin larder), \
                    or name another: `[run] user`";

/// Entering a directory, as a bit of a mode (path_resolution(7)).
pub(crate) const ENTER: u32 = 0o1;

/// The user that is to run the daemon, as the command line names it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RunAs {
    /// The user that the configuration names, or the default one.
    #[default]
    Configured,
    /// This user.
    Named(String),
    /// The user that started the daemon.
    Same,
}

/// A user that runs a daemon, and its groups, which decide on access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Runner {
    pub(crate) name: String,
    pub(crate) uid: u32,
    pub(crate) gids: Vec<u32>,
}

impl Runner {
    /// The user of a daemon started here as `run` says; `None` for root, which may access
    /// everything, and for a user that cannot be determined.
    ///
    /// # Errors
    /// No user is named, and the machine has none of the default ones.
    pub(crate) fn expected_runner(run: &ServiceAccount) -> Result<Option<Self>, String> {
        if !geteuid().is_root() {
            return Ok(Self::own());
        }
        let named = run.user.as_deref();
        let user = match chosen(named, user) {
            Ok(user) => user,
            Err(_) if named.is_some() => return Ok(None),
            Err(why) => return Err(why),
        };
        let group = |name: &String| Group::from_name(name).ok()?.map(|group| group.gid);
        let gid = run.group.as_ref().map_or(Some(user.gid), group);
        Ok(gid.and_then(|gid| Self::with(user, gid)))
    }

    /// A user with a first group and the groups that it is a member of.
    fn with(user: User, gid: Gid) -> Option<Self> {
        let name = CString::new(user.name.as_str()).ok()?;
        Self::of(user, getgrouplist(&name, gid).ok()?)
    }

    /// The user of this process; `None` as for [`Runner::expected_runner`].
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

    /// Returns true if the mode of `path`, whose metadata is `it`, grants the user the right `bit`.
    pub(crate) fn may(&self, path: &Path, it: &Metadata, bit: u32) -> bool {
        let class = match (it.uid() == self.uid, self.gids.contains(&it.gid())) {
            (true, _) => 6,
            (_, true) => 3,
            _ => 0,
        };
        // With an access list, the mode does not say which users are in it (acl(5)).
        let has_list =
            || rustix::fs::getxattr(path, "system.posix_acl_access", &mut [0_u8; 0][..]).is_ok();
        it.mode() >> class & bit != 0 || has_list()
    }

    /// The first folder on the way to `path`, or that itself, that the user may not enter.
    pub(crate) fn barred<'p>(&self, path: &'p Path) -> Option<&'p Path> {
        let mut way: Vec<_> = path.ancestors().collect();
        way.reverse();
        let mut above = None;
        for folder in way {
            match std::fs::metadata(folder) {
                Ok(it) if self.may(folder, &it, ENTER) => above = Some(folder),
                Ok(_) => return Some(folder),
                // This process could not look at it from here either.
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return above,
                Err(_) => return None,
            }
        }
        None
    }
}

/// The account to switch to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Account {
    pub(crate) runner: Runner,
    gid: Gid,
    /// The fallback user, which was not made for Larder, if the daemon runs as that.
    least: Option<Uid>,
    is_named: bool,
}

impl Account {
    /// The account to switch to; `None` if the daemon keeps its user. Problems are logged on
    /// standard error.
    ///
    /// # Errors
    /// A user or group that does not exist.
    pub(crate) fn of(run: &ServiceAccount, wanted: &RunAs) -> Result<Option<Self>, String> {
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
                    "larder: warning: only root can switch to the user `{name}`: the daemon keeps \
                     its user"
                );
            }
            return Ok(None);
        }
        if named == Some("root") {
            if *wanted == RunAs::Configured {
                base::tell!(Info, "larder: the daemon stays root, as `[run] user` says");
            }
            return Ok(None);
        }
        let user = chosen(named, user)?;
        let gid = match &run.group {
            None => user.gid,
            Some(name) => match Group::from_name(name) {
                Ok(Some(group)) => group.gid,
                Ok(None) => return Err(format!("larder: there is no group `{name}` to run as")),
                Err(error) => return Err(format!("larder: group `{name}`: {error}")),
            },
        };
        let name = user.name.clone();
        let none = || format!("larder: `{name}` is root, or its groups cannot be read");
        let runner = Runner::with(user, gid).ok_or_else(none)?;
        let least = self::user(LEAST).ok().flatten().map(|user| user.uid);
        Ok(Some(Self { runner, gid, least, is_named: named.is_some() }))
    }

    pub(crate) fn uid(&self) -> Uid {
        Uid::from_raw(self.runner.uid)
    }

    pub(crate) fn gid(&self) -> Gid {
        self.gid
    }

    /// Returns true if `uid` is the fallback user.
    pub(crate) fn is_least(&self, uid: u32) -> bool {
        self.least.is_some_and(|least| least.as_raw() == uid)
    }

    /// Logs which user runs the daemon from now on.
    fn log_runner(&self) {
        let name = &self.runner.name;
        if self.is_named || name == USUAL {
            base::tell!(Info, "larder: started by root, running as `{name}`");
            return;
        }
        base::tell!(
            Warn,
            "larder: warning: there is no user `{USUAL}`: running as `{name}`, which can read only \
             public files, and whose other programs can read the daemon's files: {MAKE}"
        );
    }

    /// Switches every thread to this user and its groups. There is no way back.
    ///
    /// # Errors
    /// The reason why it cannot; then the process must end.
    pub(crate) fn switch_user(&self) -> Result<(), String> {
        let (name, uid) = (self.runner.name.as_str(), self.uid());
        let failed = |error: nix::Error| format!("larder: cannot become `{name}`: {error}");
        let name = CString::new(name).map_err(|e| format!("larder: {e}"))?;
        initgroups(&name, self.gid).map_err(failed)?;
        setresgid(self.gid, self.gid, self.gid).map_err(failed)?;
        setresuid(uid, uid, uid).map_err(failed)?;
        // The kernel has set it to what it usually is.
        refuse_dumps();
        let root = Uid::from_raw(0);
        if setresuid(root, root, root).is_ok() {
            return Err("larder: the process could still become root again".to_owned());
        }
        self.log_runner();
        Ok(())
    }
}

/// The user to switch to: `named`, or the usual one, or else the fallback. `find` looks a name up.
///
/// # Errors
/// No such user: a daemon started by root does not stay root because a user is missing.
fn chosen(
    named: Option<&str>,
    find: impl Fn(&str) -> Result<Option<User>, String>,
) -> Result<User, String> {
    if let Some(name) = named {
        return find(name)?.ok_or_else(|| format!("larder: there is no user `{name}` to run as"));
    }
    let least = || find(LEAST).transpose();
    find(USUAL).transpose().or_else(least).unwrap_or_else(|| {
        Err(format!(
            "larder: started by root, but there is no user to run as, neither `{USUAL}` nor \
             `{LEAST}`: {MAKE}; `[run] user = \"root\"` keeps it root"
        ))
    })
}

fn user(name: &str) -> Result<Option<User>, String> {
    User::from_name(name).map_err(|error| format!("larder: user `{name}`: {error}"))
}

/// A message about the user or group of `run` that does not exist.
pub(crate) fn unknown(run: &ServiceAccount) -> Option<String> {
    let is_lacking = |name: &&String| matches!(user(name), Ok(None));
    if let Some(name) = run.user.as_ref().filter(is_lacking) {
        return Some(format!("there is no user `{name}` to run as"));
    }
    let is_lacking = |name: &&String| matches!(Group::from_name(name), Ok(None));
    let group = run.group.as_ref().filter(is_lacking);
    group.map(|name| format!("there is no group `{name}` to run as"))
}

/// Stops the process from gaining rights through programs that it executes, and from dumping its
/// memory, which holds keys. Call it before there are other threads.
pub(crate) fn harden() {
    // A kernel without these loses a defence, nothing else.
    _ = rustix::thread::set_no_new_privs(true);
    _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    // A user other than root may debug the daemon that it runs.
    if geteuid().is_root() {
        refuse_dumps();
    }
}

/// Stops the process from dumping its memory; only root may inspect it.
pub(crate) fn refuse_dumps() {
    _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_who_is_named_must_be_there_and_root_is_never_a_way_out() {
        let root = User::from_uid(Uid::from_raw(0)).expect("users").expect("root");
        let those = |names: &'static [&'static str]| {
            let root = root.clone();
            move |name: &str| {
                let user = User { name: name.to_owned(), ..root.clone() };
                Ok(names.contains(&name).then_some(user))
            }
        };
        let name = |named, names| chosen(named, those(names)).map(|user| user.name);
        assert_eq!(name(None, &["larder", "nobody"]).as_deref(), Ok("larder"));
        assert_eq!(name(None, &["nobody", "root"]).as_deref(), Ok("nobody"));
        assert_eq!(name(Some("www"), &["www", "larder"]).as_deref(), Ok("www"));
        let said = name(Some("www"), &["larder", "nobody"]).expect_err("there is none");
        assert!(said.contains("no user `www`"), "{said}");
        let said = name(None, &["root"]).expect_err("there is none");
        assert!(
            said.contains("neither `larder` nor `nobody`") && said.contains("useradd"),
            "{said}"
        );
    }
}
