//! Tests of signatures: the examples of the drafts, which other programs have made, and requests
//! that differ from a signed one in one place.

use crypto::signature::{Ed25519KeyPair, KeyPair};
use data_encoding::{BASE64, BASE64URL_NOPAD};
use message::Method;
use message::sf::parse_dictionary;
use proptest::prelude::*;

use super::*;
use crate::key_directory::tests::EXAMPLE;

const CREATED: u64 = 1_735_689_600;
const NUMBER: NonZeroU16 = NonZeroU16::MIN;

fn agents(origin: &str, keys: Option<KeyDirectory>) -> Vec<TrustedAgent> {
    let origin = HttpsOrigin::parse(origin.as_bytes()).expect("an origin");
    vec![TrustedAgent { number: NUMBER, origin, keys }]
}

/// The agent of the drafts' examples.
fn example() -> Vec<TrustedAgent> {
    let keys = KeyDirectory::parse_with_published(EXAMPLE.as_bytes()).expect("a key set");
    agents("https://signature-agent.test", Some(keys))
}

fn get(target: &str, fields: &[(&str, &str)]) -> Request {
    let mut request = Request::new();
    (request.scheme, request.host) = (Scheme::Https, b"example.com".to_vec());
    request.target = target.as_bytes().to_vec();
    for (name, value) in fields {
        request.headers.push_named(name.as_bytes(), value.as_bytes());
    }
    request
}

fn verdict_at(agents: &[TrustedAgent], request: &Request, now_secs: u64) -> SignatureVerdict {
    let fetched = FetchedKeys::default();
    let context = SignatureContext {
        fetched: &fetched,
        scheme: request.scheme,
        now_secs,
        lifetime_s: 86_400,
    };
    judge(agents, request, context, || true)
}

/// The draft's examples with a directory's origin, in both forms of Signature-Agent.
fn drafts() -> [Request; 2] {
    let keyid = "poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U";
    let dictionary = format!(
        "sig2=(\"@authority\" \"signature-agent\";key=\"agent2\");created=1735689600;\
         keyid=\"{keyid}\";alg=\"ed25519\";expires=4889289600;\
         nonce=\"n9p433xm+NJ3ph3upfBIGmsuwHw387YV7Q/F+6BSpGCVjYCqQw6rznNA8PVVLySrAWsv0hQtFioQb6E1Y\
         sauiA==\";tag=\"web-bot-auth\""
    );
    let string = format!(
        "sig2=(\"@authority\" \"signature-agent\");created=1735689600;keyid=\"{keyid}\";\
         alg=\"ed25519\";expires=1735693200;\
         nonce=\"e8N7S2MFd/qrd6T2R3tdfAuuANngKI7LFtKYI/vowzk4lAZYadIX6wW25MwG7DCT9RUKAJ0qVkU0mEeLE\
         lW1qg==\";tag=\"web-bot-auth\""
    );
    let by_dictionary = "sig2=:RdNFx5Bj6au3YgAMQL/RzmUlZE8QZLIaXGRpw985hWnwPfMxT228NMk6ehRS1PSl4e8\
                         PhbNZACSanGdhEwYCCg==:";
    let by_string = "sig2=:jdq0SqOwHdyHr9+r5jw3iYZH6aNGKijYp/EstF4RQTQdi5N5YYKrD+mCT1HA1nZDsi6nJKu\
                     HxUi/5Syp3rLWBA==:";
    [
        get(
            "/path/to/resource",
            &[
                ("Signature-Agent", "agent2=\"https://signature-agent.test\""),
                ("Signature-Input", &dictionary),
                ("Signature", by_dictionary),
            ],
        ),
        get(
            "/path/to/resource",
            &[
                ("Signature-Agent", "\"https://signature-agent.test\""),
                ("Signature-Input", &string),
                ("Signature", by_string),
            ],
        ),
    ]
}

