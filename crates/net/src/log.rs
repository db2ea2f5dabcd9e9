//! The access log: cores hand their records over, and a thread of its own makes lines of them and
//! writes these. A writer that falls behind costs lines, counted, never time.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use base::{Counter, Counters};
use flow::finish::Taker;
use observe::format::{self, Fields};
use observe::pattern::View;
use observe::{Pattern, Record};

use crate::syslog::{Syslog, SyslogAt};

/// Batches waiting for the writer; beyond it lines are lost.
const QUEUE: usize = 256;

/// The format of a line.
#[derive(Clone, Debug)]
pub enum LogFormat {
    /// NCSA combined.
    Combined,
    /// One JSON object.
    Json,
    /// As the configuration has it.
    Custom(Pattern),
}

/// A function that opens a file for writing to its end.
pub type Opener = fn(&Path) -> io::Result<File>;

/// Where lines go.
#[derive(Clone, Debug)]
pub enum LogTarget {
    /// Standard output.
    Stdout,
    /// Appended to this file, which is opened so.
    File(PathBuf, Opener),
    /// A syslog daemon.
    Syslog(SyslogAt),
}

/// The log of all cores.
#[derive(Clone, Debug)]
pub struct AccessLog {
    sender: SyncSender<Batch>,
    /// The file is to be opened anew. A message alone could find the queue full.
    reopen: Arc<AtomicBool>,
}

#[derive(Debug)]
enum Batch {
    /// Records, one behind the other.
    Records(Vec<u8>),
    /// Nothing: the writer is to look around.
    Look,
    Sync(SyncSender<()>),
}

impl AccessLog {
    /// Opens the target and starts the writer. Records have the values of `names`; lines that could
    /// not be written are counted in `counters`.
    ///
    /// # Errors
    /// When the file cannot be opened or the thread not be started.
    pub fn start(
        target: LogTarget,
        format: LogFormat,
        names: &[String],
        counters: Arc<Counters>,
    ) -> io::Result<Self> {
        let (sender, receiver) = sync_channel(QUEUE);
        let sink = open(&target)?;
        let lines = Lines { format, fields: Fields::new(names) };
        let reopen = Arc::new(AtomicBool::new(false));
        let writer = Writer { target, sink, lines, counters, reopen: Arc::clone(&reopen) };
        thread::Builder::new()
            .name("access-log".into())
            .spawn(move || writer.write_lines(&receiver))?;
        Ok(Self { sender, reopen })
    }

    /// Opens the file anew, after it was moved away; goes to the syslog daemon anew.
    pub fn reopen(&self) {
        self.reopen.store(true, Ordering::Release);
        _ = self.sender.try_send(Batch::Look);
    }

    /// Waits until everything handed over so far is written.
    pub fn sync(&self) {
        let (done, wait) = sync_channel(1);
        if self.sender.send(Batch::Sync(done)).is_ok() {
            _ = wait.recv();
        }
    }
}

impl Taker for AccessLog {
    /// Hands `records` over; false when the writer is too far behind, and they are lost.
    fn take(&self, records: Vec<u8>) -> bool {
        self.sender.try_send(Batch::Records(records)).is_ok()
    }
}

/// Writes `out` as far as it goes; also how many of its lines are not there to their end.
fn write_out(sink: &mut dyn Write, out: &[u8]) -> (io::Result<()>, u64) {
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
    (ended, memchr::memchr_iter(b'\n', rest).count() as u64)
}

fn open(target: &LogTarget) -> io::Result<Box<dyn Write + Send>> {
    Ok(match target {
        LogTarget::Stdout => Box::new(io::stdout()),
        LogTarget::File(path, open) => Box::new(open(path)?),
        LogTarget::Syslog(at) => Box::new(Syslog::open(at)?),
    })
}

/// The conversion of records to lines.
struct Lines {
    format: LogFormat,
    fields: Fields,
}

impl Lines {
    fn of(&self, records: &[u8], out: &mut Vec<u8>) {
        let mut rest = records;
        while let Some((record, after)) = Record::read(rest) {
            rest = after;
            if !record.is_client() {
                continue;
            }
            match &self.format {
                LogFormat::Combined => format::combined(&record, &self.fields, out),
                LogFormat::Json => format::json(&record, &self.fields, false, out),
                LogFormat::Custom(own) => own.write(&record, &self.fields, View::Client, out),
            }
        }
    }
}

/// The thread that writes.
struct Writer {
    target: LogTarget,
    sink: Box<dyn Write + Send>,
    lines: Lines,
    counters: Arc<Counters>,
    reopen: Arc<AtomicBool>,
}

impl Writer {
    fn write_lines(mut self, receiver: &Receiver<Batch>) {
        let mut out = Vec::new();
        for batch in receiver {
            if self.reopen.swap(false, Ordering::Acquire) {
                self.open_anew();
            }
            match batch {
                Batch::Records(records) => {
                    out.clear();
                    self.lines.of(&records, &mut out);
                    self.write(&out);
                }
                Batch::Look => {}
                Batch::Sync(done) => _ = done.try_send(()),
            }
        }
    }

    /// A full disk must not end the log for good: the next batch tries again. A syslog daemon may
    /// have been started anew.
    fn write(&mut self, out: &[u8]) {
        let (wrote, left) = write_out(&mut *self.sink, out);
        if left > 0 {
            self.counters.add(Counter::LogLost, left);
        }
        let is_syslog = matches!(self.target, LogTarget::Syslog(_));
        if let (Err(_), true, Ok(new)) = (wrote, is_syslog, open(&self.target)) {
            self.sink = new;
        }
    }

    /// Goes on where it was if that is not possible.
    fn open_anew(&mut self) {
        match open(&self.target) {
            Ok(new) => self.sink = new,
            Err(error) => base::tell!(Error, "larder: access log: not opened anew: {error}"),
        }
    }
}
