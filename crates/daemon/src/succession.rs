//! Succession: what a running daemon keeps for the process that may replace it, and whether it has
//! been replaced.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use net::ListenerSockets;
use parking_lot::{Mutex, MutexGuard};
use rustix::process::{Pid, Signal, kill_process};
use tokio::sync::watch;

use crate::linked_processes::LinkedProcesses;
use crate::socket_activation::Sockets;

/// The longest wait for the responses of operators' connections.
const ANSWERS: Duration = Duration::from_secs(2);
/// The interval of the checks for their end.
const LOOK: Duration = Duration::from_millis(5);

/// Parts of the daemon that are handed over, besides its state.
pub(crate) struct Estate {
    /// The program, as it was started: the file may be replaced meanwhile.
    pub(crate) program: PathBuf,
    /// Duplicates of the sockets for clients.
    pub(crate) listeners: Vec<ListenerSockets>,
    /// Sockets of the service manager.
    pub(crate) given: Sockets,
    /// A duplicate of the admin socket.
    pub(crate) admin_socket: Option<OwnedFd>,
    pub(crate) links: Arc<LinkedProcesses>,
}

/// The daemon's replacement by a new process.
pub(crate) struct Succession {
    /// `None` for a daemon that cannot be replaced.
    estate: Mutex<Option<Estate>>,
    /// The new process of an attempt under way.
    starting: Mutex<Option<Pid>>,
    successor: watch::Sender<Option<u32>>,
}

impl Default for Succession {
    fn default() -> Self {
        Self {
            estate: Mutex::default(),
            starting: Mutex::default(),
            successor: watch::Sender::new(None),
        }
    }
}

impl Succession {
    /// Makes the daemon replaceable.
    pub(crate) fn prepare(&self, estate: Estate) {
        *self.estate.lock() = Some(estate);
    }

    /// Takes the estate for an attempt to replace the daemon; `None` during another attempt.
    pub(crate) fn begin(&self) -> Option<MutexGuard<'_, Option<Estate>>> {
        self.estate.try_lock()
    }

    /// Notes the new process of an attempt; `None` at its end, before the process is awaited.
    pub(crate) fn set_starting(&self, pid: Option<Pid>) {
        *self.starting.lock() = pid;
    }

    /// Ends an attempt under way unless its process serves already, allows no other, and closes the
    /// duplicates of sockets.
    pub(crate) fn end(&self) {
        if let Some(pid) = *self.starting.lock()
            && self.successor().is_none()
        {
            // The attempt sees that its process is gone.
            _ = kill_process(pid, Signal::KILL);
        }
        self.estate.lock().take();
    }

    /// Notes that process `pid` serves now.
    pub(crate) fn set_successor(&self, pid: u32) {
        self.successor.send_replace(Some(pid));
    }

    /// The process that serves now; `None` while it is this one.
    pub(crate) fn successor(&self) -> Option<u32> {
        *self.successor.borrow()
    }

    /// Waits until another process serves; returns its id.
    pub(crate) async fn replaced(&self) -> u32 {
        let mut successor = self.successor.subscribe();
        // The sender lives as long as this value.
        let found = successor.wait_for(Option::is_some).await.ok().and_then(|found| *found);
        match found {
            Some(pid) => pid,
            None => std::future::pending().await,
        }
    }

    /// Waits for a while until operators' connections have their responses. Call it once the daemon
    /// is replaced: each of them waits for that.
    pub(crate) fn finish_answers(&self) {
        let mut waited = Duration::ZERO;
        while self.successor.receiver_count() > 0 && waited < ANSWERS {
            rt::pause(LOOK);
            waited += LOOK;
        }
    }
}
