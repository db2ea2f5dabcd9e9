//! The error log: events of the daemon, and text of origins and programs, on standard error, in a
//! file or at a syslog daemon.
//!
//! A caller never waits: a thread of its own writes. Equal lines, and lines of one kind, are
//! limited in rate. Until the daemon serves, standard error gets all lines, too.

mod repeats;

use std::fmt::Arguments;
use std::fs::File;
use std::io::{self, IsTerminal as _, Write as _};
use std::panic::Location;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use base::logging::{Log, Priority};
use base::{Counter, Counters, Limits};
use config::{Config, LogTarget};
use message::date::LogDate;
use net::Syslog;
use parking_lot::Mutex;

use crate::keeper::{self, OpenPurpose};
use repeats::{LineVerdict, Rates, Repeats};

/// Lines in the writer's queue; further ones are lost.
const QUEUE: usize = 1024;

/// The longest time that the end of the process waits for the writer.
const LAST: Duration = Duration::from_secs(5);

/// The interval at which the writer reports suppressed lines.
const LOOK: Duration = Duration::from_secs(1);

/// The log, as callers and the daemon share it.
#[derive(Clone, Debug)]
pub(crate) struct ErrorLog(Arc<ErrorLogState>);

/// State that callers share with the writer.
#[derive(Debug)]
struct ErrorLogState {
    queue: SyncSender<Message>,
    /// The number of the least severe level that is logged.
    level: AtomicU8,
    equal_rate: AtomicU64,
    kind_rate: AtomicU64,
    /// The lock also serialises writes to the counters.
    repeats: Mutex<(Repeats, Arc<Counters>)>,
    /// Lines lost to a full queue and not reported yet.
    lost: AtomicU64,
    reopen: AtomicBool,
    end: Mutex<Option<LastOrder>>,
    /// The daemon serves.
    serves: AtomicBool,
    /// The writer has ended.
    is_over: AtomicBool,
}

#[derive(Debug)]
enum Message {
    /// Text of one or more lines; true if it goes to standard error, too.
    Text(Priority, String, bool),
    /// The writer is to check its state.
    Look,
}

/// The order to end.
#[derive(Debug)]
struct LastOrder {
    /// The reason for the process's end, if it is a failure.
    why: Option<String>,
    done: SyncSender<()>,
}

/// The destination of lines.
enum Sink {
    /// Standard error; true if it is the journal's, which takes priorities.
    Stderr(bool),
    File(File),
    Syslog(Syslog),
}

impl ErrorLog {
    /// Opens the log and starts its writer.
    ///
    /// # Errors
    /// The log cannot be opened, or the thread not started.
    pub(crate) fn start(config: &Config, counters: Arc<Counters>) -> Result<Self, String> {
        let target = config.error_log.target.clone();
        let sink = open(target.as_ref()).map_err(|why| format!("larder: error log: {why}"))?;
        let (queue, receiver) = sync_channel(QUEUE);
        let log = Self(Arc::new(ErrorLogState::new(queue, counters)));
        log.configure(config);
        let writer = Writer { state: Arc::clone(&log.0), target, sink };
        thread::Builder::new()
            .name("error-log".into())
            .spawn(move || writer.run(&receiver))
            .map_err(|why| format!("larder: cannot start: {why}"))?;
        Ok(log)
    }

    /// Makes this the log of the whole process.
    pub(crate) fn listen(&self) {
        // A second daemon in one process uses the log of the first.
        base::logging::set_log(Box::new(self.clone()));
    }

    /// Applies the level and the rates of a configuration.
    pub(crate) fn configure(&self, config: &Config) {
        let Limits { error_log_repeats, error_log_lines, .. } = &config.limits;
        self.0.level.store(config.error_log.level.number(), Ordering::Relaxed);
        self.0.equal_rate.store(*error_log_repeats, Ordering::Relaxed);
        self.0.kind_rate.store(*error_log_lines, Ordering::Relaxed);
    }

    /// Reopens the file, after its rename, or the connection to the syslog daemon.
    pub(crate) fn reopen(&self) {
        self.0.reopen.store(true, Ordering::Release);
        self.0.wake();
    }

    /// Ends the copies to standard error, from now on.
    pub(crate) fn serves(&self) {
        self.0.serves.store(true, Ordering::Relaxed);
    }
}

impl Log for ErrorLog {
    fn tell(&self, kind: &'static Location<'static>, priority: Priority, text: Arguments<'_>) {
        let state = &self.0;
        if state.is_over.load(Ordering::Acquire) {
            return base::logging::line(text);
        }
        if priority.number() <= state.level.load(Ordering::Relaxed) {
            state.take(kind, priority, text.to_string());
        }
    }

    fn finish(&self, why: Option<&str>) {
        let (done, wait) = sync_channel(1);
        *self.0.end.lock() = Some(LastOrder { why: why.map(str::to_owned), done });
        self.0.wake();
        // The writer may be blocked for long.
        _ = wait.recv_timeout(LAST);
        self.0.is_over.store(true, Ordering::Release);
    }
}

