//! Tests of the client that is noted before the request is received.

use super::*;
use crate::StoreUse;

#[test]
fn fields_that_are_set_after_the_client_was_noted_change_neither_client_nor_scheme() {
    let trusted_proxies = vec![parse_net("10.0.0.0/8").expect("a block")];
    let policy = Declared::new(SiteRules { trusted_proxies, ..SiteRules::default() });
    let came = [
        ("X-Forwarded-For", "198.51.100.7"),
        ("X-Forwarded-Proto", "https"),
        ("X-Real-IP", "203.0.113.9"),
        ("X-SSL-Client-Verify", "SUCCESS"),
    ];
    let (mut request, mut notes) = (with(get("/"), &came), Notes::default());
    let (client, now) = (ConnectionPeer::Host(ip("10.0.0.1")), NOW);
    let store = StoreUse::ByRules;
    let mut ctx = ReceiveCtx { request: &mut request, client, now, store, notes: &mut notes };
    policy.identify(&mut ctx);
    let left: Vec<_> = ctx.request.headers.iter().map(|field| field.name.to_vec()).collect();
    assert_eq!(left, [b"Host".to_vec(), b"X-Forwarded-For".to_vec()]);
    for (name, value) in [("X-Forwarded-For", "203.0.113.9"), ("X-Forwarded-Proto", "http")] {
        ctx.request.headers.set_named(name.as_bytes(), value.as_bytes());
    }
    _ = policy.receive(&mut ctx);
    assert_eq!(notes.client, Some(ConnectionPeer::Host(ip("198.51.100.7"))));
    assert_eq!(request.scheme, Scheme::Https);
}
