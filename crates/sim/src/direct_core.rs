//! Direct calls of a core, without an engine.

use std::sync::Arc;

use base::Account;
use flow::{Client, LiveRef, Reply, RequestConnection, Start};
use h1::{HeadLimits, ReadProgress, RequestReader};
use message::{Request, Scheme};
use policy::ConnectionPeer;

use crate::simulation::Simulation;

/// Parses a request.
pub(crate) fn read_request(text: &str) -> Request {
    let mut request = Request::new();
    let limits = HeadLimits::from(&base::Limits::default());
    let read = RequestReader::new().read(text.as_bytes(), &limits, Scheme::Http, &mut request);
    assert!(matches!(read, Ok(ReadProgress::Complete(_))), "{read:?}: {text}");
    request
}

/// The client of all requests; `account` holds its bytes.
pub(crate) fn client(account: &Arc<Account>) -> Client<'_> {
    let peer = ConnectionPeer::Host("192.0.2.7".parse().expect("an address"));
    Client { peer, near: false, secured: None, vcl_connection: None, account }
}

/// Sends a request to the core and returns the reply, as a connection does.
pub(crate) async fn reply_to(
    simulation: &Simulation,
    request: &mut Request,
    account: &Arc<Account>,
) -> (LiveRef, Reply) {
    let live = simulation.core.live();
    let client = client(account);
    simulation.asked.set(simulation.asked.get() + 1);
    let (start, _) = simulation.core.start(&live, request, &client, simulation.core.now());
    let reply = match start {
        Start::Reply(reply) => reply,
        Start::Slow(slow) => {
            slow.run(&simulation.core, request, None, RequestConnection::of(account)).await
        }
    };
    (live, reply)
}
