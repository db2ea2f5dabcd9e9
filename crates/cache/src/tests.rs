//! Tests of the cache through its public interface.

mod bans;
mod bodies;
mod bounds;
mod collapsing;
mod common_bodies;
mod eviction;
mod forms;
mod index_walk;
mod key_survey;
mod keyed_forms;
mod lookup;
mod lower;
mod memory;
mod peek;
mod record_encoding;
mod seek;
mod stress;

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use base::{Account, HashSeed, KeyBuf, MemoryBudget};
use message::store::{Permit, Ruling};
use message::{HeaderBlock, Status};

use crate::*;

const MIB: u64 = 1 << 20;

fn config(budget_bytes: u64) -> Config {
    Config {
        budget_bytes,
        held_bytes_max: 0,
        max_variants: 4,
        object_bytes_max: MIB,
        waiters_max: 100,
        window_bytes: 64 * 1024,
        hit_for_miss_ms: 1000,
        bans_max: 100,
        index_bytes: 64 * MIB,
    }
}

fn cache() -> Arc<Cache> {
    Cache::new(config(64 * MIB))
}

fn key(name: &str) -> KeyBuf {
    let mut key = KeyBuf::new();
    key.field(name.as_bytes());
    key.finish(&HashSeed::from_u64(1));
    key
}

fn head(length: Option<u64>) -> NewObject {
    NewObject {
        status: Status::OK,
        head: (*b"HTTP/1.1 200 OK\r\nETag: \"x\"\r\n\r\n").into(),
        etag: Some((23, 3)),
        last_modified: Some(1_700_000_000),
        date: Some(1_700_000_100),
        born_ms: 0,
        lifetime_ms: 10_000,
        grace_ms: 5000,
        stale_if_error_ms: 60_000,
        stale_if_unreachable_ms: 86_400_000,
        flags: Flags { shared: true, ..Flags::default() },
        note: Box::default(),
        tags: Tags::default(),
        length,
    }
}

/// A window of this many bytes, on an account with room.
fn window_limit(bytes: u64) -> WindowLimit {
    WindowLimit { bytes, account: Account::open(&MemoryBudget::new(64 * MIB, 32 * MIB), u64::MAX) }
}

/// A permit to store anything.
fn permit() -> Permit {
    let ruling = Ruling { passed: false, uncacheable: false, findable: true };
    Permit::by_program(ruling, &HeaderBlock::new()).expect("nothing forbids it")
}

/// The signature function for keys without Vary.
fn plain(_: &VarySpec, _: &mut Vec<u8>) {
    panic!("no response of this key varies");
}

/// A request whose signature is `value` for any names.
fn of(value: &str) -> impl FnMut(&VarySpec, &mut Vec<u8>) {
    move |_, out| out.extend_from_slice(value.as_bytes())
}

fn lead(begin: FetchDecision) -> Lead {
    match begin {
        FetchDecision::Lead(lead) | FetchDecision::Alone(lead) => lead,
        other => panic!("expected to fetch, not {other:?}"),
    }
}

fn begin(cache: &Arc<Cache>, name: &str) -> FetchDecision {
    cache.begin(&key(name), &mut |_, _| (), BeginOptions::default(), 0)
}

/// Begins a fetch although an object is stored.
fn begin_anew(cache: &Arc<Cache>, name: &str) -> Lead {
    let old = found(cache, name);
    let options = BeginOptions { rejected: old.as_ref(), ..BeginOptions::default() };
    lead(cache.begin(&key(name), &mut |_, _| (), options, 0))
}

fn put(cache: &Arc<Cache>, name: &str, body: &[u8]) -> Arc<Object> {
    let mut filling = begin_anew(cache, name).store(permit(), head(Some(body.len() as u64)), None);
    assert_eq!(filling.push(body), PushOutcome::Ok);
    let object = Arc::clone(filling.object());
    assert!(filling.finish());
    object
}

fn put_variant(
    cache: &Arc<Cache>,
    name: &str,
    new: NewObject,
    spec: &str,
    sig: &str,
) -> Arc<Object> {
    let lead = lead(cache.begin(
        &key(name),
        &mut of("matches nothing stored"),
        BeginOptions { coalesce: false, rejected: None },
        0,
    ));
    let vary = Variant { spec: spec.as_bytes(), signature: sig.as_bytes() };
    let filling = lead.store(permit(), NewObject { length: Some(0), ..new }, Some(vary));
    let object = Arc::clone(filling.object());
    assert!(filling.finish());
    object
}

fn found(cache: &Cache, name: &str) -> Option<Arc<Object>> {
    match cache.lookup(&key(name), &mut plain, 0) {
        CacheLookup::Object(object) => Some(object),
        _ => None,
    }
}

fn bytes_of(object: &Object) -> Option<Vec<u8>> {
    Some(object.whole()?.pieces().collect::<Vec<_>>().concat())
}

struct Unpark(std::thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

/// One poll with a waker that does nothing.
fn poll_once<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    std::pin::Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

/// One poll of a reader: `None` if it would wait.
fn read_once(reader: &mut Reader) -> Option<Result<Option<bytes::Bytes>, IncompleteBody>> {
    match reader.poll_next(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(read) => Some(read),
        Poll::Pending => None,
    }
}

fn read_all(mut reader: Reader) -> Result<Vec<u8>, IncompleteBody> {
    let mut all = Vec::new();
    while let Some(data) = block_on(reader.next())? {
        assert!(!data.is_empty());
        all.extend_from_slice(&data);
    }
    Ok(all)
}

/// Bytes that differ from offset to offset.
fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 31 + (at >> 8) * 7) as u8).collect()
}
