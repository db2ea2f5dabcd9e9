//! Findings, one module for each group of kinds that look at one thing. A detector is a pure
//! function from a trace to suspicions, and must give none without a reason in the visits.

mod areas;
mod bodies;
mod clock;
mod compression;
mod cookies;
mod crawlers;
mod equal_pages;
mod expiry;
mod lifetimes;
mod limits;
mod marks;
mod memory;
mod narrowing;
mod parameters;
mod purges;
mod static_files;
mod statuses;
mod vary;

pub(crate) use self::narrowing::are_few;
use crate::finding::Suspicion;
use crate::trace::Trace;

/// All detectors.
pub(crate) const DETECTORS: [fn(&Trace<'_>) -> Vec<Suspicion>; 16] = [
    parameters::detect,
    cookies::detect,
    vary::detect,
    equal_pages::detect,
    lifetimes::detect,
    statuses::detect,
    clock::detect,
    memory::detect_small,
    memory::detect_large_files,
    compression::detect,
    purges::detect,
    expiry::detect,
    crawlers::detect,
    marks::detect,
    limits::detect,
    static_files::detect,
];
