//! Tests of reading each dialect, and of the clients that may use it.

use message::HeaderBlock;
use policy::acl::{CidrSet, Net, parse_net};
use policy::{ConnectionPeer, Dialect, Dialects};

use super::*;
use crate::dialects::virtual_host;

fn request(method: &str, target: &str, fields: &[(&str, &str)]) -> Request {
    let mut headers = HeaderBlock::new();
    for (name, value) in fields {
        headers.push_named(name.as_bytes(), value.as_bytes());
    }
    Request {
        method: Method::from_token(method.as_bytes()),
        host: b"example.org".to_vec(),
        target: target.as_bytes().to_vec(),
        headers,
        ..Request::new()
    }
}

/// Reads a request in one dialect, from a client that may purge.
fn made_of(dialect: Dialect, method: &str, target: &str, fields: &[(&str, &str)]) -> String {
    let allow = CidrSet::new(&[Net::Unix]);
    read_as(
        &Purge { allow, token: None, dialects: Dialects::default().with(dialect), group: None },
        &request(method, target, fields),
        true,
    )
}

/// Reads a request in these dialects, from a client that may purge.
fn read_as(purge: &Purge, request: &Request, named: bool) -> String {
    let asker = Asker { peer: ConnectionPeer::Local, near: false };
    match read(purge, PurgeCandidate { request, named }, || asker) {
        None => "a reader's".to_owned(),
        Some(Err(refusal)) => format!("{refusal:?}"),
        Some(Ok(PurgeRequest::Refresh)) => "refresh".to_owned(),
        Some(Ok(PurgeRequest::Store(order, answers))) => {
            let order = match order {
                PurgeOrder::Url { target, soft } => {
                    format!("url {}{}", String::from_utf8_lossy(&target), said(soft))
                }
                PurgeOrder::Many { what, soft } => format!("{}{}", what.text(), said(soft)),
                PurgeOrder::List => "list".to_owned(),
                PurgeOrder::Shared(_) => panic!("a site reads for itself"),
            };
            match answers {
                Answers::Always => order,
                Answers::OrMissing => format!("{order} or 404"),
                Answers::Empty => format!("{order}, 204"),
            }
        }
    }
}

fn said(soft: bool) -> &'static str {
    if soft { " softly" } else { "" }
}

