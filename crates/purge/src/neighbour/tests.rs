//! Tests of the messages in each dialect: byte by byte, and by our own reader of the dialect.

use ban::Term;
use policy::acl::{CidrSet, Net};
use policy::{ConnectionPeer, Dialect, Dialects, Purge};

use super::*;
use crate::invalidation::{Cause, Id, NewTimes};
use crate::{Answers, Asker, PurgeCandidate, PurgeOrder, PurgeRequest};

const OURS: [(NeighbourDialect, Dialect); 6] = [
    (NeighbourDialect::Purge, Dialect::Purge),
    (NeighbourDialect::NginxHelper, Dialect::NginxHelper),
    (NeighbourDialect::FosHttpCache, Dialect::FosHttpCache),
    (NeighbourDialect::Xkey, Dialect::FosHttpCache),
    (NeighbourDialect::Souin, Dialect::Souin),
    (NeighbourDialect::Fastly, Dialect::Fastly),
];

fn invalidation(what: InvalidationTarget) -> Invalidation {
    let id = Id { node: 1, sequence: 1 };
    let cause = Cause::default();
    Invalidation { id, at_unix_ms: 0, sites: Sites::Every, soft: false, what, cause }
}

fn url(target: &str) -> Url {
    let host = b"example.org".to_vec();
    Url { host, port: None, target: target.as_bytes().to_vec(), client: ConnectionPeer::Local }
}

fn tags(tags: &[&str]) -> InvalidationTarget {
    InvalidationTarget::Many(ResponseSelector::Tags(
        tags.iter().map(|tag| tag.as_bytes().to_vec()).collect(),
    ))
}

fn manner(dialect: NeighbourDialect) -> NeighbourProfile {
    let base = match dialect {
        NeighbourDialect::Souin => "/souin-api/souin",
        NeighbourDialect::Fastly => "/service/S1",
        NeighbourDialect::Cloudflare => "/client/v4/zones/Z1",
        _ => "",
    };
    NeighbourProfile {
        dialect,
        base: base.to_owned(),
        token: Some("secret".to_owned()),
        sites: Vec::new(),
    }
}

fn hosts(names: &[String]) -> Option<String> {
    hosts_of(names)
}

/// Messages as text: request line, host, fields, body.
fn said(
    manner: &NeighbourProfile,
    invalidation: &Invalidation,
) -> Result<Vec<String>, UnsupportedPurge> {
    let text = |message: Message| match message {
        Message::Clear(url) => lossy(&url),
        Message::Request(request, body) => {
            let fields = request.headers.iter().filter(|field| field.name != TOLD_FIELD);
            let fields = fields.map(|f| format!(" | {}: {}", lossy(f.name), lossy(f.value)));
            let (method, target) = (lossy(request.method.token()), lossy(&request.target));
            let (host, fields) = (lossy(&request.host), fields.collect::<String>());
            let body = lossy(&body);
            let body = if body.is_empty() { body } else { format!(" | {body}") };
            format!("{method} {target} @{host}{fields}{body}")
        }
    };
    Ok(manner.messages(invalidation, &hosts)?.into_iter().map(text).collect())
}

fn of(dialect: NeighbourDialect, what: InvalidationTarget) -> Vec<String> {
    said(&manner(dialect), &invalidation(what)).expect("there are words")
}

