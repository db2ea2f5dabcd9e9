//! Server side: selects the certificate for a client, and the verification of the client.

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

/// Application protocols, in order of preference (RFC 7301).
const ALPN: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// The certificates of one site, and the verification of its clients.
#[derive(Clone, Debug, Default)]
pub struct Domain {
    /// The certificates; a client gets the first whose signature it supports, elliptic ones before
    /// RSA.
    pub pairs: Vec<Arc<CertificateKeyPair>>,
    /// The verification of clients; `None` accepts every client.
    pub auth: Option<ClientAuth>,
}

impl Domain {
    /// Returns true if the site has its own certificates or verification.
    pub fn is_own(&self) -> bool {
        !self.pairs.is_empty() || self.auth.is_some()
    }
}

/// The function from a name in lower case to the index of its domain; the empty name is for clients
/// without SNI.
pub type DomainFinder = Box<dyn Fn(&[u8]) -> Option<usize> + Send + Sync>;

/// The context of all handshakes. Immutable: a change makes a new one.
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

/// A domain with its configuration.
#[derive(Debug)]
pub(crate) struct HandshakeDomain {
    pub(crate) config: Arc<ServerConfig>,
    pub(crate) pairs: Vec<Arc<CertificateKeyPair>>,
    pub(crate) auth: Option<ClientAuth>,
}

impl ServerContext {
    /// A context for the `wanted` domains; `find` returns the domain of a name. `default`, a
    /// separate domain, is for clients without SNI or with an unknown name; without it they are
    /// rejected. Domains without pairs use the default's.
    ///
    /// Tickets are encrypted with `keys`; those of another server with the same keys are valid if
    /// clients are verified the same way.
    ///
    /// With `http2`, clients may select HTTP/2.
    ///
    /// # Errors
    /// If the random source fails.
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

    /// Adds answers to authorities' challenges in the handshake.
    #[must_use]
    pub fn with_challenges(self, challenges: Arc<Challenges>) -> Self {
        Self { challenges: Some(challenges), ..self }
    }

    /// The configuration for an acceptor that shows every client the default domain; `None` without
    /// one.
    pub fn config(&self) -> Option<Arc<ServerConfig>> {
        self.default.as_ref().map(|shown| Arc::clone(&shown.config))
    }

    /// The configuration of a handshake with an authority that validates `sni`.
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
        // Tickets suffice for every current client; a store would be a lock shared by all cores.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        Ok(Arc::new(HandshakeDomain {
            config: Arc::new(config),
            pairs: domain.pairs,
            auth: domain.auth,
        }))
    }

    /// The ticketer for clients that `auth` verifies: a ticket of one site cannot be decrypted for
    /// a site with another verification (nginx's CVE-2025-23419).
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

    /// The domain for a client with `sni`. A client without SNI gets the domain of unknown names.
    pub(crate) fn choose(&self, sni: Option<&str>) -> Option<&Arc<HandshakeDomain>> {
        match (self.find)(sni.unwrap_or_default().as_bytes()) {
            // A site without a certificate must not be served with another's.
            Some(domain) => self.domains.get(domain)?.as_ref(),
            None => self.default.as_ref(),
        }
    }
}

/// Selects the first certificate whose signature the client supports.
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

    /// A self-signed certificate, and its key.
    pub(crate) fn made(names: &[&str]) -> (String, String) {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let made = rcgen::generate_simple_self_signed(names).expect("a certificate");
        (made.cert.pem(), made.signing_key.serialize_pem())
    }

    /// New ticket keys.
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
