//! Socket activation: listening sockets that the service manager has opened (systemd).

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use listenfd::ListenFd;
use net::{InheritedSocket, ListenAddress};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::net::{AddressFamily, sockopt};

/// The sockets, by their names (`FileDescriptorName=`).
#[derive(Clone, Debug, Default)]
pub struct Sockets {
    named: Vec<(String, Arc<InheritedSocket>)>,
}

fn handle(given: &InheritedSocket) -> BorrowedFd<'_> {
    match given {
        InheritedSocket::Tcp(listener) => listener.as_fd(),
        InheritedSocket::Unix(listener) => listener.as_fd(),
    }
}

impl Sockets {
    /// The sockets handed to this process. Call it once, before there are other threads: it removes
    /// them from the environment.
    ///
    /// # Errors
    /// A descriptor was handed over that is no listening stream socket.
    pub(crate) fn of_environment() -> Result<Self, String> {
        let pid = std::env::var("LISTEN_PID").ok().and_then(|pid| pid.parse().ok());
        if pid != Some(std::process::id()) {
            return Ok(Self::default());
        }
        let names = std::env::var("LISTEN_FDNAMES").unwrap_or_default();
        let mut names = names.split(':').filter(|name| !name.is_empty());
        let mut passed = ListenFd::from_env();
        let mut named = Vec::new();
        for at in 0..passed.len() {
            // sd_listen_fds_with_names(3) gives this name to the unnamed.
            let name = names.next().unwrap_or("unknown").to_owned();
            let given = match passed.take_tcp_listener(at) {
                Ok(tcp) => tcp.map(InheritedSocket::Tcp),
                Err(_) => passed
                    .take_unix_listener(at)
                    .map_err(|error| format!("larder: socket `{name}`: {error}"))?
                    .map(InheritedSocket::Unix),
            };
            if let Some(given) = &given {
                // Child processes must not inherit them.
                _ = fcntl_setfd(handle(given), FdFlags::CLOEXEC);
            }
            named.extend(given.map(|given| (name, Arc::new(given))));
        }
        Ok(Self { named })
    }

    /// The sockets that the process before this one was handed, by their names.
    ///
    /// # Errors
    /// A descriptor that is no socket.
    pub(crate) fn of_former(sockets: Vec<(String, OwnedFd)>) -> Result<Self, String> {
        let given = |(name, socket): (String, OwnedFd)| {
            let family = sockopt::socket_domain(&socket)
                .map_err(|error| format!("larder: socket `{name}`: {error}"))?;
            let given = match family {
                AddressFamily::UNIX => InheritedSocket::Unix(socket.into()),
                _ => InheritedSocket::Tcp(socket.into()),
            };
            Ok((name, Arc::new(given)))
        };
        Ok(Self { named: sockets.into_iter().map(given).collect::<Result<_, String>>()? })
    }

    /// Every socket, with its name.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&str, BorrowedFd<'_>)> {
        self.named.iter().map(|(name, given)| (name.as_str(), handle(given)))
    }

    /// The addresses of `fd:name`: every socket of that name.
    ///
    /// # Errors
    /// No socket has this name.
    pub(crate) fn called(&self, name: &str) -> Result<Vec<ListenAddress>, String> {
        let of_name = self.named.iter().filter(|(own, _)| own == name);
        let found: Vec<_> =
            of_name.map(|(_, given)| ListenAddress::Given(Arc::clone(given))).collect();
        if found.is_empty() {
            let names: Vec<_> = self.named.iter().map(|(name, _)| name.as_str()).collect();
            let others = match names.as_slice() {
                [] => "none was".to_owned(),
                names => format!("these were: {}", names.join(", ")),
            };
            return Err(format!("larder: no socket called `{name}` was handed over; {others}"));
        }
        Ok(found)
    }

    /// The addresses of sockets whose names are not among `used`: connections to them would wait
    /// for ever.
    pub(crate) fn unused(&self, used: &[&str]) -> Vec<String> {
        let left = self.named.iter().filter(|(name, _)| !used.contains(&name.as_str()));
        left.map(|(name, given)| format!("`{name}` ({})", ListenAddress::Given(Arc::clone(given))))
            .collect()
    }
}
