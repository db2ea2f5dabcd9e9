//! A delay line: a TCP relay on loopback with a configurable distance, for machines whose kernel
//! has no netem.
//!
//! It works on bytes: distance and loss only delay them. It does not model TCP's windows, so there
//! is no slow start, and a lost segment delays only what follows it. It must never change, drop or
//! reorder a byte.

use std::io;
use std::net::SocketAddr;

use fastrand::Rng;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::time::{Instant, sleep, sleep_until};

mod conditions;
mod direction;
#[cfg(test)]
mod tests;

pub use self::conditions::Conditions;
use self::direction::Direction;
use crate::loopback::Loopback;

/// Most bytes read at once.
const PIECE_BYTES: usize = 64 << 10;

/// A running line; dropping it ends its listener.
#[derive(Debug)]
pub struct DelayLine(Loopback);

impl DelayLine {
    /// Accepts connections at `listen` and relays each to `to`. As with a real distance, `to` sees
    /// a connection after the delay, and the client's first byte a round trip later.
    ///
    /// # Errors
    /// Those of binding.
    /// Those of binding.
    pub async fn start(
        listen: SocketAddr,
        to: SocketAddr,
        conditions: Conditions,
    ) -> io::Result<Self> {
        let mut seeds = Rng::with_seed(conditions.seed);
        let loopback = Loopback::at(listen, move |client, _| {
            let randoms = [seeds.fork(), seeds.fork()];
            tokio::spawn(relay(client, to, conditions, randoms));
        });
        Ok(Self(loopback.await?))
    }

    /// The address of its listener.
    pub fn addr(&self) -> SocketAddr {
        self.0.addr()
    }
}

/// Relays a connection until both directions have ended; an error of one end resets both.
async fn relay(
    mut client: TcpStream,
    to: SocketAddr,
    conditions: Conditions,
    [up, down]: [Rng; 2],
) {
    let accepted = Instant::now();
    sleep(conditions.delay).await;
    let Ok(mut server) = TcpStream::connect(to).await else {
        reset(&client);
        return;
    };
    // The client's connection is open a round trip after its attempt, and the client sends then.
    let up = Direction::new(conditions, up, accepted + 2 * conditions.delay);
    let down = Direction::new(conditions, down, Instant::now());
    if both(&mut client, &mut server, up, down).await.is_err() {
        sleep(conditions.delay).await;
        reset(&client);
        reset(&server);
    }
}

/// Relays both directions to their ends.
async fn both(
    client: &mut TcpStream,
    server: &mut TcpStream,
    up: Direction,
    down: Direction,
) -> io::Result<()> {
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (from_client, to_client) = client.split();
    let (from_server, to_server) = server.split();
    tokio::try_join!(carry(from_client, to_server, up), carry(from_server, to_client, down))?;
    Ok(())
}

/// Makes `stream` close with a reset.
fn reset(stream: &TcpStream) {
    // A stream without this option still closes.
    _ = stream.set_zero_linger();
}

/// Relays one direction until its end has been passed on.
async fn carry(
    mut from: ReadHalf<'_>,
    mut to: WriteHalf<'_>,
    mut direction: Direction,
) -> io::Result<()> {
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let now = Instant::now();
        direction.arrive(now);
        if direction.is_over(now) {
            return to.shutdown().await;
        }
        let room = direction.room().min(PIECE_BYTES);
        let next = direction.next();
        tokio::select! {
            count = from.read(&mut piece[..room]), if room > 0 => match count? {
                0 => direction.finish(Instant::now()),
                count => direction.take(&piece[..count], Instant::now()),
            },
            count = to.write(direction.arrived()), if !direction.arrived().is_empty() => {
                direction.sent(count?);
            }
            () = sleep_until(next.unwrap_or(now)), if next.is_some() => {}
        }
    }
}
