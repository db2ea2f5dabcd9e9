//! Tests of the dialect, each construct by itself, and compared with Traffic Server's plugin where
//! that follows the note.

use crate::testing::{Request, sent};
use crate::{Dialect, Document, Error, Fragment, Limits, Node, OnError, RemarkKind, ResolvedNode};

/// One page per line: the page, a tab, the response of Traffic Server, and after another tab
/// Larder's, if it differs. `{url}` is a fragment; the fragment `/404` fails.
const PAGES: &str = include_str!("pages.txt");

fn document(page: &str) -> Document {
    Document::parse(page.as_bytes(), Dialect::Esi, Limits::default())
}

fn ops(page: &str) -> Vec<ResolvedNode> {
    document(page).resolve(&Request("x=xv&y=a%20b&e=&n=10")).expect("few operations")
}

fn fetched(fragment: &Fragment) -> Option<Vec<u8>> {
    let target = fragment.target(b"/base/p");
    (target.url != b"/404").then(|| [b"{", &target.url[..], b"}"].concat())
}

fn got(page: &str) -> String {
    let sent = sent(&ops(page), page.as_bytes(), &fetched).expect("all come");
    String::from_utf8_lossy(&sent).into_owned()
}

/// The single fragment of a page.
fn fragment(page: &str) -> Fragment {
    let mut found = ops(page).into_iter().filter_map(|op| match op {
        ResolvedNode::Include(fragment) => Some(*fragment),
        _ => None,
    });
    found.next().expect("a fragment")
}

fn remarks(page: &str) -> Vec<(u64, RemarkKind)> {
    document(page).remarks().list().iter().map(|r| (r.offset, r.kind)).collect()
}