#[test]
fn a_url_purge_exists_in_every_dialect() {
    let page = || InvalidationTarget::Url(url("/a?b=c"));
    let purge = vec!["PURGE /a?b=c @example.org"];
    assert_eq!(of(NeighbourDialect::Purge, page()), purge);
    assert_eq!(of(NeighbourDialect::FosHttpCache, page()), purge);
    assert_eq!(of(NeighbourDialect::Xkey, page()), purge);
    assert_eq!(of(NeighbourDialect::NginxHelper, page()), ["GET /purge/a?b=c @example.org"]);
    let souin = "PURGE /souin-api/souin/%5EGET-https%3F-example%5C.org-/a%5C%3Fb%3Dc\
                 %28%24%7C%5C%7B-VARY-%5C%7D%29 @ | authorization: Bearer secret";
    assert_eq!(of(NeighbourDialect::Souin, page()), [souin]);
    let fastly = "POST /purge/example.org/a?b=c @ | fastly-key: secret";
    assert_eq!(of(NeighbourDialect::Fastly, page()), [fastly]);
    let cloudflare = "POST /client/v4/zones/Z1/purge_cache @ | authorization: Bearer secret \
                      | Content-Type: application/json \
                      | {\"files\":[\"https://example.org/a?b=c\",\"http://example.org/a?b=c\"]}";
    assert_eq!(of(NeighbourDialect::Cloudflare, page()), [cloudflare]);
    let htcp = ["http://example.org/a?b=c", "https://example.org/a?b=c"];
    assert_eq!(of(NeighbourDialect::Htcp, page()), htcp);
    let port = InvalidationTarget::Url(Url { port: Some(8080), ..url("/") });
    assert_eq!(of(NeighbourDialect::Htcp, port)[0], "http://example.org:8080/");
}

#[test]
fn surrogate_keys_are_sent_where_the_dialect_has_them() {
    let keys = || tags(&["post-1", "a.b"]);
    let ban = "BAN / @ | x-host: .* | x-url: .* | x-content-type: .* \
               | x-cache-tags: (^|,)(post-1|a\\.b)(,|$)";
    assert_eq!(of(NeighbourDialect::FosHttpCache, keys()), [ban.replace("post-1", "post\\-1")]);
    assert_eq!(of(NeighbourDialect::Xkey, keys()), ["PURGEKEYS / @ | xkey-purge: post-1 a.b"]);
    let souin = "PURGE /souin-api/souin @ | authorization: Bearer secret \
                 | surrogate-key: post-1, a.b";
    assert_eq!(of(NeighbourDialect::Souin, keys()), [souin]);
    let fastly = "POST /service/S1/purge @ | fastly-key: secret | surrogate-key: post-1 a.b";
    assert_eq!(of(NeighbourDialect::Fastly, keys()), [fastly]);
    let cloudflare = of(NeighbourDialect::Cloudflare, keys());
    assert!(cloudflare[0].ends_with("{\"tags\":[\"post-1\",\"a.b\"]}"), "{cloudflare:?}");
    for dialect in [NeighbourDialect::Purge, NeighbourDialect::NginxHelper, NeighbourDialect::Htcp]
    {
        let unsaid = said(&manner(dialect), &invalidation(keys()));
        assert_eq!(unsaid, Err(UnsupportedPurge("surrogate keys")));
    }
    let odd = invalidation(tags(&["a b"]));
    assert!(said(&manner(NeighbourDialect::Xkey), &odd).is_err());
    // A soft purge, if the neighbour supports it.
    let soft = Invalidation { soft: true, ..invalidation(keys()) };
    let softly = |dialect| said(&manner(dialect), &soft).expect("words")[0].clone();
    assert_eq!(softly(NeighbourDialect::Xkey), "PURGEKEYS / @ | xkey-softpurge: post-1 a.b");
    assert!(softly(NeighbourDialect::Fastly).contains("fastly-soft-purge: 1"));
}

#[test]
fn many_surrogate_keys_are_several_messages() {
    let many: Vec<String> = (0..1_000).map(|number| format!("product-{number}")).collect();
    let many = tags(&many.iter().map(String::as_str).collect::<Vec<_>>());
    for (dialect, name, most) in [
        (NeighbourDialect::FosHttpCache, "x-cache-tags", 4_100),
        (NeighbourDialect::Fastly, "surrogate-key", 4_100),
    ] {
        let messages = manner(dialect).messages(&invalidation(many.clone()), &hosts);
        let messages = messages.expect("words");
        assert!(messages.len() > 3, "{}", dialect.name());
        let mut keys = 0;
        for message in &messages {
            let Message::Request(request, _) = message else { panic!("a request") };
            let value = request.headers.value_named(name.as_bytes()).expect("keys");
            assert!(value.len() <= most, "{} bytes", value.len());
            keys += lossy(value).matches("product").count();
        }
        assert_eq!(keys, 1_000);
    }
    let cloudflare = manner(NeighbourDialect::Cloudflare).messages(&invalidation(many), &hosts);
    assert_eq!(cloudflare.expect("words").len(), 34);
}

