//! The client at the other end of a connection. On a listener with `proxy`, a header of the PROXY
//! protocol names the client; the header is read before anything else.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use base::Counter;
use flow::vcl::{TlsFacts, VclConnection};
use flow::{ClientEnds, ConnectionPeer, LiveConfiguration, Owner};
use observe::CipherSuite;
use proxyproto::{Header, HeaderProgress};
use tls::SessionTerms;
use tokio::io::{AsyncRead, ReadBuf};

use crate::client_socket::ClientSocket;
use crate::connection_control::ProgramConnection;
use crate::core::CoreCtx;
use crate::guard::Guard;
use crate::stream::Stream;

/// The ends of a client's connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConnectionEndpoints {
    /// The client, as far as the connection tells.
    pub(crate) peer: ConnectionPeer,
    /// Its address, with port; none of a process on this machine.
    remote: Option<SocketAddr>,
    /// The address it connected to, when that was a balancer's or was asked for before.
    own: Option<SocketAddr>,
    /// The connection's other end, be it the client's or a proxy's.
    wire: Option<SocketAddr>,
    /// True if the connection's two ends have one address; `None` until that was asked for.
    near: Option<bool>,
    /// The listener's number in [`flow::VclSettings::endpoints`].
    pub(crate) door: u16,
    /// TLS between the client and a proxy, as that tells it.
    told: Option<Arc<TlsFacts>>,
    /// The connection as owner of others, once a request had to wait.
    owner: Option<Owner>,
}

impl ConnectionEndpoints {
    /// A connection from `remote` itself.
    pub(crate) fn direct(remote: Option<SocketAddr>) -> Self {
        let peer = remote.map_or(ConnectionPeer::Local, |remote| ConnectionPeer::Host(remote.ip()));
        Self { peer, remote, own: None, wire: remote, near: None, door: 0, told: None, owner: None }
    }

    /// A connection that the trusted proxy at `remote` made because of what `header` says.
    fn behind(remote: Option<SocketAddr>, header: Header) -> Self {
        match header {
            Header::Local => Self::direct(remote),
            Header::Unnamed => {
                let peer = ConnectionPeer::Unnamed(remote.map(|remote| remote.ip()));
                Self { peer, near: Some(false), ..Self::direct(remote) }
            }
            Header::Proxied { source, destination } => {
                let own = Some(destination);
                Self { own, wire: remote, near: Some(false), ..Self::direct(Some(source)) }
            }
        }
    }

    fn line(
        &mut self,
        stream: &Stream,
        live: &LiveConfiguration,
        secured: Option<&Rc<SessionTerms>>,
    ) -> VclConnection {
        let pair = self.pair(stream);
        let local = stream.local_addr();
        let (socket, endpoint) = match live.vcl.endpoints.get(usize::from(self.door)) {
            Some(own) => (Arc::clone(&own.socket), Arc::clone(&own.endpoint)),
            None => Default::default(),
        };
        VclConnection {
            client: self.remote,
            server: pair.map(|ends| ends.own),
            remote: self.wire,
            local,
            endpoint,
            socket,
            tls: self.told.clone().or_else(|| secured.map(|own| Arc::new(agreed(own)))),
            owner: stream.owner(),
            ..VclConnection::default()
        }
    }

    /// Returns true if the client's own connection came from the very address that it went to: from
    /// this machine.
    pub(crate) fn is_near(&mut self, stream: &Stream) -> bool {
        *self.near.get_or_insert_with(|| {
            let own = self.remote.and_then(|_| stream.local_addr());
            matches!((self.remote, own), (Some(from), Some(to)) if from.ip() == to.ip())
        })
    }

    /// The connection as owner of connections to origins that its client logs in to.
    pub(crate) fn owner(&mut self) -> Owner {
        self.owner.get_or_insert_default().clone()
    }

    /// The client's address and the one it connected to.
    pub(crate) fn pair(&mut self, stream: &Stream) -> Option<ClientEnds> {
        // The kernel is asked once for a connection, not for every request.
        self.own = self.own.or_else(|| stream.local_addr());
        Some(ClientEnds { client: self.remote?, own: self.own? })
    }
}

/// A connection with its two ends, to be shown to programs.
pub(crate) struct ConnectionAccess<'a> {
    pub(crate) ends: &'a mut ConnectionEndpoints,
    pub(crate) stream: &'a mut Stream,
    pub(crate) guard: &'a Rc<Guard>,
    pub(crate) secured: Option<&'a Rc<SessionTerms>>,
}

impl ConnectionAccess<'_> {
    /// The connection as programs see it, if one is in force, with its socket where one works on
    /// that.
    fn show(self, known: &mut Option<Box<ProgramConnection>>, live: &LiveConfiguration) {
        let Self { ends, stream, guard, secured } = self;
        let sites = live.sites.listed.iter().filter_map(|site| site.vcl.as_ref());
        let mut programs = sites.chain(live.vcl.labels.values()).peekable();
        if programs.peek().is_none() {
            return;
        }
        let known = known
            .get_or_insert_with(|| ProgramConnection::new(ends.line(stream, live, secured), guard));
        if programs.any(|one| one.program().uses().socket) {
            stream.attach_to_programs(known);
        }
    }
}

