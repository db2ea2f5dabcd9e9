//! Finish of transactions without a client: the records of background fetches, and the header
//! fields that log readers request.

mod background;

pub use crate::state::finish::{
    CoreLog, RecordTaker, Records, RequestStart, TransactionFacts, UnreadableRequest,
};

pub(crate) use self::background::{BackgroundCause, BackgroundFetch};
