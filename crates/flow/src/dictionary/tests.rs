//! Tests of the clients that may name a dictionary, and of those that may get one.

use cache::{BeginOptions, Cache, Config, FetchDecision, Flags, NewObject, Variant};
use codec::dictionary::{DeltaCoding, available};
use message::HeaderBlock;

use super::*;
use crate::state::dictionary::NamedDictionary;
use crate::state::dictionary::named_dictionary::key;
use crate::vcl::tests::bare_live;
use crate::verdict::permit;

const HASH: &[u8] = b":pZGm1Av0IEBKARczz7exkNYsZb8LzaMrV7J32a2fFG4=:";
const HAS: (&str, &[u8]) = ("Available-Dictionary", HASH);
const TAKES: (&str, &[u8]) = ("Accept-Encoding", b"gzip, br, zstd, dcb, dcz");

fn request(fields: &[(&str, &[u8])]) -> Request {
    let mut headers = HeaderBlock::new();
    for (name, value) in fields {
        headers.push_named(name.as_bytes(), value);
    }
    Request {
        scheme: Scheme::Https,
        host: b"example.com".to_vec(),
        target: b"/js/app.v2.js".to_vec(),
        headers,
        ..Request::default()
    }
}

#[test]
fn a_dictionary_is_named_over_https_by_clients_that_take_such_a_coding() {
    let coding = |fields: &[(&str, &[u8])]| named(&request(fields)).map(|named| named.coding);
    assert_eq!(coding(&[TAKES, HAS]), Ok(DeltaCoding::Dcz));
    assert_eq!(coding(&[("Accept-Encoding", b"br, dcb"), HAS]), Ok(DeltaCoding::Dcb));
    assert_eq!(coding(&[TAKES]), Err(DictionaryUse::NotNamed));
    assert_eq!(coding(&[HAS]), Err(DictionaryUse::NotTaken));
    assert_eq!(coding(&[("Accept-Encoding", b"br, zstd"), HAS]), Err(DictionaryUse::NotTaken));
    let short: (&str, &[u8]) = ("Available-Dictionary", b":AA==:");
    assert_eq!(coding(&[TAKES, short]), Err(DictionaryUse::Malformed));
    let plain = Request { scheme: Scheme::Http, ..request(&[TAKES, HAS]) };
    assert_eq!(named(&plain), Err(DictionaryUse::PlainHttp));
}

fn config() -> Config {
    Config {
        budget_bytes: 1 << 20,
        held_bytes_max: 0,
        max_variants: 4,
        object_bytes_max: 1 << 16,
        waiters_max: 10,
        window_bytes: 1 << 16,
        hit_for_miss_ms: 1000,
        bans_max: 10,
        index_bytes: 64 << 20,
    }
}

/// Stores a response under the key of `fields`, for the variant `vary`, with the field `name`.
fn stored(fields: &[&[u8]], vary: Option<Variant<'_>>, name: &[u8], value: &[u8]) -> Arc<Object> {
    let cache = Cache::new(config());
    let mut key = KeyBuf::new();
    fields.iter().for_each(|field| key.field(field));
    key.finish(&base::HashSeed::from_u64(1));
    let begun = cache.begin(&key, &mut |_, _| (), BeginOptions::default(), 0);
    let FetchDecision::Lead(lead) = begun else { panic!("nothing is stored yet") };
    let (mut headers, mut head) = (HeaderBlock::new(), Vec::new());
    headers.push_named(name, value);
    h1::encode::stored_head(&mut head, Status::OK, b"", &headers);
    let filling = lead.store(
        permit(),
        NewObject {
            status: Status::OK,
            head: head.into(),
            etag: None,
            last_modified: None,
            date: None,
            born_ms: 0,
            lifetime_ms: 60_000,
            grace_ms: 0,
            stale_if_error_ms: 0,
            stale_if_unreachable_ms: 0,
            flags: Flags { dictionary: true, ..Flags::default() },
            tags: cache::Tags::new(Vec::new()),
            note: Box::default(),
            length: Some(0),
        },
        vary,
    );
    let object = Arc::clone(filling.object());
    filling.finish();
    object
}

fn dictionary_context<'a>(
    live: &'a LiveConfiguration,
    request: &'a Request,
) -> DictionaryContext<'a> {
    let now = Now { mono_ms: 1, unix_ms: 1 };
    DictionaryContext { live, request, target: &request.target, ctx: None, now }
}

