//! A list of crawlers, an address list and a User-Agent: whatever can be read finds a class, and a
//! search engine is one only at its addresses.
#![no_main]

use std::net::IpAddr;

use agents::{AddressList, AddressProofs, CrawlerList, Crawlers};
use base::HashSeed;
use message::{ClientClass, ClientProof};

libfuzzer_sys::fuzz_target!(|data: (&str, &str, &[u8], [u8; 4])| {
    let (text, addresses, agent, address) = data;
    let address = IpAddr::from(address);
    let list = AddressList::parse(addresses).ok();
    let is_listed = list.as_ref().is_some_and(|list| list.contains(address));
    let Ok(own) = CrawlerList::parse(text) else { return };
    let Ok(both) = own.before(CrawlerList::built_in()) else { return };
    let verify = list.map(|list| ("Googlebot".to_owned(), list)).into_iter().collect();
    let Ok(crawlers) = Crawlers::new(both, verify, true) else { return };
    let proofs = AddressProofs::new(HashSeed::from_u64(1));
    let client = crawlers.classify([agent].into_iter(), Some(address), &proofs, 0);
    if client.class == ClientClass::Search {
        assert!(is_listed && client.proof == ClientProof::Verified);
        assert_eq!(crawlers.name(client), Some("Googlebot"));
    }
});
