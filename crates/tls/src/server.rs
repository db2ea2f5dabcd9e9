//! The server's side: which certificate a client is shown, and what it must show.

use std::fmt;
use std::sync::Arc;

use rustls::server::{
    ClientHello, NoServerSessionStorage, ProducesTickets, ResolvesServerCert, ServerConfig,
    WebPkiClientVerifier,
};
use rustls::sign::CertifiedKey;
use rustls::version::{TLS12, TLS13};

use crate::auth::ClientAuth;
use crate::challenge::Challenges;
use crate::error::MaterialError;
use crate::keyring::TicketKeys;
use crate::pair::CertificateKeyPair;
use crate::provider::provider;

/// Application protocols offered, the preferred first (RFC 7301).
const ALPN: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// The certificates that one site shows its clients, and its check of them.
#[derive(Clone, Debug, Default)]
pub struct Domain {
    /// Its certificates; a client gets the first it can check, elliptic ones before RSA.
    pub pairs: Vec<Arc<CertificateKeyPair>>,
    /// The check of clients; `None` lets everyone in.
    pub auth: Option<ClientAuth>,
}

impl Domain {
    /// Returns true if it has certificates, or a check of clients, of its own.
    pub fn is_own(&self) -> bool {
        !self.pairs.is_empty() || self.auth.is_some()
    }
}

/// The index of the domain for a name in lower case; the empty name is that of clients that name
/// none.
pub type DomainFinder = Box<dyn Fn(&[u8]) -> Option<usize> + Send + Sync>;

/// All that handshakes need. Immutable: a change makes a new one.
pub struct ServerContext {
    domains: Vec<Option<Arc<HandshakeDomain>>>,
    default: Option<Arc<HandshakeDomain>>,
    find: DomainFinder,
    tickets: Vec<(Option<ClientAuth>, Arc<dyn ProducesTickets>)>,
    challenges: Option<Arc<Challenges>>,
    http2: bool,
}

impl fmt::Debug for ServerContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("domains", &self.domains.len()).finish_non_exhaustive()
    }
}

/// A domain ready for handshakes.
#[derive(Debug)]
pub(crate) struct HandshakeDomain {
    pub(crate) config: Arc<ServerConfig>,
    pub(crate) pairs: Vec<Arc<CertificateKeyPair>>,
    pub(crate) auth: Option<ClientAuth>,
}

impl ServerContext {
    /// Serves the `wanted` domains; `find` tells which of them a name belongs to. `default`, a
    /// domain of its own, is for clients that name no host or one without certificate; without it
    /// they are refused. Domains without pairs use the default's.
    ///
    /// Tickets are made with `keys`; those of another server with the same keys are good where
    /// clients are checked the same way.
    ///
    /// With `http2` clients may agree on HTTP/2.
    ///
    /// # Errors
    /// When the random source fails.
    pub fn new(
        wanted: Vec<Domain>,
        default: Option<Domain>,
        find: DomainFinder,
        http2: bool,
        keys: &Arc<TicketKeys>,
    ) -> Result<Self, MaterialError> {
        let (domains, tickets) = (Vec::new(), Vec::new());
        let mut server = Self { domains, default: None, find, tickets, challenges: None, http2 };
        let spare = default.as_ref().map(|d| d.pairs.clone()).unwrap_or_default();
        server.default = default.map(|domain| server.show(domain, keys)).transpose()?;
        for mut domain in wanted {
            if domain.pairs.is_empty() {
                domain.pairs.clone_from(&spare);
            }
            let shown = match domain.pairs.is_empty() {
                true => None,
                false => Some(server.show(domain, keys)?),
            };
            server.domains.push(shown);
        }
        Ok(server)
    }

    /// Also answers authorities that ask in the handshake.
    #[must_use]
    pub fn with_challenges(self, challenges: Arc<Challenges>) -> Self {
        Self { challenges: Some(challenges), ..self }
    }

    /// The configuration of an acceptor that shows every client the default domain; `None` without
    /// one.
    pub fn config(&self) -> Option<Arc<ServerConfig>> {
        self.default.as_ref().map(|shown| Arc::clone(&shown.config))
    }

    /// The configuration of a handshake with an authority that asks about `sni`.
    pub(crate) fn challenge(&self, sni: Option<&str>) -> Option<Arc<ServerConfig>> {
        self.challenges.as_ref()?.config(sni?)
    }

