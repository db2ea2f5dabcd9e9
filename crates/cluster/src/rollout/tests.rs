//! Roll-outs by example, and under any order of actions of operators, canaries and nodes.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

fn release(version: &str, slot: u8) -> Release {
    let (node, comment) = ("n1".to_owned(), String::new());
    Release { version: version.to_owned(), slot, node, unix_ms: 7, comment, passed: false }
}

fn plan(canaries: &[&str]) -> RollOutPlan {
    let canaries = canaries.iter().map(|&name| name.to_owned()).collect();
    RollOutPlan { canaries, watch_ms: 10, checks: Vec::new() }
}

fn rolled(before: Option<&RollOut>, version: &str, canaries: &[&str]) -> RollOut {
    let slot = RollOut::slot_for(before, version);
    RollOut::begin(before, release(version, slot), plan(canaries)).expect("it begins")
}

fn well(state: &RollOut, node: &str) -> RollOut {
    state.canary_reported(node, state.number, &Ok(())).expect("it is waited for")
}

fn has<'a>(state: &'a RollOut, node: &str) -> Option<&'a str> {
    state.wanted(node).map(|own| own.version.as_str())
}

#[test]
fn a_version_is_made_of_all_that_is_in_it() {
    assert_eq!(version_of(b"abc"), "ba7816bf8f01", "FIPS 180-4's example");
    assert_ne!(version_of(b"abd"), version_of(b"abc"));
}

#[test]
fn a_version_goes_to_all_when_the_last_canary_reports_success() {
    let one = rolled(None, "v1", &["n1"]);
    assert_eq!((has(&one, "n1"), has(&one, "n2")), (Some("v1"), None));
    let one = well(&one, "n1");
    assert_eq!((one.stage, has(&one, "n2")), (RollOutStage::All, Some("v1")));
    let two = rolled(Some(&one), "v2", &["n2", "n1", "n2"]);
    let half = well(&two, "n1");
    assert_eq!(half.stage, RollOutStage::Canary);
    assert_eq!(
        ["n1", "n2", "n3"].map(|name| has(&half, name)),
        [Some("v2"), Some("v2"), Some("v1")]
    );
    let done = well(&half, "n2");
    assert_eq!((done.stage, has(&done, "n3")), (RollOutStage::All, Some("v2")));
    assert_eq!(RollOut::decode(&done.encode()), Some(done));
}

#[test]
fn an_unexpected_report_changes_nothing() {
    let one = rolled(None, "v1", &["n1", "n2"]);
    let bad = Err("bad".to_owned());
    assert_eq!(one.canary_reported("n3", one.number, &bad), None, "no canary");
    assert_eq!(one.canary_reported("n1", one.number + 1, &bad), None, "another roll-out's");
    let half = well(&one, "n1");
    assert_eq!(half.canary_reported("n1", half.number, &bad), None, "it has said so already");
    let failed = half.canary_reported("n2", half.number, &bad).expect("it is waited for");
    assert_eq!((failed.stage, failed.why.as_str()), (RollOutStage::Failed, "n2: bad"));
    assert_eq!(failed.canary_reported("n2", failed.number, &Ok(())), None, "it is over");
    assert_eq!(has(&failed, "n1"), None, "there was nothing before");
}

#[test]
fn one_at_a_time_and_none_that_all_have() {
    let one = rolled(None, "v1", &["n1", "n2"]);
    let begin = |before: &RollOut, version| {
        RollOut::begin(Some(before), release(version, 3), plan(&["n1"])).expect_err("refused")
    };
    let busy = begin(&well(&one, "n2"), "v2");
    assert_eq!(busy, RollOutRefusal::Busy { version: "v1".into(), awaited: vec!["n1".into()] });
    let all = well(&well(&one, "n1"), "n2");
    assert_eq!(begin(&all, "v1"), RollOutRefusal::Known("v1".into()));
    for wrong in [
        plan(&[]),
        plan(&["a b"]),
        RollOutPlan { checks: vec!["x".repeat(1_001)], ..plan(&["n1"]) },
    ] {
        let refused = RollOut::begin(Some(&all), release("v2", 1), wrong).expect_err("refused");
        assert!(matches!(refused, RollOutRefusal::Plan(_)) && !refused.to_string().is_empty());
    }
}

