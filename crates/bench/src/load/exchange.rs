//! One request and its whole response, kept to be looked at.

use std::cell::RefCell;
use std::future::poll_fn;
use std::time::Duration;

use h1::HeadLimits;
use message::{Method, Response};

use super::http1::{Http1, SCRATCH};
use super::stream::Endpoint;
use crate::settings::Tls;
use crate::target::TargetServer;

/// A server that requests are sent to, each over a connection of its own.
pub(crate) struct ExchangeServer {
    endpoint: Endpoint,
}

/// A response with its body.
pub(crate) struct WholeResponse {
    pub(crate) head: Response,
    pub(crate) body: Vec<u8>,
}

/// The bounds of an exchange.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExchangeBounds {
    pub(crate) time: Duration,
    pub(crate) body_bytes: usize,
}

impl ExchangeServer {
    /// Resolves a server.
    pub(crate) fn new(target: &TargetServer, tls: &Tls) -> Result<Self, String> {
        let authorities = tls.authorities.as_deref().filter(|_| target.secure);
        let upstream = tls::Upstream::new(authorities, None).map_err(|error| error.to_string())?;
        Ok(Self { endpoint: Endpoint::new(target, &upstream, false)? })
    }

    /// Sends the bytes of a request, and reads the response.
    pub(crate) async fn ask(
        &self,
        request: &[u8],
        method: &Method,
        bounds: ExchangeBounds,
    ) -> Result<WholeResponse, String> {
        let answered = tokio::time::timeout(bounds.time, self.exchange(request, method, bounds));
        answered
            .await
            .unwrap_or_else(|_| Err(format!("no whole response in {} s", bounds.time.as_secs())))
    }

    async fn exchange(
        &self,
        request: &[u8],
        method: &Method,
        bounds: ExchangeBounds,
    ) -> Result<WholeResponse, String> {
        let (stream, _) =
            self.endpoint.connect().await.map_err(|failure| failure.text().to_owned())?;
        let limits = HeadLimits::of_origins(&base::Limits::default());
        let mut connection = Http1::new(stream, limits).with_body_limit(bounds.body_bytes);
        connection.queue_bytes(request, method);
        let scratch = RefCell::new(vec![0; SCRATCH]);
        poll_fn(|cx| connection.poll_answer(cx, &scratch))
            .await
            .map_err(|failure| failure.text().to_owned())?;
        let head = connection.response().clone();
        Ok(WholeResponse { head, body: connection.take_body()? })
    }
}
