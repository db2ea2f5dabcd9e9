//! PROXY headers: the same however they are cut, never longer than allowed, and what names two
//! addresses is read again from what is written of it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proxyproto::{Header, Progress, read, secured, write_v1, write_v2};

const MAX: usize = 512;

fuzz_target!(|data: &[u8]| {
    let mut cuts = (0..=data.len()).map(|cut| read(&data[..cut], MAX));
    let first = cuts.find(|read| *read != Ok(Progress::Partial));
    assert!(cuts.all(|read| Some(read) == first));
    let Some(Ok(Progress::Complete(header, length))) = first else { return };
    assert!(length <= data.len().min(MAX));
    _ = secured(&data[..length]);
    if let Header::Proxied { source, destination } = header {
        for write in [write_v1, write_v2] {
            let mut written = Vec::new();
            write(&mut written, source, destination);
            assert_eq!(read(&written, MAX), Ok(Progress::Complete(header, written.len())));
        }
    }
});
