//! Interim responses on their way to the client while it waits for the final one.
//!
//! They leave as they come. A client that does not read holds nothing up: what its socket does not
//! take leaves before the final head, and is never more than the origin client lets through.

use std::pin::Pin;
use std::task::{Context, Poll};

use base::Counter;
use h1::encode;
use message::Response;
use tokio::io::AsyncWrite;

use crate::core::CoreCtx;
use crate::stream::Both;

/// The interim responses to one request.
#[derive(Default)]
pub(super) struct Early {
    out: Vec<u8>,
    sent: usize,
}

impl Early {
    /// Adds one to be written.
    pub(super) fn add(&mut self, response: &Response) {
        encode::interim(&mut self.out, response.status, &response.headers);
    }

    /// Takes the bytes that are still to be written: they leave before anything else does.
    pub(super) fn take_rest(&mut self) -> Vec<u8> {
        let mut rest = std::mem::take(&mut self.out);
        rest.drain(..std::mem::take(&mut self.sent));
        rest
    }

    /// Writes as much as the socket takes.
    pub(super) fn poll_write(&mut self, cx: &mut Context<'_>, core: &CoreCtx, stream: &Both<'_>) {
        if self.out.is_empty() {
            return;
        }
        let mut stream = stream.borrow_mut();
        while self.sent < self.out.len() {
            // A failure shows again when the final response is written.
            let Poll::Ready(Ok(wrote @ 1..)) =
                Pin::new(&mut **stream).poll_write(cx, &self.out[self.sent..])
            else {
                return;
            };
            core.flow.counters.add(Counter::BytesOut, wrote as u64);
            self.sent += wrote;
        }
        self.out.clear();
        self.sent = 0;
        // Over TLS they were only sealed so far; what does not leave now leaves with what follows.
        _ = Pin::new(&mut **stream).poll_flush(cx);
    }
}
