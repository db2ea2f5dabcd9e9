//! Background connections, open besides the load: idle ones, and those of slow readers. They must
//! not count as load.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::io::AsyncReadExt;
use tokio::sync::Semaphore;
use tokio::task::LocalSet;

use crate::load::{Http1, LoadPlan, Stream};

/// Connections that are being opened at the same time.
const OPENING: usize = 64;
/// Reads per second of a slow reader.
const READS: u32 = 10;
/// Delay before a failed or closed connection is opened again.
const AGAIN: Duration = Duration::from_millis(500);

/// The background connections of a run.
pub(crate) struct BackgroundConnections {
    stop: Arc<AtomicBool>,
    held: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl BackgroundConnections {
    /// Opens them, and waits until all are open or the connection timeout is over.
    pub(crate) fn start(plan: &Arc<LoadPlan>) -> Result<Self, String> {
        let stop = Arc::new(AtomicBool::new(false));
        let held = Arc::new(AtomicU64::new(0));
        let settings = &plan.settings;
        let wanted = settings.background.all() as u64;
        if wanted == 0 {
            return Ok(Self { stop, held, thread: None });
        }
        let (plan_, stop_, held_) = (Arc::clone(plan), Arc::clone(&stop), Arc::clone(&held));
        let thread = std::thread::Builder::new()
            .name("bench-background".to_owned())
            .spawn(move || hold(&plan_, &stop_, &held_))
            .map_err(|error| format!("cannot start a thread: {error}"))?;
        let limit = Instant::now() + settings.timeout;
        while held.load(Ordering::Relaxed) < wanted && Instant::now() < limit {
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(Self { stop, held, thread: Some(thread) })
    }

    /// The number of open connections.
    pub(crate) fn held(&self) -> u64 {
        self.held.load(Ordering::Relaxed)
    }
}

impl Drop for BackgroundConnections {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic of that thread has been printed; the load itself is measured.
            let _ = thread.join();
        }
    }
}

fn hold(plan: &Arc<LoadPlan>, stop: &AtomicBool, held: &Arc<AtomicU64>) {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
        return;
    };
    let local = LocalSet::new();
    let opening = Arc::new(Semaphore::new(OPENING));
    let background = plan.settings.background.clone();
    for nth in 0..background.all() {
        let (plan, held, opening) = (Arc::clone(plan), Arc::clone(held), Arc::clone(&opening));
        let slow = (nth >= background.idle).then_some(background.slow_rate);
        local.spawn_local(async move {
            loop {
                one(&plan, nth, slow, &opening, &held).await;
                tokio::time::sleep(AGAIN).await;
            }
        });
    }
    runtime.block_on(local.run_until(async {
        while !stop.load(Ordering::Relaxed) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }));
}

/// Keeps one connection open until it ends.
async fn one(
    plan: &LoadPlan,
    nth: usize,
    slow: Option<usize>,
    opening: &Semaphore,
    held: &AtomicU64,
) {
    let endpoint = plan.endpoints.get(nth % plan.endpoints.len().max(1));
    let stream = {
        let Ok(_opening) = opening.acquire().await else {
            return;
        };
        match endpoint {
            Some(endpoint) => endpoint.connect().await,
            None => return,
        }
    };
    let Ok((mut stream, _)) = stream else {
        return;
    };
    held.fetch_add(1, Ordering::Relaxed);
    match slow {
        None => {
            // Only the server closes an idle connection.
            let mut byte = [0; 1];
            while stream.read(&mut byte).await.is_ok_and(|read| read > 0) {}
        }
        Some(rate) => read_slowly(plan, nth, stream, rate).await,
    }
    held.fetch_sub(1, Ordering::Relaxed);
}

/// Sends requests one after the other, and reads their responses at `rate` bytes per second.
async fn read_slowly(plan: &LoadPlan, nth: usize, stream: Stream, rate: usize) {
    let count = plan.settings.list.asks().len().max(1);
    let mut piece = vec![0; (rate / READS as usize).max(1)];
    let mut connection = Http1::new(stream, plan.head_limits);
    let mut asked = nth;
    while connection.may_go_on() {
        let Some(ask) = plan.ask((asked % count) as u32, nth) else {
            return;
        };
        asked += 1;
        connection.queue(ask, None);
        loop {
            let read = poll_fn(|cx| connection.poll_piece(cx, &mut piece)).await;
            tokio::time::sleep(Duration::from_secs(1) / READS).await;
            match read {
                Ok(None) => {}
                Ok(Some(_)) => break,
                Err(_) => return,
            }
        }
    }
}
