//! Tests of hosts and of their number.

use super::*;
use crate::sub::Sub;
use base::Limit;
use base::Limits;

use crate::state::backend::BackendLink;
use crate::testing::SubroutineFixture;
use crate::vmod::{ObjectIdentity, ParameterDefault};

fn made(fixture: &mut SubroutineFixture, port: &str) -> Result<Arc<dyn Object>, ProgramFailure> {
    made_with(fixture, 0, Value::String(Some(port.to_string().into())))
}

/// A director whose argument `at` is this value.
fn made_with(
    fixture: &mut SubroutineFixture,
    at: usize,
    value: Value,
) -> Result<Arc<dyn Object>, ProgramFailure> {
    let mut args: Vec<Value> = CLASS
        .params
        .iter()
        .map(|param| match (param.default, param.kind) {
            (Some(ParameterDefault::Number(n)), crate::vmod::ArgumentType::Of(Type::Int)) => {
                Value::Int(n as i64)
            }
            (Some(ParameterDefault::Number(n)), _) => Value::Duration(n),
            (Some(ParameterDefault::Enum(value)), _) => Value::Enum(value),
            (Some(ParameterDefault::Str(text)), _) => Value::String(Some(text.into())),
            _ => Value::Void,
        })
        .collect();
    args[at] = value;
    let naming = ObjectIdentity { name: "d", number: 0 };
    construct(&mut fixture.ctx(Sub::Init), &naming, &args)
}

fn leaf(
    fixture: &mut SubroutineFixture,
    object: &Arc<dyn Object>,
    host: &str,
    port: &str,
) -> Backend {
    let string = |text: &str| Value::String(Some(text.to_string().into()));
    let args = [string(host), string(port)];
    match backend(&mut fixture.ctx(Sub::BackendFetch), object, &args) {
        Ok(Value::Backend(backend)) => backend,
        other => panic!("no backend: {other:?}"),
    }
}

#[test]
fn a_host_and_port_are_one_backend() {
    let mut fixture = SubroutineFixture::bare();
    let object = made(&mut fixture, "http").expect("its arguments are right");
    let first = leaf(&mut fixture, &object, "App.example", "");
    assert_eq!(first.name(), "d(app.example:80)");
    assert!(first.is(&leaf(&mut fixture, &object, "app.example", "80")));
    assert!(!first.is(&leaf(&mut fixture, &object, "app.example", "8080")));
    let Backend::Leaf(first) = first else { panic!("not one to connect to") };
    assert!(first.spec.follows);
    assert_eq!(first.spec.host_header.as_deref(), Some("app.example"));
}

#[test]
fn without_a_host_it_is_that_of_the_request() {
    let mut fixture = SubroutineFixture::bare();
    let object = made(&mut fixture, "8080").expect("its arguments are right");
    fixture.bereq.headers.set(message::HeaderId::Host, b"shop.example:6081");
    let chosen = leaf(&mut fixture, &object, "", "");
    assert_eq!(chosen.name(), "d(shop.example:8080)");
}

#[test]
fn what_is_no_host_has_no_backend() {
    let mut fixture = SubroutineFixture::bare();
    let object = made(&mut fixture, "http").expect("its arguments are right");
    for (host, port) in [("a b", ""), ("a/b", ""), ("a", "0"), ("a", "x"), ("a:80", "")] {
        assert!(leaf(&mut fixture, &object, host, port).is(&Backend::None), "{host} {port}");
    }
    assert!(!leaf(&mut fixture, &object, "::1", "").is(&Backend::None));
    assert!(made(&mut fixture, "ftp").is_err());
}

#[test]
fn lookups_are_made_when_the_program_says() {
    let mut fixture = SubroutineFixture::bare();
    let object = made_with(&mut fixture, 4, Value::Duration(5.0)).expect("any time will do");
    let Backend::Leaf(first) = leaf(&mut fixture, &object, "a.example", "") else {
        panic!("no backend to connect to")
    };
    let expected = Lookups { from: "cfg", ttl: 5.0, retry: 30.0 };
    assert_eq!(first.spec.lookups, Some(expected));
}

#[test]
fn what_is_not_carried_out_is_refused() {
    let mut fixture = SubroutineFixture::bare();
    for (at, value) in [(2, Value::Enum("HOST")), (9, Value::Duration(5.0))] {
        assert!(made_with(&mut fixture, at, value).is_err(), "{at}");
    }
    assert!(made_with(&mut fixture, 9, Value::Duration(10.0)).is_ok());
}

#[test]
fn unused_backends_are_dropped() {
    let mut fixture = SubroutineFixture::bare();
    let object = made(&mut fixture, "http").expect("its arguments are right");
    leaf(&mut fixture, &object, "a", "");
    fixture.now += 7000.0;
    leaf(&mut fixture, &object, "b", "");
    fixture.now += 7000.0;
    leaf(&mut fixture, &object, "c", "");
    assert_eq!(names(&object), ["d(b:80)", "d(c:80)"]);
}

/// A backend's link with the result of its lookup.
struct Looked(Option<bool>);

impl BackendLink for Looked {
    fn is_healthy(&self) -> bool {
        true
    }

