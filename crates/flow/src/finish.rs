//! The last step of transactions that no client waits for, and the header fields that readers of
//! the log ask for.

mod background;

pub use crate::state::finish::{
    CoreLog, RecordTaker, Records, RequestStart, TransactionFacts, UnreadableRequest,
};

pub(crate) use self::background::{BackgroundCause, BackgroundFetch};
