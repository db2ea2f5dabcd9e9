//! Crawlers, compiled: all patterns in one automaton, the proof of each name, and the agents that
//! sign their requests.

use std::net::IpAddr;
use std::num::NonZeroU16;

use aho_corasick::{AhoCorasick, BuildError, MatchKind};
use message::{ClassifiedClient, ClientClass, ClientProof, HttpsOrigin, Request};

use crate::addresses::AddressList;
use crate::key_directory::KeyDirectory;
use crate::list::CrawlerList;
use crate::proofs::{AddressProofs, DnsVerdict};
use crate::web_bot_auth::{SignatureContext, SignatureVerdict, TrustedAgent, judge};

/// Bytes of User-Agent that are looked at: no honest one is longer.
const LOOKED_AT: usize = 1024;

/// The crawlers of a list.
#[derive(Debug)]
pub struct Crawlers {
    names: Vec<Crawler>,
    patterns: AhoCorasick,
    /// The index in `names` of each pattern.
    name_of: Vec<u16>,
    /// The names that a signature can prove.
    agents: Vec<TrustedAgent>,
}

#[derive(Debug)]
struct Crawler {
    name: Box<str>,
    class: ClientClass,
    proof: ProofSource,
}

/// The source of the proof that an address is a crawler's.
#[derive(Debug)]
enum ProofSource {
    /// No proof is asked for.
    Unneeded,
    /// One is needed, and no source has any.
    Missing,
    Addresses(AddressList),
    /// The address has a name below one of these domains.
    Dns(Box<[Box<str>]>),
}

impl Crawlers {
    /// Compiles a list. `addresses` are those of some names; other search engines are verified by
    /// DNS if `dns` is true, or not at all.
    ///
    /// # Errors
    /// The automaton cannot be built.
    pub fn new(
        list: CrawlerList,
        mut addresses: Vec<(String, AddressList)>,
        dns: bool,
    ) -> Result<Self, BuildError> {
        let CrawlerList { names, patterns } = list;
        let name_of = patterns.iter().map(|(_, at)| *at as u16).collect();
        let patterns = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .match_kind(MatchKind::Standard)
            .build(patterns.iter().map(|(text, _)| text))?;
        let names = names.into_iter().map(|listed| {
            let own = addresses.iter().position(|(name, _)| *name == listed.name);
            let domains = listed.domains.into_iter().map(String::into_boxed_str);
            let proof = match own {
                Some(at) => ProofSource::Addresses(addresses.swap_remove(at).1),
                None if listed.class != ClientClass::Search => ProofSource::Unneeded,
                None if dns && domains.len() > 0 => ProofSource::Dns(domains.collect()),
                None => ProofSource::Missing,
            };
            Crawler { name: listed.name.into(), class: listed.class, proof }
        });
        Ok(Self { names: names.collect(), patterns, name_of, agents: Vec::new() })
    }

    /// Has signatures of the agent at `origin` prove the crawler `name`, by these keys or by those
    /// that are fetched. A name that is not in the list is ignored.
    pub fn trust(&mut self, name: &str, origin: HttpsOrigin, keys: Option<KeyDirectory>) {
        let found = self.names.iter().zip(1_u16..).find(|(own, _)| *own.name == *name);
        if let Some(number) = found.and_then(|(_, number)| NonZeroU16::new(number)) {
            self.agents.push(TrustedAgent { number, origin, keys });
        }
    }

    /// Returns true if the request may have a signature that proves something.
    pub fn may_be_signed(&self, request: &Request) -> bool {
        !self.agents.is_empty() && request.headers.value_named(b"signature-input").is_some()
    }

    /// The verdict on the signatures of a request. Asks `may_verify` before the one step that takes
    /// long.
    pub fn verify(
        &self,
        request: &Request,
        context: SignatureContext<'_>,
        may_verify: impl FnOnce() -> bool,
    ) -> SignatureVerdict {
        judge(&self.agents, request, context, may_verify)
    }

