//! The scenarios in this folder on Debian's varnishd and on Larder, with the same clients and
//! origins: neither answers nor origins' requests may differ.
//!
//! `testkit::differ` says how they are written and what does not count; `cargo run -p testkit
//! --example differ` runs them while they are.

use std::path::Path;
use std::process::{Command, Stdio};

use testkit::differ::peer::ServerProgram;
use testkit::differ::suite::{self, Suite};

/// Smallest number of scenarios, so that a lost one is noticed.
const SCENARIOS: usize = 665;

#[test]
fn larder_does_what_varnish_does() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vcl_differential");
    let files = suite::read(&folder).expect("scenarios");
    let count = files.iter().flatten().count();
    assert!(count >= SCENARIOS, "{count} scenarios");
    let varnish = Command::new("varnishd").arg("-V").stderr(Stdio::null()).status();
    if varnish.is_err() {
        return eprintln!("skipped: no varnishd");
    }
    let larder = testkit::larder::binary().expect("the binary");
    let peers = (ServerProgram::varnishd(), ServerProgram::larder(&larder));
    let suite = Suite { peers, pairs: 4, only: String::new(), random: false };
    let outcome = suite::run(&suite, files).expect("both start");
    // The runner of all tests looks for such lines, and keeps no others.
    for told in &outcome.flaky {
        let parts: Vec<&str> = told.lines().map(str::trim).collect();
        println!("flaky: {}", parts.join(" / "));
    }
    let failed = &outcome.failed;
    let told = failed.join("\n");
    assert!(failed.is_empty(), "{} of {} differ\n{told}", failed.len(), outcome.run);
}
