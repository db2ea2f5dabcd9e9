//! Tests of `[[neighbour]]`: values and messages.

use purge::neighbour::NeighbourDialect;

use super::{load, said};
use crate::NeighbourTransport;

fn file(neighbour: &str) -> String {
    format!(
        "[[neighbour]]\n{neighbour}\n[[site]]\nhost = \"example.com\"\norigin = \"http://127.0.0.1:8080\"\n"
    )
}

#[test]
fn a_neighbour_is_an_origin_or_addresses() {
    let config = load(&file("origin = \"http://10.0.0.5:6081\""));
    let [neighbour] = &*config.neighbours else { panic!("one") };
    assert_eq!(neighbour.profile.dialect, NeighbourDialect::Purge);
    let NeighbourTransport::Origin(at) = neighbour.transport else { panic!("an origin") };
    assert_eq!(config.origins[at].name, "http://10.0.0.5:6081");
    let config = load(&file("htcp = [\"10.0.0.6:4827\", \"[2001:db8::1]:4827\"]"));
    let NeighbourTransport::Htcp(addresses) = &config.neighbours[0].transport else {
        panic!("addresses")
    };
    assert_eq!(addresses.len(), 2);
    let named = "origin = \"edge\"\ndialect = \"souin\"\nsites = \"example.com\"\n\
                 [[origin]]\nname = \"edge\"\nservers = [\"http://10.0.0.7\", \"http://10.0.0.8\"]";
    let config = load(&file(named));
    assert_eq!(said(&file(named)), "", "an origin that only a neighbour uses is used");
    assert_eq!(config.neighbours[0].profile.base, "/souin-api/souin");
    assert_eq!(config.neighbours[0].profile.sites, ["example.com"]);
}

#[test]
fn a_neighbour_that_is_asked_is_one_server() {
    let config = load(&file("htcp = \"10.0.0.6:4827\"\nask = \"http://10.0.0.6:3128\""));
    let at = config.neighbours[0].ask.expect("it is asked");
    assert_eq!(config.origins[at].name, "http://10.0.0.6:3128");
    assert_eq!(load(&file("htcp = \"10.0.0.6:4827\"")).neighbours[0].ask, None);
    let named = "htcp = \"10.0.0.6:4827\"\nask = \"edge\"\n[[origin]]\nname = \"edge\"\n";
    assert_eq!(said(&file(&format!("{named}servers = \"https://10.0.0.6\""))), "");
    let two = "htcp = [\"10.0.0.6:4827\", \"10.0.0.7:4827\"]\nask = \"http://10.0.0.6:3128\"";
    for (lines, text) in [
        ("origin = \"http://a\"\nask = \"http://a:3128\"", "`ask` is for neighbours with `htcp`"),
        (two, "has one `htcp` address of its own"),
        ("htcp = \"239.0.0.1:4827\"\nask = \"http://10.0.0.6\"", "has one `htcp` address"),
        (&format!("{named}servers = [\"http://10.0.0.6\", \"http://10.0.0.7\"]"), "one server"),
        (&format!("{named}servers = \"fastcgi://10.0.0.6:9000\"\nroot = \"/srv\""), "speaks HTTP"),
        ("htcp = \"10.0.0.6:4827\"\nask = \"squid\"", "no origin is called `squid`"),
    ] {
        assert!(said(&file(lines)).contains(text), "{lines}: {}", said(&file(lines)));
    }
}

#[test]
fn every_dialect_is_in_the_table_of_keys() {
    let key = crate::parse::NEIGHBOUR.key("dialect").expect("a key");
    for (dialect, name, _) in NeighbourDialect::ALL {
        let is_said =
            key.about.contains(&format!("`{name}`")) && key.takes.contains(&format!("\"{name}\""));
        assert_eq!(is_said, *dialect != NeighbourDialect::Htcp, "{name}");
    }
}

#[test]
fn what_is_wrong_is_said_where_it_stands() {
    for (lines, text) in [
        ("dialect = \"purge\"", "a neighbour without an address"),
        ("origin = \"http://a\"\nhtcp = \"10.0.0.6:4827\"", "either `origin`, for HTTP, or `htcp`"),
        ("htcp = \"10.0.0.6\"", "`10.0.0.6` is no address of a neighbour"),
        ("htcp = \"10.0.0.6:4827\"\ntoken = \"x\"", "`token` is for neighbours with an `origin`"),
        ("origin = \"http://a\"\ndialect = \"fastly\"", "the dialect `fastly` needs `path`"),
        ("origin = \"http://a\"\npath = \"a\"", "`a` is no path"),
        ("origin = \"http://a\"\npath = \"/a\"", "`path` means nothing to `purge`"),
        ("origin = \"http://a\"\nsites = \"example.org\"", "did you mean `example.com`?"),
        ("origin = \"http://a\"\ntoken = \"a b\"", "a token is visible ASCII"),
        ("origin = \"edge\"", "no origin is called `edge`"),
    ] {
        assert!(said(&file(lines)).contains(text), "{lines}: {}", said(&file(lines)));
    }
    let unknown = said(&file("origin = \"http://a\"\ndialect = \"varnish\""));
    assert!(unknown.contains("`dialect` takes \"purge\", \"nginx-helper\""), "{unknown}");
}
