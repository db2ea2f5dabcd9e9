//! Writes the framing cases as seeds for the fuzz targets: `cargo run -p h1 --example
//! framing_corpus -- fuzz/corpus`.
//!
//! Requests go to `request_head` and `request_round_trip`, bodies to `chunked_body`, and fields and
//! bodies under a status line to `response_head`.

use std::path::PathBuf;
use std::{env, fs, io};

use testkit::framing_cases::cases;

fn main() -> io::Result<()> {
    let Some(folder) = env::args_os().nth(1).map(PathBuf::from) else {
        return Err(io::Error::other("usage: framing_corpus FOLDER"));
    };
    for (number, case) in cases().into_iter().enumerate() {
        let behind = |mark: &[u8]| {
            let at = case.bytes.windows(mark.len()).position(|w| w == mark);
            at.map_or(&[][..], |at| &case.bytes[at + mark.len()..])
        };
        // The first byte of most inputs selects how the rest is cut.
        let cut = number as u8;
        let fields = [b"HTTP/1.1 200 OK\r\n", behind(b"\r\n")].concat();
        for (target, seed) in [
            ("request_head", [&[cut], &case.bytes[..]].concat()),
            ("request_round_trip", case.bytes.clone()),
            ("response_head", [&[cut], &fields[..]].concat()),
            ("chunked_body", [&[cut], behind(b"\r\n\r\n")].concat()),
        ] {
            fs::create_dir_all(folder.join(target))?;
            fs::write(folder.join(target).join(format!("case-{number}")), seed)?;
        }
    }
    Ok(())
}
