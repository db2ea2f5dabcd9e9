//! Predecessor: the daemon that this process replaces, and what it hands over.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use net::ListenerSockets;
use observe::ring::InheritedLock;

use crate::handover::{
    Channel, DiskOffer, HandoverMessage, Introduction, Role, SocketOffer, frame,
};
use crate::ports::PortSocket;

/// The time limit of a message. The old process has a stricter one for this process.
const PATIENCE: Duration = Duration::from_secs(600);

/// Sockets and state that the old process has handed over.
#[derive(Debug, Default)]
pub(crate) struct Inheritance {
    /// Sockets for clients.
    pub(crate) listeners: Vec<ListenerSockets>,
    /// Sockets of the service manager, by their names.
    pub(crate) given: Vec<(String, OwnedFd)>,
    /// Sockets of ports for operators and their tools.
    pub(crate) ports: Vec<PortSocket>,
    pub(crate) admin_socket: Option<OwnedFd>,
    pub(crate) keeper: Option<OwnedFd>,
    /// The lock of the log ring.
    pub(crate) ring_lock: Option<InheritedLock>,
    /// The secrets of session tickets.
    pub(crate) ticket_keys: Vec<u8>,
    /// The disk cache, which the old process still has.
    pub(crate) disk: Option<DiskOffer>,
}

impl Inheritance {
    fn add(&mut self, offer: SocketOffer, mut files: Vec<OwnedFd>) {
        let name = offer.name;
        match offer.role {
            Role::Listener => match self.listeners.last_mut() {
                Some(own) if offer.is_more => own.sockets.append(&mut files),
                _ => self.listeners.push(ListenerSockets { asked: name, sockets: files }),
            },
            Role::Given => self.given.extend(files.pop().map(|socket| (name, socket))),
            Role::Port => {
                self.ports.extend(files.pop().map(|socket| PortSocket { name, socket }));
            }
            Role::AdminSocket => self.admin_socket = files.pop(),
            Role::Keeper => self.keeper = files.pop(),
            Role::RingLock => {
                let folder = PathBuf::from(name);
                self.ring_lock =
                    files.pop().map(|file| InheritedLock { folder, file: file.into() });
            }
            Role::Unknown => {}
        }
    }
}

/// The old process.
#[derive(Debug)]
pub(crate) struct Predecessor {
    channel: Channel,
    from: Introduction,
    /// Invalidations that came before this process began to serve.
    early: Vec<u8>,
    is_gone: bool,
}

impl Predecessor {
    /// The process at the other end of standard input, and what it hands over.
    ///
    /// # Errors
    /// Standard input is no such socket, or the conversation fails.
    pub(crate) fn greet() -> Result<(Self, Inheritance), String> {
        let failed = |error: io::Error| format!("larder: --take-over: {error}");
        let socket = io::stdin().as_fd().try_clone_to_owned().map_err(failed)?;
        let mut channel = Channel::over(UnixStream::from(socket));
        let mut inheritance = Inheritance::default();
        let mut from = Introduction::default();
        loop {
            match channel.receive(Instant::now() + PATIENCE).map_err(failed)? {
                (HandoverMessage::Offer(offer), _) => {
                    from = offer.from;
                    (inheritance.ticket_keys, inheritance.disk) = (offer.ticket_keys, offer.disk);
                }
                (HandoverMessage::Sockets(offer), files) => inheritance.add(offer, files),
                (HandoverMessage::Offered, _) => break,
                _ => {}
            }
        }
        let early = Vec::new();
        Ok((Self { channel, from, early, is_gone: false }, inheritance))
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.from.pid
    }

    /// Says that this process could serve, and waits until it may. An old process that is gone has
    /// left everything.
    ///
    /// # Errors
    /// The conversation fails.
    pub(crate) fn announce_ready(&mut self) -> Result<(), String> {
        let failed = |error: io::Error| format!("larder: --take-over: {error}");
        let own =
            Introduction { pid: std::process::id(), version: env!("CARGO_PKG_VERSION").to_owned() };
        let until = Instant::now() + PATIENCE;
        // A failure shows below.
        _ = self.channel.send(&HandoverMessage::Ready(own), until);
        loop {
            match self.channel.receive(until) {
                Ok((HandoverMessage::Begin, _)) => return Ok(()),
                Ok((purge @ HandoverMessage::Purge { .. }, _)) => self.early.extend(frame(&purge)),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    base::tell!(
                        Warn,
                        "larder: process {} has ended before it was replaced; this one serves \
                         instead",
                        self.from.pid
                    );
                    self.is_gone = true;
                    return Ok(());
                }
                Err(error) => return Err(failed(error)),
            }
        }
    }

    /// Says why this process cannot serve.
    pub(crate) fn announce_failure(mut self, why: &str) {
        let until = Instant::now() + Duration::from_secs(1);
        _ = self.channel.send(&HandoverMessage::Failed(why.to_owned()), until);
    }

    /// The socket to the old process, and the bytes received from it that are to be read; `None` if
    /// it is gone.
    pub(crate) fn into_parts(self) -> Option<(UnixStream, Vec<u8>)> {
        if self.is_gone {
            return None;
        }
        let (socket, received) = self.channel.into_parts().ok()?;
        Some((socket, [self.early, received].concat()))
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    fn offer(role: Role, name: &str, is_more: bool) -> SocketOffer {
        SocketOffer { role, name: name.to_owned(), count: 1, is_more }
    }

    fn file() -> Vec<OwnedFd> {
        vec![File::open("/proc/self/comm").expect("a file").into()]
    }

    #[test]
    fn sockets_of_one_address_stay_together_and_equal_addresses_apart() {
        let mut own = Inheritance::default();
        for is_more in [false, true, false] {
            own.add(offer(Role::Listener, "127.0.0.1:0", is_more), file());
        }
        own.add(offer(Role::Unknown, "udp", false), file());
        own.add(offer(Role::Port, "admin 127.0.0.1:6080", false), file());
        own.add(offer(Role::RingLock, "/run/larder/admin.ring", false), file());
        let counts: Vec<_> = own.listeners.iter().map(|own| own.sockets.len()).collect();
        assert_eq!(counts, [2, 1]);
        assert_eq!((own.ports.len(), own.given.len()), (1, 0));
        assert!(own.ring_lock.is_some_and(|lock| lock.folder.ends_with("admin.ring")));
    }
}