#[test]
fn every_dialect_is_read_as_its_plugins_send_it() {
    use Dialect::{
        Drupal, Fastly, FosHttpCache, Magento, NginxHelper, Purge, Shopware, Souin, Squid,
    };
    let pattern = "((^|,)cat_p_1(,|$))|((^|,)cat_c_2(,|$))";
    for (dialect, method, target, fields, made) in [
        (Purge, "PURGE", "/a?b=c", &[][..], "url /a?b=c"),
        (Purge, "PURGE", "/a", &[("X-Purge-Method", "default")], "url /a"),
        (
            Purge,
            "PURGE",
            "/blog/.*",
            &[("X-Purge-Method", "regex")],
            r"req.http.host ~ ^example\.org(:[0-9]+)?$ && req.url ~ /blog/.*",
        ),
        (Purge, "PURGE", "/(", &[("X-Purge-Method", "regex")], "Pattern"),
        (
            Purge,
            "PURGE",
            "/blog/*",
            &[],
            r"req.http.host ~ ^example\.org(:[0-9]+)?$ && req.url ~ ^/blog/",
        ),
        (Purge, "PURGE", "/*", &[], "everything"),
        (Purge, "PURGE", "/a*b", &[], "url /a*b"),
        (
            NginxHelper,
            "GET",
            "/purge/blog/*",
            &[],
            r"req.http.host ~ ^example\.org(:[0-9]+)?$ && req.url ~ ^/blog/",
        ),
        (
            NginxHelper,
            "PURGE",
            "/purge/blog/*",
            &[],
            r"req.http.host ~ ^example\.org(:[0-9]+)?$ && req.url ~ ^/blog/",
        ),
        (Purge, "GET", "/a", &[("X-Purge-Method", "regex")], "a reader's"),
        (Purge, "BAN", "/a", &[], "Method"),
        (Squid, "PURGE", "/a", &[], "url /a or 404"),
        (NginxHelper, "GET", "/purge/a/?b", &[], "url /a/?b or 404"),
        (NginxHelper, "GET", "/purge", &[], "a reader's"),
        (NginxHelper, "PURGE", "/purgeall", &[], "everything"),
        (NginxHelper, "PURGE", "/a", &[], "Method"),
        (Magento, "PURGE", "/", &[("X-Magento-Tags-Pattern", pattern)], "tags cat_p_1 cat_c_2"),
        (Magento, "PURGE", "/", &[("X-Magento-Tags-Pattern", ".*")], "everything"),
        (Magento, "PURGE", "/", &[("X-Magento-Tags-Pattern", "cat_.*")], "TagPattern"),
        (Magento, "PURGE", "/", &[("X-Pool", "a")], "obj.http.x-pool ~ a"),
        (Magento, "PURGE", "/", &[], "Missing(\"X-Magento-Tags-Pattern or X-Pool is missing.\")"),
        (Drupal, "BAN", "/", &[("Purge-Cache-Tags", "node:1 node_list")], "tags node:1 node_list"),
        (Drupal, "BAN", "/", &[("Cache-Tags", "a|b")], "tags a b"),
        (Drupal, "BAN", "/", &[("Cache-Tags", "(^|\\s)a(\\s|$)")], "tags a"),
        (Drupal, "BAN", "/a", &[], "Missing(\"The field that says what to ban is missing.\")"),
        (Drupal, "URIBAN", "/a", &[], "url /a"),
        (Drupal, "PURGE", "/a", &[], "url /a"),
        (Drupal, "REFRESH", "/a", &[], "refresh"),
        (Purge, "REFRESH", "/a", &[], "Method"),
        (FosHttpCache, "PURGE", "/a", &[], "url /a"),
        (
            FosHttpCache,
            "BAN",
            "/",
            &[("X-Host", "^a\\.b$"), ("X-Url", "/x"), ("X-Content-Type", "text/html")],
            r"req.http.host ~ ^a\.b$ && req.url ~ /x && obj.http.content-type ~ text/html",
        ),
        (
            FosHttpCache,
            "BAN",
            "/",
            &[("X-Host", ".*"), ("X-Url", ".*"), ("X-Content-Type", ".*")],
            "everything",
        ),
        (
            FosHttpCache,
            "BAN",
            "/",
            &[("X-Host", ".*"), ("X-Cache-Tags", "(^|,)(a\\-1|b)(,|$)")],
            "tags a-1 b",
        ),
        (
            FosHttpCache,
            "BAN",
            "/",
            &[("X-Url", "/x"), ("X-Cache-Tags", "(a)(,.+)?$")],
            "req.url ~ /x && tags a",
        ),
        (FosHttpCache, "PURGEKEYS", "/", &[("xkey-purge", "a b")], "tags a b"),
        (FosHttpCache, "PURGEKEYS", "/", &[("xkey-softpurge", "a")], "tags a softly"),
        (FosHttpCache, "GET", "/a", &[("Cache-Control", "no-cache")], "refresh"),
        (FosHttpCache, "GET", "/a", &[("X-Refresh", "1")], "refresh"),
        (FosHttpCache, "GET", "/a", &[("Cache-Control", "max-age=0")], "a reader's"),
        (Shopware, "PURGE", "/", &[("xkey", "product-1 category-2")], "tags product-1 category-2"),
        (Shopware, "BAN", "/detail/.*", &[], "req.url ~ /detail/.*"),
        (Shopware, "PURGE", "/detail/1", &[], "url /detail/1"),
        (Souin, "PURGE", "/souin-api/souin", &[("Surrogate-Key", "a, b")], "tags a b, 204"),
        (Souin, "PURGE", "/souin-api/souin/flush", &[], "everything, 204"),
        (Souin, "PURGE", "/souin-api/souin/GET-.*-/a", &[], "souin GET-.*-/a, 204"),
        (Souin, "GET", "/souin-api/souin", &[], "list, 204"),
        (Souin, "GET", "/souin-api/souinx", &[], "a reader's"),
        (Fastly, "PURGE", "/a", &[("Fastly-Soft-Purge", "1")], "url /a softly"),
        (Fastly, "PURGE", "/a", &[("Surrogate-Key", "k1 k2")], "tags k1 k2"),
        (
            Fastly,
            "PURGE",
            "/",
            &[("Surrogate-Key", "k1"), ("Fastly-Soft-Purge", "1")],
            "tags k1 softly",
        ),
    ] {
        let got = made_of(dialect, method, target, fields);
        assert_eq!(got, made, "{method} {target} {fields:?}");
    }
}

