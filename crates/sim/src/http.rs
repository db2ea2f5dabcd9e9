//! HTTP/1.1 heads as text, as far as simulated origins and clients need them. It must share no code
//! with the engine.

/// The value of a field.
pub(crate) fn field<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().skip(1).find_map(|line| {
        let (field, value) = line.split_once(':')?;
        field.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

/// A field's value as a number.
pub(crate) fn number(head: &str, name: &str) -> Option<u64> {
    field(head, name)?.parse().ok()
}

/// The first byte, the end and the total length in Content-Range.
pub(crate) fn content_range(head: &str) -> Option<(u64, u64, u64)> {
    let (range, of) = field(head, "content-range")?.strip_prefix("bytes ")?.split_once('/')?;
    let (first, last) = range.split_once('-')?;
    Some((first.parse().ok()?, last.parse::<u64>().ok()? + 1, of.parse().ok()?))
}

/// The content's number in an entity tag.
pub(crate) fn content_of(tag: &str) -> Option<u64> {
    tag.trim_start_matches("W/").trim_matches('"').strip_prefix('c')?.parse().ok()
}

/// A body in chunks of `size` bytes.
pub(crate) fn chunked(body: &[u8], size: usize) -> Vec<u8> {
    let mut out = Vec::new();
    for chunk in body.chunks(size) {
        out.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        out.extend_from_slice(chunk);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"0\r\n\r\n");
    out
}

/// Length and checksum of a body, as its receiver reports them.
pub(crate) fn sum(body: &[u8]) -> String {
    let sum =
        body.iter().fold(0u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(*byte)));
    format!("{} {sum:x}", body.len())
}