#[test]
fn a_page_that_could_not_read_the_answer_gets_none() {
    let star: (&[u8], &[u8]) = (b"Access-Control-Allow-Origin", b"*");
    let own = (star.0, &b"https://a.test"[..]);
    let none: (&[u8], &[u8]) = (b"X-None", b"");
    for (mode, site, allowed, expected) in [
        ("no-cors", "same-origin", none, true),
        ("no-cors", "same-site", star, false),
        ("no-cors", "cross-site", star, false),
        ("no-cors", "none", star, false),
        ("cors", "same-origin", none, true),
        ("cors", "cross-site", none, false),
        ("cors", "cross-site", star, true),
        ("cors", "same-site", own, true),
        ("cors", "same-site", (own.0, b"https://b.test"), false),
        ("navigate", "none", none, true),
        ("navigate", "cross-site", none, true),
        ("websocket", "cross-site", none, false),
    ] {
        let object = stored(&[b"s", b"a"], None, allowed.0, allowed.1);
        let asked = request(&[
            ("Sec-Fetch-Mode", mode.as_bytes()),
            ("Sec-Fetch-Site", site.as_bytes()),
            ("Origin", b"https://a.test"),
        ]);
        assert_eq!(is_readable(&asked, &object), expected, "{mode} {site}");
    }
    let object = stored(&[b"s", b"a"], None, none.0, none.1);
    assert!(is_readable(&request(&[]), &object), "who says nothing is no browser");
}

#[test]
fn a_dictionary_is_for_those_who_may_have_it() {
    const FIELD: (&[u8], &[u8]) = (b"Use-As-Dictionary", b"match=\"/*\"");
    let live = bare_live();
    let at = |target: &str| Request { target: target.as_bytes().to_vec(), ..request(&[]) };
    let (old, new) = (at("/a?1"), at("/a?2"));
    let born = |fields: &[&[u8]], vary| {
        let object = stored(fields, vary, FIELD.0, FIELD.1);
        Dictionary::of(&object, DictionaryScope::of(dictionary_context(&live, &old), &object))
    };
    let is_for = |dictionary: &Dictionary, fields: &[&[u8]], vary| {
        let object = stored(fields, vary, FIELD.0, FIELD.1);
        dictionary.is_for(dictionary_context(&live, &new), &object)
    };
    let all = born(&[b"s", b"host", b"/a?1"], None);
    assert!(is_for(&all, &[b"s", b"host", b"/a?2"], None));
    assert!(!is_for(&all, &[b"s", b"other", b"/a?2"], None));
    assert!(!is_for(&all, &[b"s", b"host", b"/a?2", b"1", b"anna"], None));
    let anna = born(&[b"s", b"host", b"/a?1", b"1", b"anna"], None);
    assert!(is_for(&anna, &[b"s", b"host", b"/a?2", b"1", b"anna"], None));
    assert!(!is_for(&anna, &[b"s", b"host", b"/a?2", b"1", b"bert"], None));
    assert!(!is_for(&anna, &[b"s", b"host", b"/a?2"], None));
    let by = |signature| Some(Variant { spec: b"cookie", signature });
    let cookie = born(&[b"s", b"host", b"/a?1"], by(b"anna"));
    assert!(is_for(&cookie, &[b"s", b"host", b"/a?2"], by(b"anna")));
    assert!(!is_for(&cookie, &[b"s", b"host", b"/a?2"], by(b"bert")));
    assert!(!is_for(&cookie, &[b"s", b"host", b"/a?2"], None));
    // Keys without a target are never alike.
    let other = born(&[b"v", b"hash of what not"], None);
    assert!(is_for(&other, &[b"v", b"hash of what not"], None));
    assert!(!is_for(&other, &[b"v", b"hash of another"], None));
}

#[test]
fn an_origin_is_spelled_as_in_urls() {
    let mut asked = request(&[]);
    assert_eq!(origin(&asked), b"https://example.com");
    asked.port = Some(8443);
    assert_eq!(origin(&asked), b"https://example.com:8443");
}

#[test]
fn forms_of_one_dictionary_have_keys_with_one_beginning() {
    let hash = available([HASH]).expect("a hash");
    let of = |coding| NamedDictionary { hash, coding }.key();
    assert_eq!(of(DeltaCoding::Dcz), key(&hash));
    assert_eq!(of(DeltaCoding::Dcb), key(&hash) | 1);
    assert_eq!(key(&hash).to_le_bytes()[1..], hash[1..8]);
}
