//! A gate before a file system in memory, mounted by FUSE: a test lets its reads and writes pass at
//! once, after a delay, or not until it says so.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use fuser::{
    BackgroundSession, BsdFileFlags, Config, Errno, FileAttr, FileHandle, FileType, Filesystem,
    FopenFlags, Generation, INodeNo, LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate,
    ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, Request,
    Session, TimeOrNow, WriteFlags,
};
use parking_lot::{Condvar, Mutex};

use crate::support::eventually;
use crate::support::folder::Folder;
use crate::support::system::run;

/// More than the daemon's concurrent disk operations.
const THREADS: usize = 16;

/// The pace of reads, or of writes and syncs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    Quick,
    Slow(Duration),
    /// Nothing comes back until there is another pace.
    Still,
    /// This many operations complete at once, and then none.
    StillAfter(usize),
}

#[derive(Clone, Copy, Debug)]
enum Way {
    Read,
    Write,
}

#[derive(Debug)]
struct State {
    names: BTreeMap<OsString, u64>,
    files: BTreeMap<u64, Vec<u8>>,
    last: u64,
    paces: [Pace; 2],
    /// Operations that are held up at this moment.
    held: [usize; 2],
}

#[derive(Debug)]
struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

impl Gate {
    /// Waits as the pace is.
    fn pass(&self, way: Way) {
        let mut state = self.state.lock();
        state.held[way as usize] += 1;
        loop {
            match &mut state.paces[way as usize] {
                Pace::Quick => break,
                Pace::StillAfter(left @ 1..) => {
                    *left -= 1;
                    break;
                }
                Pace::Slow(time) => {
                    let time = *time;
                    parking_lot::MutexGuard::unlocked(&mut state, || std::thread::sleep(time));
                    break;
                }
                Pace::Still | Pace::StillAfter(0) => self.changed.wait(&mut state),
            }
        }
        state.held[way as usize] -= 1;
    }

    fn attributes(state: &State, ino: u64) -> Option<FileAttr> {
        let size = state.files.get(&ino).map_or(0, |file| file.len() as u64);
        let is_root = ino == INodeNo::ROOT.0;
        if !is_root && !state.files.contains_key(&ino) {
            return None;
        }
        let kind = if is_root { FileType::Directory } else { FileType::RegularFile };
        let time = SystemTime::UNIX_EPOCH;
        Some(FileAttr {
            ino: INodeNo(ino),
            size,
            blocks: size.div_ceil(512),
            atime: time,
            mtime: time,
            ctime: time,
            crtime: time,
            kind,
            perm: if is_root { 0o700 } else { 0o600 },
            nlink: 1,
            uid: rustix::process::getuid().as_raw(),
            gid: rustix::process::getgid().as_raw(),
            rdev: 0,
            blksize: 4096,
            flags: 0,
        })
    }
}

/// The file system. It is gone with its test.
#[derive(Debug)]
pub(crate) struct Mount {
    gate: Arc<Gate>,
    session: Option<BackgroundSession>,
    folder: Folder,
}

impl Mount {
    /// `None` where nothing can be mounted.
    pub(crate) fn new() -> Option<Self> {
        let folder = Folder::new();
        let at = folder.path().join("mount");
        std::fs::create_dir(&at).expect("a folder");
        let state = State {
            names: BTreeMap::new(),
            files: BTreeMap::new(),
            last: INodeNo::ROOT.0,
            paces: [Pace::Quick; 2],
            held: [0; 2],
        };
        let gate = Arc::new(Gate { state: Mutex::new(state), changed: Condvar::new() });
        let mut config = Config::default();
        config.n_threads = Some(THREADS);
        let session = Session::new(Slow(Arc::clone(&gate)), &at, &config).ok()?;
        let session = Some(session.spawn().expect("threads"));
        Some(Self { gate, session, folder })
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("mount")
    }

    /// Sets the paces of reads, and of writes and syncs.
    pub(crate) fn set(&self, reads: Pace, writes: Pace) {
        self.gate.state.lock().paces = [reads, writes];
        self.gate.changed.notify_all();
    }

    /// Waits until a read is held up.
    pub(crate) async fn holds_a_read(&self) {
        eventually("a read", async || self.holds(Way::Read)).await;
    }

    /// Waits until a write or a sync is held up.
    pub(crate) async fn holds_a_write(&self) {
        eventually("a write", async || self.holds(Way::Write)).await;
    }

    fn holds(&self, way: Way) -> bool {
        self.gate.state.lock().held[way as usize] > 0
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        self.set(Pace::Quick, Pace::Quick);
        // The session would leave it mounted. Its threads end when no file is open.
        _ = run("umount", &["--lazy", &self.path().display().to_string()]);
        drop(self.session.take());
    }
}

#[derive(Debug)]
struct Slow(Arc<Gate>);

