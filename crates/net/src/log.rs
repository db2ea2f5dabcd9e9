//! Access log: cores hand over records, and a separate thread formats and writes lines. A slow
//! writer must never delay a core: lines are dropped and counted.

use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use base::{Counter, Counters};
use flow::finish::RecordTaker;
use observe::format::{self, FieldPositions};
use observe::pattern::TransactionView;
use observe::{Flags, Pattern, Record};

use crate::syslog::{Syslog, SyslogAt};

/// Batches in the writer's queue; beyond it lines are dropped.
const QUEUE: usize = 256;

/// The format of a line.
#[derive(Clone, Debug)]
pub enum LogFormat {
    /// NCSA combined.
    Combined,
    /// One JSON object.
    Json,
    /// The pattern of the configuration.
    Custom(Pattern),
}

/// A function that opens a file for appending.
pub type Opener = fn(&Path) -> io::Result<File>;

/// The target of lines.
#[derive(Clone, Debug)]
pub enum LogTarget {
    /// Standard output.
    Stdout,
    /// A file, with the function that opens it.
    File(PathBuf, Opener),
    /// A syslog daemon.
    Syslog(SyslogAt),
}

impl fmt::Display for LogTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdout => f.write_str("standard output"),
            Self::File(path, _) => path.display().fmt(f),
            Self::Syslog(at) => at.fmt(f),
        }
    }
}

/// The log of all cores.
#[derive(Clone, Debug)]
pub struct AccessLog {
    sender: SyncSender<LogWriterMessage>,
    /// The file must be reopened. A flag, since the queue of messages may be full.
    reopen: Arc<AtomicBool>,
}

#[derive(Debug)]
enum LogWriterMessage {
    /// Records, one after the other.
    Records(Vec<u8>),
    /// Wakes the writer to check its flags.
    Look,
    Sync(SyncSender<()>),
}

impl AccessLog {
    /// Opens the target and starts the writer. Records have the values of `names`; lines that could
    /// not be written are counted in `counters`.
    ///
    /// # Errors
    /// If the file cannot be opened or the thread not be started.
    pub fn start(
        target: LogTarget,
        format: LogFormat,
        names: &[String],
        counters: Arc<Counters>,
    ) -> io::Result<Self> {
        let (sender, receiver) = sync_channel(QUEUE);
        let sink = open(&target)?;
        let lines = LineFormatter { format, fields: FieldPositions::new(names) };
        let reopen = Arc::new(AtomicBool::new(false));
        let outage = Outage::default();
        let writer = Writer { target, sink, outage, lines, counters, reopen: Arc::clone(&reopen) };
        thread::Builder::new()
            .name("access-log".into())
            .spawn(move || writer.write_lines(&receiver))?;
        Ok(Self { sender, reopen })
    }

    /// Reopens the file after it was moved, or the connection to the syslog daemon.
    pub fn reopen(&self) {
        self.reopen.store(true, Ordering::Release);
        _ = self.sender.try_send(LogWriterMessage::Look);
    }

    /// Waits until every record handed over so far is written.
    pub fn sync(&self) {
        let (done, wait) = sync_channel(1);
        if self.sender.send(LogWriterMessage::Sync(done)).is_ok() {
            _ = wait.recv();
        }
    }
}

impl RecordTaker for AccessLog {
    /// Queues `records`; false if the queue is full, and the records are dropped.
    fn take(&self, records: Vec<u8>) -> bool {
        self.sender.try_send(LogWriterMessage::Records(records)).is_ok()
    }
}

/// Writes as much of `out` as possible; also returns the rest.
fn write_out<'a>(sink: &mut dyn Write, out: &'a [u8]) -> (io::Result<()>, &'a [u8]) {
    let mut rest = out;
    let ended = loop {
        if rest.is_empty() {
            break sink.flush();
        }
        match sink.write(rest) {
            Ok(0) => break Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => rest = rest.get(n..).unwrap_or_default(),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => break Err(e),
        }
    };
    (ended, rest)
}

