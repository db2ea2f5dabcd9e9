//! Tests of redirect maps: what a line is for, where it leads, and which files are refused.

use super::*;

fn map(text: &str) -> RedirectMap {
    RedirectMap::parse(text.as_bytes()).expect("a good file")
}

fn refused(text: &str) -> RedirectMapError {
    RedirectMap::parse(text.as_bytes()).expect_err("a bad file")
}

/// Status and Location for a target, as a client sends it.
fn answer(map: &RedirectMap, target: &str) -> Option<(u16, String)> {
    let mut request = Request::new();
    request.target = target.as_bytes().to_vec();
    target::canonical(&mut request);
    let found = map.find(&request, Status::new(301).expect("three digits"))?;
    let [(name, location)] = &found.response.fields[..] else { panic!("one field") };
    assert_eq!(name, b"Location");
    let location = String::from_utf8(location.clone()).expect("text");
    Some((found.response.status.code(), location))
}

fn location(map: &RedirectMap, target: &str) -> Option<String> {
    answer(map, target).map(|(_, location)| location)
}

#[test]
fn a_line_is_for_one_path_with_any_query() {
    let map = map("# moved\n\n/old /new\r\n/away https://b.test/x 308 # for good\n/n /m 302;\n");
    assert_eq!(map.len(), 3);
    for (target, expected) in [
        ("/old", Some((301, "/new"))),
        ("/old?a=b", Some((301, "/new?a=b"))),
        ("/old?", Some((301, "/new?"))),
        ("/away?a", Some((308, "https://b.test/x?a"))),
        ("/n", Some((302, "/m"))),
        ("/old/", None),
        ("/ol", None),
        ("/OLD", None),
        ("/new", None),
    ] {
        let expected = expected.map(|(status, location)| (status, location.to_owned()));
        assert_eq!(answer(&map, target), expected, "{target}");
    }
}

#[test]
fn a_line_with_a_query_goes_first_and_is_for_that_alone() {
    let map = map("/p /shop\n/p?id=7 /shop/seven\n/q?id=1 /one#part\n/r /s?t=1\n/u /v?\n/w /x#y\n");
    for (target, expected) in [
        ("/p?id=7", Some("/shop/seven")),
        ("/p?id=8", Some("/shop?id=8")),
        ("/p?id=7&a=b", Some("/shop?id=7&a=b")),
        ("/q?id=1", Some("/one#part")),
        ("/q", None),
        ("/r?a=b", Some("/s?t=1")),
        ("/u?a=b", Some("/v")),
        ("/w?a=b", Some("/x?a=b#y")),
    ] {
        assert_eq!(location(&map, target).as_deref(), expected, "{target}");
    }
}

#[test]
fn all_spellings_of_a_path_are_one() {
    let map =
        map("/caf\u{e9} /caf\u{e9}/neu\n/%7ea%2fb /x%20y\n/z https://b.test/\u{fc}%c3#\u{fc}\n");
    for (target, expected) in [
        ("/caf%C3%A9", "/caf%C3%A9/neu"),
        ("/caf%c3%a9", "/caf%C3%A9/neu"),
        ("/c%61f%c3%a9", "/caf%C3%A9/neu"),
        ("/~a%2Fb", "/x%20y"),
        ("/z", "https://b.test/%C3%BC%C3#%C3%BC"),
    ] {
        assert_eq!(location(&map, target).as_deref(), Some(expected), "{target}");
    }
    assert_eq!(location(&map, "/~a/b"), None, "an escaped slash is no slash");
}

#[test]
fn lines_that_cannot_be_meant_are_refused() {
    use RedirectLineError::*;
    for (line, why) in [
        ("/a", Words),
        ("/a /b 301 302", Words),
        ("/a /b 200", Status),
        ("/a /b permanent", Status),
        ("a /b", Old),
        ("https://a.test/a /b", Old),
        ("~^/a /b", Old),
        ("/a#b /c", Old),
        ("/a%00 /c", Old),
        ("/a\u{1} /c", Old),
        ("/a b", New),
        ("/a javascript:alert(1)", New),
        ("/a https://", New),
        ("/a https:///b", New),
        ("/a https://u:p@b.test/", New),
        ("/a https://b\\.test/", New),
        ("/a https://m\u{fc}ller.test/", New),
        ("/a /b\u{7f}", New),
        ("/a /b#\u{1}", New),
        ("/a //b.test/", Host),
        ("/a /\\b.test/", Host),
    ] {
        let text = format!("# a comment\n{line}\n");
        assert_eq!(refused(&text), RedirectMapError { line: 2, why }, "{line}");
    }
}

