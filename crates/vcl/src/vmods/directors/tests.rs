//! Tests of directors through their methods, with backends of controlled health.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::failure::ProgramFailure;
use crate::state::backend::{
    Backend, BackendLink, BackendSpec, Health, Leaf, Listing, ShardMember,
};
use crate::state::ctx::{Ctx, Task};
use crate::state::program::Object;
use crate::sub::Sub;
use crate::testing::SubroutineFixture;
use crate::vmod::{Class, ObjectIdentity};
use crate::workspace::Workspace;

/// A backend whose health the test sets.
#[derive(Clone)]
struct Switch {
    leaf: Arc<Leaf>,
    is_healthy: Arc<AtomicBool>,
}

struct Watched(Arc<AtomicBool>);

impl BackendLink for Watched {
    fn is_healthy(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn changed(&self) -> f64 {
        crate::testing::NOW - 10.0
    }

    fn is_found(&self) -> Option<bool> {
        Some(true)
    }

    fn in_use(&self) -> u32 {
        0
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Switch {
    fn new(name: &str) -> Self {
        let is_healthy = Arc::new(AtomicBool::new(true));
        let leaf = Leaf::new(name, BackendSpec::default());
        leaf.set_link(Arc::new(Watched(Arc::clone(&is_healthy))));
        Self { leaf, is_healthy }
    }

    fn set(&self, is_healthy: bool) {
        self.is_healthy.store(is_healthy, Ordering::Relaxed);
    }

    fn value(&self) -> Value {
        Value::Backend(Backend::Leaf(Arc::clone(&self.leaf)))
    }
}

fn class(name: &str) -> &'static Class {
    MODULE.classes.iter().find(|class| class.name == name).expect("a class of the module")
}

/// An object of a class, with the fixture that it is called in.
struct Object1 {
    class: &'static Class,
    object: Arc<dyn Object>,
    fixture: SubroutineFixture,
}

impl Object1 {
    fn new(name: &str, args: &[Value]) -> Self {
        let mut fixture = SubroutineFixture::bare();
        let class = class(name);
        let naming = ObjectIdentity { name: "d", number: 0 };
        let object = (class.construct)(&mut fixture.ctx(Sub::Init), &naming, args);
        let object = object.expect("its arguments are right");
        Self { class, object, fixture }
    }

    /// Calls a method; missing arguments are left out.
    fn call(&mut self, sub: Sub, name: &str, args: &[Value]) -> Result<Value, ProgramFailure> {
        let method = self.class.methods.iter().find(|m| m.name == name).expect("a method");
        let mut all = args.to_vec();
        all.resize(method.params.len(), Value::Void);
        (method.call)(&mut self.fixture.ctx(sub), &self.object, &all)
    }

    fn add(&mut self, backend: &Switch) {
        self.call(Sub::Init, "add_backend", &[backend.value()]).expect("it can be added");
    }

    fn resolve(&mut self) -> Option<String> {
        let backend = self.object.backend().expect("a director is a backend");
        let mut ctx: Ctx<'_> = self.fixture.ctx(Sub::BackendFetch);
        backend.resolve(&mut ctx).map(|leaf| leaf.name.to_string())
    }

    /// The backends that the director resolves to, several times.
    fn run(&mut self, times: usize) -> Vec<String> {
        (0..times).map(|_| self.resolve().unwrap_or_else(|| "-".into())).collect()
    }

    fn end_task(&mut self) {
        self.fixture.task = Task::new(1000, Workspace::unbounded());
    }
}

fn three() -> [Switch; 3] {
    ["a", "b", "c"].map(Switch::new)
}

#[test]
fn round_robin_takes_turns_among_the_healthy() {
    let mut director = Object1::new("round_robin", &[]);
    let all = three();
    assert_eq!(director.run(1), ["-"], "nobody is there yet");
    all.iter().for_each(|backend| director.add(backend));
    assert_eq!(director.run(4), ["a", "b", "c", "a"]);
    all[1].set(false);
    assert_eq!(director.run(3), ["c", "a", "c"]);
    all[1].set(true);
    director.call(Sub::Init, "remove_backend", &[all[2].value()]).expect("it can be removed");
    let mut two = director.run(2);
    two.sort_unstable();
    assert_eq!(two, ["a", "b"]);
}

#[test]
fn fallback_takes_the_first_healthy_one_again() {
    let mut director = Object1::new("fallback", &[Value::Bool(false)]);
    let all = three();
    all.iter().for_each(|backend| director.add(backend));
    assert_eq!(director.run(1), ["a"]);
    all[0].set(false);
    assert_eq!(director.run(1), ["b"]);
    all[0].set(true);
    assert_eq!(director.run(1), ["a"]);
    all.iter().for_each(|backend| backend.set(false));
    assert_eq!(director.run(1), ["-"]);
}

#[test]
fn a_sticky_fallback_stays() {
    let mut director = Object1::new("fallback", &[Value::Bool(true)]);
    let all = three();
    all.iter().for_each(|backend| director.add(backend));
    all[0].set(false);
    assert_eq!(director.run(1), ["b"]);
    all[0].set(true);
    assert_eq!(director.run(1), ["b"]);
    all[1].set(false);
    assert_eq!(director.run(1), ["c"]);
    all[2].set(false);
    assert_eq!(director.run(1), ["a"]);
}

#[test]
fn random_goes_by_weights_of_the_healthy() {
    let mut director = Object1::new("random", &[]);
    let all = three();
    for (backend, weight) in all.iter().zip([1.0, 0.0, 3.0]) {
        let args = [backend.value(), Value::Real(weight)];
        director.call(Sub::Init, "add_backend", &args).expect("it can be added");
    }
    for (point, name) in [(0.0, "a"), (0.24, "a"), (0.26, "c"), (0.999, "c")] {
        director.fixture.environment.random = point;
        assert_eq!(director.run(1), [name], "{point}");
    }
    all[2].set(false);
    assert_eq!(director.run(1), ["a"]);
    all[0].set(false);
    assert_eq!(director.run(1), ["-"], "a weight of nothing is never chosen");
}

// Choices of Varnish 7.1.1: weights 1, 2, 3 (sick), 1.
#[test]
fn hash_chooses_as_varnish_does() {
    let mut director = Object1::new("hash", &[]);
    let all = ["b1", "b2", "s1", "b3"].map(Switch::new);
    for (backend, weight) in all.iter().zip([1.0, 2.0, 3.0, 1.0]) {
        let args = [backend.value(), Value::Real(weight)];
        director.call(Sub::Init, "add_backend", &args).expect("it can be added");
    }
    all[2].set(false);
    let expected =
        ["b2", "b1", "b2", "b2", "b1", "b1", "b3", "b2", "b1", "b2", "b2", "b3"].map(String::from);
    for (n, name) in expected.iter().enumerate() {
        let key = Value::String(Some(format!("key{n}").into()));
        let chosen = director.call(Sub::Recv, "backend", &[key]).expect("it answers");
        assert!(matches!(chosen, Value::Backend(b) if b.name() == name), "key{n}");
    }
}

#[test]
fn a_director_cannot_be_among_its_own_backends() {
    let mut outer = Object1::new("round_robin", &[]);
    let mut inner = Object1::new("fallback", &[Value::Bool(false)]);
    let of = |object: &Object1| Value::Backend(object.object.backend().expect("a director"));
    assert!(outer.call(Sub::Init, "add_backend", &[of(&outer)]).is_err());
    outer.call(Sub::Init, "add_backend", &[of(&inner)]).expect("another can be");
    assert!(inner.call(Sub::Init, "add_backend", &[of(&outer)]).is_err());
    assert!(outer.call(Sub::Init, "add_backend", &[Value::Backend(Backend::None)]).is_err());
}

#[test]
fn directors_nest_and_tell_their_health() {
    let mut outer = Object1::new("round_robin", &[]);
    let mut inner = Object1::new("fallback", &[Value::Bool(false)]);
    let all = three();
    inner.add(&all[0]);
    let inner_backend = inner.object.backend().expect("a director");
    outer.call(Sub::Init, "add_backend", &[Value::Backend(inner_backend)]).expect("it can be");
    outer.add(&all[1]);
    assert_eq!(outer.run(2), ["a", "b"]);
    all[0].set(false);
    assert_eq!(outer.run(2), ["b", "b"], "a director without a healthy backend is not healthy");
    let backend = outer.object.backend().expect("a director");
    assert!(backend.health().is_healthy);
    all[1].set(false);
    // Nothing has changed since the director was made.
    assert_eq!(backend.health(), Health { is_healthy: false, changed: crate::testing::NOW });
}

fn by_key(key: i64, alt: i64, healthy: &'static str) -> Vec<Value> {
    vec![
        Value::Enum("KEY"),
        Value::Int(key),
        Value::Void,
        Value::Int(alt),
        Value::Void,
        Value::Void,
        Value::Enum(healthy),
    ]
}

fn chosen(shard: &mut Object1, args: &[Value]) -> String {
    match shard.call(Sub::Synth, "backend", args).expect("it answers") {
        Value::Backend(backend) => backend.name().to_string(),
        other => panic!("no backend: {other:?}"),
    }
}

// Choices of Varnish 7.1.1 for a key whose walk is s1, b1, s2; names with `s` are sick.
#[test]
fn shard_passes_over_the_sick_as_varnish_does() {
    let mut shard = Object1::new("shard", &[]);
    let all = ["b1", "s1", "s2"].map(Switch::new);
    all.iter().for_each(|backend| shard.add(backend));
    shard.end_task();
    all[1].set(false);
    all[2].set(false);
    for (healthy, expected) in [
        ("CHOSEN", ["b1", "b1", "none", "none"]),
        ("IGNORE", ["s1", "b1", "s2", "s2"]),
        ("ALL", ["b1", "none", "b1", "b1"]),
    ] {
        for (alt, name) in expected.into_iter().enumerate() {
            let args = by_key(144_797_136, alt as i64, healthy);
            assert_eq!(chosen(&mut shard, &args), name, "{healthy} {alt}");
        }
    }
}

#[test]
fn changes_wait_for_the_end_of_the_task_or_reconfigure() {
    let mut shard = Object1::new("shard", &[]);
    let all = three();
    shard.add(&all[0]);
    assert_eq!(shard.run(1), ["-"]);
    shard.end_task();
    assert_eq!(shard.run(1), ["a"]);
    shard.call(Sub::Recv, "clear", &[]).expect("it can be cleared");
    shard.add(&all[1]);
    let done = shard.call(Sub::Recv, "reconfigure", &[Value::Int(5)]).expect("it can be");
    assert!(matches!(done, Value::Bool(true)));
    assert_eq!(shard.run(1), ["b"]);
    let done = shard.call(Sub::Recv, "reconfigure", &[Value::Int(0)]).expect("it answers");
    assert!(matches!(done, Value::Bool(false)));
}

#[test]
fn a_backend_that_ramps_up_gets_its_share_only() {
    let mut shard = Object1::new("shard", &[]);
    let all = ["a", "b"].map(Switch::new);
    shard.add(&all[0]);
    let slow = [all[1].value(), Value::Void, Value::Duration(0.0)];
    shard.call(Sub::Init, "add_backend", &slow).expect("it can be added");
    shard.end_task();
    // Healthy for 10 s: half of its ramp-up time.
    shard.call(Sub::Init, "set_rampup", &[Value::Duration(20.0)]).expect("it can be set");
    let key = (0..200)
        .map(|n| n * 20_000_000)
        .find(|key| chosen(&mut shard, &by_key(*key, 0, "IGNORE")) == "a");
    let key = key.expect("some key leads to a");
    for (point, name) in [(0.4, "a"), (0.6, "b")] {
        shard.fixture.environment.random = point;
        assert_eq!(chosen(&mut shard, &by_key(key, 0, "CHOSEN")), name, "{point}");
    }
}

#[test]
fn warming_up_takes_the_next_one_as_often() {
    let mut shard = Object1::new("shard", &[]);
    let all = ["a", "b"].map(Switch::new);
    all.iter().for_each(|backend| shard.add(backend));
    shard.end_task();
    let mut args = by_key(1, 0, "CHOSEN");
    let first = chosen(&mut shard, &args);
    args[4] = Value::Real(0.25);
    for (point, is_first) in [(0.2, false), (0.3, true)] {
        shard.fixture.environment.random = point;
        assert_eq!(chosen(&mut shard, &args) == first, is_first, "{point}");
    }
}

#[test]
fn wrong_arguments_of_a_shard_fail() {
    let mut shard = Object1::new("shard", &[]);
    shard.add(&Switch::new("a"));
    shard.end_task();
    for args in [
        by_key(-1, 0, "CHOSEN"),
        by_key(1 << 32, 0, "CHOSEN"),
        by_key(1, -1, "CHOSEN"),
        vec![Value::Enum("KEY")],
        vec![Value::Enum("BLOB")],
        vec![Value::Enum("BLOB"), Value::Void, Value::Blob(None)],
        vec![Value::Enum("URL"), Value::Int(1)],
        vec![Value::Void, Value::Void, Value::Void, Value::Void, Value::Real(1.5)],
    ] {
        assert!(shard.call(Sub::Synth, "backend", &args).is_err(), "{args:?}");
    }
    let mut now = vec![Value::Void; 8];
    now.push(Value::Enum("NOW"));
    assert!(shard.call(Sub::Init, "backend", &now).is_err());
    now[8] = Value::Enum("LAZY");
    now[3] = Value::Int(1);
    assert!(shard.call(Sub::Recv, "backend", &now).is_err(), "parameters wait for a fetch");
    assert!(shard.call(Sub::BackendFetch, "backend", &now).is_ok());
}

#[test]
fn a_set_of_parameters_is_read_back() {
    let mut set = Object1::new("shard_param", &[]);
    let mut args = by_key(7, 1, "ALL");
    set.call(Sub::Init, "set", &args).expect("it can be set");
    let read = |set: &mut Object1, name: &str| {
        format!("{:?}", set.call(Sub::BackendFetch, name, &[]).expect("it answers"))
    };
    assert_eq!(read(&mut set, "get_by"), "String(Some(b\"KEY\"))");
    assert_eq!(read(&mut set, "get_key"), "Int(7)");
    assert_eq!(read(&mut set, "get_alt"), "Int(1)");
    assert_eq!(read(&mut set, "get_warmup"), "Real(-1.0)");
    args[3] = Value::Int(3);
    set.call(Sub::BackendFetch, "set", &args).expect("it can be set");
    assert_eq!(read(&mut set, "get_alt"), "Int(3)");
    set.end_task();
    assert_eq!(read(&mut set, "get_alt"), "Int(1)", "that was of the other request");
    assert!(set.call(Sub::Recv, "set", &args).is_err());
}

#[test]
fn an_operator_can_call_a_director_sick() {
    let mut inner = Object1::new("round_robin", &[]);
    let [a, b, _] = three();
    inner.add(&a);
    let mut outer = Object1::new("fallback", &[Value::Bool(false)]);
    let backend = inner.object.backend().expect("a director");
    outer.call(Sub::Init, "add_backend", &[Value::Backend(backend.clone())]).expect("added");
    outer.add(&b);
    assert_eq!(outer.run(1), ["a"]);
    let Backend::Director(director) = &backend else { panic!("a director") };
    director.admin_health().expect("it can be told").set_order(Some(false), 1.0);
    assert_eq!(outer.run(1), ["b"]);
    director.admin_health().expect("it can be told").set_order(None, 2.0);
    assert_eq!(outer.run(1), ["a"]);
}

#[test]
fn lists_tell_what_varnish_tells() {
    let listing = |object: &Object1| match object.object.backend() {
        Some(Backend::Director(director)) => director.listing(crate::testing::NOW),
        _ => panic!("a director"),
    };
    let [a, b, _] = three();
    let mut fallback = Object1::new("fallback", &[Value::Bool(true)]);
    assert_eq!(listing(&fallback), Listing::Fallback { sticky: true, current: None });
    [&a, &b].into_iter().for_each(|backend| fallback.add(backend));
    a.set(false);
    fallback.run(1);
    assert_eq!(listing(&fallback), Listing::Fallback { sticky: true, current: Some(1) });
    assert_eq!(listing(&Object1::new("hash", &[])), Listing::Hidden);

    let mut shard = Object1::new("shard", &[]);
    shard.call(Sub::Init, "set_rampup", &[Value::Duration(40.0)]).expect("set");
    [&a, &b].into_iter().for_each(|backend| shard.add(backend));
    shard.end_task();
    // The member has been healthy for ten seconds.
    let row = |ident: &str, share, remaining| ShardMember { ident: ident.into(), share, remaining };
    let members = vec![row("a", 0.0, 0.0), row("b", 0.25, 30.0)];
    assert_eq!(listing(&shard), Listing::Shard { warmup: 0.0, rampup: 40.0, members });
}
