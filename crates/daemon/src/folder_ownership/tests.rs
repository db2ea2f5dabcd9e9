//! Tests of folder ownership: what is created and given away, and what is refused.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::sync::atomic::{AtomicU32, Ordering};

use config::ServiceAccount;

use super::*;
use crate::account::RunAs;

/// A folder of root's below the one for temporary files, which every user may write to.
struct Folder(PathBuf);

impl Folder {
    /// `None` unless run by root: other users cannot give files away.
    fn new() -> Option<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: only root can give folders away");
            return None;
        }
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("larder-giving-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).expect("a folder");
        fs::set_permissions(&folder, Permissions::from_mode(0o755)).expect("a mode");
        Some(Self(fs::canonicalize(folder).expect("a folder")))
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn file(&self, name: &str, bytes: &[u8]) {
        let path = self.at(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        fs::write(path, bytes).expect("a file");
    }

    fn owner(&self, name: &str) -> u32 {
        fs::symlink_metadata(self.at(name)).expect("it is there").uid()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.0);
    }
}

/// The user to switch to, and the fallback user of a machine without one.
const OTHER: u32 = 12_345;

fn account(name: &str) -> Account {
    let run = ServiceAccount { user: Some(name.to_owned()), ..ServiceAccount::default() };
    Account::of(&run, &RunAs::Configured).expect("a user").expect("another than root")
}

/// The way is closed where only root has been: every user may write to the folder for temporary
/// files.
fn volume_of(folder: &Folder, files: &[(&str, &[u8])]) -> PathBuf {
    folder.file("disk/superblock", b"LARDERVS, or most of one");
    files.iter().for_each(|(name, bytes)| folder.file(&format!("disk/{name}"), bytes));
    folder.at("disk")
}

#[test]
fn what_another_user_has_put_into_a_volume_leads_nowhere() {
    let Some(folder) = Folder::new() else { return };
    let account = account("daemon");
    folder.file("shadow", b"root's");
    folder.file("linked", b"root's");
    let volume = volume_of(&folder, &[("data-0000", b""), ("lock", b""), ("notes.txt", b"")]);
    symlink(folder.at("shadow"), volume.join("data-0001")).expect("a link");
    symlink(folder.at(""), volume.join("journal-0000000000000001")).expect("a link");
    fs::hard_link(folder.at("linked"), volume.join("data-0002")).expect("a second name");
    fs::create_dir(volume.join("data-0003")).expect("a folder");
    account.give_volume(&volume).expect("given");
    for name in ["disk", "disk/superblock", "disk/data-0000", "disk/lock"] {
        assert_eq!(folder.owner(name), account.runner.uid, "{name}");
    }
    let kept = ["", "shadow", "linked", "disk/data-0001", "disk/data-0003", "disk/notes.txt"];
    for name in kept {
        assert_eq!(folder.owner(name), 0, "{name}");
    }
}

#[test]
fn a_link_is_followed_only_where_root_alone_can_have_made_it() {
    let Some(folder) = Folder::new() else { return };
    let account = account("daemon");
    fs::create_dir(folder.at("real")).expect("a folder");
    symlink("real", folder.at("roots")).expect("a link");
    fs::create_dir(folder.at("theirs")).expect("a folder");
    symlink(folder.at("real"), folder.at("theirs/link")).expect("a link");
    chown(folder.at("theirs"), Some(account.runner.uid), None).expect("given");
    for path in ["theirs/link", "theirs/link/more"] {
        let refused = account.give_volume(&folder.at(path));
        assert!(matches!(&refused, Err(FolderRefusal::Link(_))), "{path}: {refused:?}");
    }
    symlink(folder.at("real"), folder.at("lent")).expect("a link");
    std::os::unix::fs::lchown(folder.at("lent"), Some(OTHER), None).expect("given");
    let refused = account.give_volume(&folder.at("lent"));
    assert!(matches!(&refused, Err(FolderRefusal::Link(_))), "{refused:?}");
    assert_eq!(folder.owner("real"), 0);
    account.give_volume(&folder.at("roots")).expect("given");
    assert_eq!(folder.owner("real"), account.runner.uid);
}

