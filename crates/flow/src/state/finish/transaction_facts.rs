//! Facts about a transaction that its reply does not know.

use base::Now;
use message::Request;
use observe::CipherSuite;
use policy::ConnectionPeer;

use crate::state::live_configuration::LiveConfiguration;

/// When a request began and over what, and how far it came before it was answered or had to wait.
#[derive(Clone, Copy, Debug)]
pub struct RequestStart {
    /// When its head was whole, by the clocks that count.
    pub at: Now,
    /// When its first bytes came, in microseconds of [`CoreLog::micros`](super::CoreLog::micros).
    pub began_us: u64,
    /// When its head was whole.
    pub read_us: u64,
    /// When policy and store had been asked.
    pub policy_us: u64,
    /// Bytes of its head.
    pub head_bytes: usize,
    /// The cipher suite of the connection that brought it.
    pub suite: CipherSuite,
}

/// A request that could not be read, and whose refusal has been sent.
#[derive(Clone, Copy, Debug)]
pub struct UnreadableRequest<'a> {
    /// The bytes that came.
    pub received: &'a [u8],
    /// Bytes of the refusal's head.
    pub head_out: u64,
}

/// Facts about a transaction that its reply does not know.
pub struct TransactionFacts<'a> {
    /// On whose behalf it was asked.
    pub client: ConnectionPeer,
    /// The configuration it began with.
    pub live: &'a LiveConfiguration,
    /// `None` if it could not be read.
    pub request: Option<&'a Request>,
    /// The bytes that came of a request that could not be read.
    pub received: &'a [u8],
    /// The transaction's beginning.
    pub started: &'a RequestStart,
    /// When the answer was ready; `None` where it left at once.
    pub reply_us: Option<u64>,
    /// Bytes of the answer's head.
    pub head_out: u64,
    /// Bytes of the request's body.
    pub body_in: u64,
    /// Bytes of the answer's body, as sent.
    pub body_out: u64,
    /// The answer did not reach its end.
    pub cut_off: bool,
    /// The number of the transaction that it was a fragment for.
    pub parent: Option<u64>,
}

impl<'a> TransactionFacts<'a> {
    /// A transaction of a client before anything has been sent.
    pub fn new(
        client: ConnectionPeer,
        live: &'a LiveConfiguration,
        started: &'a RequestStart,
    ) -> Self {
        Self {
            client,
            live,
            request: None,
            received: &[],
            started,
            reply_us: None,
            head_out: 0,
            body_in: 0,
            body_out: 0,
            cut_off: false,
            parent: None,
        }
    }
}
