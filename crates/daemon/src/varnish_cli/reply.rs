//! Parts of replies that several commands have in common.

use varnishcli::{Call, Reply, Status, json_begin};

/// The name of the loaded configuration where Varnish has a VCL.
pub(super) const NAME: &str = "larder";

/// `elements` behind what every array begins with.
pub(super) fn json(call: &Call, version: u32, elements: &str) -> Reply {
    let begin = json_begin(version, &call.words, rt::now().unix_ms);
    Reply::ok(format!("{begin}{elements}\n]\n"))
}

/// The answer to a parameter that there is not.
pub(super) fn unknown_parameter(name: &[u8]) -> Reply {
    let name = String::from_utf8_lossy(name);
    Reply::new(Status::Argument, format!("Unknown parameter \"{name}\"."))
}
