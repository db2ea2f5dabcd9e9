//! Certificates made for a test, and a TLS client that reads responses strictly.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, SupportedCipherSuite, SupportedProtocolVersion};
use testkit::larder::Daemon;
use testkit::origin::ScriptedOrigin;
use testkit::reply::{ConnectionEnd, Reply, ReplyOutcome, read_reply};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::client::TlsStream;
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::PATIENCE;

/// The kind of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Elliptic,
    Rsa,
}

/// An authority, and the folder of its certificates.
pub(crate) struct Authority {
    pub(crate) folder: PathBuf,
    issuer: Issuer<'static, KeyPair>,
    root: CertificateDer<'static>,
}

impl Drop for Authority {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.folder);
    }
}

impl Authority {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("larder-tls-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(&name);
        fs::create_dir_all(&folder).expect("a folder");
        let mut params = CertificateParams::new(Vec::new()).expect("parameters");
        // Two authorities of one name would differ by their signatures only.
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let root = params.self_signed(&key).expect("an authority");
        fs::write(folder.join("ca.pem"), root.pem()).expect("written");
        Self { folder, root: root.der().clone(), issuer: Issuer::new(params, key) }
    }

    /// Writes `<file>.crt` and `<file>.key` for `names`.
    pub(crate) fn sign(&self, file: &str, names: &[&str], kind: Kind) {
        let (chain, key) = self.make(names, kind, false);
        self.put(&format!("{file}.crt"), &chain);
        self.put(&format!("{file}.key"), &key);
    }

