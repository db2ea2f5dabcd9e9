//! A loopback listener, which all origins here share.

use std::io;
use std::net::SocketAddr;

use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinHandle;

/// Most connections that wait to be accepted, as many as Linux permits (`net.core.somaxconn`). With
/// the 128 of `TcpListener`, some of two hundred simultaneous connections would wait a second for
/// their retry.
const BACKLOG: u32 = 4096;

/// A listener that passes on each connection; dropping it ends it.
#[derive(Debug)]
pub(crate) struct Loopback {
    addr: SocketAddr,
    acceptor: JoinHandle<()>,
}

impl Loopback {
    /// Listens on a free port, and calls `take` with every connection and its number, from 0.
    ///
    /// # Errors
    /// Those of binding.
    pub(crate) async fn start(
        take: impl FnMut(TcpStream, usize) + Send + 'static,
    ) -> io::Result<Self> {
        Self::at(SocketAddr::from(([127, 0, 0, 1], 0)), take).await
    }

    /// Listens at `listen`, and otherwise as `start` does.
    ///
    /// # Errors
    /// Those of binding.
    pub(crate) async fn at(
        listen: SocketAddr,
        mut take: impl FnMut(TcpStream, usize) + Send + 'static,
    ) -> io::Result<Self> {
        let socket = if listen.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        socket.set_reuseaddr(true)?;
        socket.bind(listen)?;
        let listener = socket.listen(BACKLOG)?;
        let addr = listener.local_addr()?;
        let acceptor = tokio::spawn(async move {
            let mut number = 0;
            while let Ok((stream, _)) = listener.accept().await {
                take(stream, number);
                number += 1;
            }
        });
        Ok(Self { addr, acceptor })
    }

    /// The listener's address.
    pub(crate) fn addr(&self) -> SocketAddr {
        self.addr
    }
}

impl Drop for Loopback {
    fn drop(&mut self) {
        self.acceptor.abort();
    }
}
