//! Probes over HTTP/2: a request like the others, or gRPC's health check (`grpc.health.v1`).

use std::future::poll_fn;

use base::{HashSeed, Limits};
use h2::{ClientConnection, ClientEvent, ClientSettings};
use message::{Framing, HeaderId, Method, Request, Response, Scheme, Status};

use super::{ProbeError, write};
use crate::stream::Stream;

/// Bytes kept of a response's body: a health check's answer has seven.
const BODY_BYTES: usize = 64;

/// The prefix of a message: not compressed, and its length.
const PREFIX_BYTES: usize = 5;

/// SERVING, in field 1 of `HealthCheckResponse`.
const SERVING: [u8; 2] = [0x08, 1];

/// A request for a probe.
#[derive(Clone, Debug)]
pub(super) struct ProbeCall {
    request: Request,
    body: Vec<u8>,
    is_health_check: bool,
}

impl ProbeCall {
    /// A GET of `path`.
    pub(super) fn get(host: &str, path: &str) -> Self {
        let mut request = Request::new();
        (request.host, request.target) = (host.as_bytes().to_vec(), path.as_bytes().to_vec());
        request.headers.push(HeaderId::UserAgent, b"larder-probe");
        Self { request, body: Vec::new(), is_health_check: false }
    }

    /// A check of the gRPC service of this name; without a name, of the whole server.
    pub(super) fn health_check(host: &str, service: &str) -> Self {
        let mut call = Self::get(host, "/grpc.health.v1.Health/Check");
        let request = &mut call.request;
        (request.method, request.passes_trailers) = (Method::Post, true);
        request.headers.push(HeaderId::ContentType, b"application/grpc");
        request.headers.push(HeaderId::Te, b"trailers");
        // The service is field 1 of `HealthCheckRequest`. Its name is shorter than 128 bytes.
        let mut message = Vec::new();
        if !service.is_empty() {
            message.extend_from_slice(&[0x0a, service.len() as u8]);
            message.extend_from_slice(service.as_bytes());
        }
        call.body = vec![0];
        call.body.extend_from_slice(&(message.len() as u32).to_be_bytes());
        call.body.extend_from_slice(&message);
        request.framing = Framing::Length(call.body.len() as u64);
        call.is_health_check = true;
        call
    }

    /// Sends the request over a new connection behind `first`; returns the status of the response.
    ///
    /// # Errors
    /// If no response comes, or the service is not healthy.
    pub(super) async fn ask(
        &self,
        stream: &mut Stream,
        first: Vec<u8>,
        scheme: Scheme,
        sent: &mut bool,
    ) -> Result<Status, ProbeError> {
        let (now_ms, mut out) = (rt::now().mono_ms, first);
        let settings = ClientSettings::from(&Limits::default());
        let mut engine = ClientConnection::new(settings, HashSeed::random(), now_ms, &mut out);
        let id = engine.start(&self.request, scheme, self.body.is_empty(), &mut out);
        if let Some(id) = id.filter(|_| !self.body.is_empty()) {
            engine.data(id, &self.body, true, &mut out);
        }
        let mut buffer = vec![0; 2 * ClientConnection::FRAME_BYTES];
        let (mut end, mut answer) = (0, ProbeAnswer::default());
        let mut response = Response::new(Status::OK);
        loop {
            write(stream, &std::mem::take(&mut out)).await.map_err(ProbeError::Io)?;
            *sent = true;
            let read = poll_fn(|cx| stream.poll_read(cx, &mut buffer[end..])).await;
            match read.map_err(ProbeError::Io)? {
                0 => return Err(ProbeError::Closed),
                read => end += read,
            }
            let mut input = &buffer[..end];
            loop {
                let event = engine.next(&mut input, &mut response, &mut out, rt::now().mono_ms);
                let Some(event) = event.map_err(ProbeError::Frames)? else { break };
                if answer.take(&event, &response)? && !self.is_health_check {
                    return Ok(response.status);
                }
                if matches!(event, ClientEvent::End { .. }) {
                    return answer.judged(response.status);
                }
            }
            let left = input.len();
            buffer.copy_within(end - left..end, 0);
            end = left;
        }
    }
}

/// The verdict of a response on a service.
#[derive(Default)]
struct ProbeAnswer {
    body: Vec<u8>,
    /// The value of `grpc-status`.
    status: Option<Vec<u8>>,
}

impl ProbeAnswer {
    /// Takes a part of the response; true if it was the final head.
    fn take(&mut self, event: &ClientEvent<'_>, response: &Response) -> Result<bool, ProbeError> {
        match event {
            ClientEvent::Head { .. } if !response.status.is_interim() => {
                self.status = response.headers.value_named(b"grpc-status").map(<[u8]>::to_vec);
                return Ok(true);
            }
            ClientEvent::Data { bytes, .. } => {
                let room = BODY_BYTES - self.body.len();
                self.body.extend_from_slice(&bytes[..bytes.len().min(room)]);
            }
            ClientEvent::End { trailers: Some(trailers), .. } => {
                let said = trailers.iter().find(|field| field.name == b"grpc-status");
                self.status = said.map(|field| field.value.to_vec()).or_else(|| self.status.take());
            }
            ClientEvent::Reset { code, .. } => return Err(ProbeError::Reset(*code)),
            ClientEvent::Rejected { error, .. } => return Err(ProbeError::Fields(*error)),
            ClientEvent::Leaves { .. } => return Err(ProbeError::Closed),
            _ => {}
        }
        Ok(false)
    }

    /// The verdict on a complete response.
    fn judged(&self, status: Status) -> Result<Status, ProbeError> {
        if status != Status::OK {
            return Ok(status);
        }
        match self.status.as_deref() {
            Some(b"0") if self.body.get(PREFIX_BYTES..) == Some(&SERVING) => Ok(status),
            Some(b"0") => Err(ProbeError::NotServing),
            Some(code) => Err(ProbeError::Call(String::from_utf8_lossy(code).into_owned())),
            None => Err(ProbeError::NotServing),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_health_check_names_its_service() {
        let body = |service| ProbeCall::health_check("a", service).body;
        assert_eq!(body(""), [0, 0, 0, 0, 0]);
        assert_eq!(body("x.Y"), [0, 0, 0, 0, 5, 0x0a, 3, b'x', b'.', b'Y']);
    }

    #[test]
    fn only_a_service_that_serves_is_healthy() {
        let judge = |status: Option<&[u8]>, body: &[u8]| {
            let body = [&[0, 0, 0, 0, body.len() as u8][..], body].concat();
            ProbeAnswer { body, status: status.map(<[u8]>::to_vec) }.judged(Status::OK).is_ok()
        };
        assert!(judge(Some(b"0"), &[8, 1]));
        // NOT_SERVING, UNKNOWN (the default, which is not sent), an unknown service, no gRPC.
        assert!(!judge(Some(b"0"), &[8, 2]) && !judge(Some(b"0"), &[]));
        assert!(!judge(Some(b"5"), &[]) && !judge(None, &[8, 1]));
    }
}
