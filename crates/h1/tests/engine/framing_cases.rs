//! Framing cases: the table of requests, run whole, byte by byte, and cut at line ends.

use std::collections::{BTreeMap, HashSet};

use testkit::framing_cases::{FramingCase, Treatment, cases};

use crate::support::{Cuts, Ended, read_requests};

#[test]
fn every_case_comes_out_the_same_however_it_is_cut() {
    let mut wrong = Vec::new();
    for case in cases() {
        let whole = read_requests(&case.bytes, Cuts::None);
        if !fits(&case, &whole.ended, whole.messages.len()) {
            wrong.push(format!("{}: {:?} after {}", case.name, whole.ended, whole.messages.len()));
        }
        for cuts in [Cuts::EveryByte, Cuts::AfterCr, Cuts::AfterLf] {
            assert_eq!(read_requests(&case.bytes, cuts), whole, "{}, {cuts:?}", case.name);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn fits(case: &FramingCase, ended: &Ended, seen: usize) -> bool {
    match case.expect {
        Treatment::Accept { requests } => *ended == Ended::Clean && seen == requests,
        Treatment::Reject => {
            matches!(ended, Ended::Head(error) if (400..=505).contains(&error.status().code()))
                && seen == 0
                || matches!(ended, Ended::Body(_)) && seen == 1
        }
    }
}

#[test]
fn names_are_unique_and_every_class_is_there() {
    let cases = cases();
    let names: HashSet<&str> = cases.iter().map(|case| case.name.as_str()).collect();
    assert_eq!(names.len(), cases.len());
    let mut classes = BTreeMap::new();
    for case in &cases {
        *classes.entry(case.class).or_insert(0) += 1;
    }
    for (class, least) in [
        ("te-obfuscation", 64),
        ("request-line", 34),
        ("chunk-size", 26),
        ("cl-syntax", 26),
        ("control", 25),
        ("host", 22),
        ("bare-lf-cr", 20),
        ("chunk-ext", 18),
        ("header-name", 18),
        ("chunk-term", 17),
        ("trailer", 14),
        ("cl-dup", 11),
        ("obs-fold", 10),
        ("expect", 10),
        ("upgrade", 10),
        ("hop-by-hop", 8),
        ("cl.te", 7),
        ("cl.0", 7),
        ("0.cl", 7),
        ("limits", 7),
        ("te.cl", 3),
        ("te-version", 3),
        ("control-client", 20),
    ] {
        assert!(classes.get(class).copied().unwrap_or(0) >= least, "{class}: {classes:?}");
    }
}
