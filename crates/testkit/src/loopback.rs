//! A listener on a loopback port: what every origin made here stands on.

use std::io;
use std::net::SocketAddr;

use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinHandle;

/// Connections that may wait to be taken: what Linux allows (`net.core.somaxconn`). Of two hundred
/// that come at once, `TcpListener`'s 128 would make some wait a second for their next attempt.
const BACKLOG: u32 = 4096;

/// A listener that hands each connection on; it stops when dropped.
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

    /// As `start`, at `listen`.
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

    /// Where it listens.
    pub(crate) fn addr(&self) -> SocketAddr {
        self.addr
    }
}

impl Drop for Loopback {
    fn drop(&mut self) {
        self.acceptor.abort();
    }
}
