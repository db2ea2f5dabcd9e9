//! Upgrade: a new process takes the daemon's place. This is the side of the old process; the new
//! one's is in the start.
//!
//! Until the new process serves, this one changes nothing that it could not take back, except for
//! what only one process may have: it leaves its cluster and closes the disk cache.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use base::Limit;
use rustix::process::Pid;
use tokio::runtime::Handle;

use crate::handover::{Channel, HandoverMessage, Introduction, Offer, Role, SocketOffer};
use crate::keeper::{self, LentKeeper};
use crate::linked_processes::ProcessLink;
use crate::state::Daemon;
use crate::succession::Estate;
use crate::{disk_store, warm_sources};

/// The flag of a process that takes the place of the one that starts it.
pub(crate) const FLAG: &str = "--take-over";

/// The longest copy of memory to the disk. Clients are served meanwhile.
const COPY_TIME: Duration = Duration::from_secs(10);

/// Variables that concern the old process only: descriptors and a watchdog of its own.
const OWN_VARIABLES: [&str; 4] = ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", "WATCHDOG_PID"];

/// A new process that serves.
#[derive(Clone, Debug)]
pub(crate) struct Successor {
    pub(crate) pid: u32,
    pub(crate) version: String,
}

/// The reason why the daemon was not replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NotReplaced {
    /// It cannot be, or is being replaced already.
    Conflict(String),
    /// The new process cannot serve.
    Failed(String),
}

/// Replaces the daemon by the program `named`, or by the one at the path of its own. It takes
/// seconds: call it on a blocking thread of the helper runtime.
///
/// # Errors
/// The reason why the daemon goes on.
pub(crate) fn replace(
    daemon: &Arc<Daemon>,
    named: Option<PathBuf>,
) -> Result<Successor, NotReplaced> {
    let conflict = |why: &str| Err(NotReplaced::Conflict(why.to_owned()));
    let Some(estate) = daemon.succession.begin() else {
        return conflict("an upgrade is under way already");
    };
    let Some(estate) = &*estate else {
        return conflict("this daemon cannot be replaced: it is stopping, or a demonstration");
    };
    if daemon.succession.successor().is_some() {
        return conflict("another process has taken this one's place");
    }
    if std::process::id() == 1 {
        return conflict(
            "this is process 1 of its container, which ends with it: start a container with the \
             new version beside this one, and then stop this one",
        );
    }
    let program = named.unwrap_or_else(|| estate.program.clone());
    check(&program)?;
    let _held = daemon.hold_configuration();
    let replaced = Attempt { daemon, estate }.run(&program);
    match &replaced {
        Ok(Successor { pid, version }) => base::tell!(
            Notice,
            "larder: process {pid} (version {version}) has taken over; this one finishes its \
             connections"
        ),
        Err(NotReplaced::Failed(why) | NotReplaced::Conflict(why)) => {
            base::tell!(Error, "larder: not upgraded, this process goes on: {}", one_line(why));
        }
    }
    replaced
}

/// Checks that the program may be started: a daemon that is root starts no file of other users.
fn check(program: &Path) -> Result<(), NotReplaced> {
    let shown = program.display();
    if let Err(error) = program.metadata() {
        return Err(NotReplaced::Failed(format!("cannot start {shown}: {error}")));
    }
    if rustix::process::geteuid().is_root() && !keeper::is_roots_program(program) {
        let why =
            format!("the daemon is root, and {shown} is not a file that only root can change");
        return Err(NotReplaced::Conflict(why));
    }
    Ok(())
}

/// An attempt to replace the daemon.
struct Attempt<'a> {
    daemon: &'a Arc<Daemon>,
    estate: &'a Estate,
}

