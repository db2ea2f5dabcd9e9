//! Entry points for fuzzing: arbitrary bytes to what they mean, with a check of what must hold of
//! any request that is accepted. They panic when it does not; nothing else calls them but tests.

use base::Limits;
use message::{HeaderId, Request, Scheme, class, header, target};

use crate::decode::Decoder;
use crate::priority;
use crate::request::{Collector, ListLimits, RequestError};

/// Reads `fields` as those of a request's block. `ends`: there is no body.
///
/// # Errors
/// As a connection's engine finds them.
pub fn request<'a>(
    fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
    scheme: Scheme,
    ends: bool,
) -> Result<Request, RequestError> {
    let (mut collector, mut request) = (Collector::default(), Request::new());
    let limits = ListLimits::from(&Limits::default());
    collector.start(scheme, &mut request);
    for (name, value) in fields {
        collector.field(HeaderId::of(name), name, value, &limits, &mut request);
    }
    collector.finish(ends, &mut request)?;
    assert_canonical(&request);
    assert!(!collector.is_extended() || request.headers.contains(HeaderId::Upgrade));
    Ok(request)
}

/// Reads the fields of a trailer section.
///
/// # Errors
/// As a connection's engine finds them.
pub fn trailer<'a>(
    fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
) -> Result<(), RequestError> {
    let mut collector = Collector::default();
    let limits = ListLimits::from(&Limits::default());
    collector.start_trailer();
    for (name, value) in fields {
        collector.trailer(HeaderId::of(name), name, value, &limits);
    }
    collector.finish_trailer()
}

/// Reads a field block, as it comes in frames, as a request and as a trailer section. The lowest
/// bits of the first byte say whether there is a body, and whether the connection is one of TLS.
pub fn block(data: &[u8]) -> Option<Request> {
    let (first, block) = data.split_first()?;
    let mut fields = Vec::new();
    let decoded = Decoder::new(4096).block(block, |_, name, value| {
        fields.push((name.to_vec(), value.to_vec()));
    });
    decoded.ok()?;
    let fields = fields.iter().map(|(name, value)| (&name[..], &value[..]));
    let scheme = if first & 2 == 0 { Scheme::Http } else { Scheme::Https };
    let read = request(fields.clone(), scheme, first & 1 != 0);
    // What begins a request never ends one.
    assert!(read.is_err() || trailer(fields).is_err());
    read.ok()
}

/// Reads a Priority field.
pub fn priority_field(value: &[u8]) {
    assert!(priority::priority(value).0 <= 7);
}

fn assert_canonical(request: &Request) {
    assert!(header::is_token(request.method.token()));
    assert_eq!(target::check(request), Ok(()));
    assert!(!request.host.is_empty());
    assert_eq!(request.headers.iter().next().map(|field| field.id), Some(HeaderId::Host));
    for id in [HeaderId::Host, HeaderId::Cookie, HeaderId::ContentLength] {
        assert!(request.headers.values(id).count() <= 1);
    }
    for field in request.headers.iter() {
        let lower = class::all(field.name, class::LOWER) && !field.name.is_empty();
        assert!(lower || !matches!(field.id, HeaderId::Other));
        assert!(header::is_value(field.value));
        assert_eq!(message::list::trim(field.value), field.value);
    }
}