    fn show(
        &mut self,
        mut domain: Domain,
        keys: &Arc<TicketKeys>,
    ) -> Result<Arc<HandshakeDomain>, MaterialError> {
        domain.pairs.sort_by_key(|pair| !pair.is_elliptic());
        let verifier = match &domain.auth {
            Some(auth) => auth.verifier(),
            None => WebPkiClientVerifier::no_client_auth(),
        };
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&TLS13, &TLS12])
            .map_err(|error| MaterialError::Key(error.to_string()))?
            .with_client_cert_verifier(verifier)
            .with_cert_resolver(Arc::new(Chooser(domain.pairs.clone())));
        let offered = if self.http2 { &ALPN[..] } else { &ALPN[1..] };
        config.alpn_protocols = offered.iter().map(|name| name.to_vec()).collect();
        config.ticketer = self.ticketer(domain.auth.as_ref(), keys)?;
        // Tickets do for every client of this century; a store would be a lock all cores share.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        Ok(Arc::new(HandshakeDomain {
            config: Arc::new(config),
            pairs: domain.pairs,
            auth: domain.auth,
        }))
    }

    /// The ticket keys for everyone who is checked by `auth`: a ticket of one site cannot even be
    /// decrypted for a site that lets in others (nginx's CVE-2025-23419).
    fn ticketer(
        &mut self,
        auth: Option<&ClientAuth>,
        keys: &Arc<TicketKeys>,
    ) -> Result<Arc<dyn ProducesTickets>, MaterialError> {
        if let Some((_, known)) = self.tickets.iter().find(|(own, _)| own.as_ref() == auth) {
            return Ok(Arc::clone(known));
        }
        let ticketer = keys.ticketer(auth)?;
        self.tickets.push((auth.cloned(), Arc::clone(&ticketer)));
        Ok(ticketer)
    }

    /// The domain for a client that names `sni`. Who names none gets what is there for every other
    /// name.
    pub(crate) fn choose(&self, sni: Option<&str>) -> Option<&Arc<HandshakeDomain>> {
        match (self.find)(sni.unwrap_or_default().as_bytes()) {
            // A site that has no certificate is not shown under another's.
            Some(domain) => self.domains.get(domain)?.as_ref(),
            None => self.default.as_ref(),
        }
    }
}

/// Shows the first certificate whose kind of signature the client can check.
#[derive(Debug)]
struct Chooser(Vec<Arc<CertificateKeyPair>>);

impl ResolvesServerCert for Chooser {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let usable =
            |own: &Arc<CertifiedKey>| own.key.choose_scheme(hello.signature_schemes()).is_some();
        self.0.iter().map(|pair| pair.certified()).find(usable)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A certificate that signs itself, and its key.
    pub(crate) fn made(names: &[&str]) -> (String, String) {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let made = rcgen::generate_simple_self_signed(names).expect("a certificate");
        (made.cert.pem(), made.signing_key.serialize_pem())
    }

    /// Ticket keys that nobody else has.
    pub(crate) fn keys() -> Arc<TicketKeys> {
        TicketKeys::new().expect("random bytes")
    }

    fn domain(name: &str, auth: Option<ClientAuth>) -> Domain {
        let (cert, key) = made(&[name]);
        let pair = CertificateKeyPair::parse(cert.as_bytes(), key.as_bytes()).expect("a pair");
        Domain { pairs: vec![Arc::new(pair)], auth }
    }

    fn find() -> DomainFinder {
        Box::new(|name| match name {
            b"a.test" => Some(0),
            b"b.test" => Some(1),
            b"none.test" => Some(2),
            _ => None,
        })
    }

    #[test]
    fn names_choose_their_domain_and_strangers_the_default() {
        let domains = || vec![domain("a.test", None), domain("b.test", None), Domain::default()];
        let server = ServerContext::new(domains(), None, find(), true, &keys()).expect("a server");
        let covers = |server: &ServerContext, sni: Option<&str>, host: &str| {
            server.choose(sni).is_some_and(|shown| shown.pairs[0].covers(host))
        };
        assert!(covers(&server, Some("a.test"), "a.test"));
        assert!(covers(&server, Some("b.test"), "b.test"));
        for sni in [None, Some("none.test"), Some("stranger.test")] {
            assert!(server.choose(sni).is_none(), "{sni:?}");
        }
        let default = Some(domain("default.test", None));
        let server =
            ServerContext::new(domains(), default, find(), true, &keys()).expect("a server");
        for sni in [None, Some("none.test"), Some("stranger.test")] {
            assert!(covers(&server, sni, "default.test"), "{sni:?}");
        }
    }

    #[test]
    fn ticket_keys_are_shared_only_by_sites_that_check_clients_alike() {
        let (authority, _) = made(&["authority.test"]);
        let auth = |mode| ClientAuth::new(authority.as_bytes(), mode).expect("an authority");
        use crate::auth::AuthMode::{Optional, Require};
        let domains = || {
            vec![
                domain("a.test", None),
                domain("b.test", None),
                domain("none.test", Some(auth(Require))),
                domain("x.test", Some(auth(Require))),
                domain("y.test", Some(auth(Optional))),
            ]
        };
        let common = keys();
        let serve =
            |keys| ServerContext::new(domains(), None, find(), true, keys).expect("a server");
        let (first, second, stranger) = (serve(&common), serve(&common), serve(&keys()));
        let of = |server: &ServerContext, at: usize| {
            Arc::clone(&server.domains[at].as_ref().expect("a domain").config.ticketer)
        };
        let alike = [0, 0, 1, 1, 2];
        for (made, made_by) in alike.iter().enumerate() {
            let ticket = of(&first, made).encrypt(b"a session").expect("a ticket");
            for (opened, opened_by) in alike.iter().enumerate() {
                for server in [&first, &second] {
                    let is_open = of(server, opened).decrypt(&ticket).is_some();
                    assert_eq!(is_open, made_by == opened_by, "{made} {opened}");
                }
                assert_eq!(of(&stranger, opened).decrypt(&ticket), None);
            }
        }
    }
}
