//! One core's side of the network: scratch memory, the sweep, and what connections need of the
//! rest. Nothing here knows what works on it.

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

/// Bytes one read takes at most. More than a socket usually holds, so that a short read says
/// "empty".
pub(crate) const READ_BYTES: usize = 64 * 1024;

/// Sealed bytes one read takes at most. What is in them always fits the buffer they are opened
/// into.
const SEALED_BYTES: usize = READ_BYTES - Session::OPEN_SPARE;

/// Bytes of a file copied at once: what TLS seals in one batch.
const COPIED_BYTES: usize = 64 * 1024;

/// State that the connections of a core share.
pub(crate) struct CoreCtx {
    pub(crate) flow: Rc<CoreState>,
    pub(crate) scratch: RefCell<Scratch>,
    /// Bytes that a TLS stream has received and not opened yet; only ever borrowed within one read.
    pub(crate) sealed: RefCell<Box<[u8]>>,
    /// Pieces of files on their way through a copy; only ever borrowed within one write.
    pub(crate) copied: RefCell<Box<[u8]>>,
    /// Heads of stored responses, as HTTP/2 wants them.
    pub(crate) prepared: RefCell<EncodedHeads>,
    /// A field's value; only ever borrowed while one head is written.
    pub(crate) value: RefCell<Vec<u8>>,
    pub(crate) sweep: Sweep,
    pub(crate) handshakes: Handshakes,
    /// Tunnels of all cores.
    pub(crate) tunnels: Arc<ConnectionCounts>,
    /// Calls for room of all cores.
    pub(crate) calls: Arc<ReclaimRequests>,
    /// Newcomers of this core that wait for room.
    pub(crate) waiting: Cell<u32>,
    pub(crate) draining: Cell<bool>,
}

impl CoreCtx {
    /// Counts a bug that ended what is begun anew.
    pub(crate) fn note_panic(&self) {
        self.flow.counters.inc(base::Counter::Panics);
    }

    pub(crate) fn new(
        flow: Rc<CoreState>,
        tunnels: Arc<ConnectionCounts>,
        calls: Arc<ReclaimRequests>,
    ) -> Rc<Self> {
        let scratch =
            Scratch { input: vec![0; READ_BYTES].into_boxed_slice(), work: Work::default() };
        Rc::new(Self {
            prepared: RefCell::new(EncodedHeads::new(flow.shared.seed)),
            value: RefCell::default(),
            flow,
            scratch: RefCell::new(scratch),
            sealed: RefCell::new(vec![0; SEALED_BYTES].into_boxed_slice()),
            copied: RefCell::new(vec![0; COPIED_BYTES].into_boxed_slice()),
            sweep: Sweep::default(),
            handshakes: Handshakes::default(),
            tunnels,
            calls,
            waiting: Cell::new(0),
            draining: Cell::new(false),
        })
    }
}