    /// The client that a verdict means; `None` if its class depends on other things.
    pub fn signed_client(&self, verdict: SignatureVerdict) -> Option<ClassifiedClient> {
        let (number, proof) = match verdict {
            SignatureVerdict::True(number) => (number, ClientProof::Signed),
            SignatureVerdict::False(number, _) => (number, ClientProof::Forged),
            SignatureVerdict::Absent | SignatureVerdict::Open(..) => return None,
        };
        let class = match proof {
            ClientProof::Signed => self.crawler(number.get() - 1)?.class,
            _ => ClientClass::Unknown,
        };
        Some(ClassifiedClient { class, proof, number: Some(number) })
    }

    /// The class of a client with these values of User-Agent, at `address`. It has the name of the
    /// first line of the list with a pattern in one of the values.
    pub fn classify<'a>(
        &self,
        agents: impl Iterator<Item = &'a [u8]>,
        address: Option<IpAddr>,
        proofs: &AddressProofs,
        now_ms: u64,
    ) -> ClassifiedClient {
        let first = agents.filter_map(|agent| self.find(agent)).min();
        let at = first.and_then(|pattern| self.name_of.get(pattern)).copied();
        let found = at.and_then(|at| Some((NonZeroU16::new(at + 1), self.crawler(at)?)));
        let Some((number, crawler)) = found else {
            let (class, proof) = (ClientClass::Unknown, ClientProof::Claimed);
            return ClassifiedClient { class, proof, number: None };
        };
        let proof = crawler.proof(address, proofs, now_ms);
        let class = match proof {
            ClientProof::Unverified | ClientProof::Pending | ClientProof::Forged => {
                ClientClass::Unknown
            }
            ClientProof::Claimed | ClientProof::Verified | ClientProof::Signed => crawler.class,
        };
        ClassifiedClient { class, proof, number }
    }

    /// The name of a client, if its User-Agent has one of the list.
    pub fn name(&self, client: ClassifiedClient) -> Option<&str> {
        Some(&*self.crawler(client.number?.get() - 1)?.name)
    }

    /// The domains below which the name of the client's address must be.
    pub fn domains(&self, client: ClassifiedClient) -> &[Box<str>] {
        let crawler = client.number.and_then(|number| self.crawler(number.get() - 1));
        match crawler.map(|crawler| &crawler.proof) {
            Some(ProofSource::Dns(domains)) => domains,
            _ => &[],
        }
    }

    /// The names of a class, for robots.txt.
    pub fn names_of(&self, class: ClientClass) -> impl Iterator<Item = &str> {
        let names = self.names.iter().filter(move |crawler| crawler.class == class);
        names.map(|crawler| &*crawler.name)
    }

    fn crawler(&self, at: u16) -> Option<&Crawler> {
        self.names.get(usize::from(at))
    }

    /// The number of the first pattern of the list that is in `agent`.
    fn find(&self, agent: &[u8]) -> Option<usize> {
        let agent = &agent[..agent.len().min(LOOKED_AT)];
        let found = self.patterns.find_overlapping_iter(agent);
        found.map(|found| found.pattern().as_usize()).min()
    }
}

impl Crawler {
    fn proof(&self, address: Option<IpAddr>, proofs: &AddressProofs, now_ms: u64) -> ClientProof {
        let is_verified = match &self.proof {
            ProofSource::Unneeded => return ClientProof::Claimed,
            ProofSource::Missing => false,
            ProofSource::Addresses(list) => address.is_some_and(|address| list.contains(address)),
            ProofSource::Dns(_) => match address.filter(|address| is_public(*address)) {
                Some(address) => match proofs.of(&self.name, address, now_ms) {
                    Some(DnsVerdict::Confirmed) => true,
                    Some(DnsVerdict::Refuted) => false,
                    Some(DnsVerdict::Pending) | None => return ClientProof::Pending,
                },
                None => false,
            },
        };
        if is_verified { ClientProof::Verified } else { ClientProof::Unverified }
    }
}

/// Returns true for an address that a search engine may have: no one's private network is one.
fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(v4) => {
            !(v4.is_private()
                || v4.is_loopback()
                || v4.is_link_local()
                || v4.is_unspecified()
                || v4.is_multicast()
                || v4.is_broadcast())
        }
        IpAddr::V6(v6) => {
            !(v6.is_loopback()
                || v6.is_unspecified()
                || v6.is_multicast()
                || v6.is_unique_local()
                || v6.is_unicast_link_local())
        }
    }
}

#[cfg(test)]
mod tests;
