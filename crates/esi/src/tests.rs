//! Tests of properties of any page.

use proptest::prelude::*;

use crate::{Dialect, Document, Limits, Node, VarnishRules, fuzz};

/// Pieces of pages in all dialects, whole and broken.
const PIECES: &[&str] = &[
    "<esi:include src=\"/a\"/>",
    "<esi:include src='/$(QUERY_STRING{x})'/>",
    "<esi:include ",
    "src=",
    "\"",
    "'",
    ">",
    "/>",
    "<",
    "<!--esi ",
    "-->",
    "--",
    "-",
    "<!--",
    "<esi:remove>",
    "</esi:remove>",
    "<esi:comment text='x'/>",
    "<esi:vars>",
    "</esi:vars>",
    "$(HTTP_HOST)",
    "$(",
    "$",
    "|",
    "{",
    "}",
    ")",
    "<esi:choose>",
    "</esi:choose>",
    "<esi:when test=\"1==1\">",
    "<esi:when test=\"$(HTTP_HOST)>2 & !1\">",
    "</esi:when>",
    "<esi:otherwise>",
    "</esi:otherwise>",
    "<esi:try>",
    "</esi:try>",
    "<esi:attempt>",
    "</esi:attempt>",
    "<esi:except>",
    "</esi:except>",
    "<esi:inline name='/a'>",
    "</esi:inline>",
    "<esi:assign name='a' value='$(a)$(a)b'/>",
    "$(a)",
    "</esi:",
    "<esi:",
    "<b c=\"d\">",
    "text",
    "\n",
    " ",
    "<![CDATA[",
    "]]>",
    "\u{feff}",
    "=",
    "<!--# include virtual=\"/a\" -->",
    "<!--# ",
    " -->",
    "<!--# if expr=\"$arg_x = /(a)+/\" -->",
    "<!--# if expr=\"$v\" -->",
    "<!--# else -->",
    "<!--# elif expr=\"a=$arg_x\" -->",
    "<!--# endif -->",
    "<!--# set var=\"v\" value=\"$v$v/a\" -->",
    "<!--# echo var=\"v\" -->",
    "<!--# block name=\"s\" -->",
    "<!--# endblock -->",
    "\\",
    "<!--# endif x=\"\" -->",
    "<!--# include virtual=\"$v\" stub=\"s\" set=\"v\" -->",
    "<!--# config errmsg=\"e\" -->",
    "<!--# echo var=\"date_gmt\" default=\"d\" encoding=\"url\" -->",
];

fn page() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop::sample::select(PIECES), 0..40)
        .prop_map(|pieces| pieces.concat().into_bytes())
}

proptest! {
    #[test]
    fn cuts_change_nothing(first: u8, cut: u8, page in page()) {
        fuzz::parser(&[&[first, cut][..], &page].concat());
    }

    #[test]
    fn operations_lie_in_the_page(first: u8, request in page(), page in page()) {
        let length = u8::try_from(request.len()).unwrap_or(u8::MAX);
        fuzz::executor(&[&[first, length][..], &request[..length.into()], &page].concat());
    }

    #[test]
    fn arbitrary_bytes_are_a_page(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        fuzz::parser(&bytes);
        fuzz::executor(&bytes);
    }

    #[test]
    fn text_without_instructions_comes_back(text in "[a-z <>/!\n-]{1,200}") {
        for dialect in [Dialect::Esi, Dialect::Ssi, Dialect::Varnish(VarnishRules::default())] {
            let document = Document::parse(text.as_bytes(), dialect, Limits::default());
            prop_assert!(document.is_plain());
            prop_assert_eq!(document.nodes(), &[Node::Text(0..text.len() as u64)]);
        }
    }
}

/// Work that grows faster than the page would take minutes here.
#[test]
fn work_is_linear_in_the_page() {
    for piece in PIECES.iter().chain(&["$(|'", "$(A|", "<esi:a b='", "<!--esi<b>--", "<es", "]]"]) {
        let page = piece.repeat(50_000 / piece.len());
        for dialect in [Dialect::Esi, Dialect::Ssi, Dialect::Varnish(VarnishRules::default())] {
            for before in ["", "<esi:vars>", "<esi:vars name='"] {
                let page = [before, &page].concat();
                let document = Document::parse(page.as_bytes(), dialect, Limits::default());
                assert!(document.nodes().len() <= Limits::default().nodes + 3);
            }
        }
    }
}
