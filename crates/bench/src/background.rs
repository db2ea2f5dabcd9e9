//! Connections that are there besides the load: idle ones, and those of slow readers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Semaphore;
use tokio::task::LocalSet;

use crate::load::{Plan, Stream};

/// Connections that are opened at once.
const OPENING: usize = 64;
/// Times a second that a slow reader reads.
const READS: u32 = 10;
/// Wait before a connection that failed or was ended is opened again.
const AGAIN: Duration = Duration::from_millis(500);

/// Connections besides the load.
pub(crate) struct Besides {
    stop: Arc<AtomicBool>,
    held: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Besides {
    /// Opens them, and waits until they are there, but not beyond a connection's timeout.
    pub(crate) fn start(plan: &Arc<Plan>) -> Result<Self, String> {
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

    /// Ends them; how many there were at the end.
    pub(crate) fn end(self) -> u64 {
        let held = self.held.load(Ordering::Relaxed);
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread {
            // A panic of that thread has been printed; the load itself is measured.
            let _ = thread.join();
        }
        held
    }
}

fn hold(plan: &Arc<Plan>, stop: &AtomicBool, held: &Arc<AtomicU64>) {
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

/// One connection, until it ends.
async fn one(plan: &Plan, nth: usize, slow: Option<usize>, opening: &Semaphore, held: &AtomicU64) {
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
            // An idle connection ends when the server ends it.
            let mut byte = [0; 1];
            while stream.read(&mut byte).await.is_ok_and(|read| read > 0) {}
        }
        Some(rate) => read_slowly(plan, nth, &mut stream, rate).await,
    }
    held.fetch_sub(1, Ordering::Relaxed);
}

/// Asks, and reads what comes at `rate` bytes a second, without end.
async fn read_slowly(plan: &Plan, nth: usize, stream: &mut Stream, rate: usize) {
    let Some(ask) = plan.ask((nth % plan.settings.list.asks().len().max(1)) as u32, nth) else {
        return;
    };
    let mut piece = vec![0; (rate / READS as usize).max(1)];
    if stream.write_all(&ask.bytes).await.is_err() {
        return;
    }
    loop {
        match stream.read(&mut piece).await {
            Ok(read) if read > 0 => tokio::time::sleep(Duration::from_secs(1) / READS).await,
            _ => return,
        }
    }
}