#[test]
fn the_drafts_examples_are_true_at_their_place_and_time() {
    use SignatureFault::{Early, Expired, Wrong};
    for request in drafts() {
        let at = |now_secs| verdict_at(&example(), &request, now_secs);
        assert_eq!(at(CREATED), SignatureVerdict::True(NUMBER));
        assert_eq!(at(CREATED - SKEW_S), SignatureVerdict::True(NUMBER));
        assert_eq!(at(CREATED - SKEW_S - 1), SignatureVerdict::False(NUMBER, Early));
        assert_eq!(at(CREATED + 200_000), SignatureVerdict::False(NUMBER, Expired));
        let mut elsewhere = request.clone();
        elsewhere.host = b"other.example".to_vec();
        let verdict = verdict_at(&example(), &elsewhere, CREATED);
        assert_eq!(verdict, SignatureVerdict::False(NUMBER, Wrong));
        // It covers no path.
        elsewhere.host = b"example.com".to_vec();
        elsewhere.target = b"/other".to_vec();
        let verdict = verdict_at(&example(), &elsewhere, CREATED);
        assert_eq!(verdict, SignatureVerdict::True(NUMBER));
    }
    let [long, short] = drafts();
    let end = CREATED + 3600 + SKEW_S;
    assert_eq!(verdict_at(&example(), &short, end - 1), SignatureVerdict::True(NUMBER));
    let expired = SignatureVerdict::False(NUMBER, Expired);
    assert_eq!(verdict_at(&example(), &short, end), expired);
    let end = CREATED + 86_400 + SKEW_S;
    assert_eq!(verdict_at(&example(), &long, end - 1), SignatureVerdict::True(NUMBER));
    assert_eq!(verdict_at(&example(), &long, end), expired);
}

#[test]
fn the_rfcs_example_is_signed_by_its_key() {
    let mut request = get(
        "/foo?param=Value&Pet=dog",
        &[
            ("Host", "example.com"),
            ("Date", "Tue, 20 Apr 2021 02:07:55 GMT"),
            ("Content-Type", "application/json"),
            ("Content-Length", "18"),
            (
                "Signature",
                "sig-b26=:wqcAqbmYJ2ji2glfAMaRy4gruYYnx2nEFN2HN6jrnDnQCK1u02Gb04v9EDgwUPiu4A0w6vu\
                 Qv5lIp5WPpBKRCw==:",
            ),
        ],
    );
    request.method = Method::Post;
    let input = "sig-b26=(\"date\" \"@method\" \"@path\" \"@authority\" \"content-type\" \
                 \"content-length\");created=1618884473;keyid=\"test-key-ed25519\"";
    let mut own = None;
    parse_dictionary([input.as_bytes()], |member| {
        if let Value::List(components) = member.value {
            let (label, parameters) = (member.key, member.parameters);
            own = Some(AgentSignature { label, components, parameters });
        }
    })
    .expect("a dictionary");
    let own = own.expect("a member");
    let base =
        signature_base(&request, request.scheme, own.components, own.parameters).expect("a base");
    let keys = KeyDirectory::parse_with_published(EXAMPLE.as_bytes()).expect("a key set");
    let key = keys.key(b"poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U", 0).expect("the key");
    assert!(key.has_signed(&base, &own.bytes(&request).expect("64 bytes")));
}

/// A signer of our own, for requests of our own.
struct Signer {
    key: Ed25519KeyPair,
    id: String,
    agents: Vec<TrustedAgent>,
}

