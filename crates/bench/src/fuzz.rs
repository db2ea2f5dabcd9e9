//! Fuzz properties of this crate's parsers, for any bytes. Fuzz targets and property tests share
//! them.

use crate::conditions::RoundCondition;
use crate::response_diff::requests;
use crate::result::Round;
use crate::urls::{List, from_log, from_sitemap, from_text};

/// Checks that any bytes can be read as a list of URLs, a log and a sitemap, with an
/// [`UnreadLine`](crate::urls::UnreadLine) for each part that cannot.
///
/// # Panics
/// If a list is inconsistent.
pub fn lists(bytes: &[u8]) {
    holds(&from_text("fuzz", bytes));
    holds(&from_log("fuzz", bytes));
    let mut fetched = 0;
    let list = from_sitemap("fuzz", bytes, &mut |_| {
        fetched += 1;
        if fetched < 5 { Ok(bytes.to_vec()) } else { Err("enough".to_owned()) }
    });
    holds(&list);
    // Of requests whose responses are compared, too.
    if let Ok(text) = std::str::from_utf8(bytes) {
        assert!(requests(text).is_ok_and(|own| !own.is_empty()) || requests(text).is_err());
    }
}

fn holds(list: &List) {
    assert!(list.sequence().iter().all(|number| (*number as usize) < list.asks().len()));
    assert!(list.due().is_empty() || list.due().len() == list.len());
    assert!(list.due().is_sorted());
    assert!(list.faults.first.len() as u64 <= list.faults.unread);
    for ask in list.asks() {
        assert!(!ask.url.bytes().any(|byte| byte <= b' ' || byte == 0x7f), "{ask:?}");
    }
}

/// Checks that any text is a condition or has a mistake that lies within it, and that a condition
/// is the opposite of its negation.
///
/// # Panics
/// If the property does not hold.
pub fn condition(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match RoundCondition::parse(text) {
        Ok(condition) => {
            let round = Round::default();
            if let Ok(not) = RoundCondition::parse(&format!("not ({text})")) {
                assert_ne!(condition.holds(&round), not.holds(&round), "{text}");
            }
        }
        Err(wrong) => assert!((1..=text.chars().count() + 1).contains(&wrong.column), "{wrong:?}"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    /// Draws some of `words`, in any order.
    fn pieces(words: &'static [&'static str]) -> impl Strategy<Value = Vec<&'static str>> {
        prop::collection::vec(prop::sample::select(words), 0..20)
    }

    proptest! {
        #[test]
        fn lists(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            super::lists(&bytes);
        }

        #[test]
        fn sitemaps(parts in pieces(&[
            "<urlset>", "</urlset>", "<url>", "</url>", "<loc>", "</loc>", "http://a/", "&amp;",
            "&x;", "<sitemapindex>", "<sitemap>", "</sitemap>", "</sitemapindex>", "<![CDATA[",
            "]]>", "<!--", "-->", "\n", "/b", " ", "<?xml?>", "&#0;",
        ])) {
            super::lists(parts.concat().as_bytes());
        }

        #[test]
        fn conditions(parts in pieces(&[
            "p99", ">", "20ms", " or ", " and ", "not ", "(", ")", "errors", "5%", "5xx", "=", "ß",
        ])) {
            super::condition(parts.concat().as_bytes());
        }
    }
}
