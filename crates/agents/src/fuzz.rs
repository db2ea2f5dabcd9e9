//! Fuzz targets: each passes arbitrary bytes to one parser and checks the invariants of the result.
//! They panic on a violation; only tests and fuzzers may call them.

use message::{HttpsOrigin, Request};

use crate::crawlers::Crawlers;
use crate::key_directory::KeyDirectory;
use crate::list::CrawlerList;
use crate::web_bot_auth::{FetchedKeys, SignatureContext, SignatureVerdict};

/// A fuzz target.
pub type FuzzTarget = fn(&[u8]);

/// All targets, by name.
pub const ALL: &[(&str, FuzzTarget)] =
    &[("web_bot_auth", web_bot_auth), ("key_directory", key_directory)];

/// A key directory: whatever can be read has keys.
pub fn key_directory(data: &[u8]) {
    if let Ok(read) = KeyDirectory::parse(data) {
        assert_ne!(KeyDirectory::parse(b"{\"keys\":[]}").as_ref(), Ok(&read));
    }
}

/// The fields of a signature, one in each line. None of them is true, as the fuzzer has no key.
pub fn web_bot_auth(data: &[u8]) {
    let Ok(list) = CrawlerList::parse("ai Agent Agent/") else { return };
    let Ok(mut crawlers) = Crawlers::new(list, Vec::new(), false) else { return };
    let Ok(origin) = HttpsOrigin::parse(b"https://a.test") else { return };
    let key = br#"{"keys":[{"kty":"OKP","crv":"Ed25519",
        "x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}"#;
    crawlers.trust("Agent", origin, KeyDirectory::parse(key).ok());
    let mut request = Request::new();
    (request.host, request.target) = (b"b.test".to_vec(), b"/c?d".to_vec());
    let names = ["Signature-Input", "Signature-Agent", "Signature", "X-Other", "Signature-Input"];
    for (name, line) in names.iter().zip(data.split(|b| *b == b'\n')) {
        request.headers.push_named(name.as_bytes(), line.trim_ascii());
    }
    let fetched = FetchedKeys::default();
    let (scheme, now_secs, lifetime_s) = (request.scheme, 1_735_689_600, 60);
    let context = SignatureContext { fetched: &fetched, scheme, now_secs, lifetime_s };
    let verdict = crawlers.verify(&request, context, || true);
    assert!(!matches!(verdict, SignatureVerdict::True(_)));
    let is_decided = matches!(verdict, SignatureVerdict::False(..));
    assert_eq!(crawlers.signed_client(verdict).is_some(), is_decided);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const INPUT: &str = "sig=(\"@authority\" \"signature-agent\";key=\"sig\" \"x-other\");\
        created=1735689600;expires=1735689660;keyid=\"kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k\"\
        ;tag=\"web-bot-auth\"";

    proptest! {
        #[test]
        fn any_bytes_are_safe(data in prop::collection::vec(any::<u8>(), 0..300)) {
            ALL.iter().for_each(|(_, target)| target(&data));
        }

        #[test]
        fn what_is_nearly_a_signature_is_safe(
            cut in 0..INPUT.len(),
            with in ".{0,3}",
            signature in prop::array::uniform32(any::<u8>()),
        ) {
            let bytes = data_encoding::BASE64.encode(&[signature, signature].concat());
            let input = format!("{}{with}{}", &INPUT[..cut], &INPUT[cut..]);
            for input in [INPUT, &input] {
                let fields = format!("{input}\nsig=\"https://a.test\"\nsig=:{bytes}:\nx");
                web_bot_auth(fields.as_bytes());
            }
        }
    }
}
