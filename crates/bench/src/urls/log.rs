//! Logs as lists: the combined and common formats of nginx and Apache, and Larder's JSON.
//!
//! A line becomes a request with its place and time in the log. Times are whole seconds; the
//! requests of one second are spread over it evenly, in order.

use std::io::Read;

use super::{List, ListedRequest, Maker, checked_url};

/// Most bytes of a decompressed log.
const LOG_MAX: u64 = 4 << 30;

/// Reads a log, which may be gzipped; `source` is its name in messages.
///
/// Unsafe methods are skipped: the log has no bodies, and a replay must not repeat a deletion.
pub fn from_log(source: &str, text: &[u8]) -> List {
    let mut maker = Maker::default();
    let unpacked = match unpacked(text, LOG_MAX) {
        Ok(unpacked) => unpacked,
        Err(error) => {
            maker.fault(source, 1, error);
            return maker.list();
        }
    };
    let text = unpacked.as_deref().unwrap_or(text);
    let mut times: Vec<(u32, u64)> = Vec::new();
    let mut latest = 0;
    for (line, number) in text.split(|byte| *byte == b'\n').zip(1..) {
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        match request(&String::from_utf8_lossy(line)) {
            Ok((ask, second)) => {
                // A line that was logged late has the time of those before it.
                latest = latest.max(second);
                times.push((maker.number(ask), latest));
            }
            Err(what) => maker.fault(source, number, what),
        }
    }
    let mut list = maker.list();
    list.due = spread(&times);
    list.sequence = times.into_iter().map(|(number, _)| number).collect();
    list
}

/// Parses a line to a request and its second.
fn request(line: &str) -> Result<(ListedRequest, u64), String> {
    let line = observe::access::parse(line)
        .ok_or("no line of the combined, the common or Larder's format")?;
    match line.method.as_str() {
        "GET" | "HEAD" => {}
        "" => return Err("no readable request".to_owned()),
        other => return Err(format!("{other}: only GET and HEAD are replayed")),
    }
    let url = checked_url(&line.target)?;
    Ok((ListedRequest { method: line.method.clone(), ..ListedRequest::get(url) }, line.unix_s))
}

/// Spreads times over their seconds: microseconds since the first second.
fn spread(times: &[(u32, u64)]) -> Vec<u64> {
    let first = times.first().map_or(0, |(_, second)| *second);
    let mut due = Vec::with_capacity(times.len());
    for group in times.chunk_by(|one, next| one.1 == next.1) {
        let second = group.first().map_or(first, |(_, second)| *second) - first;
        let count = group.len() as u64;
        due.extend((0..count).map(|nth| second * 1_000_000 + nth * 1_000_000 / count));
    }
    due
}

/// Decompresses `bytes` if they are gzip, to at most `most` bytes.
pub(super) fn unpacked(bytes: &[u8], most: u64) -> Result<Option<Vec<u8>>, String> {
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return Ok(None);
    }
    let mut out = Vec::new();
    flate2::read::MultiGzDecoder::new(bytes)
        .take(most + 1)
        .read_to_end(&mut out)
        .map_err(|error| format!("gzip: {error}"))?;
    if out.len() as u64 > most {
        return Err(format!("more than {most} bytes when unpacked"));
    }
    Ok(Some(out))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    const LOG: &str = "\
192.0.2.1 - - [25/Nov/2026:10:00:00 +0000] \"GET /a HTTP/1.1\" 200 5 \"-\" \"x\"
192.0.2.1 - - [25/Nov/2026:10:00:00 +0000] \"GET /b?c=1 HTTP/1.1\" 200 5
nonsense
192.0.2.1 - - [25/Nov/2026:10:00:02 +0000] \"POST /form HTTP/1.1\" 200 5 \"-\" \"x\"
192.0.2.1 - - [25/Nov/2026:10:00:03 +0000] \"HEAD /a HTTP/1.1\" 200 5 \"-\" \"x\"
192.0.2.1 - - [25/Nov/2026:10:00:01 +0000] \"GET /a HTTP/1.1\" 200 5 \"-\" \"x\"
192.0.2.1 - - [25/Nov/2026:10:00:04 +0000] \"-\" 400 0 \"-\" \"-\"
";

    fn urls(list: &List) -> Vec<(String, String)> {
        list.sequence()
            .iter()
            .map(|number| list.asks()[*number as usize].clone())
            .map(|ask| (ask.method, ask.url))
            .collect()
    }

    #[test]
    fn a_log_is_asked_in_its_order_and_at_its_times() {
        let list = from_log("access.log", LOG.as_bytes());
        let of = |method: &str, url: &str| (method.to_owned(), url.to_owned());
        let expected = [of("GET", "/a"), of("GET", "/b?c=1"), of("HEAD", "/a"), of("GET", "/a")];
        assert_eq!(urls(&list), expected);
        assert_eq!(list.due(), [0, 500_000, 3_000_000, 3_500_000]);
        let faults: Vec<_> = list.faults.first.iter().map(|fault| fault.line).collect();
        assert_eq!(faults, [3, 4, 7]);
        assert!(list.faults.to_string().contains("access.log:4: POST: only GET and HEAD"));
    }

    #[test]
    fn compressed_logs_are_read_and_broken_ones_reported() {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(LOG.as_bytes()).expect("written");
        let mut packed = gzip.finish().expect("packed");
        assert_eq!(from_log("a", &packed), from_log("a", LOG.as_bytes()));
        packed.truncate(packed.len() / 2);
        let list = from_log("a", &packed);
        assert!(list.is_empty() && list.faults.unread == 1, "{list:?}");
    }
}