impl Signer {
    fn new() -> Self {
        let key = Ed25519KeyPair::from_seed_unchecked(&[7; 32]).expect("a seed");
        let x = BASE64URL_NOPAD.encode(key.public_key().as_ref());
        let set = format!(r#"{{"keys":[{{"kty":"OKP","crv":"Ed25519","x":"{x}"}}]}}"#);
        let thumbprint = format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{x}"}}"#);
        let hash = crypto::digest::digest(&crypto::digest::SHA256, thumbprint.as_bytes());
        let id = BASE64URL_NOPAD.encode(hash.as_ref());
        let keys = KeyDirectory::parse(set.as_bytes()).expect("a key set");
        Self { key, id, agents: agents("https://agent.example", Some(keys)) }
    }

    /// Signs these components of a request, for an hour.
    fn sign(&self, request: &mut Request, components: &str) {
        let times = format!("created={CREATED};expires={}", CREATED + 3600);
        self.sign_with(request, components, &times);
    }

    fn sign_with(&self, request: &mut Request, components: &str, more: &str) {
        let tail = format!("({components});{more};keyid=\"{}\";tag=\"web-bot-auth\"", self.id);
        let input = format!("sig={tail}");
        request.headers.push_named(b"Signature-Input", input.as_bytes());
        let lines = std::iter::once(input.as_bytes());
        let mut base = None;
        parse_dictionary(lines, |member| {
            if let Value::List(list) = member.value {
                base = signature_base(request, request.scheme, list, member.parameters).ok();
            }
        })
        .expect("a dictionary");
        let base = base.unwrap_or_default();
        let signature = format!("sig=:{}:", BASE64.encode(self.key.sign(&base).as_ref()));
        request.headers.push_named(b"Signature", signature.as_bytes());
    }

    fn verdict(&self, request: &Request) -> SignatureVerdict {
        verdict_at(&self.agents, request, CREATED + 10)
    }
}

const AGENT: (&str, &str) = ("Signature-Agent", "sig=\"https://agent.example\"");
const COVERED: &str = "\"@method\" \"@authority\" \"@path\" \"@query\" \"accept\" \
                       \"signature-agent\";key=\"sig\"";

fn signed(signer: &Signer, components: &str) -> Request {
    let mut request = get("/a/b?c=d", &[AGENT, ("Accept", "text/html"), ("X-Free", "1")]);
    signer.sign(&mut request, components);
    request
}

#[test]
fn a_signature_is_verified_only_if_it_covers_enough() {
    let signer = Signer::new();
    let agent = "\"signature-agent\";key=\"sig\"";
    for (components, verdict) in [
        (COVERED, SignatureVerdict::True(NUMBER)),
        (&format!("\"@target-uri\" {agent}"), SignatureVerdict::True(NUMBER)),
        (&format!("\"@method\" {agent}"), SignatureVerdict::False(NUMBER, SignatureFault::Unbound)),
        (
            &format!("\"@authority\" {agent} \"x-other\""),
            SignatureVerdict::False(NUMBER, SignatureFault::Missing),
        ),
        (
            &format!("\"@authority\" {agent} \"accept\";bs"),
            SignatureVerdict::Open(NUMBER, OpenReason::Component),
        ),
        // It says nothing about an agent.
        ("\"@authority\"", SignatureVerdict::Absent),
        ("\"@authority\" \"signature-agent\"", SignatureVerdict::Absent),
        ("\"@authority\" \"signature-agent\";key=\"other\"", SignatureVerdict::Absent),
    ] {
        assert_eq!(signer.verdict(&signed(&signer, components)), verdict, "{components}");
    }
}

#[test]
fn the_scheme_is_that_of_the_client() {
    let signer = Signer::new();
    let agent = "\"@target-uri\" \"signature-agent\";key=\"sig\"";
    let mut request = signed(&signer, agent);
    // A balancer has ended TLS.
    request.scheme = Scheme::Http;
    let fetched = FetchedKeys::default();
    for (scheme, verdict) in [
        (Scheme::Https, SignatureVerdict::True(NUMBER)),
        (Scheme::Http, SignatureVerdict::False(NUMBER, SignatureFault::Wrong)),
    ] {
        let (now_secs, lifetime_s) = (CREATED, 60);
        let context = SignatureContext { fetched: &fetched, scheme, now_secs, lifetime_s };
        assert_eq!(judge(&signer.agents, &request, context, || true), verdict);
    }
}

#[test]
fn a_signature_must_say_how_long_it_counts() {
    let signer = Signer::new();
    for (more, fault) in [
        (format!("created={CREATED}"), SignatureFault::Incomplete),
        (format!("expires={}", CREATED + 100), SignatureFault::Incomplete),
        (format!("created=\"{CREATED}\";expires={}", CREATED + 100), SignatureFault::Incomplete),
        (format!("created=-1;expires={}", CREATED + 100), SignatureFault::Incomplete),
        (format!("created={CREATED};expires={}", CREATED - 1), SignatureFault::Expired),
        (format!("created={};expires={}", CREATED - 500, CREATED - 90), SignatureFault::Expired),
        (format!("created={};expires={}", CREATED + 90, CREATED + 95), SignatureFault::Early),
    ] {
        let mut request = get("/", &[AGENT, ("Accept", "*")]);
        signer.sign_with(&mut request, COVERED, &more);
        assert_eq!(signer.verdict(&request), SignatureVerdict::False(NUMBER, fault), "{more}");
    }
}

#[test]
fn what_cannot_be_decided_is_open() {
    let signer = Signer::new();
    let request = signed(&signer, COVERED);
    let open = |why| SignatureVerdict::Open(NUMBER, why);
    let unknown = agents("https://agent.example", None);
    assert_eq!(verdict_at(&unknown, &request, CREATED), open(OpenReason::NoKeys));
    let keys = KeyDirectory::parse_with_published(EXAMPLE.as_bytes()).expect("a key set");
    let others = agents("https://agent.example", Some(keys));
    assert_eq!(verdict_at(&others, &request, CREATED), open(OpenReason::UnknownKey));
    let fetched = FetchedKeys::default();
    let context = SignatureContext {
        fetched: &fetched,
        scheme: request.scheme,
        now_secs: CREATED,
        lifetime_s: 86_400,
    };
    let busy = judge(&signer.agents, &request, context, || false);
    assert_eq!(busy, open(OpenReason::Busy));
    let mut rsa = get("/", &[AGENT, ("Accept", "*")]);
    let times = format!("created={CREATED};expires={};alg=\"rsa-pss-sha512\"", CREATED + 60);
    signer.sign_with(&mut rsa, COVERED, &times);
    assert_eq!(signer.verdict(&rsa), open(OpenReason::Algorithm));
    let stranger = agents("https://other.example", signer.agents[0].keys.clone());
    assert_eq!(verdict_at(&stranger, &request, CREATED), SignatureVerdict::Absent);
}

#[test]
fn keys_count_for_the_origin_that_they_were_fetched_from() {
    let signer = Signer::new();
    let request = signed(&signer, COVERED);
    let (own, none) = (&signer.agents[0], FetchedKeys::default());
    let keys = own.keys.clone().expect("keys");
    let other = HttpsOrigin::parse(b"https://other.example").expect("an origin");
    let fetched = none.with(&other, keys.clone());
    let judged = |fetched: &FetchedKeys| {
        let context =
            SignatureContext { fetched, scheme: request.scheme, now_secs: CREATED, lifetime_s: 60 };
        judge(&agents("https://agent.example", None), &request, context, || true)
    };
    assert_eq!(judged(&fetched), SignatureVerdict::Open(NUMBER, OpenReason::NoKeys));
    let fetched = fetched.with(&own.origin, keys);
    assert_eq!(judged(&fetched), SignatureVerdict::True(NUMBER));
    let fetched = fetched.only(|origin| *origin == other);
    assert_eq!(judged(&fetched), SignatureVerdict::Open(NUMBER, OpenReason::NoKeys));
}

#[test]
fn the_first_signature_by_a_trusted_agent_counts() {
    let signer = Signer::new();
    let mut request = get("/", &[("Accept", "*")]);
    request.headers.push_named(b"Signature-Agent", b"a=\"https://stranger.example\"");
    request.headers.push_named(b"Signature-Agent", b"sig=\"https://agent.example/\"");
    let stranger =
        "a=(\"@authority\" \"signature-agent\";key=\"a\");created=1;tag=\"web-bot-auth\"";
    request.headers.push_named(b"Signature-Input", stranger.as_bytes());
    request.headers.push_named(b"Signature-Input", b"b=(\"date\");tag=\"other\"");
    signer.sign(&mut request, COVERED);
    request.headers.push_named(b"Signature", b"a=:AAAA:");
    assert_eq!(signer.verdict(&request), SignatureVerdict::True(NUMBER));
    // No field tells two of one label apart.
    request.headers.push_named(b"Signature-Input", b"sig=();tag=\"web-bot-auth\"");
    assert_eq!(signer.verdict(&request), SignatureVerdict::Absent);
}

#[test]
fn a_malformed_field_is_no_signature() {
    let signer = Signer::new();
    for (name, value, verdict) in [
        ("Signature-Input", "&", SignatureVerdict::Absent),
        ("Signature-Agent", "&", SignatureVerdict::Absent),
        ("Signature", "&", SignatureVerdict::False(NUMBER, SignatureFault::Incomplete)),
        ("Signature", "sig=:AAAA:", SignatureVerdict::False(NUMBER, SignatureFault::Incomplete)),
    ] {
        let mut request = signed(&signer, COVERED);
        request.headers.push_named(name.as_bytes(), value.as_bytes());
        assert_eq!(signer.verdict(&request), verdict, "{name}: {value}");
    }
    let mut request = signed(&signer, COVERED);
    let many: Vec<_> = (0..SIGNATURES_MAX).map(|n| format!("s{n}=()")).collect();
    request.headers.push_named(b"Signature-Input", many.join(", ").as_bytes());
    assert_eq!(signer.verdict(&request), SignatureVerdict::Absent);
}

/// A change to a request.
#[derive(Clone, Debug)]
enum Change {
    Method,
    Host(String),
    Port(u16),
    Path(String),
    Query(String),
    Accept(String),
    SecondAccept(String),
    Signature(usize, u8),
    Input(&'static str, &'static str),
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        Just(Change::Method),
        "[a-z]{1,9}\\.test".prop_map(Change::Host),
        (1..u16::MAX).prop_map(Change::Port),
        "/[a-z/%]{0,9}".prop_map(Change::Path),
        "[a-z=&]{0,9}".prop_map(Change::Query),
        "[a-z/*, ]{0,9}".prop_map(Change::Accept),
        "[a-z]{0,5}".prop_map(Change::SecondAccept),
        (0..64_usize, 1_u8..).prop_map(|(at, bits)| Change::Signature(at, bits)),
        Just(Change::Input("created=", "nonce=\"x\";created=")),
        Just(Change::Input("\"accept\" ", "")),
        Just(Change::Input("tag=", "x;tag=")),
    ]
}