#[test]
fn a_folder_of_another_user_is_taken_only_where_that_user_cannot_have_made_it() {
    let Some(folder) = Folder::new() else { return };
    let account = account("daemon");
    let volume = volume_of(&folder, &[]);
    chown(&volume, Some(OTHER), None).expect("given");
    // The folder for temporary files is above.
    let refused = account.give_volume(&volume);
    assert!(matches!(refused, Err(FolderRefusal::ForeignOwner)), "{refused:?}");
    assert_eq!(folder.owner("disk"), OTHER);
    let closed = PathBuf::from("/var/lib").join(format!("larder-giving-{}", std::process::id()));
    fs::create_dir(&closed).expect("a folder");
    chown(&closed, Some(OTHER), None).expect("given");
    let given = account.give_volume(&closed);
    let owner = fs::metadata(&closed).expect("a folder").uid();
    fs::remove_dir(&closed).expect("gone");
    given.expect("given");
    assert_eq!(owner, account.runner.uid);
}

#[test]
fn a_folder_with_other_things_or_that_is_none_is_refused_and_left_as_it_is() {
    let Some(folder) = Folder::new() else { return };
    let account = account("daemon");
    folder.file("photos/summer.jpeg", b"the sea");
    fs::create_dir(folder.at("shut")).expect("a folder");
    fs::set_permissions(folder.at("shut"), Permissions::from_mode(0o700)).expect("a mode");
    let give = |name: &str| account.give_volume(&folder.at(name)).expect_err(name);
    assert!(matches!(give("photos"), FolderRefusal::ForeignContent));
    assert!(matches!(give("photos/summer.jpeg"), FolderRefusal::NotAFolder(_)));
    assert!(matches!(give("photos/summer.jpeg/more"), FolderRefusal::NotAFolder(_)));
    assert!(
        matches!(give("shut/more"), FolderRefusal::NotPermitted(at) if at == folder.at("shut"))
    );
    assert!(!folder.at("shut/more").exists());
    assert_eq!((folder.owner("photos"), folder.owner("photos/summer.jpeg")), (0, 0));
}

#[test]
fn a_folder_of_known_names_is_given_and_one_with_others_is_not() {
    let Some(folder) = Folder::new() else { return };
    let account = account("daemon");
    let names = ["admin.sock", "_.secret"].map(OsStr::new);
    fs::create_dir(folder.at("empty")).expect("a folder");
    folder.file("own/_.secret", b"root's");
    folder.file("mixed/_.secret", b"root's");
    folder.file("mixed/other", b"root's");
    for name in ["empty", "own", "mixed", "missing"] {
        account.give_if_holds_only(&folder.at(name), &names);
    }
    let own = account.runner.uid;
    assert_eq!(["empty", "own", "mixed"].map(|name| folder.owner(name)), [own, own, 0]);
    assert_eq!(folder.owner("own/_.secret"), 0);
}

#[test]
fn what_a_daemon_without_a_user_of_its_own_has_left_is_given_to_the_one_that_is_made() {
    let Some(folder) = Folder::new() else { return };
    let (least, account) = (account("nobody"), account("daemon"));
    let closed = PathBuf::from("/var/lib").join(format!("larder-left-{}", std::process::id()));
    least.give_folder(&closed.join("acme/certificates"));
    least.give_folder(&closed);
    fs::write(closed.join("acme/account.json"), "{}").expect("a file");
    chown(closed.join("acme/account.json"), Some(least.runner.uid), None).expect("given");
    fs::write(closed.join("theirs"), "").expect("a file");
    chown(closed.join("theirs"), Some(OTHER), None).expect("given");
    account.give_folder(&closed);
    let names = ["", "acme", "acme/certificates", "acme/account.json", "theirs"];
    let owners = names.map(|name| fs::metadata(closed.join(name)).expect("it is there").uid());
    // Not at a place where other users could have created it.
    least.give_folder(&folder.at("open"));
    account.give_folder(&folder.at("open"));
    let open = folder.owner("open");
    fs::remove_dir_all(&closed).expect("gone");
    let own = account.runner.uid;
    assert_eq!(owners, [own, own, own, own, OTHER]);
    assert_eq!(open, least.runner.uid);
}
