//! PROXY protocol header of a connection, and the endpoints that it names. On a listener with
//! `proxy`, the header is read before any other byte; only trusted proxies may send it.

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

/// The endpoints of a client's connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConnectionEndpoints {
    /// The client, as the connection or its PROXY header names it.
    pub(crate) peer: ConnectionPeer,
    /// The client's address with port; `None` for a process on this machine.
    remote: Option<SocketAddr>,
    /// The address that the client connected to: from a PROXY header, or cached after the first
    /// query.
    own: Option<SocketAddr>,
    /// The peer of the TCP connection: the client or a proxy.
    wire: Option<SocketAddr>,
    /// True if both ends of the connection have the same address; `None` before the first query.
    near: Option<bool>,
    /// The listener's index in [`flow::VclSettings::endpoints`].
    pub(crate) endpoint: u16,
    /// TLS between the client and a proxy, as the PROXY header describes it.
    proxy_tls: Option<Arc<TlsFacts>>,
    /// The connection's identity as owner of origin connections, from its first waiting request on.
    owner: Option<Owner>,
}

impl ConnectionEndpoints {
    /// The endpoints of a connection made by `remote` itself.
    pub(crate) fn direct(remote: Option<SocketAddr>) -> Self {
        let peer = remote.map_or(ConnectionPeer::Local, |remote| ConnectionPeer::Host(remote.ip()));
        Self {
            peer,
            remote,
            own: None,
            wire: remote,
            near: None,
            endpoint: 0,
            proxy_tls: None,
            owner: None,
        }
    }

    /// The endpoints of a connection that the trusted proxy at `remote` made for the client in
    /// `header`.
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
        let (socket, endpoint) = match live.vcl.endpoints.get(usize::from(self.endpoint)) {
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
            tls: self.proxy_tls.clone().or_else(|| secured.map(|own| Arc::new(agreed(own)))),
            owner: stream.owner(),
            ..VclConnection::default()
        }
    }

    /// Returns true if the client's own connection came from the address that it went to: from this
    /// machine.
    pub(crate) fn is_near(&mut self, stream: &Stream) -> bool {
        *self.near.get_or_insert_with(|| {
            let own = self.remote.and_then(|_| stream.local_addr());
            matches!((self.remote, own), (Some(from), Some(to)) if from.ip() == to.ip())
        })
    }

    /// The connection's identity as owner of origin connections that its client logs in to.
    pub(crate) fn owner(&mut self) -> Owner {
        self.owner.get_or_insert_default().clone()
    }

    /// The client's address and the one it connected to.
    pub(crate) fn pair(&mut self, stream: &Stream) -> Option<ClientEnds> {
        // The kernel is queried once per connection, not for every request.
        self.own = self.own.or_else(|| stream.local_addr());
        Some(ClientEnds { client: self.remote?, own: self.own? })
    }
}

/// A connection with its endpoints, for display to programs.
pub(crate) struct ConnectionAccess<'a> {
    pub(crate) ends: &'a mut ConnectionEndpoints,
    pub(crate) stream: &'a mut Stream,
    pub(crate) guard: &'a Rc<Guard>,
    pub(crate) secured: Option<&'a Rc<SessionTerms>>,
}

impl ConnectionAccess<'_> {
    /// Sets `known` to the connection as programs see it, if a program is in force, with its socket
    /// if a program uses it.
    fn show(self, known: &mut Option<Box<ProgramConnection>>, live: &LiveConfiguration) {
        let Self { ends, stream, guard, secured } = self;
        let sites = live.sites.listed.iter().flat_map(|site| site.vcl.iter().chain(&site.extra));
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

/// The connection as the programs in force see it.
#[derive(Default)]
pub(crate) struct ConnectionView {
    known: Option<Box<ProgramConnection>>,
    /// The version of the configuration that `known` belongs to.
    version: Option<u64>,
}

impl ConnectionView {
    /// Connection facts for programs, if a program is in force; computed once per version of the
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

/// TLS facts from a PROXY header.
fn proxy_tls(header: proxyproto::TlsValues<'_>) -> TlsFacts {
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

/// TLS facts of this connection's own handshake, which an invalid client certificate would have
/// ended.
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

/// The preamble of a trusted proxy's connection.
pub(crate) struct ConnectionPreamble {
    pub(crate) ends: ConnectionEndpoints,
    /// True if the header names a client.
    pub(crate) named: bool,
    /// Bytes received after the header.
    pub(crate) rest: Vec<u8>,
}

/// Reads the header; `None` if it is missing, and the connection is closed.
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
            // Balancers check a port by connecting and closing at once.
            if before > 0 {
                core.flow.counters.inc(Counter::ProxyErrors);
            }
            return None;
        }
        match proxyproto::read(&received, max) {
            Ok(HeaderProgress::Partial) => {}
            Ok(HeaderProgress::Complete(header, length)) => {
                let proxy_tls =
                    proxyproto::secured(&received[..length]).map(|own| Arc::new(proxy_tls(own)));
                let ends = ConnectionEndpoints {
                    proxy_tls,
                    ..ConnectionEndpoints::behind(remote, header)
                };
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

/// Appends received bytes to `received`: none at the end of the stream. `None` if the connection
/// failed or a limit ended it.
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
    // The following bytes may be encrypted, so no more is read than a session decrypts at once.
    let mut scratch = core.sealed.borrow_mut();
    let mut buf = ReadBuf::new(&mut scratch);
    if ready!(Pin::new(wire).poll_read(cx, &mut buf)).is_err() {
        return Poll::Ready(None);
    }
    core.flow.counters.add(Counter::BytesIn, buf.filled().len() as u64);
    received.extend_from_slice(buf.filled());
    Poll::Ready(Some(()))
}
