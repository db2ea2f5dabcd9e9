//! Text that origin servers send besides responses, on the daemon's standard error: one line for
//! each line of theirs, with the request's name before it.
//!
//! Cores hand the text over and go on; a thread of its own writes it. When the writer falls behind,
//! lines are lost, and the next line says how many.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use origin::{Journal, Said, Turn};

/// Requests whose texts wait for the writer; each is bounded by the limit `stderr_bytes`.
const QUEUE: usize = 1024;

/// The cores' side.
#[derive(Debug)]
pub(crate) struct ServerLog {
    sender: SyncSender<String>,
    lost: Arc<AtomicU64>,
}

impl ServerLog {
    /// Starts the writer.
    pub(crate) fn start() -> io::Result<Arc<Self>> {
        let (sender, receiver) = sync_channel(QUEUE);
        let lost = Arc::new(AtomicU64::new(0));
        let theirs = Arc::clone(&lost);
        let run = move || write_lines(&receiver, &theirs, &mut io::stderr());
        thread::Builder::new().name("server-log".into()).spawn(run)?;
        Ok(Arc::new(Self { sender, lost }))
    }
}

impl ServerLog {
    fn hand_over(&self, lines: String) {
        if self.sender.try_send(lines).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Journal for ServerLog {
    fn said(&self, said: &Said<'_>) {
        self.hand_over(said.to_string());
    }

    fn probed(&self, turn: &Turn<'_>) {
        self.hand_over(format!("larder: {turn}\n"));
    }

    fn line_feeds(&self, server: &str) {
        self.hand_over(format!(
            "larder: {server}: lines of its response heads end without CR; that is let pass\n"
        ));
    }
}

fn write_lines(receiver: &Receiver<String>, lost: &AtomicU64, sink: &mut dyn io::Write) {
    for lines in receiver {
        let lost = lost.swap(0, Ordering::Relaxed);
        // Nobody can be told that standard error is gone.
        _ = sink.write_all(lines.as_bytes());
        if lost > 0 {
            _ = writeln!(sink, "larder: what origins said of {lost} more requests was lost");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_writer_that_falls_behind_costs_lines_and_says_so() {
        let (sender, receiver) = sync_channel(1);
        let log = ServerLog { sender, lost: Arc::default() };
        for text in [&b"one"[..], b"two", b"three"] {
            log.said(&Said { about: "php", text, dropped: 0 });
        }
        let ServerLog { sender, lost } = log;
        drop(sender);
        let mut written = Vec::new();
        write_lines(&receiver, &lost, &mut written);
        let text = String::from_utf8(written).expect("text");
        assert_eq!(text, "php: one\nlarder: what origins said of 2 more requests was lost\n");
    }
}