#[test]
fn a_client_without_permission_is_rejected_before_its_request_is_read() {
    let near = CidrSet::new(&[parse_net("127.0.0.0/8").expect("a block")]);
    let dialects = Dialects::default().with(Dialect::Purge).with(Dialect::FosHttpCache);
    let token: Box<str> = "0123456789abcdef".into();
    let here = ConnectionPeer::Host("127.0.0.1".parse().expect("an address"));
    let there = ConnectionPeer::Host("192.0.2.1".parse().expect("an address"));
    let right: &[(&str, &str)] = &[("X-Purge-Token", "0123456789abcdef")];
    let bearer: &[(&str, &str)] = &[("Authorization", "bearer 0123456789abcdef")];
    let wrong: &[(&str, &str)] = &[("X-Purge-Token", "0123456789abcdeF")];
    for (allow, token, asker, fields, may) in [
        (near.clone(), None, here, &[][..], true),
        (near.clone(), None, there, &[], false),
        (
            near.clone(),
            None,
            ConnectionPeer::Unnamed(Some(here.address().expect("one"))),
            &[],
            false,
        ),
        (near.clone(), None, there, right, false),
        (CidrSet::default(), None, here, right, false),
        (CidrSet::default(), Some(&token), there, right, true),
        (CidrSet::default(), Some(&token), there, bearer, true),
        (CidrSet::default(), Some(&token), here, wrong, false),
        (CidrSet::default(), Some(&token), here, &[], false),
        (near.clone(), Some(&token), here, right, true),
        (near.clone(), Some(&token), here, wrong, false),
        (near, Some(&token), there, right, false),
    ] {
        let purge = Purge { allow, token: token.cloned(), dialects, group: None };
        let asker = Asker { peer: asker, near: false };
        let said =
            |request: &Request| read(&purge, PurgeCandidate { request, named: true }, || asker);
        let read = |method| match said(&request(method, "/", fields)) {
            Some(Ok(_)) => true,
            Some(Err(Refusal::Access)) => false,
            other => panic!("{other:?}"),
        };
        assert_eq!(read("PURGE"), may, "{purge:?} {asker:?} {fields:?}");
        let refresh = [fields, &[("X-Refresh", "1")]].concat();
        // A browser's reload is not rejected.
        assert_eq!(said(&request("GET", "/", &refresh)).is_some(), may);
    }
}

#[test]
fn conditions_on_surrogate_keys_become_surrogate_keys() {
    let read = |text: &str| {
        ResponseSelector::of_expression(ban::Expression::parse(text).expect("an expression"))
            .map(|what| what.text())
    };
    assert_eq!(
        read("obj.http.X-Cache-Tags ~ (^|,)(a|b)(,|$) && req.url ~ /x").as_deref(),
        Ok("req.url ~ /x && tags a b")
    );
    assert_eq!(read("obj.http.xkey == a").as_deref(), Ok("tags a"));
    for text in ["obj.http.xkey ~ a", "obj.http.xkey != a", "obj.http.xkey ~ (^|,)a.*(,|$)"] {
        assert!(read(text).is_err_and(|why| why.contains("hashes")), "{text}");
    }
}

/// Dialects of the message, method, target, fields.
type Message =
    (&'static [Dialect], &'static str, &'static str, &'static [(&'static str, &'static str)]);

/// Messages of every dialect.
const SAID: [Message; 25] = {
    use Dialect::{
        ApiPlatform, Drupal, Fastly, FosHttpCache, Magento, NginxHelper, Plone, Purge, Shopware,
        Souin, Squid, Typo3,
    };
    [
        (&[Purge], "PURGE", "/.*", &[("X-Purge-Method", "regex")]),
        (&[Purge], "PURGE", "/.*", &[]),
        (&[NginxHelper], "PURGE", "/purgeall", &[]),
        (&[NginxHelper], "PURGE", "/purge/a", &[]),
        (&[Magento], "PURGE", "/", &[("X-Magento-Tags-Pattern", ".*")]),
        (&[Magento], "PURGE", "/", &[("X-Magento-Tags-Pattern", "(^|,)a(,|$)")]),
        (&[Magento], "PURGE", "/", &[("X-Pool", "a")]),
        (&[Drupal], "BAN", "/", &[("Purge-Cache-Tags", "a")]),
        (&[Drupal], "BAN", "/", &[("Cache-Tags", "a|b")]),
        (&[Drupal, Shopware], "BAN", "/.*", &[]),
        (&[Drupal], "BAN", "/shop/*", &[]),
        (&[FosHttpCache], "BAN", "/", &[("X-Host", ".*"), ("X-Url", ".*")]),
        (&[FosHttpCache], "BAN", "/", &[("X-Cache-Tags", "a")]),
        (&[FosHttpCache], "PURGEKEYS", "/", &[("xkey-purge", "a")]),
        (&[Shopware, ApiPlatform], "PURGE", "/", &[("xkey", "a")]),
        (&[Shopware], "BAN", "/", &[]),
        (&[Fastly, Souin], "PURGE", "/", &[("Surrogate-Key", "a")]),
        (&[Souin], "PURGE", "/souin-api/souin/flush", &[]),
        (&[Souin, Fastly], "PURGE", "/souin-api/souin", &[("Surrogate-Key", "a")]),
        (&[ApiPlatform], "BAN", "/", &[("ApiPlatform-Ban-Regex", "(a)($|\\,)")]),
        (&[Typo3], "BAN", "/", &[("Varnish-Ban-All", "1")]),
        (&[Typo3], "BAN", "/", &[("Varnish-Ban-TYPO3-Pid", "7")]),
        (&[Typo3], "BAN", "/", &[("xkey-purge", "a")]),
        (&[Squid], "PURGE", "/a", &[]),
        (&[Plone], "PURGE", "/VirtualHostBase/http/a/b/VirtualHostRoot/c", &[]),
    ]
};