#[test]
fn all_go_back_to_what_once_passed_and_canaries_to_what_was_before() {
    let one = well(&rolled(None, "v1", &["n1"]), "n1");
    assert_eq!(one.back(None), Err(RollOutRefusal::Nothing));
    let two = well(&rolled(Some(&one), "v2", &["n1"]), "n1");
    let back = two.back(None).expect("v1 is there");
    assert_eq!((back.stage, has(&back, "n5")), (RollOutStage::All, Some("v1")));
    assert_eq!(has(&back.back(None).expect("v2 is there"), "n5"), Some("v2"));
    let three = rolled(Some(&back), "v3", &["n1"]);
    let ended = three.back(None).expect("it ends");
    assert_eq!((ended.stage, has(&ended, "n1")), (RollOutStage::Failed, Some("v1")));
    assert_eq!(
        ended.back(Some("v3")),
        Err(RollOutRefusal::Unknown("v3".into())),
        "it never passed"
    );
    assert_eq!(has(&three.back(Some("v2")).expect("it passed"), "n1"), Some("v2"));
    let known = back.back(Some("v1"));
    assert_eq!(known, Err(RollOutRefusal::Known("v1".into())));
}

#[test]
fn the_last_versions_are_kept_and_those_that_failed_go_first() {
    let mut state = well(&rolled(None, "v0", &["n1"]), "n1");
    let failed = rolled(Some(&state), "bad", &["n1"]);
    state =
        failed.canary_reported("n1", failed.number, &Err("bad".into())).expect("it is waited for");
    for number in 1..=7 {
        state = well(&rolled(Some(&state), &format!("v{number}"), &["n1"]), "n1");
    }
    assert!(state.release("bad").is_none() && state.release("v0").is_some());
    state = well(&rolled(Some(&state), "v8", &["n1"]), "n1");
    assert!(state.release("v0").is_none() && state.release("v1").is_some());
    assert_eq!(state.releases.len(), SLOTS as usize);
    assert_eq!(RollOut::slot_for(Some(&state), "v3"), state.release("v3").expect("it is").slot);
}

#[test]
fn a_reason_has_a_bound_and_what_names_no_release_is_no_state() {
    let one = rolled(None, "v1", &["n1"]);
    let failed = one.canary_reported("n1", 1, &Err("ä".repeat(9_000))).expect("it is waited for");
    assert!(failed.why.len() <= TEXT_BYTES);
    for wrong in [
        RollOut { version: "v9".into(), ..one.clone() },
        RollOut { good: Some("v9".into()), ..one.clone() },
        RollOut { releases: vec![release("v1", SLOTS)], ..one },
    ] {
        assert_eq!(RollOut::decode(&wrong.encode()), None);
    }
    assert_eq!(RollOut::decode(b"{}"), None);
}

/// An action, based on the state that its node has seen last.
#[derive(Clone, Debug)]
enum Step {
    /// An operator rolls a version out with this many canaries.
    Begin { version: u8, canaries: usize },
    /// A canary reports.
    Word { node: usize, is_well: bool },
    /// An operator returns to a version.
    Back { version: Option<u8> },
    /// A node reads the state.
    Look { node: usize },
}

const NODES: usize = 5;

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..12_u8, 1..3_usize).prop_map(|(version, canaries)| Step::Begin { version, canaries }),
        (0..NODES, any::<bool>()).prop_map(|(node, is_well)| Step::Word { node, is_well }),
        prop::option::of(0..12_u8).prop_map(|version| Step::Back { version }),
        (0..NODES).prop_map(|node| Step::Look { node }),
    ]
}