impl ErrorLogState {
    fn new(queue: SyncSender<Message>, counters: Arc<Counters>) -> Self {
        Self {
            queue,
            level: AtomicU8::default(),
            equal_rate: AtomicU64::default(),
            kind_rate: AtomicU64::default(),
            repeats: Mutex::new((Repeats::default(), counters)),
            lost: AtomicU64::default(),
            reopen: AtomicBool::default(),
            end: Mutex::default(),
            serves: AtomicBool::default(),
            is_over: AtomicBool::default(),
        }
    }

    fn take(&self, kind: &'static Location<'static>, priority: Priority, text: String) {
        let serves = self.serves.load(Ordering::Relaxed);
        if serves && !self.is_within_rates(kind, priority, &text) {
            return;
        }
        if self.queue.try_send(Message::Text(priority, text, !serves)).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
            self.repeats.lock().1.inc(Counter::ErrorLogLost);
        }
    }

    fn is_within_rates(
        &self,
        kind: &'static Location<'static>,
        priority: Priority,
        text: &str,
    ) -> bool {
        let rates = Rates {
            equal: self.equal_rate.load(Ordering::Relaxed),
            kind: self.kind_rate.load(Ordering::Relaxed),
        };
        let kind = (kind.file(), kind.line());
        let (repeats, counters) = &mut *self.repeats.lock();
        match repeats.count_line(rt::now().mono_ms, rates, kind, priority, text) {
            LineVerdict::Written => true,
            LineVerdict::LeftOut(limit, is_first) => {
                counters.limit(limit);
                if is_first {
                    self.wake();
                }
                false
            }
        }
    }

    /// Wakes the writer. A writer with a full queue checks anyway.
    fn wake(&self) {
        _ = self.queue.try_send(Message::Look);
    }
}

/// The state of the thread that writes.
struct Writer {
    state: Arc<ErrorLogState>,
    target: Option<LogTarget>,
    sink: Sink,
}

