//! Responses on disk that may be a key's: the same words under both policies.
//!
//! The index knows of them by the hash alone, and a forecast reads no disk. So it says that a
//! request would read it, and not what would come of that.

use cache::KeyInspection;
use policy::DecisionStep;

/// The end of a verdict on something stored that does not answer by itself.
pub(crate) const FIRST: &str = "the disk would be read first";

/// Tells of the responses on disk, if there are any.
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

/// The verdict on a request that reads the disk because of `ground`.
pub(crate) fn verdict(ground: &str) -> String {
    format!("{ground}: it would read the disk first, and fetch if that has nothing for it")
}

/// The outcome of such a request, in a sentence; `then` says what would become of it without the
/// disk.
pub(crate) fn summary(then: &str) -> String {
    format!("would read the disk first; if that has nothing for it, it {then}")
}
