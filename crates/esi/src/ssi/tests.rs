//! Tests of the dialect against the output of Debian's nginx.

use crate::testing::{Request, escaped, sent, unescaped};
use crate::{Dialect, Document, Fragment, Limits, PageResolver, ResolvedNode};

/// One page per line: the page, a tab, the response. `{url}` is a fragment; `/empty` is empty, and
/// `/404` and `/500` are `FAIL`.
const PAGES: &str = include_str!("pages.txt");

/// Pages for which Larder's response differs.
const OTHERS: [(&str, &str); 7] = [
    // nginx documents that commands of a block are executed; this version sends them.
    (
        concat!(
            r#"<!--# block name="s" -->x<!--# echo var="arg_x" -->y"#,
            r#"<!--# include virtual="/g" -->z<!--# endblock -->a"#,
            r#"<!--# include virtual="/empty" stub="s" -->b"#
        ),
        "axxvy{/g}zb",
    ),
    // A request line cannot hold a space.
    (r#"a<!--# include virtual="/f?$cookie_d" -->b"#, r#"a{/f?<x>%20"&'}b"#),
    (r#"a<!--# set var="v" value="x y" --><!--# include virtual="/f?$v" -->b"#, "a{/f?x%20y}b"),
    // nginx breaks off the response.
    (r#"<!--# config errmsg="" -->a<!--# bogus -->b"#, "ab"),
    // nginx loses a possible beginning of a command.
    ("a<!--", "a<!--"),
    ("a<", "a<"),
    // A block lasts until its end, even if a conditional ends within it.
    (
        r#"<!--# if expr="$none" --><!--# block name="s" -->x<!--# endif -->y<!--# endblock -->z"#,
        "",
    ),
];

const QUERY: &str = "x=xv&y=a%20b&e=&z";

fn got(page: &[u8]) -> String {
    let document = Document::parse(page, Dialect::Ssi, Limits::default());
    let mut run = PageResolver::new(Limits::default());
    let mut out = Vec::new();
    for node in document.nodes() {
        let mut ops = Vec::new();
        run.resolve(node, &Request(QUERY), &mut ops).expect("few operations");
        let set = ops.iter().find_map(|op| match op {
            ResolvedNode::Include(fragment) => Some((fragment.set.clone()?, fetched(fragment)?)),
            _ => None,
        });
        match set {
            Some((name, body)) => run.assign(&name, body),
            None => out.extend(sent(&ops, page, &fetched).expect("all come")),
        }
    }
    escaped(&out)
}

fn fetched(fragment: &Fragment) -> Option<Vec<u8>> {
    let url = fragment.target(b"/base/p").url;
    Some(match &url[..] {
        b"/empty" => Vec::new(),
        b"/404" | b"/500" => b"FAIL".to_vec(),
        url => [b"{", url, b"}"].concat(),
    })
}

#[test]
fn pages_come_to_what_nginx_makes_of_them() {
    let mut wrong = Vec::new();
    for line in PAGES.lines() {
        let (page, theirs) = line.split_once('\t').expect("two columns");
        let own = got(&unescaped(page));
        let expected =
            OTHERS.iter().find(|(other, _)| *other == page).map_or(theirs, |(_, own)| *own);
        if own != expected {
            wrong.push(format!("{page}\n  nginx  {theirs}\n  larder {own}"));
        }
    }
    assert!(wrong.is_empty(), "{}\n{}", wrong.len(), wrong.join("\n"));
}