impl Change {
    fn make(&self, request: &mut Request) {
        let set = |request: &mut Request, name: &str, value: &str| {
            request.headers.set_named(name.as_bytes(), value.as_bytes());
        };
        let field = |request: &Request, name: &str| {
            let value = request.headers.value_named(name.as_bytes()).expect("a field");
            String::from_utf8(value.to_vec()).expect("text")
        };
        match self {
            Self::Method => request.method = Method::Post,
            Self::Host(host) => request.host = host.clone().into_bytes(),
            Self::Port(port) => request.port = Some(*port),
            Self::Path(path) => request.target = format!("{path}?c=d").into_bytes(),
            Self::Query(query) => request.target = format!("/a/b?{query}").into_bytes(),
            Self::Accept(value) => set(request, "Accept", value.trim()),
            Self::SecondAccept(value) => request.headers.push_named(b"Accept", value.as_bytes()),
            Self::Signature(at, bits) => {
                let signature = field(request, "Signature");
                let text = &signature["sig=:".len()..signature.len() - 1];
                let mut bytes = BASE64.decode(text.as_bytes()).expect("base64");
                bytes[*at] ^= bits;
                set(request, "Signature", &format!("sig=:{}:", BASE64.encode(&bytes)));
            }
            Self::Input(from, to) => {
                let input = field(request, "Signature-Input").replacen(from, to, 1);
                set(request, "Signature-Input", &input);
            }
        }
    }
}