fn open(target: &LogTarget) -> io::Result<Box<dyn Write + Send>> {
    Ok(match target {
        LogTarget::Stdout => Box::new(io::stdout()),
        LogTarget::File(path, open) => Box::new(open(path)?),
        LogTarget::Syslog(at) => Box::new(Syslog::open(at)?),
    })
}

/// The conversion of records to lines.
struct LineFormatter {
    format: LogFormat,
    fields: FieldPositions,
}

impl LineFormatter {
    /// Appends the lines of `records` to `out`; returns how many were lost to a panic.
    fn of(&self, records: &[u8], out: &mut Vec<u8>) -> u64 {
        let mut rest = records;
        let mut prevented = 0;
        while let Some((record, after)) = Record::read(rest) {
            rest = after;
            if !record.is_client() || record.flags.has(Flags::UNLOGGED) {
                continue;
            }
            let before = out.len();
            if catch_unwind(AssertUnwindSafe(|| self.line(&record, out))).is_err() {
                out.truncate(before);
                prevented += 1;
            }
        }
        prevented
    }

    fn line(&self, record: &Record<'_>, out: &mut Vec<u8>) {
        match &self.format {
            LogFormat::Combined => format::combined(record, &self.fields, out),
            LogFormat::Json => format::json(record, &self.fields, false, out),
            LogFormat::Custom(own) => own.write(record, &self.fields, TransactionView::Client, out),
        }
    }
}

/// A period in which lines cannot be written; its start and its end are logged.
#[derive(Debug, Default)]
struct Outage {
    is_on: bool,
    /// Lines lost since its start.
    lost: u64,
    /// The last line was written partly.
    torn: bool,
}

impl Outage {
    /// Notes the result of a write to `target`, which lost `lost` lines.
    fn note(&mut self, ended: &io::Result<()>, lost: u64, target: &LogTarget) {
        self.lost += lost;
        match ended {
            Err(error) if !self.is_on => {
                self.is_on = true;
                base::tell!(
                    Error,
                    "larder: access log: {target}: {error}: lines are lost until it can be written"
                );
            }
            Ok(()) if self.is_on => {
                base::tell!(
                    Notice,
                    "larder: access log: {target}: written again; {} lines were lost",
                    self.lost
                );
                (self.is_on, self.lost) = (false, 0);
            }
            _ => {}
        }
    }
}

/// The thread that writes.
struct Writer {
    target: LogTarget,
    sink: Box<dyn Write + Send>,
    outage: Outage,
    lines: LineFormatter,
    counters: Arc<Counters>,
    reopen: Arc<AtomicBool>,
}

impl Writer {
    fn write_lines(mut self, receiver: &Receiver<LogWriterMessage>) {
        let mut out = Vec::new();
        for batch in receiver {
            if self.reopen.swap(false, Ordering::Acquire) {
                self.open_anew();
            }
            match batch {
                LogWriterMessage::Records(records) => {
                    out.clear();
                    let prevented = self.lines.of(&records, &mut out);
                    self.counters.add(Counter::LogLost, prevented);
                    self.write(&out);
                }
                LogWriterMessage::Look => {}
                LogWriterMessage::Sync(done) => _ = done.try_send(()),
            }
        }
    }

    /// Writes `out`. A full disk does not end the log: the next batch tries again. A syslog daemon
    /// may have been restarted, so lines that the old socket rejected are sent again on a new one;
    /// a slow daemon gets no second attempt.
    fn write(&mut self, out: &[u8]) {
        let (mut ended, mut rest) = self.write_on(out);
        if let (LogTarget::Syslog(_), Err(error)) = (&self.target, &ended)
            && error.kind() != io::ErrorKind::WouldBlock
            && let Ok(new) = open(&self.target)
        {
            self.sink = new;
            (ended, rest) = write_out(&mut *self.sink, rest);
        }
        let lost = memchr::memchr_iter(b'\n', rest).count() as u64;
        self.counters.add(Counter::LogLost, lost);
        self.outage.note(&ended, lost, &self.target);
    }

