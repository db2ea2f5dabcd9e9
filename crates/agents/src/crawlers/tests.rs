//! Tests of the compiled list.

use base::HashSeed;
use proptest::prelude::*;

use super::*;

const GOOGLEBOT: &str = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)";
const FIREFOX: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";

fn built_in(addresses: &[(&str, &str)]) -> Crawlers {
    let lists = addresses.iter().map(|(name, text)| {
        ((*name).to_owned(), AddressList::parse(text).expect("an address list"))
    });
    Crawlers::new(CrawlerList::built_in(), lists.collect(), true).expect("few patterns")
}

fn no_proofs() -> AddressProofs {
    AddressProofs::new(HashSeed::from_u64(1))
}

fn ip(text: &str) -> Option<IpAddr> {
    Some(text.parse().expect("an address"))
}

/// The class and the name of a client that shows `agent`.
fn of<'a>(crawlers: &'a Crawlers, agent: &str) -> (ClientClass, &'a str) {
    let agents = std::iter::once(agent.as_bytes());
    let client = crawlers.classify(agents, ip("127.0.0.1"), &no_proofs(), 0);
    (client.class, crawlers.name(client).unwrap_or_default())
}

#[test]
fn clients_have_the_class_of_their_user_agent() {
    let crawlers = built_in(&[]);
    let (human, ai, tool) = (ClientClass::Human, ClientClass::Ai, ClientClass::Tool);
    let unknown = ClientClass::Unknown;
    for (agent, class, name) in [
        (FIREFOX, human, "browser"),
        ("Mozilla/5.0 (Linux; Android 9; CUBOT_X18) AppleWebKit/537.36", human, "browser"),
        (
            "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.2; \
          +https://openai.com/gptbot)",
            ai,
            "GPTBot",
        ),
        ("mozilla/5.0 (compatible; claudebot/1.0; +claudebot@anthropic.com)", ai, "ClaudeBot"),
        ("CCBot/2.0 (https://commoncrawl.org/faq/)", ai, "CCBot"),
        ("curl/8.14.1", tool, "curl"),
        ("Python/3.13 aiohttp/3.12", tool, "aiohttp"),
        ("Mozilla/5.0 (compatible; AhrefsBot/7.0; +http://ahrefs.com/robot/)", tool, "AhrefsBot"),
        ("Mozilla/5.0 (compatible; NewBot/0.1; +https://new.example)", unknown, "bot"),
        ("", unknown, ""),
        ("Something", unknown, ""),
    ] {
        assert_eq!(of(&crawlers, agent), (class, name), "{agent}");
    }
    let nothing = crawlers.classify(std::iter::empty(), None, &no_proofs(), 0);
    assert_eq!((nothing.class, crawlers.name(nothing)), (unknown, None));
}

#[test]
fn a_search_engine_is_one_only_at_its_addresses() {
    let crawlers = built_in(&[("Googlebot", "192.0.2.0/24"), ("GPTBot", "198.51.100.0/24")]);
    let proofs = no_proofs();
    let of = |agent: &str, address| {
        let agents = std::iter::once(agent.as_bytes());
        let client = crawlers.classify(agents, address, &proofs, 0);
        (client.class, client.proof)
    };
    let verified = (ClientClass::Search, ClientProof::Verified);
    let unverified = (ClientClass::Unknown, ClientProof::Unverified);
    assert_eq!(of(GOOGLEBOT, ip("192.0.2.9")), verified);
    assert_eq!(of(GOOGLEBOT, ip("192.0.3.9")), unverified);
    assert_eq!(of(GOOGLEBOT, None), unverified, "over a unix socket");
    assert_eq!(of("GPTBot/1.2", ip("198.51.100.1")).0, ClientClass::Ai);
    assert_eq!(of("GPTBot/1.2", ip("192.0.2.1")), unverified, "a list counts in every class");
    assert_eq!(of("bingbot/2.0", ip("127.0.0.1")), unverified, "not of a public network");
}

#[test]
fn dns_says_what_no_list_does() {
    let (crawlers, proofs) = (built_in(&[]), no_proofs());
    let (at, other) = (ip("192.0.2.9"), ip("192.0.2.10"));
    let of = |address| crawlers.classify([GOOGLEBOT.as_bytes()].into_iter(), address, &proofs, 0);
    assert_eq!((of(at).class, of(at).proof), (ClientClass::Unknown, ClientProof::Pending));
    assert_eq!(crawlers.domains(of(at)).len(), 2);
    let note = |address: Option<IpAddr>, verdict| {
        proofs.note("Googlebot", address.expect("one"), verdict, 0);
    };
    note(at, DnsVerdict::Pending);
    assert_eq!(of(at).proof, ClientProof::Pending);
    note(at, DnsVerdict::Confirmed);
    note(other, DnsVerdict::Refuted);
    assert_eq!((of(at).class, of(at).proof), (ClientClass::Search, ClientProof::Verified));
    assert_eq!((of(other).class, of(other).proof), (ClientClass::Unknown, ClientProof::Unverified));
}

#[test]
fn without_dns_no_search_engine_is_verified() {
    let crawlers = Crawlers::new(CrawlerList::built_in(), Vec::new(), false).expect("a list");
    let client =
        crawlers.classify([GOOGLEBOT.as_bytes()].into_iter(), ip("192.0.2.9"), &no_proofs(), 0);
    assert_eq!((client.class, client.proof), (ClientClass::Unknown, ClientProof::Unverified));
}

#[test]
fn the_first_line_counts_whichever_pattern_stands_first_in_the_field() {
    let list = CrawlerList::parse("tool second second\nai first first\n").expect("a list");
    let crawlers = Crawlers::new(list, Vec::new(), false).expect("few patterns");
    assert_eq!(of(&crawlers, "first second"), (ClientClass::Tool, "second"));
    let agents = ["first", "second"].map(str::as_bytes).into_iter();
    assert_eq!(crawlers.classify(agents, None, &no_proofs(), 0).class, ClientClass::Tool);
}

#[test]
fn finding_a_class_allocates_nothing() {
    let (crawlers, proofs) = (built_in(&[("Googlebot", "192.0.2.0/24")]), no_proofs());
    let measured = allocation_counter::measure(|| {
        for agent in [GOOGLEBOT, FIREFOX, "bingbot"] {
            let agents = std::iter::once(agent.as_bytes());
            std::hint::black_box(crawlers.classify(agents, ip("192.0.2.1"), &proofs, 0));
        }
    });
    assert_eq!(measured.count_total, 0);
}

proptest! {
    #[test]
    fn the_automaton_finds_what_a_plain_search_does(
        patterns in prop::collection::vec("[abAB]{3,5}", 1..12),
        agent in "[abABc]{0,40}",
    ) {
        let text: String =
            patterns.iter().enumerate().map(|(n, own)| format!("ai n{n} {own}\n")).collect();
        let list = CrawlerList::parse(&text).expect("a list");
        let crawlers = Crawlers::new(list, Vec::new(), false).expect("few patterns");
        let lower = agent.to_lowercase();
        let first = patterns.iter().position(|own| lower.contains(&own.to_lowercase()));
        let client =
            crawlers.classify([agent.as_bytes()].into_iter(), None, &no_proofs(), 0);
        let wanted = first.map(|n| format!("n{n}"));
        prop_assert_eq!(crawlers.name(client), wanted.as_deref());
    }
}
