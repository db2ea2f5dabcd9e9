//! Interim responses on their way to the client while it waits for the final one.
//!
//! They leave as they come. A client that does not read holds nothing up: what its socket does not
//! take leaves before the final head, and is never more than the origin client lets through.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use base::Counter;
use flow::Interims;
use h1::encode;
use message::Version;
use tokio::io::AsyncWrite;

use crate::core::CoreCtx;
use crate::stream::Both;

/// The interim responses to one request.
pub(crate) struct Early {
    interims: Option<Rc<Interims>>,
    out: Vec<u8>,
    sent: usize,
}

impl Early {
    /// For a client of `version`; one of HTTP/1.0 knows no interim responses (RFC 9110 15.2).
    pub(crate) fn new(version: Version) -> Self {
        let interims = (version >= Version::Http11).then(Rc::default);
        Self { interims, out: Vec::new(), sent: 0 }
    }

    /// Where they come from.
    pub(crate) fn interims(&self) -> Option<Rc<Interims>> {
        self.interims.clone()
    }

    /// Awaits `main`, writing what comes meanwhile.
    pub(crate) async fn beside<T>(
        &mut self,
        core: &CoreCtx,
        stream: &Both<'_>,
        mut main: Pin<&mut impl Future<Output = T>>,
    ) -> T {
        poll_fn(|cx| {
            let done = main.as_mut().poll(cx);
            self.poll_write(cx, core, stream);
            done
        })
        .await
    }

    /// Bytes that are still to be written, before anything else is.
    pub(crate) fn rest(&self) -> &[u8] {
        &self.out[self.sent..]
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, core: &CoreCtx, stream: &Both<'_>) {
        let Some(interims) = &self.interims else { return };
        while let Poll::Ready(response) = interims.poll_take(cx) {
            encode::interim(&mut self.out, response.status, &response.headers);
        }
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
