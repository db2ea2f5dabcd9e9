//! Tests of a reply's body, on an engine that only records its calls.

use std::cell::{Cell, RefCell};
use std::task::Waker;

use base::MemoryBudget;
use cache::{BodyDerivation, BodyWindow, BodyWriter, WindowLimit};
use flow::Tunnel;
use message::Response;

use super::*;

/// An engine that records its calls.
#[derive(Default)]
struct Noted {
    said: RefCell<Vec<String>>,
    is_full: Cell<bool>,
    has_left: Cell<bool>,
}

impl Noted {
    fn say(&self, what: String) -> Result<(), ExchangeAbort> {
        self.said.borrow_mut().push(what);
        Ok(())
    }

    fn said(&self) -> String {
        self.said.take().join(", ")
    }
}

impl Engine for Noted {
    type Begun = ();

    fn poll_gone(&self, _: &mut Context<'_>) -> Poll<()> {
        if self.has_left.get() { Poll::Ready(()) } else { Poll::Pending }
    }

    fn interim(&self, _: Response) {}

    fn begin(&self, _: Reply, length: Option<u64>, _: BodyDerivation) -> &() {
        _ = self.say(format!("begin {length:?}"));
        &()
    }

    fn poll_room(&self, (): &(), _: &mut Context<'_>) -> Poll<()> {
        if self.is_full.get() { Poll::Pending } else { Poll::Ready(()) }
    }

    async fn piece(&self, (): &(), data: Bytes) -> Result<(), ExchangeAbort> {
        self.say(String::from_utf8_lossy(&data).into_owned())
    }

    async fn flush(&self, (): &()) -> Result<(), ExchangeAbort> {
        self.say("flush".to_owned())
    }

    async fn end(&self, (): &(), _: Option<Box<HeldTrailers>>) -> Result<(), ExchangeAbort> {
        self.say("end".to_owned())
    }

    async fn whole(&self, reply: Reply) -> Result<(), ExchangeAbort> {
        self.say(format!("whole {}", reply.status.code()))
    }

    async fn tunnel(
        &self,
        _: Reply,
        _: Box<Tunnel>,
        _: Option<Entry>,
    ) -> Result<(), ExchangeAbort> {
        self.say("tunnel".to_owned())
    }
}

/// A body, and its writer.
struct Sent {
    writer: BodyWriter,
    coming: ArrivingBody,
}

/// A body that has begun with `data`, with a declared length of `length` bytes.
fn body(data: &str, length: Option<u64>) -> Sent {
    let account = Account::open(&MemoryBudget::new(1 << 20, 1 << 20), u64::MAX);
    let (mut writer, reader) = BodyWindow::window(WindowLimit { bytes: 1 << 16, account });
    if !data.is_empty() {
        _ = writer.push(data.as_bytes());
    }
    Sent { writer, coming: ArrivingBody { reader, left: length } }
}

/// Sends a reply with this body; `writer` gets its end when everything else waits for it.
fn sent(
    engine: &Noted,
    body: Sent,
    end: impl FnOnce(BodyWriter),
) -> Poll<Option<Result<(), ExchangeAbort>>> {
    let Sent { writer, coming } = body;
    let mut cx = Context::from_waker(Waker::noop());
    let reply = pages::refused(Status::OK, "");
    let broken = |_| pages::refused(Status::BAD_GATEWAY, "");
    let mut exchange =
        pin!(async { watched(engine, pin!(stream(engine, reply, coming, broken))).await });
    match exchange.as_mut().poll(&mut cx) {
        Poll::Pending => {
            end(writer);
            exchange.as_mut().poll(&mut cx)
        }
        done => done,
    }
}

fn whole(writer: BodyWriter) {
    writer.finish();
}

#[test]
fn a_body_begins_with_all_of_its_length_and_leaves_as_far_as_it_is_there() {
    let engine = Noted::default();
    assert_eq!(sent(&engine, body("hello", Some(5)), whole), Poll::Ready(Some(Ok(()))));
    assert_eq!(engine.said(), "begin Some(5), hello, end");
    assert_eq!(sent(&engine, body("hello", None), whole), Poll::Ready(Some(Ok(()))));
    assert_eq!(engine.said(), "begin None, hello, flush, end");
    assert_eq!(sent(&engine, body("hello, all", Some(5)), whole), Poll::Ready(Some(Ok(()))));
    assert_eq!(engine.said(), "begin Some(5), hello, end", "and no more than was said");
}

#[test]
fn a_body_that_breaks_is_a_page_before_its_first_byte_and_cut_afterwards() {
    let (engine, cut) = (Noted::default(), Poll::Ready(Some(Err(ExchangeAbort::Cut))));
    let Sent { writer, coming } = body("", None);
    writer.abort();
    let broken = Sent { coming, ..body("", None) };
    assert_eq!(sent(&engine, broken, drop), Poll::Ready(Some(Ok(()))));
    assert_eq!(engine.said(), "whole 502");
    assert_eq!(sent(&engine, body("", None), drop), cut, "its head has left");
    assert_eq!(engine.said(), "begin None, flush, flush");
    assert_eq!(sent(&engine, body("hel", Some(5)), whole), cut, "shorter than was said");
    assert_eq!(engine.said(), "begin Some(5), hel, flush, flush");
}

#[test]
fn a_body_stays_where_it_counts_until_there_is_room() {
    let engine = Noted::default();
    engine.is_full.set(true);
    assert_eq!(sent(&engine, body("", None), whole), Poll::Pending);
    assert_eq!(engine.said(), "begin None");
    let goes_on = |mut writer: BodyWriter| {
        _ = writer.push(b"hello");
        writer.finish();
        engine.is_full.set(false);
    };
    assert_eq!(sent(&engine, body("", None), goes_on), Poll::Ready(Some(Ok(()))));
    assert_eq!(engine.said(), "begin None, hello, end");
}

#[test]
fn a_client_that_leaves_ends_what_is_still_coming() {
    let (engine, kept) = (Noted::default(), Cell::default());
    let leaves = |writer: BodyWriter| {
        kept.set(Some(writer));
        engine.has_left.set(true);
    };
    assert_eq!(sent(&engine, body("hello", None), leaves), Poll::Ready(None));
    assert_eq!(engine.said(), "begin None, hello, flush");
}
