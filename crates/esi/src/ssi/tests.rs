//! The dialect against what Debian's nginx made of the same pages.

use crate::testing::{Request, escaped, sent, unescaped};
use crate::{Dialect, Document, Limits};

/// One page to a line: the page, a tab, what a client got. A fragment is `{url}`; that of `/empty`
/// is empty, and those of `/404` and `/500` are `FAIL`.
const PAGES: &str = include_str!("pages.txt");

/// Pages of which Larder makes something else, and why.
const OTHERS: [(&str, &str); 0] = [];

fn got(page: &[u8]) -> String {
    let document = Document::parse(page, Dialect::Ssi, Limits::default());
    let ops = document.resolve(&Request::default()).expect("few operations");
    escaped(&sent(&ops, page, &|fragment| {
        let url = fragment.target(b"/base/p?x=xv&y=a%20b&e=&z").url;
        match &url[..] {
            b"/empty" => Vec::new(),
            b"/404" | b"/500" => b"FAIL".to_vec(),
            url => [b"{", url, b"}"].concat(),
        }
    }))
}

#[test]
fn pages_come_to_what_nginx_makes_of_them() {
    let mut wrong = Vec::new();
    for line in PAGES.lines() {
        let (page, theirs) = line.split_once('\t').expect("two columns");
        let own = got(&unescaped(page));
        let expected = OTHERS.iter().find(|(other, _)| *other == page).map_or(theirs, |(_, o)| o);
        if own != expected {
            wrong.push(format!("{page}\n  nginx  {theirs}\n  larder {own}"));
        }
    }
    assert!(wrong.is_empty(), "{}\n{}", wrong.len(), wrong.join("\n"));
}
