//! Transaction facts that the reply does not contain.

use base::Now;
use message::Request;
use observe::CipherSuite;
use observe::record::Kind;
use policy::ConnectionPeer;

use crate::state::live_configuration::LiveConfiguration;

/// The start of a request: its times and connection, until it was answered or had to wait.
#[derive(Clone, Copy, Debug)]
pub struct RequestStart {
    /// When its head was complete, by both clocks.
    pub at: Now,
    /// The arrival of its first bytes, in microseconds of
    /// [`CoreLog::micros`](super::CoreLog::micros).
    pub began_us: u64,
    /// When its head was complete.
    pub read_us: u64,
    /// When policy and store had decided.
    pub policy_us: u64,
    /// Bytes of its head.
    pub head_bytes: usize,
    /// The cipher suite of its connection.
    pub suite: CipherSuite,
}

/// An unreadable request whose refusal was sent.
#[derive(Clone, Copy, Debug)]
pub struct UnreadableRequest<'a> {
    /// The bytes received.
    pub received: &'a [u8],
    /// Bytes of the refusal's head.
    pub head_out: u64,
}

/// Facts about a transaction that its reply does not contain.
pub struct TransactionFacts<'a> {
    /// The client for whom the request was made.
    pub client: ConnectionPeer,
    /// The configuration it began with.
    pub live: &'a LiveConfiguration,
    /// `None` if it was unreadable.
    pub request: Option<&'a Request>,
    /// The bytes received of an unreadable request.
    pub received: &'a [u8],
    /// The start of the transaction.
    pub started: &'a RequestStart,
    /// When the reply was ready; `None` if it was sent at once.
    pub reply_us: Option<u64>,
    /// Bytes of the response's head.
    pub head_out: u64,
    /// Bytes of the request's body.
    pub body_in: u64,
    /// Bytes of the response's body, as sent.
    pub body_out: u64,
    /// The response was cut off.
    pub cut_off: bool,
    /// The kind of the transaction.
    pub kind: Kind,
    /// The number of the transaction whose page contains the fragment.
    pub parent: Option<u64>,
}

impl<'a> TransactionFacts<'a> {
    /// A client's transaction before its response is sent.
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
            kind: Kind::Client,
            parent: None,
        }
    }
}