fn name(node: usize) -> String {
    format!("n{node}")
}

/// A cluster whose nodes read the state now and then, and write over the one they have seen.
#[derive(Default)]
struct World {
    state: Option<RollOut>,
    /// The state that each node has seen last.
    seen: BTreeMap<usize, RollOut>,
    /// The version of each node, and of those that went to all.
    in_force: BTreeMap<usize, String>,
    /// The contents of slots.
    slots: BTreeMap<u8, String>,
}

impl World {
    /// Writes a change, unless another has been written meanwhile.
    fn write(&mut self, over: Option<&RollOut>, next: RollOut) {
        if self.state.as_ref() == over {
            for release in &next.releases {
                self.slots.insert(release.slot, release.version.clone());
            }
            self.state = Some(next);
        }
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Begin { version, canaries } => {
                let canaries: Vec<_> =
                    (0..canaries).map(|at| name((at + version as usize) % NODES)).collect();
                let names: Vec<_> = canaries.iter().map(String::as_str).collect();
                let (before, version) = (self.state.clone(), format!("v{version}"));
                let slot = RollOut::slot_for(before.as_ref(), &version);
                if let Ok(next) =
                    RollOut::begin(before.as_ref(), release(&version, slot), plan(&names))
                {
                    self.write(before.as_ref(), next);
                }
            }
            Step::Word { node, is_well } => {
                let Some(seen) = self.seen.get(&node).cloned() else { return };
                let word = if is_well { Ok(()) } else { Err("bad".to_owned()) };
                if let Some(next) = seen.canary_reported(&name(node), seen.number, &word) {
                    self.write(Some(&seen), next);
                }
            }
            Step::Back { version } => {
                let Some(before) = self.state.clone() else { return };
                let version = version.map(|version| format!("v{version}"));
                if let Ok(next) = before.back(version.as_deref()) {
                    self.write(Some(&before), next);
                }
            }
            Step::Look { node } => {
                let Some(state) = self.state.clone() else { return };
                if let Some(wanted) = state.wanted(&name(node)) {
                    self.in_force.insert(node, wanted.version.clone());
                }
                self.seen.insert(node, state);
            }
        }
    }
}

proptest! {
    #[test]
    fn only_canaries_have_what_has_not_passed_and_a_failure_ends_where_it_began(
        steps in prop::collection::vec(step(), 0..60),
    ) {
        let mut world = World::default();
        let mut passed = std::collections::BTreeSet::new();
        for step in steps {
            let before = world.state.clone();
            world.take(step);
            let Some(state) = &world.state else { continue };
            if state.stage == RollOutStage::All {
                passed.insert(state.version.clone());
            }
            prop_assert_eq!(RollOut::decode(&state.encode()), Some(state.clone()));
            for release in &state.releases {
                prop_assert_eq!(world.slots.get(&release.slot), Some(&release.version));
            }
            for node in 0..NODES {
                let Some(wanted) = state.wanted(&name(node)) else { continue };
                let is_canary = state.stage == RollOutStage::Canary
                    && state.canaries.iter().any(|own| own.node == name(node));
                prop_assert!(is_canary || passed.contains(&wanted.version), "{state:?}");
            }
            if let Some(before) = before.filter(|own| own.stage == RollOutStage::Canary)
                && state.stage == RollOutStage::Failed
            {
                prop_assert_eq!(&state.good, &before.good);
                let of = |node| state.wanted(&name(node)).map(|own| &own.version);
                prop_assert!((0..NODES).all(|node| of(node) == before.good.as_ref()));
            }
        }
        // A node that reads last has the version of the state.
        for node in 0..NODES {
            world.take(Step::Look { node });
            let Some(state) = &world.state else { continue };
            let Some(wanted) = state.wanted(&name(node)) else { continue };
            prop_assert_eq!(world.in_force.get(&node), Some(&wanted.version));
        }
    }
}
