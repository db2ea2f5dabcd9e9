//! Evidence has what advice needs of both heads, and no secret.

use message::HeaderBlock;

use super::*;

const RULES: EvidenceRules = EvidenceRules { one_in: 1, has_agent: true };

fn block(fields: &[(&str, &str)]) -> HeaderBlock {
    let mut block = HeaderBlock::new();
    for (name, value) in fields {
        block.push_named(name.as_bytes(), value.as_bytes());
    }
    block
}

fn request(path: &str, fields: &[(&str, &str)]) -> Request {
    let mut request = Request::new();
    request.host = b"shop.example".to_vec();
    request.target = path.as_bytes().to_vec();
    request.headers = block(fields);
    request
}

fn response(status: Status, fields: &[(&str, &str)]) -> Response {
    let mut response = Response::new(status);
    response.headers = block(fields);
    response
}

fn noted(request: &Request, response: &Response, rules: EvidenceRules) -> NotedEvidence {
    let (seed, limits) = (HashSeed::from_u64(1), Limits::default());
    NotedEvidence::of(FetchHeads { request, response }, rules, &seed, &limits, 0)
}

fn lines(noted: &NotedEvidence) -> Vec<String> {
    let line = |field: heads::Field<'_>| {
        let [name, value] = [field.name, field.value].map(String::from_utf8_lossy);
        format!("{} {name}: {value}", field.side.word())
    };
    heads::fields(noted.fields.bytes()).map(line).collect()
}

fn fingerprint(response: &Response, body: &str) -> BodyFingerprint {
    let mut hasher = noted(&request("/", &[]), response, RULES).take_hasher().expect("a turn");
    hasher.push(body.as_bytes());
    hasher.finish()
}

#[test]
fn secrets_are_left_out_and_the_rest_is_there() {
    let asked = request(
        "/a",
        &[
            ("Accept", "text/html"),
            ("Authorization", "Bearer secret"),
            ("Cookie", "sid=secret; theme=dark"),
            ("User-Agent", "curl"),
            ("X-Other", "x"),
        ],
    );
    let answered = response(
        Status::OK,
        &[
            ("Cache-Control", "max-age=5"),
            ("Set-Cookie", "sid=secret; Path=/"),
            ("Set-Cookie", "secret"),
            ("X-Accel-Expires", "9"),
            ("Location", "/in?code=secret"),
            ("Surrogate-Key", "a b  c"),
            ("X-Other", "x"),
        ],
    );
    let noted = noted(&asked, &answered, RULES);
    let lines = lines(&noted);
    let cookies = lines.iter().find(|line| line.starts_with("bereq cookie: ")).expect("cookies");
    let names: Vec<_> = cookies[14..].split("; ").filter_map(|pair| pair.split_once('=')).collect();
    assert!(matches!(names[..], [("sid", a), ("theme", b)] if a != b && a.len() == 16));
    assert!(lines.iter().all(|line| !line.contains("secret") && !line.contains("dark")));
    let place =
        lines.iter().find(|line| line.starts_with("beresp location: /in?")).expect("a place");
    let others = lines.iter().filter(|line| ![cookies, place].contains(line));
    let others: Vec<_> = others.collect();
    assert_eq!(
        others,
        [
            "bereq accept: text/html",
            "bereq authorization: ***",
            "beresp cache-control: max-age=5",
            "beresp set-cookie: sid",
            "beresp set-cookie: ",
            "beresp x-accel-expires: 9",
            "beresp surrogate-key: 3",
        ]
    );
}

#[test]
fn evidence_that_lacks_a_field_is_left_out() {
    let long = "x".repeat(FIELDS_MAX);
    for (accept, is_there) in [("text/html", true), (&*long, false)] {
        let noted = noted(&request("/", &[("Accept", accept)]), &response(Status::OK, &[]), RULES);
        let mut out = Vec::new();
        record::Record::default().write([None::<&[u8]>], &mut out);
        let length = out.len();
        noted.append(&mut out, 0);
        assert_eq!(out.len() > length, is_there);
    }
}

#[test]
fn equal_bodies_of_other_responses_are_not_equal() {
    let html = ("Content-Type", "text/html; charset=utf-8");
    let page = response(Status::OK, &[html]);
    let one = fingerprint(&page, "item 1");
    assert_eq!(one, fingerprint(&page, "item 1"));
    assert!(one != fingerprint(&page, "item 2"));
    for other in [
        response(Status::BAD_GATEWAY, &[html]),
        response(Status::OK, &[html, ("Location", "/a")]),
        response(Status::OK, &[html, ("Content-Encoding", "gzip")]),
        response(Status::OK, &[("Content-Type", "text/plain")]),
    ] {
        assert!(one != fingerprint(&other, "item 1"));
    }
}

#[test]
fn a_part_and_a_bare_head_have_no_fingerprint() {
    let mut head = request("/", &[]);
    head.method = Method::Head;
    assert!(noted(&head, &response(Status::OK, &[]), RULES).take_hasher().is_none());
    for status in [Status::PARTIAL_CONTENT, Status::NOT_MODIFIED] {
        assert!(noted(&request("/", &[]), &response(status, &[]), RULES).take_hasher().is_none());
    }
}

#[test]
fn every_page_has_its_turn_with_all_its_requests() {
    let seed = HashSeed::from_u64(1);
    let turns = |one_in, path: &str| -> Vec<u64> {
        let rules = EvidenceRules { one_in, has_agent: true };
        let request = request(path, &[]);
        (0..20).filter(|turn| rules.is_turn(&seed, &request, turn * TURN_MS)).collect()
    };
    for path in ["/", "/a", "/b"] {
        let own = turns(20, path);
        assert_eq!(own.len(), 1);
        assert_eq!(own, turns(20, &format!("{path}?q=1")));
    }
    assert_eq!((turns(0, "/").len(), turns(1, "/").len(), turns(4, "/").len()), (0, 20, 5));
}
