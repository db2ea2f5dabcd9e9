//! Memory: too little of it, or too much of it for files that are rarely asked for.

use std::collections::BTreeMap;

use base::units::Bytes;
use config::MemorySize;

use super::areas::by_area;
use crate::edit::{Edit, NewValue, Scope, apply};
use crate::finding::{FindingKind, Proof, Suspicion};
use crate::reception::Course;
use crate::replay::{Figures, Replayed, replay};
use crate::trace::Trace;

/// The sizes that are tried, as multiples of the present one.
const MULTIPLES: [u64; 3] = [2, 4, 8];
/// The share of the largest size's gain, in hundredths, that a smaller one must bring.
const GAIN_SHARE: f64 = 80.0;
/// Least gain of the hit ratio, in hundredths.
const POINTS_MIN: f64 = 0.5;
/// The share of memory, as a divisor, from which a file is large.
const LARGE_SHARE: u64 = 20;
/// Most hits for each fetch of files that are rarely asked for.
const HITS_MAX: usize = 1;

/// The size of memory as it would have to be.
fn size_edit(bytes: u64) -> Edit {
    let value = NewValue::Whole(format!("\"{}\"", Bytes(bytes)));
    Edit { scope: Scope::Top, table: "memory", key: "size", value }
}

pub(super) fn detect_small(trace: &Trace<'_>) -> Vec<Suspicion> {
    if trace.figures.evicted == 0 {
        return Vec::new();
    }
    let settings = trace.settings;
    let present = settings.machine.memory_bytes(settings.config.memory.size);
    let tried = MULTIPLES.map(|factor| {
        let bytes = present.saturating_mul(factor);
        let (text, _) = apply(&settings.text, &[size_edit(bytes)]).ok()?;
        let larger = settings.with_text(&text).ok()?;
        Some((bytes, replay(&trace.clients, &trace.samples, &larger)))
    });
    let gain = |after: &Figures| after.ratio() - trace.figures.ratio();
    let tried: Vec<(u64, Figures)> = tried.into_iter().flatten().collect();
    let most = tried.iter().map(|(_, after)| gain(after)).fold(0.0, f64::max);
    let is_enough = |(_, after): &&(u64, Figures)| gain(after) * 100.0 >= most * GAIN_SHARE;
    let Some((bytes, after)) = tried.iter().find(is_enough).filter(|_| most >= POINTS_MIN) else {
        return Vec::new();
    };
    let about = match settings.config.memory.size {
        MemorySize::Bytes(_) => format!("+{}", Bytes(bytes - present)),
        other => format!("{other}, +{}", Bytes(bytes - present)),
    };
    vec![Suspicion {
        kind: FindingKind::MemorySmall,
        site: 0,
        about,
        paths: String::new(),
        proof: Proof::Counts(format!(
            "{} responses left memory; with {} it would be {}",
            trace.figures.evicted,
            Bytes(*bytes),
            after.evicted
        )),
        edits: vec![size_edit(*bytes)],
        bytes: 0,
        is_fault: false,
        risk: "the machine must have this memory free".to_owned(),
        hints: Vec::new(),
    }]
}

pub(super) fn detect_large_files(trace: &Trace<'_>) -> Vec<Suspicion> {
    if trace.figures.evicted == 0 {
        return Vec::new();
    }
    let large_bytes = trace.settings.budget_bytes() / LARGE_SHARE;
    let is_stored = |seen: &crate::trace::Seen<'_>| {
        seen.course == Course::Lookup && seen.replayed.is_some() && seen.visit.status == 200
    };
    let mut found = Vec::new();
    for (area, seen) in by_area(trace, is_stored) {
        let mut sizes: BTreeMap<&[u8], u64> = BTreeMap::new();
        for seen in &seen {
            let size = sizes.entry(&seen.request.target).or_default();
            *size = seen.visit.body_bytes.max(*size);
        }
        let hits = seen.iter().filter(|seen| seen.replayed == Some(Replayed::Hit)).count();
        let all_large = sizes.values().all(|size| *size >= large_bytes);
        let is_rare = hits <= (seen.len() - hits) * HITS_MAX;
        if !all_large || !is_rare || sizes.len() < 2 {
            continue;
        }
        let whole: u64 = sizes.values().sum();
        let value = NewValue::Whole("false".to_owned());
        found.push(Suspicion {
            kind: FindingKind::LargeFiles,
            site: area.site(),
            about: format!("{} files of {} together", sizes.len(), Bytes(whole)),
            paths: area.paths(),
            proof: Proof::Counts(format!(
                "{hits} of {} requests for them would be hits, and each takes more than a {}th of \
                 memory",
                seen.len(),
                LARGE_SHARE
            )),
            edits: vec![Edit { scope: area.scope(), table: "", key: "cache", value }],
            bytes: 0,
            is_fault: false,
            risk: "the origin sends these files each time".to_owned(),
            hints: vec![
                "or let them lie on disk: `[disk]`, and `store = \"disk\"` for their route"
                    .to_owned(),
            ],
        });
    }
    found
}
