//! The access log: lines are made on the core, collected there, and written by a thread of their
//! own. A writer that falls behind costs lines, counted, never time.

use std::cell::RefCell;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use base::{Counter, Counters, Now};
use flow::{Peer, Reply};
use message::date::LogDate;
use message::{HeaderId, Request, Version};

/// Lines are handed over once this many bytes are there, or once a second.
const BATCH: usize = 32 * 1024;
/// Batches waiting for the writer; beyond it lines are lost.
const QUEUE: usize = 256;

/// How a line looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// NCSA combined.
    Combined,
    /// One JSON object.
    Json,
}

/// Where lines go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogTarget {
    /// Standard output.
    Stdout,
    /// Appended to this file.
    File(PathBuf),
}

/// The log of all cores.
#[derive(Clone, Debug)]
pub struct AccessLog {
    sender: SyncSender<Batch>,
    format: LogFormat,
}

#[derive(Debug)]
enum Batch {
    Lines(Vec<u8>),
    Reopen,
    Sync(SyncSender<()>),
}

impl AccessLog {
    /// Opens the target and starts the writer.
    ///
    /// # Errors
    /// When the file cannot be opened or the thread not be started.
    pub fn start(target: LogTarget, format: LogFormat) -> io::Result<Self> {
        let (sender, receiver) = sync_channel(QUEUE);
        let sink = open(&target)?;
        thread::Builder::new()
            .name("access-log".into())
            .spawn(move || write_lines(&receiver, &target, sink))?;
        Ok(Self { sender, format })
    }

    /// Opens the file anew, after it was moved away.
    pub fn reopen(&self) {
        _ = self.sender.try_send(Batch::Reopen);
    }

    /// Waits until everything handed over so far is written.
    pub fn sync(&self) {
        let (done, wait) = sync_channel(1);
        if self.sender.send(Batch::Sync(done)).is_ok() {
            _ = wait.recv();
        }
    }

    pub(crate) fn for_core(&self, counters: Arc<Counters>) -> CoreLog {
        CoreLog(Some(Lines { log: self.clone(), counters, buffer: RefCell::default() }))
    }
}

fn open(target: &LogTarget) -> io::Result<Box<dyn Write + Send>> {
    Ok(match target {
        LogTarget::Stdout => Box::new(io::stdout()),
        LogTarget::File(path) => {
            let file: File = OpenOptions::new().append(true).create(true).open(path)?;
            Box::new(file)
        }
    })
}

fn write_lines(receiver: &Receiver<Batch>, target: &LogTarget, sink: Box<dyn Write + Send>) {
    let mut sink = sink;
    for batch in receiver {
        match batch {
            // A full disk must not end the log for good: the next batch tries again.
            Batch::Lines(lines) => _ = sink.write_all(&lines).and_then(|()| sink.flush()),
            Batch::Reopen => {
                if let Ok(new) = open(target) {
                    sink = new;
                }
            }
            Batch::Sync(done) => _ = done.try_send(()),
        }
    }
}

/// A core's side of the log; none when there is no log.
#[derive(Debug, Default)]
pub(crate) struct CoreLog(Option<Lines>);

#[derive(Debug)]
struct Lines {
    log: AccessLog,
    counters: Arc<Counters>,
    buffer: RefCell<Vec<u8>>,
}

/// What a line tells.
struct Line<'a> {
    client: Peer,
    /// None when the request could not be read.
    request: Option<&'a Request>,
    reply: &'a Reply,
    bytes: u64,
    started: Now,
    ended: Now,
}

impl CoreLog {
    /// Notes an answered request and the bytes of body sent.
    pub(crate) fn answered(
        &self,
        client: Peer,
        request: &Request,
        reply: &Reply,
        bytes: u64,
        times: (Now, Now),
    ) {
        if let Some(lines) = &self.0 {
            let (started, ended) = times;
            lines.add(&Line { client, request: Some(request), reply, bytes, started, ended });
        }
    }

    /// Notes a request refused for its form.
    pub(crate) fn refused(&self, client: Peer, reply: &Reply, now: Now) {
        if let Some(lines) = &self.0 {
            let bytes = reply.length().unwrap_or(0);
            lines.add(&Line { client, request: None, reply, bytes, started: now, ended: now });
        }
    }

