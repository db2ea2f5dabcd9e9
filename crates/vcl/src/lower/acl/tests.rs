//! Tests of access lists against varnishd and against a linear scan of the entries.

use std::net::{Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;

use super::*;
use crate::ast::{AclEntry, Name};
use crate::sub::{Action, Sub};
use crate::tag::Tag;
use crate::testing::{SubroutineFixture, compile};

/// Lists, each with the addresses that varnishd 7.1.1 permits.
#[test]
fn the_longest_mask_decides() {
    let addrs = [
        "10.0.0.1",
        "10.1.2.3",
        "10.1.2.4",
        "10.200.0.1",
        "192.168.1.1",
        "127.0.0.1",
        "::1",
        "2001:db8::1",
        "2001:db8::2",
        "::ffff:10.0.0.1",
    ];
    for (list, lets_in) in [
        (
            r#"{ "10.0.0.0"/8; ! "10.1.0.0"/16; "10.1.2.3"; }"#,
            &["10.0.0.1", "10.1.2.3", "10.200.0.1"][..],
        ),
        (r#"{ ! "10.1.2.3"; "10.0.0.0"/8; }"#, &["10.0.0.1", "10.1.2.4", "10.200.0.1"]),
        (r#"-pedantic { "10.1.2.3"/8; }"#, &["10.0.0.1", "10.1.2.3", "10.1.2.4", "10.200.0.1"]),
        (r#"{ "::1"; "2001:db8::"/32; ! "2001:db8::1"; }"#, &["::1", "2001:db8::2"]),
        (
            r#"{ ! "0.0.0.0"/0; "10.0.0.0"/8; }"#,
            &["10.0.0.1", "10.1.2.3", "10.1.2.4", "10.200.0.1"],
        ),
        (
            r#"{ "0.0.0.0"/0; }"#,
            &["10.0.0.1", "10.1.2.3", "10.1.2.4", "10.200.0.1", "192.168.1.1", "127.0.0.1"],
        ),
        (r#"{ "10.0.0.0/8"; }"#, &["10.0.0.1", "10.1.2.3", "10.1.2.4", "10.200.0.1"]),
        (r#"{ ("nosuchhost.invalid"); "10.0.0.1"; }"#, &["10.0.0.1"]),
        (r#"{ ! ("nosuchhost.invalid"); "10.0.0.1"; }"#, &["10.0.0.1"]),
        (r#"{ "0x0a000001"; "10.1.516"; }"#, &["10.0.0.1", "10.1.2.4"]),
        (r#"{ "::"/0; ! "::1"; }"#, &["2001:db8::1", "2001:db8::2", "::ffff:10.0.0.1"]),
        (r"{ }", &[]),
    ] {
        let text = program(list);
        let mut fixture = SubroutineFixture::of(&text).unwrap_or_else(|e| panic!("{e}"));
        for addr in addrs {
            fixture.session.client = Some((addr.parse::<IpAddr>().expect("an address"), 1).into());
            let got = fixture.run(Sub::Recv) == Action::Pass(None);
            assert_eq!(got, lets_in.contains(&addr), "{addr} {list}");
        }
    }
}

fn program(list: &str) -> String {
    format!(
        "vcl 4.1; backend default none; acl x {list} \
         sub vcl_recv {{ if (client.ip ~ x) {{ return (pass); }} return (synth(403)); }}"
    )
}

#[test]
fn what_varnish_refuses_is_refused() {
    for (list, message) in [
        (r#"{ "10.0.0.0"/33; }"#, "too wide for IPv4"),
        (r#"{ "::1"/129; }"#, "too wide for IPv6"),
        (r#"{ "10.0.0.1"/8; }"#, r#"perhaps "10.0.0.0"/8 is meant"#),
        (r#"+pedantic { "10.0.0.1"/8; }"#, "bits behind its mask"),
        (r#"{ "10.0.0.0"/0; }"#, r#"perhaps "0.0.0.0"/0 is meant"#),
        (r#"{ "nosuch.invalid"; }"#, "cannot be found"),
        (r#"{ "1.2.3.4:80"; }"#, "cannot be found"),
        (r#"{ ""; }"#, "cannot be found"),
        (r#"{ "[::1]"; }"#, "cannot be found"),
        (r#"+foo { "10.0.0.0"; }"#, "no flag `foo`"),
        (r#"{ "10.0.0.1"; ! "10.0.0.1"; }"#, "contradicts another one"),
    ] {
        let error = compile(&program(list)).expect_err(list);
        assert!(error.contains(message), "{list}: {error}");
    }
    for list in [r#"{ "10.0.0.1"; "10.0.0.1"; }"#, r#"+log -log +table { "10.0.0.0"/08; }"#] {
        assert!(compile(&program(list)).is_ok(), "{list}");
    }
}

#[test]
fn a_list_with_log_says_which_entry_decided() {
    let list = r#"+log -pedantic { "10.0.0.0"/8; ! "10.1.0.0"/16; "127.0.0.1"/24; }"#;
    let mut fixture = SubroutineFixture::of(&program(list)).unwrap_or_else(|e| panic!("{e}"));
    for addr in [[10, 0, 0, 1], [10, 1, 0, 1], [127, 0, 0, 9], [9, 9, 9, 9]] {
        fixture.session.client = Some((addr, 1).into());
        fixture.run(Sub::Recv);
    }
    let log = fixture.environment.log.borrow();
    let lines = log.iter().filter(|(tag, _)| *tag == Tag::Acl);
    let lines: Vec<_> = lines.map(|(_, line)| String::from_utf8_lossy(line)).collect();
    assert_eq!(
        lines,
        [
            r#"MATCH x "10.0.0.0"/8"#,
            r#"NEG_MATCH x "10.1.0.0"/16"#,
            r#"MATCH x "127.0.0.1"/24 fixed: 127.0.0.0/24"#,
            "NO_MATCH x",
        ]
    );
}

/// Few addresses with all mask lengths, so that many entries nest.
fn entries(is_v6: bool) -> impl Strategy<Value = Vec<(u128, u32, bool)>> {
    let width: u32 = if is_v6 { 128 } else { 32 };
    let addr = (0_u128..16, 0..width)
        .prop_map(move |(low, at)| (low << at) & (u128::MAX >> (128 - width)));
    prop::collection::vec((addr, 0..=width, any::<bool>()), 0..12)
}

fn ip(is_v6: bool, number: u128) -> IpAddr {
    if is_v6 {
        Ipv6Addr::from_bits(number).into()
    } else {
        Ipv4Addr::from_bits(number as u32).into()
    }
}

proptest! {
    #[test]
    fn lists_decide_as_a_plain_look_at_all_entries_does(
        (is_v6, entries) in any::<bool>().prop_flat_map(|v6| (Just(v6), entries(v6))),
        more in prop::collection::vec(any::<u128>(), 4),
    ) {
        let width: u32 = if is_v6 { 128 } else { 32 };
        let nothing = SourceSpan::default();
        let name = |text: &str| Name { text: text.into(), span: nothing };
        let acl = ast::AclDeclaration {
            name: name("x"),
            flags: vec![ast::AclFlag {
                is_on: false,
                name: name("pedantic"),
                inner: Vec::new(),
            }],
            entries: entries.iter().map(|(addr, bits, negated)| AclEntry {
                negated: *negated,
                optional: false,
                host: (ip(is_v6, *addr).to_string().into(), nothing),
                mask: Some((*bits, nothing)),
                span: nothing,
            }).collect(),
        };
        let under = |addr: u128, of: &(u128, u32, bool)| {
            (addr ^ of.0).checked_shr(width - of.1).unwrap_or(0) == 0
        };
        let no_names = |_: &str| Err(String::new());
        let built = build(&acl, &no_names);
        let contradicts = entries.iter().any(|a| {
            entries.iter().any(|b| a.1 == b.1 && a.2 != b.2 && under(a.0, b))
        });
        prop_assert_eq!(built.is_err(), contradicts);
        let Ok((built, _)) = built else { return Ok(()) };
        let edges = entries.iter().flat_map(|(addr, bits, _)| {
            let rest = (u128::MAX >> (128 - width)).checked_shr(*bits).unwrap_or(0);
            let (first, last) = (addr & !rest, addr | rest);
            [first, last, first.wrapping_sub(1), last.wrapping_add(1)]
        });
        for addr in edges.chain(more) {
            let addr = addr & (u128::MAX >> (128 - width));
            let longest = entries.iter().filter(|of| under(addr, of)).max_by_key(|of| of.1);
            let expected = longest.is_some_and(|of| !of.2);
            prop_assert_eq!(built.matches(ip(is_v6, addr)), expected);
        }
    }
}
