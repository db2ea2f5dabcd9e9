//! Records that hits write to the log ring.

use std::hint::black_box;

use message::HeaderId;
use observe::record::Phases;
use observe::{Record, Served};

use crate::samples::{self, BROWSER_REQUEST, NOW};

/// Writes the record of a browser's hit.
pub(crate) fn record(rounds: u32) {
    let request = samples::request(BROWSER_REQUEST);
    let mut out = Vec::with_capacity(4096);
    for round in 0..rounds {
        out.clear();
        let request = black_box(&request);
        let record = Record {
            id: u64::from(round),
            start_unix_ms: NOW.unix_ms,
            start_us: NOW.mono_ms * 1000,
            client: Some([192, 0, 2, 1].into()),
            version: 11,
            status: 200,
            served: Served::Hit,
            method: request.method.token(),
            host: &request.host,
            target: &request.target,
            site: b"www.example.com",
            rule: b"default",
            age_s: Some(7),
            ttl_s: Some(53),
            phases: Phases {
                read: Some(0),
                policy: Some(2),
                reply: Some(2),
                end: 2,
                ..Phases::default()
            },
            ..Record::default()
        };
        let kept = [HeaderId::Referer, HeaderId::UserAgent];
        record.with_derived_flags().write(kept.map(|id| request.headers.value(id)), &mut out);
        black_box(&mut out);
    }
}
