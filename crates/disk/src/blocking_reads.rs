//! Blocking reads: a bounded queue of reads that wait for the disk, and a few threads that serve
//! it. Each read must get an answer by its deadline, even from a disk that hangs.

use std::sync::Arc;

use crate::error::Error;
use crate::health::OperationFailure;
use crate::record_address::RecordAddress;
use crate::record_reading::ReadMode;
use crate::record_request::{ReadCallback, RecordRequest};
use crate::stats::add;
use crate::sync::Mutex;
use crate::volume::{PendingRead, Volume};

impl Volume {
    /// Queues a read of a record. It is answered at `deadline_ms` at the latest.
    pub(crate) fn read(
        &self,
        place: RecordAddress,
        hash: u64,
        ask: RecordRequest,
        deadline_ms: u64,
        done: ReadCallback,
    ) {
        if !self.health.serves(&ask) {
            return done(Err(Error::Out));
        }
        let mut requests = self.reads.requests.lock();
        // The end of a volume rejects the queued reads under this lock, and no read is served
        // later.
        if requests.is_over {
            drop(requests);
            return done(Err(Error::Out));
        }
        if requests.open.len() >= self.shared.config.read_queue {
            drop(requests);
            add(&self.tallies.reads_busy, 1);
            return done(Err(Error::Busy));
        }
        requests.last += 1;
        let key = (deadline_ms, requests.last);
        let request = PendingRead { place, hash, ask, key, done: Mutex::new(Some(done)) };
        let request = Arc::new(request);
        requests.open.insert(key, Arc::clone(&request));
        requests.waiting.push_back(request);
        drop(requests);
        self.reads.wake.notify_one();
    }

    /// Serves one read. Returns false if none waits.
    pub(crate) fn read_turn(&self) -> bool {
        let Some(request) = self.reads.requests.lock().waiting.pop_front() else { return false };
        self.serve(&request);
        true
    }

    /// Serves reads until the volume ends.
    pub(crate) fn read_loop(&self) {
        loop {
            let request = {
                let mut requests = self.reads.requests.lock();
                loop {
                    if let Some(request) = requests.waiting.pop_front() {
                        break request;
                    }
                    if requests.is_over {
                        return;
                    }
                    self.reads.wake.wait(&mut requests);
                }
            };
            self.serve(&request);
        }
    }

    fn serve(&self, request: &PendingRead) {
        if request.done.lock().is_none() {
            return;
        }
        if self.shared.now().mono_ms >= request.key.0 {
            return self.answer_late(request);
        }
        let result = if self.health.serves(&request.ask) {
            let loaded = self.load(ReadMode::Wait, request.place, request.hash, &request.ask);
            loaded.and_then(|answer| answer.ok_or(Error::Gone))
        } else {
            Err(Error::Out)
        };
        self.reads.answer(request, result);
    }

    fn answer_late(&self, request: &PendingRead) {
        if self.reads.answer(request, Err(Error::Late)) {
            add(&self.tallies.reads_late, 1);
            self.trouble(OperationFailure::Late);
        }
    }

    /// Rejects reads whose deadlines have passed.
    pub(crate) fn expire_reads(&self) {
        let now_ms = self.shared.now().mono_ms;
        loop {
            let late = {
                let requests = self.reads.requests.lock();
                let first = requests.open.first_key_value();
                first.filter(|(key, _)| key.0 <= now_ms).map(|(_, request)| Arc::clone(request))
            };
            match late {
                Some(request) => {
                    // A read that is being answered leaves the list itself.
                    let mut requests = self.reads.requests.lock();
                    requests.open.remove(&request.key);
                    requests.waiting.retain(|waiting| waiting.key != request.key);
                    drop(requests);
                    self.answer_late(&request);
                }
                None => return,
            }
        }
    }

    /// Rejects all waiting reads at the end of the volume.
    pub(crate) fn refuse_reads(&self) {
        let open: Vec<_> = {
            let mut requests = self.reads.requests.lock();
            requests.waiting.clear();
            std::mem::take(&mut requests.open).into_values().collect()
        };
        for request in open {
            self.reads.answer(&request, Err(Error::Out));
        }
    }
}