    /// Appends `out` to the target; also returns the rest. A line that was written partly is
    /// terminated first.
    fn write_on<'a>(&mut self, out: &'a [u8]) -> (io::Result<()>, &'a [u8]) {
        if self.outage.torn {
            let (ended, rest) = write_out(&mut *self.sink, b"\n");
            if !rest.is_empty() {
                return (ended, out);
            }
            self.outage.torn = false;
        }
        let (ended, rest) = write_out(&mut *self.sink, out);
        let written = out.get(..out.len() - rest.len()).unwrap_or_default();
        self.outage.torn = written.last().is_some_and(|last| *last != b'\n');
        (ended, rest)
    }

    /// Reopens the target; on failure the old one stays in use.
    fn open_anew(&mut self) {
        match open(&self.target) {
            Ok(new) => {
                self.sink = new;
                self.outage.torn = false;
            }
            Err(error) => base::tell!(Error, "larder: access log: not reopened: {error}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixDatagram;

    use parking_lot::Mutex;

    use super::*;

    /// A disk with space for some bytes.
    #[derive(Clone, Debug, Default)]
    struct Disk(Arc<Mutex<(Vec<u8>, usize)>>);

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let (written, room) = &mut *self.0.lock();
            let n = bytes.len().min(*room);
            written.extend_from_slice(&bytes[..n]);
            *room -= n;
            if n == 0 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(n) }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn writer(target: LogTarget, sink: Box<dyn Write + Send>) -> Writer {
        Writer {
            target,
            sink,
            outage: Outage::default(),
            lines: LineFormatter { format: LogFormat::Json, fields: FieldPositions::new(&[]) },
            counters: Arc::default(),
            reopen: Arc::default(),
        }
    }

    #[test]
    fn what_a_full_disk_cuts_off_is_one_lost_line_and_the_next_begins_anew() {
        let disk = Disk::default();
        disk.0.lock().1 = 7;
        let mut writer = writer(LogTarget::Stdout, Box::new(disk.clone()));
        writer.write(b"one\ntwo\nthree\n");
        assert!(writer.outage.is_on && writer.outage.torn);
        assert_eq!(writer.counters.value(Counter::LogLost), 2);
        disk.0.lock().1 = 100;
        writer.write(b"four\n");
        assert!(!writer.outage.is_on && !writer.outage.torn);
        assert_eq!(disk.0.lock().0, b"one\ntwo\nfour\n");
    }

    #[test]
    fn a_syslog_daemon_that_was_started_anew_gets_what_the_old_one_did_not_take() {
        let folder = std::env::temp_dir().join(format!("larder-log-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join("syslog");
        let old = UnixDatagram::bind(&path).expect("a socket");
        let at = LogTarget::Syslog(SyslogAt::Path(path.clone()));
        let mut writer = writer(at.clone(), open(&at).expect("a listener"));
        writer.write(b"one\n");
        drop(old);
        std::fs::remove_file(&path).expect("the old socket");
        writer.write(b"two\n");
        assert!(writer.outage.is_on);
        let new = UnixDatagram::bind(&path).expect("a socket");
        writer.write(b"three\nfour\n");
        assert!(!writer.outage.is_on);
        assert_eq!(
            writer.counters.value(Counter::LogLost),
            1,
            "`two`, for which there was no daemon"
        );
        let mut buffer = [0; 100];
        for expected in ["three", "four"] {
            let length = new.recv(&mut buffer).expect("a message");
            assert!(buffer[..length].ends_with(expected.as_bytes()));
        }
        std::fs::remove_dir_all(&folder).expect("removed");
    }
}
