//! Fuzz target: arbitrary bytes as a header. It panics on a violation; only tests and fuzzers may
//! call it.

use crate::{Header, HeaderProgress, read, secured, write_v1, write_v2};

/// The permitted length of a header.
const MAX: usize = 512;

/// Parses `data` however it is cut. A header with two addresses is parsed again from its encoding.
pub fn header(data: &[u8]) {
    let mut cuts = (0..=data.len()).map(|cut| read(&data[..cut], MAX));
    let first = cuts.find(|read| *read != Ok(HeaderProgress::Partial));
    assert!(cuts.all(|read| Some(read) == first));
    let Some(Ok(HeaderProgress::Complete(header, length))) = first else { return };
    assert!(length <= data.len().min(MAX));
    _ = secured(&data[..length]);
    if let Header::Proxied { source, destination } = header {
        for write in [write_v1, write_v2] {
            let mut written = Vec::new();
            write(&mut written, source, destination);
            assert_eq!(read(&written, MAX), Ok(HeaderProgress::Complete(header, written.len())));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_bytes_are_a_header_or_an_error(
            start in prop::sample::select(vec![
                &b""[..],
                b"PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n",
                b"PROXY UNKNOWN ",
                b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c",
            ]),
            rest in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            header(&[start, &rest].concat());
        }
    }
}