impl Attempt<'_> {
    fn run(&self, program: &Path) -> Result<Successor, NotReplaced> {
        let failed = |why: String| NotReplaced::Failed(why);
        let keeper = keeper::lend();
        let (channel, theirs) = Channel::pair().map_err(|error| failed(error.to_string()))?;
        let mut child = start(program, theirs)
            .map_err(|error| failed(format!("cannot start {}: {error}", program.display())))?;
        let pid = Pid::from_child(&child);
        self.daemon.succession.set_starting(Some(pid));
        let outcome = self.hand_over(channel, keeper.as_ref(), &mut child);
        self.daemon.succession.set_starting(None);
        match outcome {
            Ok(successor) => {
                keeper.into_iter().for_each(LentKeeper::give_away);
                self.daemon.notify.replaced_by(successor.pid);
                self.daemon.succession.set_successor(successor.pid);
                Ok(successor)
            }
            Err(why) => {
                // It is this process's child, and serves nothing.
                _ = child.kill();
                _ = child.wait();
                Err(failed(why))
            }
        }
    }

    /// The conversation up to the moment when the new process serves.
    fn hand_over(
        &self,
        mut channel: Channel,
        keeper: Option<&LentKeeper>,
        child: &mut Child,
    ) -> Result<Successor, String> {
        let patience = Duration::from_millis(self.daemon.shared.live().limits.upgrade_timeout);
        let until = Instant::now() + patience;
        let told = |error: io::Error, child: &mut Child| {
            if error.kind() == io::ErrorKind::TimedOut {
                self.estate.links.count(Limit::UpgradeTimeout);
            }
            silence(&error, child, patience)
        };
        self.offer(&mut channel, keeper, until).map_err(|error| told(error, child))?;
        let ready = loop {
            match channel.receive(until).map_err(|error| told(error, child))? {
                (HandoverMessage::Ready(ready), _) => break ready,
                (HandoverMessage::Failed(why), _) => return Err(why),
                _ => {}
            }
        };
        let (socket, received) = channel.into_parts().map_err(|error| error.to_string())?;
        self.release();
        let linked = self.estate.links.add(socket, received).map_err(NotServing::Silent);
        let outcome = linked.and_then(|mut link| {
            // The new process is told of invalidations from here on.
            self.daemon.shared.invalidator.hand_over_journal();
            self.daemon.shared.cache.lower().close_for_other();
            link.send(&HandoverMessage::Begin);
            Handle::current().block_on(served(&mut link, patience))
        });
        match outcome {
            Ok(()) => Ok(Successor { pid: ready.pid, version: ready.version }),
            Err(error) => {
                self.take_back();
                Err(match error {
                    NotServing::Said(why) => why,
                    NotServing::Silent(error) => told(error, child),
                })
            }
        }
    }

    /// Offers everything that is handed over.
    fn offer(
        &self,
        channel: &mut Channel,
        keeper: Option<&LentKeeper>,
        until: Instant,
    ) -> io::Result<()> {
        let Self { daemon, estate } = self;
        let from =
            Introduction { pid: std::process::id(), version: env!("CARGO_PKG_VERSION").to_owned() };
        let (ticket_keys, disk) = (daemon.ticket_keys(), daemon.disk_offer());
        channel.send(&HandoverMessage::Offer(Offer { from, ticket_keys, disk }), until)?;
        let offer = |role, name: &str| SocketOffer {
            role,
            name: name.to_owned(),
            count: 0,
            is_more: false,
        };
        for own in &estate.listeners {
            let sockets: Vec<_> = own.sockets.iter().map(AsFd::as_fd).collect();
            channel.offer(&offer(Role::Listener, &own.asked), &sockets, until)?;
        }
        for (name, socket) in estate.given.all() {
            channel.offer(&offer(Role::Given, name), &[socket], until)?;
        }
        daemon.ports.with_open(|ports| {
            let mut each = ports.iter();
            each.try_for_each(|port| {
                channel.offer(&offer(Role::Port, &port.name), &[port.socket.as_fd()], until)
            })
        })?;
        if let Some(socket) = &estate.admin_socket {
            channel.offer(&offer(Role::AdminSocket, ""), &[socket.as_fd()], until)?;
        }
        if let Some(ring) = &daemon.ring {
            let name = ring.folder().to_string_lossy();
            channel.offer(&offer(Role::RingLock, &name), &[ring.lock().as_fd()], until)?;
        }
        if let Some(socket) = keeper.and_then(LentKeeper::socket) {
            channel.offer(&offer(Role::Keeper, ""), &[socket], until)?;
        }
        channel.send(&HandoverMessage::Offered, until)
    }

    /// Releases what only one process may have.
    fn release(&self) {
        let Self { daemon, .. } = self;
        daemon.stop_ordering();
        Handle::current().block_on(async {
            warm_sources::save_hot_lists(daemon).await;
            let node = daemon.node.lock().take();
            if let Some(node) = node {
                node.leave().await;
                // Without its cluster it would miss invalidations.
                daemon.shared.invalidator.trust.set_until(0);
            }
        });
        disk_store::copy(&daemon.shared, COPY_TIME);
    }

    /// Goes on alone, after the new process has failed.
    fn take_back(&self) {
        let Self { daemon, .. } = self;
        daemon.resume_ordering();
        for (has_it, what) in [
            (daemon.disk_offer().is_some(), "without its disk cache"),
            (daemon.with_config(|config| config.cluster.is_some()), "out of its cluster"),
        ] {
            if has_it {
                base::tell!(Error, "larder: the daemon is {what} until it is restarted");
            }
        }
    }
}