proptest! {
    #[test]
    fn any_change_of_what_is_covered_makes_it_false(change in change()) {
        let signer = Signer::new();
        let mut request = signed(&signer, COVERED);
        prop_assert_eq!(signer.verdict(&request), SignatureVerdict::True(NUMBER));
        let before = request.clone();
        change.make(&mut request);
        let is_changed = match &change {
            Change::Path(_) | Change::Query(_) => request.target != before.target,
            Change::Accept(_) => {
                let accept = |request: &Request| {
                    request.headers.value_named(b"Accept").map(<[u8]>::to_vec)
                };
                accept(&request) != accept(&before)
            }
            _ => true,
        };
        let verdict = signer.verdict(&request);
        match is_changed {
            true => prop_assert_eq!(
                verdict,
                SignatureVerdict::False(NUMBER, SignatureFault::Wrong)
            ),
            false => prop_assert_eq!(verdict, SignatureVerdict::True(NUMBER)),
        }
    }

    #[test]
    fn what_is_not_covered_may_change(value in "[a-z]{0,9}") {
        let signer = Signer::new();
        let mut request = signed(&signer, COVERED);
        request.headers.set_named(b"X-Free", value.as_bytes());
        prop_assert_eq!(signer.verdict(&request), SignatureVerdict::True(NUMBER));
    }
}