    /// Hands over what was collected.
    pub(crate) fn flush(&self) {
        if let Some(lines) = &self.0 {
            lines.flush();
        }
    }
}

impl Lines {
    fn add(&self, line: &Line<'_>) {
        {
            let mut out = self.buffer.borrow_mut();
            // Writing to a Vec cannot fail.
            _ = match self.log.format {
                LogFormat::Combined => line.combined(&mut out),
                LogFormat::Json => line.json(&mut out),
            };
            if out.len() < BATCH {
                return;
            }
        }
        self.flush();
    }

    fn flush(&self) {
        let lines = self.buffer.take();
        if lines.is_empty() {
            return;
        }
        if let Err(error) = self.log.sender.try_send(Batch::Lines(lines)) {
            use std::sync::mpsc::TrySendError::{Disconnected, Full};
            if let Full(Batch::Lines(lines)) | Disconnected(Batch::Lines(lines)) = error {
                let lost = memchr::memchr_iter(b'\n', &lines).count();
                self.counters.add(Counter::LogLost, lost as u64);
            }
        }
    }
}

impl Line<'_> {
    fn combined(&self, out: &mut Vec<u8>) -> io::Result<()> {
        let date = LogDate::new(self.started.unix_secs());
        write!(out, "{} - - [{}] \"", self.client, date.as_str())?;
        match self.request {
            Some(request) => {
                quote(out, request.method.token());
                out.push(b' ');
                quote(out, &request.target);
                out.extend_from_slice(version(request));
            }
            None => out.push(b'-'),
        }
        write!(out, "\" {} {} \"", self.reply.status, self.bytes)?;
        for (id, end) in [(HeaderId::Referer, &b"\" \""[..]), (HeaderId::UserAgent, b"\"\n")] {
            let value = self.request.and_then(|r| r.headers.value(id));
            quote(out, value.unwrap_or(b"-"));
            out.extend_from_slice(end);
        }
        Ok(())
    }

    fn json(&self, out: &mut Vec<u8>) -> io::Result<()> {
        let ms = self.ended.mono_ms.saturating_sub(self.started.mono_ms);
        write!(
            out,
            "{{\"time\":{}.{:03},\"client\":\"{}\",\"status\":{},\"bytes\":{},\"ms\":{ms},\"cache\":\"{}\"",
            self.started.unix_secs(),
            self.started.unix_ms % 1000,
            self.client,
            self.reply.status,
            self.bytes,
            self.reply.served.word(),
        )?;
        if let Some(request) = self.request {
            let fields = [
                ("method", Some(request.method.token())),
                ("host", Some(&request.host[..])),
                ("target", Some(&request.target[..])),
                ("referer", request.headers.value(HeaderId::Referer)),
                ("agent", request.headers.value(HeaderId::UserAgent)),
            ];
            for (name, value) in fields {
                if let Some(value) = value {
                    write!(out, ",\"{name}\":\"")?;
                    json_text(out, value);
                    out.push(b'"');
                }
            }
        }
        out.extend_from_slice(b"}\n");
        Ok(())
    }
}

fn version(request: &Request) -> &'static [u8] {
    match request.version {
        Version::Http10 => b" HTTP/1.0",
        Version::Http11 => b" HTTP/1.1",
        Version::Http2 => b" HTTP/2.0",
    }
}

/// Writes text between quotes as nginx does: quotes, backslashes and everything unprintable as
/// `\xHH`.
fn quote(out: &mut Vec<u8>, text: &[u8]) {
    for &b in text {
        if !(0x20..0x7f).contains(&b) || b == b'"' || b == b'\\' {
            out.extend_from_slice(format!("\\x{b:02X}").as_bytes());
        } else {
            out.push(b);
        }
    }
}

fn json_text(out: &mut Vec<u8>, text: &[u8]) {
    for c in String::from_utf8_lossy(text).chars() {
        match c {
            '"' => out.extend_from_slice(b"\\\""),
            '\\' => out.extend_from_slice(b"\\\\"),
            c if u32::from(c) < 0x20 => {
                out.extend_from_slice(format!("\\u{:04x}", u32::from(c)).as_bytes());
            }
            c => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
}
