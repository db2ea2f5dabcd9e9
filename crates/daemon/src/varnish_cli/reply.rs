//! Parts of replies that several commands share.

use varnishcli::{Call, Reply, Status, json_begin};

/// The name of the loaded configuration in a VCL's place.
pub(super) const NAME: &str = "larder";

/// `elements` behind the head of every JSON array.
pub(super) fn json(call: &Call, version: u32, elements: &str) -> Reply {
    let begin = json_begin(version, &call.words, rt::now().unix_ms);
    Reply::ok(format!("{begin}{elements}\n]\n"))
}

/// The reply for an unknown parameter.
pub(super) fn unknown_parameter(name: &[u8]) -> Reply {
    let name = String::from_utf8_lossy(name);
    Reply::new(Status::Argument, format!("Unknown parameter \"{name}\"."))
}
