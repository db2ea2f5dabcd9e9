//! Bound listeners: the sockets of every core, opened or taken over from a former process, before
//! the cores serve them.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use crate::address_lock::{self, Sharing};
use crate::listener::{self, BoundSocket, ListenAddress, Listener, SocketFile};

/// The settings of one listener.
#[derive(Clone, Debug)]
pub struct ListenerSettings {
    /// Its address.
    pub at: ListenAddress,
    /// Clients speak TLS.
    pub tls: bool,
    /// Clients may begin with HTTP/2 without TLS (prior knowledge, RFC 9113 3.3).
    pub h2c: bool,
    /// Connections begin with a PROXY protocol header; only those of trusted proxies are accepted.
    pub proxy: bool,
    /// Its index in [`flow::VclSettings::endpoints`].
    pub endpoint: u16,
    /// Only other nodes of the cluster may send requests here.
    pub peers: bool,
}

impl ListenerSettings {
    /// Returns true if the socket is one of a service manager, which keeps it open.
    fn is_given(&self) -> bool {
        matches!(self.at, ListenAddress::Given(_))
    }
}

/// The listening sockets of one address, which one process hands to the next.
#[derive(Debug)]
pub struct ListenerSockets {
    /// The address, as the configuration names it.
    pub asked: String,
    /// The sockets, core by core. A unix socket is one for all cores.
    pub sockets: Vec<OwnedFd>,
}

/// Bound sockets of every core. Those of addresses do not listen yet: until they do, other
/// processes on the ports are not disturbed.
#[derive(Debug)]
pub struct BoundListeners {
    pub(crate) addresses: Vec<ListenerSettings>,
    /// The addresses, as the configuration names them.
    asked: Vec<String>,
    pub(crate) per_core: Vec<Vec<BoundListener>>,
    pub(crate) files: Vec<SocketFile>,
    sharing: Sharing,
}

/// An address that cannot be bound, and the reason.
#[derive(Debug)]
pub struct BindError {
    /// The requested address.
    pub at: ListenAddress,
    /// The system's error.
    pub error: io::Error,
    /// Another process listens there and could share it ([`Sharing::Wanted`]).
    pub sharable: bool,
}

impl BoundListeners {
    /// Binds every address for a number of cores. Sockets of `inherited` that an address asks for
    /// are taken out of it. All of them are listened on, even if there are more than cores.
    ///
    /// # Errors
    /// The first address that cannot be bound, or that another process listens on and the daemon is
    /// not to share.
    pub fn bind(
        listen: &[ListenerSettings],
        workers: usize,
        sharing: Sharing,
        inherited: &mut Vec<ListenerSockets>,
    ) -> Result<Self, BindError> {
        let mut listeners = Self {
            sharing,
            addresses: Vec::new(),
            asked: Vec::new(),
            per_core: (0..workers).map(|_| Vec::new()).collect(),
            files: Vec::new(),
        };
        let mut surplus = Vec::new();
        for (number, asked) in listen.iter().enumerate() {
            let mut listen = asked.clone();
            let name = asked.at.to_string();
            let is_asked = |own: &ListenerSockets| own.asked == name && !asked.is_given();
            let taken = inherited.iter().position(is_asked);
            let taken = taken.map(|at| inherited.remove(at).sockets).unwrap_or_default();
            let is_taken = !taken.is_empty();
            let (sockets, file) = listener::bind(&mut listen.at, workers, taken)
                .map_err(|error| BindError { at: asked.at.clone(), error, sharable: false })?;
            if let (ListenAddress::Address(address), Sharing::Refused, false) =
                (&asked.at, sharing, is_taken)
            {
                listener::probe(*address).map_err(|error| BindError {
                    at: asked.at.clone(),
                    error,
                    sharable: true,
                })?;
            }
            let bound = |socket| BoundListener { socket, listen: listen.clone(), number, is_taken };
            let mut sockets = sockets.into_iter().map(bound);
            for (own, socket) in listeners.per_core.iter_mut().zip(sockets.by_ref()) {
                own.push(socket);
            }
            surplus.extend(sockets);
            listeners.files.extend(file);
            listeners.addresses.push(listen);
            listeners.asked.push(name);
        }
        // A closed socket would reset the connections in its queue.
        for (at, socket) in surplus.into_iter().enumerate() {
            listeners.per_core[at % workers].push(socket);
        }
        Ok(listeners)
    }

    /// Locks the addresses, unless they are shared, and starts to listen.
    ///
    /// # Errors
    /// The first address that another process listens on.
    pub fn claim(&self) -> Result<(), BindError> {
        let Some(listeners) = self.per_core.first().filter(|_| self.sharing == Sharing::Refused)
        else {
            return Ok(());
        };
        let refused =
            |at: &ListenAddress, error| BindError { at: at.clone(), error, sharable: true };
        for listener in listeners.iter().filter(|listener| !listener.is_taken) {
            if !self.is_covered(listener.number) {
                listener.socket.claim().map_err(|error| refused(&listener.listen.at, error))?;
            }
        }
        let taken = self.files.iter().find(|file| !file.is_there());
        taken.map_or(Ok(()), |file| {
            let error = io::Error::new(io::ErrorKind::AddrInUse, "another socket took its place");
            Err(refused(&ListenAddress::Path(file.path().to_owned(), 0), error))
        })
    }

