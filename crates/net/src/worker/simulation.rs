//! Simulated connections without a listener: the loops of real clients, over a pair of unix
//! sockets.

use std::io;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use flow::CoreState;
use tokio::net::UnixStream;

use super::{Gate, ListenerSettings, sweep};
use crate::client_socket::ClientSocket;
use crate::connection_counts::ConnectionCounts;
use crate::connection_memory;
use crate::core::CoreCtx;
use crate::listener::ListenAddress;

/// The entry to a core for simulated clients. They speak HTTP/1, or HTTP/2 with prior knowledge.
pub struct Port(Gate);

impl Port {
    /// An entry to `flow`.
    pub fn new(flow: Rc<CoreState>) -> Self {
        let peers = Arc::<ConnectionCounts>::default();
        Self(Gate {
            core: CoreCtx::new(flow, Arc::clone(&peers), Arc::default()),
            peers,
            connections: u64::MAX,
            listen: ListenerSettings {
                at: ListenAddress::Path(PathBuf::new(), 0),
                tls: false,
                h2c: true,
                peers: false,
                proxy: false,
                endpoint: 0,
            },
        })
    }

    /// A client's end of a connection. One that is not admitted is closed.
    ///
    /// # Errors
    /// The system's: no descriptor is left.
    pub async fn connect(&self) -> io::Result<UnixStream> {
        let gate = &self.0;
        let (ours, theirs) = UnixStream::pair()?;
        if let Some(newcomer) = gate.admit(ClientSocket::from(ours), None) {
            let (mut opened, bytes) =
                (connection_memory::none(&gate.core), connection_memory::of_new(false));
            if connection_memory::make_or_wait(&gate.core, &mut opened, bytes).await {
                gate.begin(newcomer, opened);
            }
        }
        Ok(theirs)
    }

    /// Does a core's periodic work of once a second.
    pub fn sweep(&self) {
        sweep(&self.0.core);
    }
}
