//! The simulation: virtual time, and orders by seed.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::{Duration, Instant};

use rt::simulation::{is_on, random, run};

/// The order in which six tasks reach their three ends.
fn order(seed: u64) -> Vec<(u64, u64)> {
    let order = Rc::new(RefCell::new(Vec::new()));
    let all = async {
        let tasks: Vec<_> = (0..6)
            .map(|task| {
                let order = Rc::clone(&order);
                rt::spawn_local(async move {
                    for step in 0..3 {
                        rt::yield_now().await;
                        order.borrow_mut().push((task, step));
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.expect("no panic");
        }
    };
    run(seed, all).expect("a runtime");
    order.take()
}

#[test]
fn a_seed_has_one_order_and_seeds_have_many() {
    assert_eq!(order(7), order(7));
    let orders: BTreeSet<_> = (0..50).map(order).collect();
    assert!(orders.len() > 40, "{}", orders.len());
}

#[test]
fn hours_pass_at_once_on_all_clocks() {
    let begun = Instant::now();
    run(1, async {
        let (now, micros) = (rt::now(), rt::micros());
        rt::time::sleep(Duration::from_secs(3600)).await;
        let later = rt::now();
        assert_eq!(later.mono_ms - now.mono_ms, 3_600_000);
        assert_eq!(later.unix_ms - now.unix_ms, 3_600_000);
        assert_eq!(rt::micros() - micros, 3_600_000_000);
        let slow = rt::time::timeout(Duration::from_secs(5), std::future::pending::<()>());
        assert!(slow.await.is_err());
    })
    .expect("a runtime");
    assert!(begun.elapsed() < Duration::from_secs(3600));
}

#[test]
fn work_that_blocks_is_a_task_like_others_and_its_pauses_take_no_time() {
    let sum = run(3, async {
        let work = rt::blocking(|| {
            rt::pause(Duration::from_secs(3600));
            1 + 1
        });
        work.await.expect("no panic")
    });
    assert_eq!(sum.expect("a runtime"), 2);
}

#[test]
fn a_simulation_ends_with_its_run_even_by_a_panic() {
    let ended = std::panic::catch_unwind(|| run(1, async { assert_eq!(random(1), 1) }));
    assert!(ended.is_err() && !is_on());
}

#[test]
fn a_task_of_any_thread_may_begin_work_that_blocks() {
    let three = run(5, async {
        let task = rt::spawn(async { rt::blocking(|| 3).await });
        task.await.expect("no panic").expect("no panic")
    });
    assert_eq!(three.expect("a runtime"), 3);
}

#[test]
fn a_simulation_has_unix_sockets() {
    let read = run(7, async {
        let (mut near, mut far) = tokio::net::UnixStream::pair().expect("sockets");
        let writer = rt::spawn_local(async move {
            rt::time::sleep(Duration::from_secs(60)).await;
            tokio::io::AsyncWriteExt::write_all(&mut near, b"late").await.expect("written");
        });
        let mut all = Vec::new();
        tokio::io::AsyncReadExt::read_to_end(&mut far, &mut all).await.expect("read");
        writer.await.expect("no panic");
        all
    });
    assert_eq!(read.expect("a runtime"), b"late");
}