/// A connection as the programs in force see it.
#[derive(Default)]
pub(crate) struct ConnectionView {
    known: Option<Box<ProgramConnection>>,
    /// The version of the configuration that `known` goes by.
    version: Option<u64>,
}

impl ConnectionView {
    /// Facts for programs, if any program is in force; found out once for each version of the
    /// configuration.
    pub(crate) fn line(
        &mut self,
        version: u64,
        live: &LiveConfiguration,
        link: ConnectionAccess<'_>,
    ) -> Option<&VclConnection> {
        if self.version != Some(version) {
            self.version = Some(version);
            link.show(&mut self.known, live);
        }
        self.known.as_ref().map(|known| &known.line)
    }
}

/// TLS as a proxy's header tells of it.
fn told(header: proxyproto::TlsValues<'_>) -> TlsFacts {
    let text = |value: Option<&[u8]>| value.map(|text| String::from_utf8_lossy(text).into());
    TlsFacts {
        is_tls: header.is_tls,
        alpn: text(header.alpn),
        authority: text(header.authority),
        version: text(header.version),
        cipher: text(header.cipher),
        cert_sign: text(header.cert_sign),
        cert_key: text(header.cert_key),
        client_cert_cn: text(header.client_cert_cn),
        has_cert_session: header.has_cert_session,
        has_cert_connection: header.has_cert_connection,
        verify_result: i64::from(header.verify_result),
    }
}

/// TLS as it was agreed on here. A client's certificate that is not good ends its handshake.
fn agreed(secured: &SessionTerms) -> TlsFacts {
    let suite = CipherSuite(secured.suite());
    let identity = secured.identity();
    TlsFacts {
        is_tls: true,
        alpn: secured.alpn().map(Into::into),
        authority: secured.sni().map(Into::into),
        version: suite.protocol().map(Into::into),
        cipher: suite.name().map(|name| name.as_ref().into()),
        client_cert_cn: identity.and_then(|own| own.common_name()).map(Into::into),
        has_cert_session: identity.is_some(),
        has_cert_connection: identity.is_some() && !secured.is_resumed(),
        ..TlsFacts::default()
    }
}

/// The beginning of a trusted proxy's connection.
pub(crate) struct ConnectionPreamble {
    pub(crate) ends: ConnectionEndpoints,
    /// True if the header names a client of the proxy's.
    pub(crate) named: bool,
    /// Bytes received behind the header.
    pub(crate) rest: Vec<u8>,
}

/// Reads the header; `None` if it is absent and the connection is over.
pub(crate) async fn read(
    wire: &mut ClientSocket,
    remote: Option<SocketAddr>,
    guard: &Guard,
    core: &CoreCtx,
) -> Option<ConnectionPreamble> {
    let max = core.flow.live().limits.proxy_header_bytes;
    let max = usize::try_from(max).unwrap_or(usize::MAX);
    let mut received = Vec::new();
    loop {
        let before = received.len();
        poll_fn(|cx| poll_more(cx, wire, guard, core, &mut received)).await?;
        if received.len() == before {
            // Balancers look whether a port is open by connecting and going away.
            if before > 0 {
                core.flow.counters.inc(Counter::ProxyErrors);
            }
            return None;
        }
        match proxyproto::read(&received, max) {
            Ok(HeaderProgress::Partial) => {}
            Ok(HeaderProgress::Complete(header, length)) => {
                let told = proxyproto::secured(&received[..length]).map(|own| Arc::new(told(own)));
                let ends =
                    ConnectionEndpoints { told, ..ConnectionEndpoints::behind(remote, header) };
                let named = matches!(header, Header::Proxied { .. });
                return Some(ConnectionPreamble { ends, named, rest: received.split_off(length) });
            }
            Err(error) => {
                core.flow.counters.inc(Counter::ProxyErrors);
                if error == proxyproto::Error::TooLong {
                    core.flow.counters.limit(base::Limit::ProxyHeaderBytes);
                }
                return None;
            }
        }
    }
}

/// Adds what is there to `received`: nothing at the end of the stream. `None` when the connection
/// broke, or a limit ended it.
fn poll_more(
    cx: &mut Context<'_>,
    wire: &mut ClientSocket,
    guard: &Guard,
    core: &CoreCtx,
    received: &mut Vec<u8>,
) -> Poll<Option<()>> {
    if guard.poll_expired(cx).is_ready() {
        return Poll::Ready(None);
    }
    // What follows the header may be sealed, so no more is taken than a session opens at once.
    let mut scratch = core.sealed.borrow_mut();
    let mut buf = ReadBuf::new(&mut scratch);
    if ready!(Pin::new(wire).poll_read(cx, &mut buf)).is_err() {
        return Poll::Ready(None);
    }
    core.flow.counters.add(Counter::BytesIn, buf.filled().len() as u64);
    received.extend_from_slice(buf.filled());
    Poll::Ready(Some(()))
}