#[test]
fn broad_purges_are_sent_or_reported_as_unsupported() {
    let all = || InvalidationTarget::Many(ResponseSelector::Everything);
    let ban = "BAN / @ | x-host: .* | x-url: .* | x-content-type: .*";
    assert_eq!(of(NeighbourDialect::FosHttpCache, all()), [ban]);
    let flush = "PURGE /souin-api/souin/flush @ | authorization: Bearer secret";
    assert_eq!(of(NeighbourDialect::Souin, all()), [flush]);
    let fastly = "POST /service/S1/purge_all @ | fastly-key: secret";
    assert_eq!(of(NeighbourDialect::Fastly, all()), [fastly]);
    let cloudflare = of(NeighbourDialect::Cloudflare, all());
    assert!(cloudflare[0].ends_with("{\"purge_everything\":true}"));
    assert!(said(&manner(NeighbourDialect::Purge), &invalidation(all())).is_err());

    let below =
        ResponseSelector::beginning(Some(b"example.org"), Some(b"/shop/a.b")).expect("a prefix");
    let below = || InvalidationTarget::Many(below.clone());
    let ban = "BAN / @ | x-host: ^example\\.org(:[0-9]+)?$ | x-url: ^/shop/a\\.b \
               | x-content-type: .*";
    assert_eq!(of(NeighbourDialect::FosHttpCache, below()), [ban]);
    let cloudflare = of(NeighbourDialect::Cloudflare, below());
    assert!(cloudflare[0].ends_with("{\"prefixes\":[\"example.org/shop/a.b\"]}"), "{cloudflare:?}");
    assert!(said(&manner(NeighbourDialect::Fastly), &invalidation(below())).is_err());
    // Fields that programs keep for bans have the meaning of their names.
    for (text, wanted) in [
        ("obj.http.x-url ~ ^/a && obj.http.x-host == b.org", Some(("^b\\.org$", "^/a"))),
        ("obj.age > 1h", None),
        ("obj.status == 404", None),
        ("req.url !~ x", None),
        ("req.url ~ x && req.url ~ y", None),
    ] {
        let expression = Expression::parse(text).expect("an expression");
        let what = invalidation(InvalidationTarget::Many(ResponseSelector::by_fields(expression)));
        let told = said(&manner(NeighbourDialect::FosHttpCache), &what);
        let wanted = wanted.map(|(host, url)| {
            vec![format!("BAN / @ | x-host: {host} | x-url: {url} | x-content-type: .*")]
        });
        assert_eq!(told.ok(), wanted, "{text}");
    }
    let key = invalidation(InvalidationTarget::Retime(Box::default(), NewTimes::default()));
    assert!(said(&manner(NeighbourDialect::Purge), &key).is_err());
    let cause = Cause { url: Some(Box::new(url("/a"))), ..Cause::default() };
    let told = said(&manner(NeighbourDialect::Purge), &key.by(cause));
    assert_eq!(told, Ok(vec!["PURGE /a @example.org".to_owned()]));
}

