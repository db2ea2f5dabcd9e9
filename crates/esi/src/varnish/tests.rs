//! Tests of the dialect against the output of Debian's varnishd.

use crate::testing::{escaped, place, unescaped};
use crate::{Dialect, Document, Limits, Node, VarnishRules};

/// One page per line, in columns separated by tabs: the members of `feature` that are on,
/// varnishd's `obj.can_esi`, the page, the response, the log. `\x..` is a byte. `{url@host}` is a
/// fragment; the page was requested as `/base/p?q=/y/z` of host `h`.
const PAGES: &str = include_str!("pages.txt");

fn rules(features: &str) -> VarnishRules {
    let has = |name| features.split(',').any(|feature| feature == name);
    VarnishRules {
        disable_xml_check: has("disable_xml_check"),
        ignore_other_elements: has("ignore_other_elements"),
        ignore_https: has("ignore_https"),
        remove_bom: has("remove_bom"),
        include_onerror: has("include_onerror"),
    }
}

fn page_of(document: &Document, page: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for node in document.nodes() {
        match node {
            Node::Text(range) => out.extend_from_slice(&page[place(range)]),
            Node::Include(include) => {
                let target = include.fragment.target(b"/base/p?q=/y/z");
                out.push(b'{');
                out.extend_from_slice(&target.url);
                out.push(b'@');
                out.extend_from_slice(target.host.as_deref().unwrap_or(b"h"));
                out.push(b'}');
            }
            other => panic!("{other:?}"),
        }
    }
    out
}

#[test]
fn pages_come_to_what_varnish_makes_of_them() {
    let mut wrong = Vec::new();
    for line in PAGES.lines().filter(|line| !line.starts_with('#')) {
        let columns: Vec<&str> = line.split('\t').collect();
        let [features, can_esi, page, gets, says] = columns[..] else { panic!("{line}") };
        let bytes = unescaped(page);
        if page.contains("\\xef\\xbb") {
            // Varnish's mark has another first byte; the next test has these pages.
            continue;
        }
        let dialect = Dialect::Varnish(rules(features));
        let document = Document::parse(&bytes, dialect, Limits::default());
        let remarks: Vec<String> =
            document.remarks().list().iter().map(ToString::to_string).collect();
        let own = (
            (!document.is_plain()).to_string(),
            escaped(&page_of(&document, &bytes)),
            remarks.join("|"),
        );
        let theirs = (can_esi.to_owned(), gets.to_owned(), says.to_owned());
        if own != theirs {
            wrong.push(format!("{features} {page}\n  varnish {theirs:?}\n  larder  {own:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn the_mark_of_utf_8_is_what_varnish_takes_for_it() {
    let pages = PAGES.lines().filter_map(|line| {
        let columns: Vec<&str> = line.split('\t').collect();
        columns[2].contains("\\xeb").then(|| (rules(columns[0]), unescaped(columns[2])))
    });
    let mut count = 0;
    for (rules, theirs) in pages {
        let real: Vec<u8> = theirs.iter().map(|b| if *b == 0xeb { 0xef } else { *b }).collect();
        let read = |page: &[u8]| Document::parse(page, Dialect::Varnish(rules), Limits::default());
        assert_eq!(read(&theirs), read(&real), "{}", escaped(&theirs));
        count += 1;
    }
    assert!(count > 10, "{count}");
}
