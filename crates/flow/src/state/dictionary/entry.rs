//! Dictionary entry: a stored response that may serve as a dictionary, and its scope.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use cache::{BodyRef, DerivedData, Object};
use codec::Coding;
use codec::dictionary::{DictionaryHash, UseAsDictionary};
use message::{HeaderId, Request};

use crate::stored_heads::stored_head;

/// The scope of a dictionary: the request that it was received for.
#[derive(Debug)]
pub(crate) struct DictionaryScope {
    /// Scheme, host and port of the requests that may use it.
    pub(crate) origin: Box<[u8]>,
    pub(crate) target: Box<[u8]>,
    pub(crate) audience: Box<[u8]>,
}

/// A stored response with a Use-As-Dictionary field.
#[derive(Debug)]
pub(crate) struct Dictionary {
    pub(crate) body: BodyRef,
    pub(crate) coding: Coding,
    pub(crate) scope: DictionaryScope,
    /// `None` if the field is malformed: the response is no dictionary.
    pub(crate) use_as: Option<UseAsDictionary>,
    pub(crate) hash: OnceLock<DictionaryHash>,
    /// The hash is being computed, or could not be.
    pub(crate) is_begun: AtomicBool,
    /// Monotonic milliseconds from which it may be listed by hash; the maximum while it is listed.
    pub(crate) list_from_ms: AtomicU64,
}

impl DerivedData for Dictionary {
    fn memory(&self) -> u64 {
        let pattern = self.use_as.as_ref().map_or(0, UseAsDictionary::memory);
        let DictionaryScope { origin, target, audience } = &self.scope;
        (size_of::<Self>() + origin.len() + target.len() + audience.len() + pattern) as u64
    }
}

/// Scheme, host and port of a request, as URLs spell them.
pub(crate) fn origin(request: &Request) -> Vec<u8> {
    let mut origin = [b"https://", &request.host[..]].concat();
    if let Some(port) = request.port {
        origin.extend_from_slice(format!(":{port}").as_bytes());
    }
    origin
}

impl Dictionary {
    /// The entry of `object`, which was requested in this scope.
    pub(crate) fn of(object: &Arc<Object>, scope: DictionaryScope) -> Self {
        let use_as = stored_head(object).and_then(|head| {
            let values = head.headers.values(HeaderId::UseAsDictionary);
            UseAsDictionary::parse(values, &scope.origin, &scope.target)
        });
        Self {
            body: object.body_ref(),
            coding: object.flags().coding,
            scope,
            use_as,
            hash: OnceLock::new(),
            is_begun: AtomicBool::new(false),
            list_from_ms: AtomicU64::new(0),
        }
    }

    /// Returns true if nothing can be done now to list it.
    pub(crate) fn is_settled(&self, now_ms: u64) -> bool {
        self.use_as.is_none()
            || now_ms < self.list_from_ms.load(Ordering::Relaxed)
            || (self.hash.get().is_none() && self.is_begun.load(Ordering::Relaxed))
    }
}