    fn changed(&self) -> f64 {
        0.0
    }

    fn is_found(&self) -> Option<bool> {
        self.0
    }

    fn in_use(&self) -> u32 {
        0
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

/// Asks for a host whose lookup ends like `found`. Returns true if it has a backend.
fn ask(
    fixture: &mut SubroutineFixture,
    object: &Arc<dyn Object>,
    host: &str,
    found: Option<bool>,
) -> bool {
    match leaf(fixture, object, host, "") {
        Backend::Leaf(leaf) => {
            leaf.set_link(Arc::new(Looked(found)));
            true
        }
        _ => false,
    }
}

fn names(object: &Arc<dyn Object>) -> Vec<String> {
    let Some(Backend::Director(director)) = object.backend() else { panic!("no director") };
    director.members().iter().map(|m| m.name().to_string()).collect()
}

fn limited(fixture: &SubroutineFixture, director_backends: u64, director_new_hosts: u64) {
    let limits = Limits { director_backends, director_new_hosts, ..Limits::default() };
    fixture.environment.shared.set_limits(&limits);
}

#[test]
fn what_was_never_found_makes_room_before_what_is_in_use() {
    let mut fixture = SubroutineFixture::bare();
    let object = made(&mut fixture, "http").expect("its arguments are right");
    limited(&fixture, 3, 100);
    for (host, found) in [("real", Some(true)), ("no1", Some(false)), ("slow", None)] {
        assert!(ask(&mut fixture, &object, host, found));
        fixture.now += 1.0;
    }
    assert!(fixture.environment.limits.borrow().is_empty());
    assert!(ask(&mut fixture, &object, "no2", Some(false)));
    assert_eq!(names(&object), ["d(no2:80)", "d(real:80)", "d(slow:80)"]);
    assert_eq!(*fixture.environment.limits.borrow(), [Limit::DirectorBackends]);
    fixture.now += 1.0;
    assert!(ask(&mut fixture, &object, "new", Some(true)));
    assert!(ask(&mut fixture, &object, "newer", Some(true)));
    assert_eq!(names(&object), ["d(new:80)", "d(newer:80)", "d(real:80)"]);
    // All were found: the least recently used one is dropped.
    fixture.now += 1.0;
    assert!(ask(&mut fixture, &object, "real", Some(true)));
    fixture.now += 1.0;
    assert!(ask(&mut fixture, &object, "newer", Some(true)));
    assert!(ask(&mut fixture, &object, "newest", Some(true)));
    assert_eq!(names(&object), ["d(newer:80)", "d(newest:80)", "d(real:80)"]);
}

#[test]
fn a_flood_of_names_leaves_others_their_part_of_a_second() {
    let mut fixture = SubroutineFixture::bare();
    let object = made(&mut fixture, "http").expect("its arguments are right");
    limited(&fixture, 10_000, 100);
    let at = |text: &str| Some(text.parse().expect("an address"));
    fixture.session.client = at("192.0.2.1:1");
    let flood = |fixture: &mut SubroutineFixture, object: &Arc<dyn Object>| {
        let taken = |n: &u32| ask(fixture, object, &format!("no{n}"), Some(false));
        (0..1_000).filter(taken).count()
    };
    assert_eq!(flood(&mut fixture, &object), 50);
    assert!(fixture.environment.limits.borrow().iter().all(|l| *l == Limit::DirectorNewHosts));
    fixture.session.client = at("192.0.2.2:1");
    assert!(ask(&mut fixture, &object, "real", Some(true)));
    fixture.session.client = at("192.0.2.1:1");
    assert!(ask(&mut fixture, &object, "real", Some(true)), "it is there");
    // Failed names are not looked up again before their time.
    fixture.now += 1.0;
    assert_eq!(flood(&mut fixture, &object), 100);
}

#[test]
fn a_name_that_was_not_found_is_looked_up_again_when_somebody_asks() {
    let mut fixture = SubroutineFixture::bare();
    let object = made(&mut fixture, "http").expect("its arguments are right");
    ask(&mut fixture, &object, "app", Some(false));
    let first = leaf(&mut fixture, &object, "app", "");
    fixture.now += 29.0;
    assert!(first.is(&leaf(&mut fixture, &object, "app", "")));
    fixture.now += 1.0;
    limited(&fixture, 10, 0);
    assert!(first.is(&leaf(&mut fixture, &object, "app", "")), "not now");
    limited(&fixture, 10, 1);
    let second = leaf(&mut fixture, &object, "app", "");
    assert!(!first.is(&second));
    assert!(second.is(&leaf(&mut fixture, &object, "app", "")));
}

#[test]
fn what_a_program_names_as_it_starts_is_always_taken() {
    let mut fixture = SubroutineFixture::bare();
    let object = made(&mut fixture, "http").expect("its arguments are right");
    limited(&fixture, 10, 0);
    let domains = &this::<DomainsObject>(&object).expect("it is one").0;
    assert!(domains.leaf("app", "", &fixture.ctx(Sub::Init)).is_some());
    assert!(domains.leaf("other", "", &fixture.ctx(Sub::Recv)).is_none());
}
