//! The loom models: every interleaving of waiters and wakers.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p cache --test loom`
#![cfg(loom)]

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use base::{Account, MemoryBudget};
use cache::model::Fetch;
use cache::{
    AbandonedBody, BodyWindow, BodyWriter, IncompleteBody, PushOutcome, Reader, WaiterOutcome,
    WindowLimit,
};
use loom::future::block_on;

use loom::thread;

#[test]
fn a_waiter_is_woken_whenever_the_fetch_ends() {
    loom::model(|| {
        let fetch = Fetch::new();
        let ticket = fetch.join(10).expect("room");
        let lead = fetch.clone();
        let ending = thread::spawn(move || lead.conclude(WaiterOutcome::Refused));
        assert!(matches!(block_on(ticket), WaiterOutcome::Refused));
        ending.join().expect("no panic");
    });
}

#[test]
fn two_waiters_are_woken_though_one_leaves_a_third_place() {
    bounded().check(|| {
        let fetch = Fetch::new();
        let first = fetch.join(10).expect("room");
        let second = fetch.join(10).expect("room");
        let third = fetch.join(10).expect("room");
        let waiting =
            thread::spawn(move || assert!(matches!(block_on(first), WaiterOutcome::Failed)));
        let lead = fetch.clone();
        let ending = thread::spawn(move || lead.conclude(WaiterOutcome::Failed));
        drop(third);
        assert!(matches!(block_on(second), WaiterOutcome::Failed));
        waiting.join().expect("no panic");
        ending.join().expect("no panic");
        assert!(!fetch.is_watched());
    });
}

#[test]
fn a_ticket_dropped_while_the_fetch_ends_leaves_nothing() {
    loom::model(|| {
        let fetch = Fetch::new();
        let ticket = fetch.join(1).expect("room");
        let lead = fetch.clone();
        let ending = thread::spawn(move || lead.conclude(WaiterOutcome::Failed));
        drop(ticket);
        ending.join().expect("no panic");
        assert!(!fetch.is_watched());
    });
}

fn write(mut writer: BodyWriter, pieces: u8) -> Result<bool, AbandonedBody> {
    for piece in 0..pieces {
        match writer.push(&[piece; 2]) {
            PushOutcome::Ok => {}
            PushOutcome::Wait => block_on(writer.room())?,
            PushOutcome::Abandoned => return Err(AbandonedBody),
            PushOutcome::Overrun => unreachable!("no length is declared"),
        }
    }
    Ok(writer.finish())
}

fn read(mut reader: Reader) -> Result<usize, IncompleteBody> {
    let mut bytes = 0;
    while let Some(data) = block_on(reader.next())? {
        bytes += data.len();
    }
    Ok(bytes)
}

fn window_limit(bytes: u64) -> WindowLimit {
    WindowLimit { bytes, account: Account::open(&MemoryBudget::new(1 << 20, 1 << 20), u64::MAX) }
}

fn bounded() -> loom::model::Builder {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder
}

#[test]
fn a_window_carries_everything_and_neither_end_sleeps_through() {
    bounded().check(|| {
        // Every chunk fills it, so both ends wait.
        let (writer, reader) = BodyWindow::window(window_limit(1));
        let writing = thread::spawn(move || write(writer, 2));
        assert_eq!(read(reader), Ok(4));
        assert_eq!(writing.join().expect("no panic"), Ok(true));
    });
}

#[test]
fn a_writer_is_woken_when_its_reader_leaves() {
    bounded().check(|| {
        let (writer, reader) = BodyWindow::window(window_limit(1));
        let writing = thread::spawn(move || write(writer, 2));
        drop(reader);
        assert_eq!(writing.join().expect("no panic"), Err(AbandonedBody));
    });
}

#[test]
fn a_reader_is_woken_when_its_writer_leaves() {
    bounded().check(|| {
        let (mut writer, reader) = BodyWindow::window(window_limit(10));
        let writing = thread::spawn(move || {
            assert_eq!(writer.push(b"a"), PushOutcome::Ok);
            drop(writer);
        });
        assert_eq!(read(reader), Err(IncompleteBody));
        writing.join().expect("no panic");
    });
}

#[test]
fn a_writer_that_waits_for_room_and_for_its_reader_in_one_task_is_woken_for_both() {
    for gone_last in [false, true] {
        bounded().check(move || {
            let (mut writer, reader) = BodyWindow::window(window_limit(1));
            let mut watch = writer.watch();
            let writing = thread::spawn(move || {
                assert_eq!(writer.push(b"aa"), PushOutcome::Wait);
                let has_room = block_on(async {
                    let (mut gone, mut room) = (pin!(watch.abandoned()), pin!(writer.room()));
                    poll_fn(|cx| {
                        let first = gone_last.then(|| room.as_mut().poll(cx));
                        let left = gone.as_mut().poll(cx);
                        let polled = first.unwrap_or_else(|| room.as_mut().poll(cx));
                        if left.is_ready() { Poll::Ready(Err(AbandonedBody)) } else { polled }
                    })
                    .await
                });
                has_room.map(|()| writer.finish())
            });
            assert_eq!(read(reader), Ok(2));
            assert_eq!(writing.join().expect("no panic"), Ok(true));
        });
    }
}
