//! Tests of the registry: each reply is that of varnishd 7.1.1 to the same commands.

use vcl::backend::Backend;

use super::*;

fn loaded() -> LoadedProgram {
    LoadedProgram {
        instance: Instance::of_backends(vec![Backend::None]),
        state: State::Auto,
        warm: true,
        used: Instant::now(),
        configured: false,
        file: None,
    }
}

fn registry(names: &[&str]) -> Registry {
    let mut registry = Registry::default();
    for name in names {
        registry.add(name, loaded());
    }
    registry
}

fn text(reply: Result<Reply, Reply>) -> (u16, String) {
    let reply = reply.unwrap_or_else(|refused| refused);
    (reply.status as u16, reply.text)
}

#[test]
fn names_begin_with_a_letter_and_are_taken_once() {
    let registry = registry(&["a"]);
    let refused = |name: &str| registry.admit(name).err().map(|reply| reply.text);
    assert_eq!(refused("b"), None);
    assert_eq!(refused("std-2_x"), None);
    assert_eq!(refused("a").as_deref(), Some("Already a VCL named a"));
    assert_eq!(refused("1d").as_deref(), Some("Illegal character in VCL name ('1')"));
    assert_eq!(refused("x.y").as_deref(), Some("Illegal character in VCL name ('.')"));
    assert_eq!(refused("a b").as_deref(), Some("Illegal character in VCL name (0x20)"));
}

#[test]
fn one_program_is_in_force() {
    let mut registry = registry(&["boot", "a"]);
    assert_eq!(text(registry.use_it("nope")), (106, "No VCL named nope known\n".to_owned()));
    assert_eq!(text(registry.use_it("a")), (200, "VCL 'a' now active".to_owned()));
    assert_eq!(text(registry.use_it("a")), (200, String::new()));
    assert_eq!(registry.active().map(|(name, _)| name), Some("a"));
    let refused = registry.discard(&["a"]).map(|_| Reply::ok(""));
    assert_eq!(text(refused), (300, "Cannot discard active VCL program a\n".to_owned()));
    let cold = text(registry.set_state("a", State::Cold));
    assert_eq!(cold, (300, "Cannot set the active VCL cold.".to_owned()));
    assert_eq!(text(registry.set_state("boot", State::Cold)).0, 200);
    let refused = text(registry.use_it("boot"));
    assert_eq!(refused, (300, "VCL 'boot' is cold - set to auto or warm first".to_owned()));
}

#[test]
fn labels_keep_what_they_are_for() {
    let mut registry = registry(&["a", "b", "c"]);
    assert_eq!(text(registry.label("lab", "a")), (200, String::new()));
    assert_eq!(text(registry.label("lab", "c")), (200, String::new()));
    assert_eq!(text(registry.label("a", "c")), (106, "a is not a label".to_owned()));
    assert_eq!(text(registry.label("l", "nope")), (106, "No VCL named nope known\n".to_owned()));
    let other = text(registry.label("l", "lab"));
    assert_eq!(other, (300, "VCL labels cannot point to labels".to_owned()));
    let kept = text(registry.discard(&["c"]).map(|_| Reply::ok("")));
    assert_eq!(kept, (300, "Cannot discard labeled VCL program c:\n\tlab\n".to_owned()));
    let state = text(registry.set_state("lab", State::Cold));
    assert_eq!(state, (106, "Labels are always warm".to_owned()));
    // Both together may be discarded.
    assert_eq!(registry.discard(&["c", "lab"]).map(|gone| gone.len()).ok(), Some(1));
    assert_eq!(registry.labels().count(), 0);
}

#[test]
fn discarding_is_all_or_nothing() {
    let mut registry = registry(&["m1", "m2", "x"]);
    let nothing = text(registry.discard(&["m*", "nope"]).map(|_| Reply::ok("")));
    assert_eq!(nothing, (106, "No VCL name matches nope\n".to_owned()));
    assert_eq!(registry.programs(), 3);
    assert_eq!(registry.discard(&["m*"]).map(|gone| gone.len()).ok(), Some(2));
    assert_eq!(registry.programs(), 1);
}

#[test]
fn lists_have_varnishds_columns() {
    let mut registry = registry(&["a", "b", "c"]);
    registry.use_it("a").expect("it is there");
    assert_eq!(
        registry.list(&|_| 0),
        "active      auto    warm         0    a\navailable   auto    warm         0    b\n\
         available   auto    warm         0    c\n"
    );
    registry.label("lab", "c").expect("a label");
    registry.set_state("b", State::Cold).expect("a state");
    registry.settle(Instant::now(), 600.0);
    assert_eq!(
        registry.list(&|_| 0),
        "active      auto     warm         0    a\navailable   cold     cold         0    b\n\
         available   auto     warm         0    c      <-    (1 label)\n\
         available   label    warm         0    lab    ->    c\n"
    );
    let json = registry.list_json(&|_| 2);
    assert!(
        json.ends_with(
            "  {\n    \"status\": \"available\",\n    \"state\": \"label\",\n    \"temperature\": \
             \"warm\",\n    \"busy\": 2,\n    \"name\": \"lab\",\n    \
             \"label\": {\n      \"name\": \"c\"\n      }\n}"
        ),
        "{json}"
    );
    assert!(json.contains("    \"name\": \"c\",\n    \"labels\": 1\n},\n"), "{json}");
}

#[test]
fn dependencies_are_listed() {
    let mut registry = registry(&["a", "c"]);
    registry.label("lab", "c").expect("a label");
    let words = |text: &str| text.split(' ').map(|w| w.as_bytes().to_vec()).collect::<Vec<_>>();
    let call = |line: &str| varnishcli::read(words(line), true).expect("a command");
    assert_eq!(registry.deps(&call("vcl.deps"), 0), "a\nc\nlab   c\n");
    let json = registry.deps(&call("vcl.deps -j"), 0);
    assert!(
        json.ends_with(
            "  {\n    \"name\": \"lab\",\n    \"deps\": [\n      \"c\"\n    ]\n  }\n]\n"
        ),
        "{json}"
    );
}

#[test]
fn what_is_not_used_cools_down() {
    let mut registry = registry(&["boot", "old"]);
    registry.use_it("boot").expect("it is there");
    let now = Instant::now();
    assert!(registry.settle(now, 600.0).is_empty());
    let later = now + std::time::Duration::from_secs(601);
    let changed = registry.settle(later, 600.0);
    assert_eq!(changed.iter().map(|(_, warm)| *warm).collect::<Vec<_>>(), [false]);
    assert!(registry.loaded().any(|(name, loaded)| name == "old" && !loaded.warm));
    registry.set_state("old", State::Warm).expect("a state");
    assert_eq!(registry.settle(later, 600.0).len(), 1);
}
