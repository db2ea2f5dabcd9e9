//! Persistence of slice sets: what the disk stores of a set, and the set made from it again.

use std::any::Any;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use cache::{DemotionPolicy, Object};
use message::store::{Permit, StorageObjections};
use message::{HeaderId, Request, Scheme};
use origin::{Origin, OriginRequestContext};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc::UnboundedSender;

use crate::state::core::CoreState;
use crate::state::slices::{
    Edition, Shape, SliceLife, SliceOrder, SliceOrigin, SliceSet, SliceableResponse, Validator,
};

/// A set in the form that the disk stores.
#[derive(Debug, Serialize, Deserialize)]
struct KeptSet<'a> {
    id: u64,
    slice_bytes: u64,
    length: u64,
    is_date: bool,
    validator: &'a [u8],
    coding: &'a [u8],
    against: u8,
    /// The origin's name and its servers' names.
    origin: &'a str,
    #[serde(borrow)]
    servers: Vec<&'a str>,
    is_https: bool,
    host: &'a [u8],
    port: Option<u16>,
    target: &'a [u8],
    #[serde(borrow)]
    fields: Vec<(&'a [u8], &'a [u8])>,
}

/// The set that is the body of `object`, if it is a readable one.
pub(crate) fn of_object(object: &Object) -> Option<&SliceSet> {
    let set: &SliceSet = object.elsewhere()?.as_any()?.downcast_ref()?;
    (!set.has_ended()).then_some(set)
}

/// The stored form of `set`.
pub(crate) fn kept(set: &SliceSet) -> Vec<u8> {
    let Request { scheme, host, port, target, headers, .. } = &set.source.request;
    let servers = set.source.origin.servers();
    let kept = KeptSet {
        id: set.life.id,
        slice_bytes: set.shape.slice_bytes,
        length: set.edition.length,
        is_date: matches!(set.edition.validator, Validator::Modified(_)),
        validator: set.edition.validator.text(),
        coding: &set.edition.coding,
        against: set.edition.against.number(),
        origin: set.source.origin.name(),
        servers: servers.iter().map(|server| &*server.name).collect(),
        is_https: *scheme == Scheme::Https,
        host,
        port: *port,
        target,
        fields: headers.iter().map(|field| (field.name, field.value)).collect(),
    };
    postcard::to_allocvec(&kept)
        .expect("every length is known beforehand, and a Vec takes any number of bytes")
}

impl KeptSet<'_> {
    /// The origin, if the configuration still has it unchanged.
    fn origin(&self, core: &CoreState) -> Option<Arc<Origin>> {
        let is_it = |origin: &Origin| {
            let servers = origin.servers();
            &**origin.name() == self.origin
                && servers.iter().map(|server| &*server.name).eq(self.servers.iter().copied())
        };
        core.live().find_origin(is_it)
    }

    fn request(&self) -> Request {
        let mut request = Request::new();
        request.scheme = if self.is_https { Scheme::Https } else { Scheme::Http };
        request.port = self.port;
        request.host.extend_from_slice(self.host);
        request.target.extend_from_slice(self.target);
        for (name, value) in &self.fields {
            request.headers.push_as(HeaderId::of(name), name, value);
        }
        request.headers.fit();
        request
    }
}

/// The set that the disk has stored as `bytes`; its slices may have a `life` already. `None` if its
/// origin has changed. `key_hash` is that of the response that the set is the body of, and `permit`
/// is for that response.
pub(crate) fn restore_set(
    core: &Rc<CoreState>,
    permit: &Permit,
    bytes: &Bytes,
    key_hash: u64,
    life: Option<Arc<dyn Any + Send + Sync>>,
    orders: UnboundedSender<SliceOrder>,
) -> Option<Arc<SliceSet>> {
    let kept: KeptSet<'_> = postcard::from_bytes(bytes).ok()?;
    let shape = Shape::of(&core.live().limits)?;
    let shape = Shape { slice_bytes: Some(kept.slice_bytes).filter(|bytes| *bytes > 0)?, ..shape };
    let text = kept.validator.into();
    let validator = if kept.is_date { Validator::Modified(text) } else { Validator::Etag(text) };
    let (coding, against) = (kept.coding.into(), StorageObjections::from_number(kept.against));
    let edition = Edition { validator, length: kept.length, coding, against };
    let source = SliceOrigin {
        origin: kept.origin(core)?,
        request: kept.request(),
        key_hash,
        caller: OriginRequestContext::default(),
        owner_request: None,
    };
    let count = kept.length.div_ceil(kept.slice_bytes);
    let life = life.and_then(|life| life.downcast().ok());
    let life = life.unwrap_or_else(|| SliceLife::new(&core.shared.slices, kept.id, count));
    let parts = permit.parts(edition.against);
    let sliced = SliceableResponse { edition, source, parts };
    Some(SliceSet::living(life, shape, sliced, DemotionPolicy::ByMerit, orders))
}
