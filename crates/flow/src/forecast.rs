//! Parts of forecasts that both policies have: outcomes, variants, what the disk may have, words.

pub(crate) mod below;
pub(crate) mod foreseen;
pub(crate) mod telling;
pub(crate) mod variants;
pub(crate) mod words;