/// Starts the new process with this one's arguments, and with the socket as its standard input.
fn start(program: &Path, socket: OwnedFd) -> io::Result<Child> {
    let mut command = Command::new(program);
    command.arg0("larder").args(std::env::args_os().skip(1).filter(|word| word != FLAG)).arg(FLAG);
    OWN_VARIABLES.iter().for_each(|name| _ = command.env_remove(name));
    command.stdin(Stdio::from(socket)).spawn()
}

/// The first line of a message, with the place in a file that it is about.
fn one_line(why: &str) -> String {
    let mut lines = why.lines().map(str::trim);
    let first = lines.next().unwrap_or_default();
    let first = first.strip_prefix("larder: ").unwrap_or(first);
    match lines.next().and_then(|line| line.strip_prefix("--> ")) {
        Some(place) => format!("{place}: {first}"),
        None => first.to_owned(),
    }
}

/// The reason why the new process does not serve.
enum NotServing {
    /// It says why.
    Said(String),
    /// It does not answer.
    Silent(io::Error),
}

/// Waits until the new process serves.
async fn served(link: &mut ProcessLink, patience: Duration) -> Result<(), NotServing> {
    let served = async {
        loop {
            match link.receive().await {
                Some(HandoverMessage::Serving) => return Ok(()),
                Some(HandoverMessage::Failed(why)) => return Err(NotServing::Said(why)),
                Some(_) => {}
                None => return Err(NotServing::Silent(io::ErrorKind::UnexpectedEof.into())),
            }
        }
    };
    let silent = |_| Err(NotServing::Silent(io::ErrorKind::TimedOut.into()));
    rt::time::timeout(patience, served).await.unwrap_or_else(silent)
}

/// The message about a new process that does not answer.
fn silence(error: &io::Error, child: &mut Child, patience: Duration) -> String {
    match error.kind() {
        io::ErrorKind::TimedOut => {
            let patience =
                base::units::DurationMs(u64::try_from(patience.as_millis()).unwrap_or(0));
            format!("the new process was not ready within {patience} (limit: upgrade_timeout)")
        }
        io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe => {
            _ = child.kill();
            let ended = child.wait().map_or_else(|error| error.to_string(), |end| end.to_string());
            format!("the new process ended ({ended}) and gave no reason: its lines in the log may")
        }
        _ => format!("the new process cannot be spoken to: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_of_several_lines_is_told_in_one() {
        let why = "error: unknown setting `lisen`\n --> /etc/larder/larder.toml:1:1\n  |\n";
        assert_eq!(one_line(why), "/etc/larder/larder.toml:1:1: error: unknown setting `lisen`");
        assert_eq!(one_line("larder: cannot listen: :80\n  = help: end it"), "cannot listen: :80");
        assert_eq!(one_line(""), "");
    }
}
