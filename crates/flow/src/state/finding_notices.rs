//! Finding notices: new findings of `verify` on their way to a webhook.
//!
//! A core that notes one must never wait: a full queue drops it.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::state::verification::Finding;

/// A finding, and the site that it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FindingNotice {
    /// The site's name.
    pub site: Arc<str>,
    /// The finding.
    pub finding: Finding,
}

/// The queue of notices, with one reader.
#[derive(Debug, Default)]
pub struct FindingNotices {
    waiting: Mutex<VecDeque<FindingNotice>>,
    wanted: Notify,
}

impl FindingNotices {
    /// Adds a notice. Returns false, and drops it, if `most` wait already.
    pub(crate) fn push(&self, notice: FindingNotice, most: u64) -> bool {
        let mut waiting = self.waiting.lock();
        let fits = (waiting.len() as u64) < most;
        if fits {
            waiting.push_back(notice);
        }
        drop(waiting);
        self.wanted.notify_one();
        fits
    }

    /// Waits for the oldest notice and removes it.
    pub async fn next(&self) -> FindingNotice {
        loop {
            let oldest = self.waiting.lock().pop_front();
            match oldest {
                Some(notice) => return notice,
                None => self.wanted.notified().await,
            }
        }
    }
}
