//! HTTP/2 clients of a [`Stage`], over cleartext and TLS.

use testkit::h2::{Client, Manners};
use testkit::larder::Daemon;
use tokio::net::TcpStream;

use super::tls::{self, Connection};
use super::{PATIENCE, Setup, Stage};

/// The listener of these tests: cleartext, with HTTP/2 by prior knowledge.
pub(crate) const H2C: &str = "listen = \"127.0.0.1:0 h2c\"";

/// A client over cleartext.
pub(crate) type Plain = Client<TcpStream>;
/// A client over TLS.
pub(crate) type Secure = Client<tokio_rustls::client::TlsStream<TcpStream>>;

/// A stage with a listener for HTTP/2.
pub(crate) async fn stage() -> Stage {
    limited("").await
}

/// A stage with HTTP/2, and further keys of `[limits]`.
pub(crate) async fn limited(limits: &str) -> Stage {
    Setup { limits, ..Setup::default() }.listening(H2C).await
}

/// A connection on which nothing has been sent.
pub(crate) async fn silent(daemon: &Daemon) -> Plain {
    Client::connect(daemon.addr()).await.expect("a connection").patience(PATIENCE)
}

/// A well-behaved client after its preface.
pub(crate) async fn client(daemon: &Daemon) -> Plain {
    greeted(daemon, Manners::GOOD, &[]).await
}

/// A client with these manners that has sent these settings.
pub(crate) async fn greeted(daemon: &Daemon, manners: Manners, values: &[(u16, u32)]) -> Plain {
    let mut client = silent(daemon).await.manners(manners);
    client.greet(values).await.expect("a greeting is taken");
    client
}

/// Begins HTTP/2 on a TLS connection that negotiated it.
pub(crate) async fn over_tls(connection: Connection) -> Secure {
    assert_eq!(connection.stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let mut client = Client::over(connection.stream).patience(PATIENCE).secure();
    client.greet(&[]).await.expect("a greeting is taken");
    client
}

impl tls::Client {
    /// The client, offering these protocols.
    pub(crate) fn offering(&self, protocols: &[&str]) -> Self {
        let mut config = (*self.config).clone();
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        Self { config: config.into() }
    }
}
