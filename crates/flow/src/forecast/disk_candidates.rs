//! Disk candidates: responses on disk that may belong to a key, in the same words under both
//! policies.
//!
//! The index knows only hashes of their keys, and a forecast never reads the disk. So it reports
//! that a request would read it, not the result.

use cache::KeyInspection;
use policy::DecisionStep;

/// The end of a verdict on a stored response that cannot answer.
pub(crate) const FIRST: &str = "the disk would be read first";

/// Reports the candidates, if there are any.
pub(crate) fn on_disk(peek: &KeyInspection) -> Option<DecisionStep> {
    let has = match peek.below {
        0 => return None,
        1 => "1 response".to_owned(),
        many => format!("{many} responses"),
    };
    let why = format!(
        "it has {has} that may be for this request: their key has the same hash, and they are not \
         in memory"
    );
    Some(DecisionStep::new("disk", why))
}

/// The verdict on a request that reads the disk, for the reason `ground`.
pub(crate) fn verdict(ground: &str) -> String {
    format!("{ground}: it would read the disk first, and fetch if that has nothing for it")
}

/// The summary of such a request; `then` is its outcome without a find on disk.
pub(crate) fn summary(then: &str) -> String {
    format!("would read the disk first; if that has nothing for it, it {then}")
}