impl Writer {
    fn run(mut self, receiver: &Receiver<Message>) {
        loop {
            let end = self.state.end.lock().take();
            if let Some(end) = end {
                return self.end(receiver, end);
            }
            let is_waiting = self.state.repeats.lock().0.is_waiting();
            let next = match is_waiting {
                true => receiver.recv_timeout(LOOK),
                false => receiver.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match next {
                Ok(message) => self.take(message),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            self.write_notes(rt::now().mono_ms);
        }
    }

    fn take(&mut self, message: Message) {
        if self.state.reopen.swap(false, Ordering::Acquire) {
            self.open_anew();
        }
        if let Message::Text(priority, text, also) = message {
            self.write(priority, &text);
            if also && !matches!(self.sink, Sink::Stderr(_)) {
                base::logging::line(format_args!("{text}"));
            }
        }
    }

    fn end(mut self, receiver: &Receiver<Message>, LastOrder { why, done }: LastOrder) {
        while let Ok(message) = receiver.try_recv() {
            self.take(message);
        }
        self.write_notes(u64::MAX);
        // On standard error the process reports the reason itself.
        if let (Some(why), Sink::File(_) | Sink::Syslog(_)) = (why, &self.sink) {
            self.write(Priority::Error, &why);
        }
        _ = done.try_send(());
    }

    /// Writes notes about suppressed and lost lines.
    fn write_notes(&mut self, now_ms: u64) {
        let notes = self.state.repeats.lock().0.notes(now_ms);
        for (priority, note) in notes {
            self.write(priority, &note);
        }
        let lost = self.state.lost.swap(0, Ordering::Relaxed);
        if lost > 0 {
            let note =
                format!("larder: {lost} lines of this log were lost: its target was too slow");
            self.write(Priority::Warn, &note);
        }
    }

    fn write(&mut self, priority: Priority, text: &str) {
        if self.sink.write(priority, text).is_ok() {
            return;
        }
        // A full disk must not end the log for good, and a syslog daemon may have been restarted.
        let again = match (&self.sink, open(self.target.as_ref())) {
            (Sink::Syslog(_), Ok(new)) => {
                self.sink = new;
                self.sink.write(priority, text).is_ok()
            }
            _ => false,
        };
        if !again {
            self.state.repeats.lock().1.inc(Counter::ErrorLogLost);
        }
    }

    /// Keeps the previous destination if reopening fails.
    fn open_anew(&mut self) {
        match open(self.target.as_ref()) {
            Ok(new) => self.sink = new,
            Err(why) => {
                self.write(Priority::Error, &format!("larder: error log: not reopened: {why}"));
            }
        }
    }
}

fn open(target: Option<&LogTarget>) -> Result<Sink, String> {
    let syslog = |at| Syslog::open(&at).map(Sink::Syslog).map_err(|why| why.to_string());
    match target {
        // No setting names standard output.
        None | Some(LogTarget::Stdout) => Ok(Sink::Stderr(is_the_journals())),
        Some(LogTarget::File(path)) => {
            let file = keeper::open(path, OpenPurpose::Append);
            file.map(Sink::File).map_err(|why| format!("{}: {why}", path.display()))
        }
        Some(LogTarget::SyslogPath(path)) => syslog(net::SyslogAt::Path(PathBuf::clone(path))),
        Some(LogTarget::SyslogAddress(address)) => syslog(net::SyslogAt::Address(*address)),
    }
}

/// Returns true if standard error goes to systemd's journal: `JOURNAL_STREAM` of systemd.exec(5).
fn is_the_journals() -> bool {
    let Ok(told) = std::env::var("JOURNAL_STREAM") else { return false };
    let own =
        rustix::fs::fstat(io::stderr()).map(|stat| format!("{}:{}", stat.st_dev, stat.st_ino));
    own.is_ok_and(|own| own == told) && !io::stderr().is_terminal()
}

impl Sink {
    /// Writes every line of `text`.
    fn write(&mut self, priority: Priority, text: &str) -> io::Result<()> {
        let mut out = Vec::new();
        match self {
            Self::Stderr(is_journals) => {
                // sd-daemon(3).
                let head =
                    if *is_journals { format!("<{}>", priority.number()) } else { String::new() };
                lines(&head, text, &mut out);
                // A failure of standard error itself cannot be reported.
                _ = io::stderr().lock().write_all(&out);
                Ok(())
            }
            Self::File(file) => {
                let date = LogDate::new(rt::now().unix_secs());
                lines(&format!("[{}] [{}] ", date.as_str(), priority.word()), text, &mut out);
                file.write_all(&out)
            }
            Self::Syslog(syslog) => {
                let mut all = text.lines().filter(|line| !line.is_empty());
                // The syslog daemon writes the name itself.
                let plain = |line: &str| line.strip_prefix("larder: ").unwrap_or(line).to_owned();
                all.try_for_each(|line| syslog.say(priority.number(), plain(line).as_bytes()))
            }
        }
    }
}

/// Appends every line of `text`, each behind `head`.
fn lines(head: &str, text: &str, out: &mut Vec<u8>) {
    for line in text.lines() {
        for part in [head, line, "\n"] {
            out.extend_from_slice(part.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A log with a queue of `room` messages, and its counters.
    fn log(room: usize) -> (ErrorLog, Receiver<Message>, Arc<Counters>) {
        let (queue, receiver) = sync_channel(room);
        let counters = Arc::new(Counters::default());
        let state = ErrorLogState::new(queue, Arc::clone(&counters));
        state.level.store(Priority::Info.number(), Ordering::Relaxed);
        (ErrorLog(Arc::new(state)), receiver, counters)
    }

    /// Writes all queued messages to the file at `path`.
    fn written(log: &ErrorLog, receiver: Receiver<Message>, path: &std::path::Path) {
        let target = Some(LogTarget::File(path.to_owned()));
        let sink = open(target.as_ref()).expect("a file");
        let writer = Writer { state: Arc::clone(&log.0), target, sink };
        let (done, _wait) = sync_channel(1);
        *log.0.end.lock() = Some(LastOrder { why: Some("the end".to_owned()), done });
        writer.run(&receiver);
    }

    fn tell(log: &ErrorLog, priority: Priority, text: &str) {
        log.tell(Location::caller(), priority, format_args!("{text}"));
    }

    #[test]
    fn a_writer_that_falls_behind_costs_lines_and_says_so() {
        let path = std::env::temp_dir().join(format!("larder-error-log-{}", std::process::id()));
        let (log, receiver, counters) = log(2);
        log.serves();
        tell(&log, Priority::Debug, "nobody wants this");
        for text in ["one\ntwo", "three", "four", "five"] {
            tell(&log, Priority::Warn, text);
        }
        written(&log, receiver, &path);
        let text = std::fs::read_to_string(&path).expect("a file");
        _ = std::fs::remove_file(&path);
        let lines = text.lines().map(|line| line.split_once("] ").map_or("", |(_, rest)| rest));
        let expected = [
            "[warn] one",
            "[warn] two",
            "[warn] three",
            "[warn] larder: 2 lines of this log were lost: its target was too slow",
            "[error] the end",
        ];
        assert_eq!(lines.collect::<Vec<_>>(), expected);
        assert_eq!(counters.value(Counter::ErrorLogLost), 2);
    }

    #[test]
    fn lines_that_a_full_disk_has_no_room_for_are_counted() {
        let (log, receiver, counters) = log(9);
        tell(&log, Priority::Error, "gone");
        written(&log, receiver, std::path::Path::new("/dev/full"));
        assert_eq!(counters.value(Counter::ErrorLogLost), 2, "the line, and the end");
    }
}