/// Nothing is believed by the system: sizes may be looked up anew at any time.
const TTL: Duration = Duration::ZERO;
const FIRST: Generation = Generation(0);
const NO_HANDLE: FileHandle = FileHandle(0);
/// Each read comes here: the system keeps no pages.
const DIRECT: FopenFlags = FopenFlags::FOPEN_DIRECT_IO;

impl Slow {
    fn changed(&self, ino: INodeNo, change: impl FnOnce(&mut Vec<u8>)) -> Result<(), Errno> {
        let mut state = self.0.state.lock();
        state.files.get_mut(&ino.0).map(change).ok_or(Errno::ENOENT)
    }
}

fn done(reply: ReplyEmpty, result: Result<(), Errno>) {
    match result {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(error),
    }
}

impl Filesystem for Slow {
    fn lookup(&self, _: &Request, _: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let state = self.0.state.lock();
        let found = state.names.get(name).and_then(|ino| Gate::attributes(&state, *ino));
        match found {
            Some(attributes) => reply.entry(&TTL, &attributes, FIRST),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match Gate::attributes(&self.0.state.lock(), ino.0) {
            Some(attributes) => reply.attr(&TTL, &attributes),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn setattr(
        &self,
        _: &Request,
        ino: INodeNo,
        _mode: Option<u32>,
        _uid: Option<u32>,
        _gid: Option<u32>,
        size: Option<u64>,
        _accessed: Option<TimeOrNow>,
        _modified: Option<TimeOrNow>,
        _changed: Option<SystemTime>,
        _: Option<FileHandle>,
        _created: Option<SystemTime>,
        _checked: Option<SystemTime>,
        _backed_up: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let mut state = self.0.state.lock();
        if let (Some(size), Some(file)) = (size, state.files.get_mut(&ino.0)) {
            file.resize(size as usize, 0);
        }
        match Gate::attributes(&state, ino.0) {
            Some(attributes) => reply.attr(&TTL, &attributes),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn create(
        &self,
        _: &Request,
        _: INodeNo,
        name: &OsStr,
        _mode: u32,
        _umask: u32,
        _flags: i32,
        reply: ReplyCreate,
    ) {
        let mut state = self.0.state.lock();
        state.last += 1;
        let ino = state.last;
        state.files.insert(ino, Vec::new());
        state.names.insert(name.to_owned(), ino);
        let attributes = Gate::attributes(&state, ino).expect("it is there");
        reply.created(&TTL, &attributes, FIRST, NO_HANDLE, DIRECT);
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        reply.opened(NO_HANDLE, DIRECT);
    }

    fn read(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        self.0.pass(Way::Read);
        let state = self.0.state.lock();
        let Some(file) = state.files.get(&ino.0) else { return reply.error(Errno::ENOENT) };
        let from = file.len().min(offset as usize);
        reply.data(&file[from..file.len().min(from + size as usize)]);
    }

    fn write(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        self.0.pass(Way::Write);
        let at = offset as usize;
        let written = self.changed(ino, |file| {
            let end = at + data.len();
            file.resize(file.len().max(end), 0);
            file[at..end].copy_from_slice(data);
        });
        match written {
            Ok(()) => reply.written(data.len() as u32),
            Err(error) => reply.error(error),
        }
    }

    fn fallocate(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        length: u64,
        _mode: i32,
        reply: ReplyEmpty,
    ) {
        let end = (offset + length) as usize;
        done(reply, self.changed(ino, |file| file.resize(file.len().max(end), 0)));
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _data: bool, reply: ReplyEmpty) {
        self.0.pass(Way::Write);
        reply.ok();
    }

    fn fsyncdir(&self, _: &Request, _: INodeNo, _: FileHandle, _data: bool, reply: ReplyEmpty) {
        self.0.pass(Way::Write);
        reply.ok();
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn unlink(&self, _: &Request, _: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let removed = self.0.state.lock().names.remove(name);
        done(reply, removed.map(drop).ok_or(Errno::ENOENT));
    }

    fn rename(
        &self,
        _: &Request,
        _: INodeNo,
        from: &OsStr,
        _: INodeNo,
        to: &OsStr,
        _: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let mut state = self.0.state.lock();
        let renamed = state.names.remove(from).map(|ino| state.names.insert(to.to_owned(), ino));
        done(reply, renamed.map(drop).ok_or(Errno::ENOENT));
    }

    fn readdir(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let state = self.0.state.lock();
        let dots = [".", ".."].map(|name| (Path::new(name).as_os_str(), ino.0));
        let names = state.names.iter().map(|(name, ino)| (name.as_os_str(), *ino));
        for (at, (name, ino)) in (1..).zip(dots.into_iter().chain(names)).skip(offset as usize) {
            let is_file = state.files.contains_key(&ino);
            let kind = if is_file { FileType::RegularFile } else { FileType::Directory };
            if reply.add(INodeNo(ino), at, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        let blocks = 1 << 20;
        reply.statfs(blocks, blocks, blocks, 1000, 1000, 4096, 255, 4096);
    }
}