    /// Returns true if the lock on another of the addresses includes this one.
    fn is_covered(&self, number: usize) -> bool {
        let ListenAddress::Address(address) = self.addresses[number].at else { return true };
        self.addresses.iter().enumerate().any(|(other, listen)| match listen.at {
            ListenAddress::Address(wide) if wide == address => other < number,
            ListenAddress::Address(wide) => address_lock::covers(wide, address),
            ListenAddress::Path(..) | ListenAddress::Given(_) => false,
        })
    }

    /// Duplicates of the sockets, for the process that replaces this one. Sockets of a service
    /// manager are not among them.
    pub(crate) fn duplicates(&self) -> io::Result<Vec<ListenerSockets>> {
        let of = |asked: &String| ListenerSockets { asked: asked.clone(), sockets: Vec::new() };
        let mut all: Vec<_> = self.asked.iter().map(of).collect();
        for bound in self.per_core.iter().flatten() {
            let sockets = &mut all[bound.number].sockets;
            match bound.listen.at {
                ListenAddress::Given(_) => {}
                ListenAddress::Path(..) if !sockets.is_empty() => {}
                _ => sockets.push(bound.socket.duplicate()?),
            }
        }
        all.retain(|own| !own.sockets.is_empty());
        Ok(all)
    }

    /// The files of bound unix sockets.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(SocketFile::path)
    }
}

/// A socket of one core, and its settings.
#[derive(Debug)]
pub(crate) struct BoundListener {
    socket: BoundSocket,
    listen: ListenerSettings,
    /// The index of its address.
    number: usize,
    /// Another process has opened it.
    is_taken: bool,
}

impl BoundListener {
    /// Registers the socket with the core's runtime, which must be the current one.
    pub(crate) fn open(self) -> io::Result<(Listener, ListenerSettings)> {
        let Self { socket, listen, .. } = self;
        let listening = socket.listen().and_then(|()| Listener::new(socket, &listen.at));
        let listener = listening
            .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", listen.at)))?;
        Ok((listener, listen))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(at: &str) -> ListenerSettings {
        let at = ListenAddress::Address(at.parse().expect("an address"));
        ListenerSettings { at, tls: false, h2c: false, proxy: false, endpoint: 0, peers: false }
    }

    fn sockets(listeners: &BoundListeners) -> Vec<usize> {
        listeners.per_core.iter().map(Vec::len).collect()
    }

    /// The address of the first listener.
    fn address(listeners: &BoundListeners) -> String {
        listeners.addresses[0].at.to_string()
    }

    #[test]
    fn sockets_are_taken_over_and_another_number_of_cores_leaves_none_unserved() {
        let listen = [settings("127.0.0.1:0")];
        let bind = |workers, inherited: &mut Vec<ListenerSockets>| {
            BoundListeners::bind(&listen, workers, Sharing::Refused, inherited).expect("bound")
        };
        let first = bind(2, &mut Vec::new());
        first.claim().expect("a free address");
        let mut handed = first.duplicates().expect("descriptors");
        assert_eq!((handed.len(), handed[0].sockets.len()), (1, 2));
        handed.push(ListenerSockets { asked: "127.0.0.1:9".to_owned(), sockets: Vec::new() });

        let more = bind(3, &mut handed);
        assert_eq!(sockets(&more), [1, 1, 1]);
        assert_eq!(address(&more), address(&first));
        assert_eq!(handed.len(), 1, "an address that is not asked for stays");
        more.claim().expect("the address is not locked against its own sockets");

        let fewer = bind(1, &mut more.duplicates().expect("descriptors"));
        assert_eq!(sockets(&fewer), [3]);
        assert!(fewer.per_core[0].iter().all(|bound| bound.is_taken));
    }

    #[test]
    fn a_unix_socket_is_handed_on_as_one_and_keeps_its_file() {
        let path = std::env::temp_dir().join(format!("larder-taken-{}", std::process::id()));
        let at = ListenAddress::Path(path.clone(), 0o600);
        let listen = [ListenerSettings { at, ..settings("127.0.0.1:0") }];
        let bind = |inherited: &mut Vec<ListenerSockets>| {
            BoundListeners::bind(&listen, 2, Sharing::Refused, inherited).expect("bound")
        };
        let first = bind(&mut Vec::new());
        let mut handed = first.duplicates().expect("descriptors");
        assert_eq!(handed[0].sockets.len(), 1);
        let second = bind(&mut handed);
        assert_eq!(sockets(&second), [1, 1]);
        assert_eq!(second.files().collect::<Vec<_>>(), [&*path]);
        std::fs::remove_file(&path).expect("removed");
    }

    #[test]
    fn a_socket_that_cannot_be_listened_on_is_an_error_with_its_address() {
        // A descriptor of a file, which accepts no connections.
        let file = std::fs::File::open(std::env::current_exe().expect("a path")).expect("opened");
        let socket = BoundSocket::Tcp(std::net::TcpListener::from(OwnedFd::from(file)));
        let listen = settings("127.0.0.1:8080");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime");
        let _within = runtime.enter();
        let bound = BoundListener { socket, listen, number: 0, is_taken: false };
        let opened = bound.open().map(|_| ());
        let said = opened.expect_err("no socket").to_string();
        assert!(said.starts_with("127.0.0.1:8080: "), "{said}");
    }
}
