//! Core context: the data that the connections of one core share, such as scratch memory and the
//! sweep. It must not know the engines that use it.

mod encoded_heads;
mod handshakes;
mod reclaim_requests;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

pub(crate) use encoded_heads::{EncodedHeads, fields, lines_of};
use flow::CoreState;
pub(crate) use handshakes::Handshakes;
pub(crate) use reclaim_requests::ReclaimRequests;
use tls::Session;

use crate::connection_counts::ConnectionCounts;
use crate::guard::Sweep;
use crate::scratch::{Scratch, Work};

/// Size of one read. Larger than most receive buffers, so that a short read means "empty".
pub(crate) const READ_BYTES: usize = 64 * 1024;

/// Encrypted bytes of one read. Decrypted, they always fit the read buffer.
const SEALED_BYTES: usize = READ_BYTES - Session::OPEN_SPARE;

/// Bytes of a file that are copied at once: one batch of TLS.
const COPIED_BYTES: usize = 64 * 1024;

/// State that the connections of a core share.
pub(crate) struct CoreCtx {
    pub(crate) flow: Rc<CoreState>,
    pub(crate) scratch: RefCell<Scratch>,
    /// Encrypted bytes that a TLS stream has received; borrowed within one read only.
    pub(crate) sealed: RefCell<Box<[u8]>>,
    /// Bytes of a file that is copied; borrowed within one write only.
    pub(crate) copied: RefCell<Box<[u8]>>,
    /// Heads of stored responses, encoded for HTTP/2.
    pub(crate) encoded_heads: RefCell<EncodedHeads>,
    /// A field's value; borrowed while one head is written only.
    pub(crate) value: RefCell<Vec<u8>>,
    pub(crate) sweep: Sweep,
    pub(crate) handshakes: Handshakes,
    /// The number of tunnels on all cores.
    pub(crate) tunnels: Arc<ConnectionCounts>,
    /// Reclaim requests of all cores.
    pub(crate) reclaims: Arc<ReclaimRequests>,
    /// New connections of this core that wait for memory.
    pub(crate) waiting: Cell<u32>,
    /// Each connection ends with its next response.
    pub(crate) draining: Cell<bool>,
    /// While the core drains, connections without a request stay open.
    pub(crate) keeps_idle: Cell<bool>,
}

impl CoreCtx {
    /// Counts a panic of a task that is restarted.
    pub(crate) fn note_panic(&self) {
        self.flow.counters.inc(base::Counter::Panics);
    }

    pub(crate) fn new(
        flow: Rc<CoreState>,
        tunnels: Arc<ConnectionCounts>,
        reclaims: Arc<ReclaimRequests>,
    ) -> Rc<Self> {
        let scratch =
            Scratch { input: vec![0; READ_BYTES].into_boxed_slice(), work: Work::default() };
        Rc::new(Self {
            encoded_heads: RefCell::new(EncodedHeads::new(flow.shared.seed)),
            value: RefCell::default(),
            flow,
            scratch: RefCell::new(scratch),
            sealed: RefCell::new(vec![0; SEALED_BYTES].into_boxed_slice()),
            copied: RefCell::new(vec![0; COPIED_BYTES].into_boxed_slice()),
            sweep: Sweep::default(),
            handshakes: Handshakes::default(),
            tunnels,
            reclaims,
            waiting: Cell::new(0),
            draining: Cell::new(false),
            keeps_idle: Cell::new(false),
        })
    }
}
