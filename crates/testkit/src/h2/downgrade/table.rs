//! The table of downgrade cases, and the parts of its requests.

use super::super::Request;
use super::case::{Case, DowngradeExpectation, ForwardedRequest};

pub(super) struct DowngradeTable {
    pub(super) cases: Vec<Case>,
}

impl DowngradeTable {
    /// Adds a request without a body.
    pub(super) fn head(
        &mut self,
        class: &'static str,
        name: &str,
        request: Request,
        expect: DowngradeExpectation,
    ) {
        self.push(class, name, request, &[], expect);
    }

    /// Adds a request with these DATA frames.
    pub(super) fn push(
        &mut self,
        class: &'static str,
        name: &str,
        request: Request,
        data: &[&[u8]],
        expect: DowngradeExpectation,
    ) -> &mut Case {
        let name = format!("{class}/{name}");
        let data = data.iter().map(|body| (body.to_vec(), None)).collect();
        let fields = request.fields;
        self.cases.push(Case { name, class, fields, data, trailers: None, ended: true, expect });
        self.cases.last_mut().expect("it was just put there")
    }

    /// Adds a POST with a body of four bytes and these trailers.
    pub(super) fn trailers(
        &mut self,
        name: &str,
        trailers: &[(&[u8], &[u8])],
        expect: DowngradeExpectation,
    ) -> &mut Case {
        let case = self.push("trailers", name, Request::post(TARGET), &[b"body"], expect);
        case.trailers = Some(Request::of(trailers).fields);
        case
    }
}

/// The target of most cases.
pub(super) const TARGET: &str = "/";

/// The usual request.
pub(super) fn get() -> Request {
    Request::get(TARGET)
}

/// A request as it is forwarded after a lossless translation.
pub(super) fn forwarded(
    method: &str,
    target: &str,
    fields: &[(&str, &str)],
    body: &[u8],
) -> ForwardedRequest {
    let fields = fields.iter().map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec()));
    ForwardedRequest {
        method: method.to_owned(),
        target: target.to_owned(),
        host: "larder.test".to_owned(),
        fields: fields.collect(),
        body: body.to_vec(),
    }
}

/// The smuggled request: no server may read it as one.
pub(super) const SMUGGLED: &[u8] = b"GET /smuggled HTTP/1.1\r\nHost: evil.test\r\n\r\n";
