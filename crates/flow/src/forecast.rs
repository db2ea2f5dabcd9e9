//! Forecast parts that both policies share: outcomes, steps, variants, candidates on disk, and
//! wording.

pub(crate) mod disk_candidates;
pub(crate) mod outcome;
pub(crate) mod steps;
pub(crate) mod variants;
pub(crate) mod vary_effects;
pub(crate) mod words;