#[test]
fn a_neighbour_gets_purges_of_its_sites_and_none_from_other_neighbours() {
    let own = |sites: &[&str]| NeighbourProfile {
        sites: sites.iter().map(|site| (*site).to_owned()).collect(),
        ..manner(NeighbourDialect::Fastly)
    };
    let of_site = |site: &str, what| Invalidation { sites: Sites::one(site), ..invalidation(what) };
    let all = of_site("a.org", InvalidationTarget::Many(ResponseSelector::Everything));
    assert_eq!(said(&own(&["b.org"]), &all), Ok(Vec::new()));
    let fastly = "POST /service/S1/purge_all @ | fastly-key: secret";
    assert_eq!(said(&own(&["a.org"]), &all), Ok(vec![fastly.to_owned()]));
    // It caches other sites as well.
    assert!(said(&own(&["a.org", "b.org"]), &all).is_err());
    assert!(said(&own(&[]), &all).is_err());
    let ban = said(&manner(NeighbourDialect::FosHttpCache), &all).expect("words");
    assert!(ban[0].contains("x-host: ^a\\.org(:[0-9]+)?$"), "{ban:?}");

    let page = invalidation(InvalidationTarget::Url(url("/a")));
    let heard = |heard, dialect| {
        let cause = Cause { heard, url: None };
        said(&manner(dialect), &page.clone().by(cause)).expect("words").len()
    };
    assert_eq!(heard(InvalidationSource::Neighbour, NeighbourDialect::Purge), 0);
    assert_eq!(heard(InvalidationSource::Datagram, NeighbourDialect::Purge), 1);
    assert_eq!(heard(InvalidationSource::Datagram, NeighbourDialect::Htcp), 0);
    assert_eq!(heard(InvalidationSource::Here, NeighbourDialect::Htcp), 2);
}

/// The result of our own reader for a message, as text.
fn read_again(dialect: Dialect, message: &Message) -> String {
    let Message::Request(request, _) = message else { panic!("a request") };
    let (allow, dialects) = (CidrSet::new(&[Net::Unix]), Dialects::default().with(dialect));
    let purge = Purge { allow, token: None, dialects, group: None };
    let asker = Asker { peer: ConnectionPeer::Local, near: false };
    let named = !request.host.is_empty();
    let Some(Ok(PurgeRequest::Store(order, answers))) =
        crate::read(&purge, PurgeCandidate { request, named }, || asker)
    else {
        panic!("it is read: {request:?}")
    };
    assert!(matches!(answers, Answers::Always | Answers::OrMissing | Answers::Empty));
    match order {
        PurgeOrder::Url { target, soft } => format!("url {} {soft}", lossy(&target)),
        PurgeOrder::Many { what, soft } => format!("{} {soft}", what.text()),
        PurgeOrder::List | PurgeOrder::Shared(_) => panic!("one site's"),
    }
}

#[test]
fn our_own_readers_understand_our_messages() {
    let terms = vec![Term::matches(Field::Url, false, ban::regex("^/a/.*z$").expect("a pattern"))];
    let cases = [
        (InvalidationTarget::Url(url("/a%20b?c=d")), "url /a%20b?c=d false"),
        (tags(&["post-1", "a.b", "x+y"]), "tags post-1 a.b x+y false"),
        (InvalidationTarget::Many(ResponseSelector::Everything), "everything false"),
        (InvalidationTarget::Many(ResponseSelector::terms(terms)), "req.url ~ ^/a/.*z$ false"),
    ];
    let mut heard = 0;
    for (ours, dialect) in OURS {
        for (what, wanted) in &cases {
            let is_url = matches!(what, InvalidationTarget::Url(_));
            // Fastly's purge by URL is the path of its API, Souin's a pattern of names.
            if is_url && matches!(dialect, Dialect::Fastly | Dialect::Souin) {
                continue;
            }
            let messages = manner(ours).messages(&invalidation(what.clone()), &hosts);
            let Ok(messages) = messages else { continue };
            let [message] = &*messages else { panic!("one message") };
            assert_eq!(read_again(dialect, message), *wanted, "{}", ours.name());
            heard += 1;
        }
    }
    assert_eq!(heard, 2 + 8 + 4, "no case is left out unseen");
}