#[test]
fn two_targets_of_one_url_are_refused_and_a_repeated_line_is_told() {
    let error = refused("/a /b\n/c /d\n/%61 /e\n");
    assert_eq!(error.to_string(), "line 3: line 1 has another target for the same URL");
    assert!(matches!(refused("/a /b\n/a /b 302").why, RedirectLineError::Conflict(1)));
    assert!(matches!(refused("/a /b\n/a /b?").why, RedirectLineError::Conflict(1)));
    let repeated = map("/a /b\n/a?x /b\n/a /b\n/%61 /b\n").repeated().expect("two");
    assert_eq!(repeated, RepeatedLines { line: 3, earlier: 1, count: 2 });
    assert_eq!(map("/a /b\n/a? /b\n").repeated(), None);
}

#[test]
fn loops_are_found_also_over_the_site_s_own_hosts() {
    let hosts = ["a.test".to_owned(), "*.b.test".to_owned()];
    let of = |text: &str| map(text).refuse_loops(&hosts).map_err(|e| (e.line, e.why));
    for text in ["/a /a", "/a /%61", "/a /a?b=c", "/a /a?", "/a /a#b", "/a https://A.TEST/a"] {
        assert_eq!(of(text), Err((1, RedirectLineError::Loop(0))), "{text}");
    }
    assert_eq!(of("/x /b\n/b /c\n/c /b"), Err((2, RedirectLineError::Loop(1))));
    assert_eq!(of("/a /b\n/b /c\n/c https://a.test/a"), Err((1, RedirectLineError::Loop(2))));
    // The client's query is carried, and chooses the next line.
    assert_eq!(of("/a?x /b?x\n/b /a"), Err((1, RedirectLineError::Loop(1))));
    assert_eq!(of("/a?x /b\n/b /a"), Ok(()));
    assert_eq!(of("/ https://a.test"), Err((1, RedirectLineError::Loop(0))));
    assert_eq!(of("/ https://a.test?b"), Err((1, RedirectLineError::Loop(0))));
    for text in [
        "/a /b\n/b /c\n/c /d",
        "/a /c\n/b /c\n/c /d",
        "/a https://other.test/a",
        "/a https://a.test:8443/a",
        "/a?x /a",
        "/a /a/b",
    ] {
        assert_eq!(of(text), Ok(()), "{text}");
    }
}

proptest::proptest! {
    /// The map against a list that is searched from its beginning.
    #[test]
    fn a_map_finds_what_a_list_has(
        lines in proptest::collection::vec(("/[ab]{0,2}", proptest::option::of("[xy]")), 0..8),
        path in "/[ab]{0,2}",
        query in proptest::option::of("[xy]"),
    ) {
        let join = |path: &str, query: &Option<String>| match query {
            Some(query) => format!("{path}?{query}"),
            None => path.to_owned(),
        };
        let mut list: Vec<(String, String)> = Vec::new();
        for (path, query) in &lines {
            let old = join(path, query);
            if list.iter().all(|(own, _)| *own != old) {
                let new = format!("/new{}", list.len());
                list.push((old, new));
            }
        }
        let text: String = list.iter().map(|(old, new)| format!("{old} {new}\n")).collect();
        let of = |target: &str| list.iter().find(|(old, _)| old == target).map(|(_, new)| new);
        let target = join(&path, &query);
        let whole = query.as_ref().and_then(|_| of(&target)).cloned();
        let expected = whole.or_else(|| of(&path).map(|new| join(new, &query)));
        proptest::prop_assert_eq!(location(&map(&text), &target), expected);
    }

    /// Whatever a file and a request contain, a location is one line, and a host is the file's.
    #[test]
    fn no_bytes_make_it_fail(text in proptest::collection::vec(proptest::num::u8::ANY, 0..80)) {
        if let Ok(map) = RedirectMap::parse(&text) {
            _ = map.refuse_loops(&[]);
            for line in &map.lines {
                proptest::prop_assert!(line.url.iter().all(u8::is_ascii_graphic));
                proptest::prop_assert!(!line.url.starts_with(b"//"));
            }
        }
    }
}