/// Returns true if a purge selects all or most of a site's objects.
fn is_sweeping(made: &str) -> bool {
    ["everything", "req.url ~ /", "req.url ~ /.*", "req.url ~ ^/"]
        .iter()
        .any(|all| made == *all || made.ends_with(&format!("&& {all}")))
}

#[test]
fn no_dialect_takes_anothers_message_for_one_that_empties_its_site() {
    let allow = CidrSet::new(&[Net::Unix]);
    for (own, method, target, fields) in SAID {
        let request = request(method, target, fields);
        for (dialect, name, _) in Dialect::ALL {
            for (with, ..) in Dialect::ALL {
                let dialects = Dialects::default().with(*dialect).with(*with);
                if dialects.any(own) {
                    continue;
                }
                for named in [true, false] {
                    let allow = allow.clone();
                    let purge = Purge { allow, token: None, dialects, group: None };
                    let made = read_as(&purge, &request, named);
                    assert!(!is_sweeping(&made), "{method} {target} {fields:?} at {name}: {made}");
                    let by_field = fields.iter().any(|(name, _)| *name != "X-Host");
                    let refused = ["Foreign", "Method", "Missing"];
                    assert!(
                        !by_field || refused.iter().any(|why| made.starts_with(why)),
                        "{method} {target} {fields:?} at {name}: {made}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_permission_for_the_loopback_address_holds_for_the_machines_own() {
    let here = CidrSet::new(&[parse_net("127.0.0.0/8").expect("a block")]);
    let other = CidrSet::new(&[parse_net("10.0.0.0/8").expect("a block")]);
    let dialects = Dialects::default().with(Dialect::Purge);
    let peer = ConnectionPeer::Host("192.0.2.7".parse().expect("an address"));
    let request = request("PURGE", "/", &[]);
    for (allow, near, may) in
        [(&here, true, true), (&here, false, false), (&other, true, false), (&other, false, false)]
    {
        let purge = Purge { allow: allow.clone(), token: None, dialects, group: None };
        let read = read(&purge, PurgeCandidate { request: &request, named: true }, || Asker {
            peer,
            near,
        });
        assert_eq!(read.is_some_and(|read| read.is_ok()), may, "{allow:?} {near}");
    }
}

#[test]
fn a_path_of_zopes_names_host_and_path() {
    let read = |target: &str| {
        virtual_host(target.as_bytes()).map(|(host, path)| {
            [host, path].map(|part| String::from_utf8(part).expect("text")).join(" ")
        })
    };
    for (target, host_and_path) in [
        ("/VirtualHostBase/http/A.test:80/Plone/VirtualHostRoot/x/y", Some("a.test /x/y")),
        ("/VirtualHostBase/https/a.test/VirtualHostRoot/x", Some("a.test /x")),
        (
            "/VirtualHostBase/http/a.test/Plone/VirtualHostRoot/_vh_en/_vh_b/x",
            Some("a.test /en/b/x"),
        ),
        ("/VirtualHostBase/http/a.test/Plone/VirtualHostRoot", Some("a.test /")),
        ("/VirtualHostBase/http/a.test/Plone", None),
        ("/VirtualHostBase/http//Plone/VirtualHostRoot/x", None),
        ("/x/VirtualHostBase/http/a.test/VirtualHostRoot/x", None),
    ] {
        assert_eq!(read(target).as_deref(), host_and_path, "{target}");
    }
}
