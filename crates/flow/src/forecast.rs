//! Parts of forecasts that both policies have: outcomes, variants, what the disk may have, words.

pub(crate) mod disk_candidates;
pub(crate) mod outcome;
pub(crate) mod steps;
pub(crate) mod variants;
pub(crate) mod words;
