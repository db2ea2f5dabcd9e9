//! Field blocks mean the same to another implementation of HPACK, both ways.
#![no_main]

use fluke_hpack::Decoder;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some(fields) = h2::fuzz::decode(data) else { return };
    // They are not asked about what we refuse: of a truncated integer they panic.
    if let Ok(theirs) = &Decoder::new().decode(data) {
        let theirs = theirs.iter().map(|(name, value)| (&name[..], &value[..]));
        assert!(theirs.eq(fields.iter().map(|(name, value)| (&name[..], &value[..]))));
    }
    let mut decoder = Decoder::new();
    for block in h2::fuzz::encode(&fields) {
        let read = decoder.decode(&block).expect("a block of ours");
        assert_eq!(read[0], (b":status".to_vec(), b"200".to_vec()));
        let read = read[1..].iter().map(|(name, value)| (&name[..], &value[..]));
        let lower: Vec<_> =
            fields.iter().map(|(name, value)| (name.to_ascii_lowercase(), value)).collect();
        assert!(read.eq(lower.iter().map(|(name, value)| (&name[..], &value[..]))));
    }
});
