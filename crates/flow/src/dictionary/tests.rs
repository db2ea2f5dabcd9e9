//! Tests of who may name a dictionary.

use message::HeaderBlock;

use super::*;

const HASH: &[u8] = b":pZGm1Av0IEBKARczz7exkNYsZb8LzaMrV7J32a2fFG4=:";

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
fn a_dictionary_is_named_over_https_by_clients_that_take_dcz() {
    let takes: (&str, &[u8]) = ("Accept-Encoding", b"gzip, br, zstd, dcb, dcz");
    let has = ("Available-Dictionary", HASH);
    assert!(named(&request(&[takes, has])).is_some());
    assert_eq!(named(&request(&[takes])), None);
    assert_eq!(named(&request(&[has])), None);
    assert_eq!(named(&request(&[("Accept-Encoding", b"gzip, br, zstd"), has])), None);
    assert_eq!(named(&request(&[takes, ("Available-Dictionary", b":AA==:")])), None);
    let plain = Request { scheme: Scheme::Http, ..request(&[takes, has]) };
    assert_eq!(named(&plain), None);
}

#[test]
fn a_page_that_could_not_read_the_answer_gets_none() {
    let takes: (&str, &[u8]) = ("Accept-Encoding", b"gzip, dcz");
    let has = ("Available-Dictionary", HASH);
    for (mode, site, expected) in [
        ("no-cors", "same-origin", true),
        ("no-cors", "same-site", false),
        ("no-cors", "cross-site", false),
        ("cors", "cross-site", true),
        ("navigate", "none", true),
    ] {
        let from = [("Sec-Fetch-Mode", mode.as_bytes()), ("Sec-Fetch-Site", site.as_bytes())];
        let found = named(&request(&[takes, has, from[0], from[1]]));
        assert_eq!(found.is_some(), expected, "{mode} {site}");
    }
}

#[test]
fn an_origin_is_spelled_as_in_urls() {
    let mut asked = request(&[]);
    assert_eq!(origin(&asked), b"https://example.com");
    asked.port = Some(8443);
    assert_eq!(origin(&asked), b"https://example.com:8443");
}

#[test]
fn the_key_of_a_form_is_the_beginning_of_the_hash() {
    let hash = available([HASH]).expect("a hash");
    assert_eq!(key(&hash).to_le_bytes(), hash[..8]);
}