#[test]
fn pages_come_to_what_traffic_server_makes_of_them() {
    let mut wrong = Vec::new();
    for line in PAGES.lines().filter(|line| !line.starts_with('#')) {
        let columns: Vec<&str> = line.split('\t').collect();
        let [page, theirs, expected @ ..] = &columns[..] else { panic!("{line}") };
        let own = got(page);
        if own != **expected.first().unwrap_or(theirs) {
            wrong.push(format!("{page}\n  theirs {theirs}\n  larder {own}"));
        }
    }
    assert!(wrong.is_empty(), "{}\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn an_include_has_its_attributes() {
    let page =
        "<esi:include src=\" /a?b=1&amp;c \" alt='/d e' onerror=\"continue\" maxwait=\"250\"/>";
    let own = fragment(page);
    assert_eq!(own.src, b"/a?b=1&c");
    assert_eq!(own.alt.as_deref(), Some(&b"/d%20e"[..]));
    assert_eq!(own.onerror, OnError::Continue);
    assert_eq!(own.maxwait_ms, Some(250));
    let own = fragment("<esi:include src=/a>");
    assert_eq!((&own.src[..], own.onerror, own.alt), (&b"/a"[..], OnError::Unsaid, None));
    assert_eq!(own.maxwait_ms, None);
    assert_eq!(fragment("<esi:include src='/a' onerror='fail'/>").onerror, OnError::Fail);
}

#[test]
fn variables_in_an_address_cannot_end_its_line() {
    let own = fragment("<esi:include src=\"/a?$(HTTP_COOKIE{d})\n\r\0\x7f&$(QUERY_STRING{y})\"/>");
    assert_eq!(own.src, b"/a?%3Cx%3E%20%22%26%27%0A%0D%00%7F&a%20b");
    let own = fragment("<esi:include src='/a' alt='/$(QUERY_STRING{x}) b'/>");
    assert_eq!(own.alt.as_deref(), Some(&b"/xv%20b"[..]));
}

#[test]
fn text_of_a_client_is_escaped_in_pages_and_addresses() {
    for (page, gives) in [
        ("<esi:vars>[$(HTTP_COOKIE{d})]</esi:vars>", "[&lt;x&gt; &quot;&amp;&#39;]"),
        ("<esi:vars name=\"<b>$(HTTP_COOKIE{d}|i)</b>\"/>", "<b>&lt;x&gt; &quot;&amp;&#39;</b>"),
        ("<esi:vars>[$(HTTP_COOKIE{none}|'<i>')]</esi:vars>", "[<i>]"),
        // In any form of the request: the quotes are the page's own.
        (
            "<esi:assign name='a' value='<b>$(HTTP_COOKIE{d})'/><esi:assign name='b' value='$(a)!'/>\
          <esi:vars>$(b)</esi:vars>",
            "<b>&lt;x&gt; &quot;&amp;&#39;!",
        ),
        (
            "<esi:assign name='a' value='/f?x=$(HTTP_HEADER{x-all})&y='/>\
          <esi:include src='$(a)1'/>",
            "{/f?x=%21%22%23%24%25%26%27%28%29%2A%2B%2C-.%2F%3A%3B%3C%3D%3E%3F%40%5B%5C%5D%5E_\
             %60%7B%7C%7D~&y=1}",
        ),
        ("<esi:include src='/f?$(QUERY_STRING)'/>", "{/f?x=xv&y=a%20b&e=&n=10}"),
        // A comparison takes values unescaped.
        (
            "<esi:choose><esi:when test=\"$(HTTP_HEADER{x-foo})=='bar'\">y</esi:when></esi:choose>",
            "y",
        ),
    ] {
        assert_eq!(got(page), gives, "{page}");
    }
}

#[test]
fn a_choice_takes_the_first_branch_that_holds() {
    for (page, gives) in [
        ("a<esi:choose> <esi:when test='1==1'>b</esi:when> </esi:choose>c", "abc"),
        ("a<esi:choose><esi:when test='1=='>b</esi:when></esi:choose>c", "ac"),
        (
            "a<esi:choose><esi:otherwise>o</esi:otherwise><esi:when test='1==1'>b</esi:when>\
          </esi:choose>c",
            "abc",
        ),
        (
            "<esi:choose><esi:when test=\"'>'=='>'\">b<esi:include src='/f'/></esi:when>\
          </esi:choose>",
            "b{/f}",
        ),
        (
            "<esi:choose><esi:when test='1==1'><esi:choose><esi:when test='1==2'>1</esi:when>\
          <esi:otherwise>2</esi:otherwise></esi:choose></esi:when></esi:choose>",
            "2",
        ),
        ("a<esi:when test='1==1'>b</esi:when>c", "abc"),
    ] {
        assert_eq!(got(page), gives, "{page}");
    }
    let bad = "<esi:choose><esi:when test='1=='>b</esi:when></esi:choose></esi:choose>";
    assert_eq!(remarks(bad), [(12, RemarkKind::BadTest), (58, RemarkKind::NotOpen)]);
}

#[test]
fn an_attempt_has_its_exception() {
    let page = "<esi:try> <esi:attempt>a<esi:include src='/f'/></esi:attempt>\
                <esi:except>b<esi:include src='/g'/></esi:except> </esi:try>";
    let found = ops(page);
    let [ResolvedNode::Try { attempt, except }] = &found[..] else { panic!("{found:?}") };
    assert_eq!(sent(attempt, page.as_bytes(), &fetched).as_deref(), Some(&b"a{/f}"[..]));
    assert_eq!(sent(except, page.as_bytes(), &fetched).as_deref(), Some(&b"b{/g}"[..]));
}

#[test]
fn what_is_assigned_is_a_variable() {
    for (page, gives) in [
        ("<esi:assign name='a' value=\"'b c'\"/><esi:vars>[$(a)]</esi:vars>", "[b c]"),
        ("<esi:assign name='a' value='$(QUERY_STRING{x})!'/><esi:vars>$(a)</esi:vars>", "xv!"),
        ("<esi:vars>[$(a|d)]</esi:vars><esi:assign name='a' value='b'/>", "[d]"),
        ("<esi:assign name='a' value='/f'/><esi:include src='$(a)'/>", "{/f}"),
        (
            "<esi:assign name='a' value='1'/><esi:choose><esi:when test='$(a)==1'>y</esi:when>\
          </esi:choose>",
            "y",
        ),
        ("<esi:assign name='HTTP_HOST' value='b'/><esi:vars>$(HTTP_HOST)</esi:vars>", "h"),
        ("<esi:assign name='a' value='b'/><esi:vars name='[$(a)]'/>", "[b]"),
    ] {
        assert_eq!(got(page), gives, "{page}");
    }
}

#[test]
fn an_inline_fragment_is_sent_where_it_is_asked_for() {
    for (page, gives) in [
        (
            "<esi:inline name='/i'>x<esi:include src='/f'/></esi:inline>a<esi:include src='/i'/>b",
            "ax{/f}b",
        ),
        ("a<esi:include src='/i'/><esi:inline name='/i'>x</esi:inline>", "a{/i}"),
        (
            "<esi:inline name='/i'>x</esi:inline><esi:inline name='/i'>y</esi:inline>\
          <esi:include src='/i'/>",
            "x",
        ),
    ] {
        assert_eq!(got(page), gives, "{page}");
    }
    let page = "<esi:inline name='/i'>x</esi:inline>";
    let document = document(page);
    let [Node::Inline { name, .. }] = document.nodes() else { panic!("{document:?}") };
    assert_eq!(&name[..], b"/i");
}

#[test]
fn what_goes_and_what_stays() {
    for (page, gives) in [
        ("a<esi:remove>b<esi:include src='/f'/><esi:remove>c</esi:remove>d</esi:remove>e", "ae"),
        ("a<esi:comment text='b>c'/>d", "ad"),
        ("a<!--esi b<!-- c -->d-->e", "a b<!-- c d-->e".trim_start()),
        ("a<!--esi-->b", "ab"),
        ("a<!--esi x--->b", "a x-b"),
        ("a<!-- esi x-->b", "a<!-- esi x-->b"),
        ("a --> b", "a --> b"),
        ("<p>1 < 2 <es</p><esi>", "<p>1 < 2 <es</p><esi>"),
        ("<<<esi:include src='/f'/>", "<<{/f}"),
        ("<es<esi:include src='/f'/>", "<es{/f}"),
        ("<!--<!--esi x-->", "<!-- x"),
        ("a<esi:foo>b</esi:foo>c", "abc"),
        ("a<esi:include src='/f'", "a"),
        ("a<esi:vars>$(HTTP_HOST</esi:vars>", "a$(HTTP_HOST"),
        ("a<esi:vars>$(A|$(HTTP_HOST))</esi:vars>", "a$(A|h)"),
        (
            "a<esi:vars>$(HTTP_HOST)<esi:include src='/f'/></esi:vars>$(HTTP_HOST)",
            "ah{/f}$(HTTP_HOST)",
        ),
        ("a<!--esi $(HTTP_HOST)<esi:vars>$(HTTP_HOST)$-$(</esi:vars>-->", "a $(HTTP_HOST)h$-$("),
    ] {
        assert_eq!(got(page), gives, "{page}");
    }
}

#[test]
fn faults_are_remarked_with_their_places() {
    for (page, found) in [
        ("a<esi:foo/>", &[(1, RemarkKind::Unknown)][..]),
        ("a<esi:include/>", &[(1, RemarkKind::NoSrc)]),
        ("a<esi:include src='/f'>", &[(1, RemarkKind::IncludeOpen)]),
        ("a<esi:choose>", &[(13, RemarkKind::NotClosed)]),
        ("a<esi:remove>b", &[(14, RemarkKind::NotClosed)]),
        ("a<esi:remove/>b", &[(1, RemarkKind::EmptyRemove)]),
        ("a<!--esi b", &[(10, RemarkKind::NotClosed)]),
        ("a<esi:vars", &[(1, RemarkKind::EndsInTag)]),
        ("a</esi:vars>", &[(1, RemarkKind::NotOpen)]),
        ("<esi:attempt>", &[(0, RemarkKind::Misplaced)]),
        ("<esi:assign name='a'/>", &[(0, RemarkKind::NoName)]),
        ("<esi:inline>a</esi:inline>", &[(0, RemarkKind::NoName)]),
        ("<esi:choose><esi:when test='1==1'></esi:choose>", &[(34, RemarkKind::NotClosed)]),
        ("<esi:comment>a</esi:comment>", &[(0, RemarkKind::CommentOpen)]),
    ] {
        assert_eq!(remarks(page), found, "{page}");
    }
    let document = document("a\n\n<esi:foo/>\n<esi:foo\n/>");
    let lines: Vec<u64> = document.remarks().list().iter().map(|remark| remark.line).collect();
    assert_eq!(lines, [3, 5]);
    assert_eq!((document.remarks().errors(), document.remarks().warnings()), (2, 0));
}

#[test]
fn limits_hold() {
    let limits = Limits { nodes: 10, nesting: 3, attribute_bytes: 50, ..Limits::default() };
    let read = |page: &str| Document::parse(page.as_bytes(), Dialect::Esi, limits);
    let has = |document: &Document, kind| document.remarks().list().iter().any(|r| r.kind == kind);

    let many = read(&"<esi:include src='/f'/>".repeat(100));
    assert!(has(&many, RemarkKind::TooMany) && many.nodes().len() <= 12, "{many:?}");

    let deep = "<esi:choose><esi:when test='1==1'>".repeat(3) + "x";
    assert!(has(&read(&deep), RemarkKind::TooDeep));

    let long = read(&format!("a<esi:include src='/{}'/>b", "f".repeat(50)));
    assert!(has(&long, RemarkKind::TooLong) && long.nodes().len() == 2, "{long:?}");

    // Two includes of itself: without the limit the page would grow to 2^3 of them, or 2^32.
    let inline = "<esi:inline name='/i'>".to_owned() + &"<esi:include src='/i'/>".repeat(6);
    let page = inline + "</esi:inline><esi:include src='/i'/>";
    assert_eq!(read(&page).resolve(&Request("")), Err(Error::Operations(20)));
}

#[test]
fn a_page_without_an_instruction_is_plain() {
    let page = document("a<esi:include src='/f'/>b<esi:remove>c</esi:remove>");
    assert!(!page.is_plain());
    assert!(document("a<b>").is_plain());
    assert!(page.memory() > document("a<b>").memory());
}