    /// Makes a certificate and its key, as PEM.
    pub(crate) fn make(&self, names: &[&str], kind: Kind, expired: bool) -> (String, String) {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).expect("names");
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        if expired {
            params.not_before = rcgen::date_time_ymd(2001, 1, 1);
            params.not_after = rcgen::date_time_ymd(2002, 1, 1);
        }
        let key = match kind {
            Kind::Elliptic => KeyPair::generate(),
            Kind::Rsa => KeyPair::generate_for(&rcgen::PKCS_RSA_SHA256),
        }
        .expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        (certificate.pem(), key.serialize_pem())
    }

    /// Replaces a whole file at once by a rename.
    pub(crate) fn put(&self, file: &str, text: &str) {
        let draft = self.folder.join(format!("{file}.new"));
        fs::write(&draft, text).expect("written");
        fs::rename(&draft, self.folder.join(file)).expect("put in place");
    }

    pub(crate) fn path(&self, file: &str) -> String {
        self.folder.join(file).display().to_string()
    }

    /// `cert = ..., key = ...` for the files of [`Authority::sign`].
    pub(crate) fn pair(&self, file: &str) -> String {
        let (cert, key) = (self.path(&format!("{file}.crt")), self.path(&format!("{file}.key")));
        format!("cert = \"{cert}\", key = \"{key}\"")
    }

    /// A server that presents the certificate of [`Authority::sign`].
    pub(crate) fn acceptor(&self, file: &str) -> TlsAcceptor {
        let pem =
            |kind: &str| fs::read(self.folder.join(format!("{file}.{kind}"))).expect("a file");
        let chain = pem("crt");
        let chain = CertificateDer::pem_slice_iter(&chain).collect::<Result<_, _>>().expect("PEM");
        let key = PrivateKeyDer::from_pem_slice(&pem("key")).expect("PEM");
        let provider = Arc::new(default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .expect("a pair");
        TlsAcceptor::from(Arc::new(config))
    }

    /// A client that trusts this authority.
    pub(crate) fn client(&self) -> Client {
        self.client_of(rustls::ALL_VERSIONS, None)
    }

    /// A client of given protocol versions, optionally with a certificate.
    pub(crate) fn client_of(
        &self,
        versions: &[&'static SupportedProtocolVersion],
        own: Option<(String, String)>,
    ) -> Client {
        trusting(&self.root, default_provider(), versions, own)
    }

    /// A client that trusts this authority and offers one cipher suite only.
    pub(crate) fn client_speaking(&self, suite: SupportedCipherSuite) -> Client {
        let provider = CryptoProvider { cipher_suites: vec![suite], ..default_provider() };
        trusting(&self.root, provider, &[suite.version()], None)
    }
}

/// A client that trusts the authority in `pem`.
pub(crate) fn client_of_pem(pem: &str) -> Client {
    let root = CertificateDer::from_pem_slice(pem.as_bytes()).expect("PEM");
    trusting(&root, default_provider(), rustls::ALL_VERSIONS, None)
}

fn trusting(
    root: &CertificateDer<'static>,
    provider: CryptoProvider,
    versions: &[&'static SupportedProtocolVersion],
    own: Option<(String, String)>,
) -> Client {
    let mut roots = RootCertStore::empty();
    roots.add(root.clone()).expect("an authority");
    let builder = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(versions)
        .expect("versions")
        .with_root_certificates(roots);
    let mut config = match own {
        None => builder.with_no_client_auth(),
        Some((chain, key)) => {
            let chain = CertificateDer::pem_slice_iter(chain.as_bytes());
            let chain = chain.collect::<Result<_, _>>().expect("PEM");
            let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("PEM");
            builder.with_client_auth_cert(chain, key).expect("a pair")
        }
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Client { config: Arc::new(config) }
}

/// A TLS client; its connections share tickets.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) config: Arc<ClientConfig>,
}

impl Client {
    /// Connects, or returns the reason for a failure. Over TLS 1.3 a rejected client learns it with
    /// the first response.
    pub(crate) async fn try_connect(
        &self,
        addr: SocketAddr,
        name: &str,
    ) -> std::io::Result<Connection> {
        let tcp = TcpStream::connect(addr).await?;
        tcp.set_nodelay(true)?;
        let name = ServerName::try_from(name.to_owned()).expect("a name");
        let connector = TlsConnector::from(Arc::clone(&self.config));
        let stream = timeout(PATIENCE, connector.connect(name, tcp)).await.expect("in time")?;
        Ok(Connection { stream, received: Vec::new(), end: ConnectionEnd::Open })
    }

    /// Connects and sends `before` first: in one packet with the handshake's first message, or
    /// ahead of it.
    pub(crate) async fn connect_after(
        &self,
        addr: SocketAddr,
        name: &str,
        before: &[u8],
        together: bool,
    ) -> Connection {
        let mut tcp = TcpStream::connect(addr).await.expect("a connection");
        // Corked bytes leave together with the next ones.
        rustix::net::sockopt::set_tcp_cork(&tcp, together).expect("an option of TCP");
        tcp.write_all(before).await.expect("sent");
        if !together {
            super::pause(100).await;
        }
        let name = ServerName::try_from(name.to_owned()).expect("a name");
        let connecting = TlsConnector::from(Arc::clone(&self.config)).connect(name, tcp);
        let stream = timeout(PATIENCE, connecting).await.expect("in time").expect("a handshake");
        rustix::net::sockopt::set_tcp_cork(stream.get_ref().0, false).expect("an option of TCP");
        Connection { stream, received: Vec::new(), end: ConnectionEnd::Open }
    }

    pub(crate) async fn connect(&self, addr: SocketAddr, name: &str) -> Connection {
        self.try_connect(addr, name).await.expect("a handshake")
    }

    /// The complete response to GET of `target` from `name`, on a connection of its own.
    pub(crate) async fn get(&self, addr: SocketAddr, name: &str, target: &str) -> Reply {
        self.connect(addr, name).await.get(name, target).await
    }
}

/// One TLS connection.
pub(crate) struct Connection {
    pub(crate) stream: TlsStream<TcpStream>,
    received: Vec<u8>,
    end: ConnectionEnd,
}

impl Connection {
    pub(crate) async fn send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.stream.write_all(bytes).await?;
        self.stream.flush().await
    }

    /// The response to the last request.
    pub(crate) async fn reply(&mut self, method: &str) -> ReplyOutcome {
        let next = async {
            loop {
                let read = read_reply(&self.received, method, self.end);
                if let Some((seen, used)) = read {
                    self.received.drain(..used);
                    return seen;
                }
                self.end = match self.stream.read_buf(&mut self.received).await {
                    Ok(0) => ConnectionEnd::Closed,
                    Ok(_) => ConnectionEnd::Open,
                    Err(_) => ConnectionEnd::Reset,
                };
            }
        };
        timeout(PATIENCE, next).await.unwrap_or(ReplyOutcome::TimedOut)
    }

    pub(crate) async fn get(&mut self, host: &str, target: &str) -> Reply {
        self.send(&get(host, target)).await.expect("sent");
        super::whole(self.reply("GET").await, target)
    }

    /// The certificate that the server presented.
    pub(crate) fn shown(&self) -> Vec<u8> {
        let chain = self.stream.get_ref().1.peer_certificates().expect("a certificate");
        chain[0].to_vec()
    }

    /// Returns true if the session was resumed.
    pub(crate) fn is_resumed(&self) -> bool {
        self.stream.get_ref().1.handshake_kind() == Some(rustls::HandshakeKind::Resumed)
    }
}

pub(crate) fn get(host: &str, target: &str) -> Vec<u8> {
    format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n").into_bytes()
}

/// The certificate in a PEM file.
pub(crate) fn certificate(path: &Path) -> Vec<u8> {
    let pem = fs::read(path).expect("a file");
    CertificateDer::from_pem_slice(&pem).expect("PEM").to_vec()
}

/// A configuration with a TLS listener and a plain one, and one origin.
pub(crate) fn config(origin: &ScriptedOrigin, rest: &str) -> String {
    let addr = origin.addr();
    format!(
        r#"listen = ["127.0.0.1:0 tls", "127.0.0.1:0"]
workers = 2
{rest}
[[origin]]
name = "app"
servers = "http://{addr}"
eject = {{ failures = 0 }}
"#
    )
}

/// A daemon whose first listener speaks TLS, and its origin.
pub(crate) struct Served {
    pub(crate) origin: ScriptedOrigin,
    pub(crate) daemon: Daemon,
}

impl Served {
    pub(crate) async fn start(rest: &str) -> Self {
        let origin = ScriptedOrigin::start().await.expect("a port for the origin");
        let daemon = Daemon::start(&config(&origin, rest)).expect("larder starts");
        Self { origin, daemon }
    }

    /// The TLS listener.
    pub(crate) fn addr(&self) -> SocketAddr {
        self.daemon.addrs()[0]
    }

    /// The plain listener.
    pub(crate) fn plain(&self) -> SocketAddr {
        self.daemon.addrs()[1]
    }

    pub(crate) async fn metric(&self, name: &str) -> u64 {
        self.daemon.metric(name, "").await.expect("metrics") as u64
    }
}
