//! Encoder of records.

use crate::wire;

/// The most bytes of body in one record.
pub const STDIN_BYTES: usize = wire::CONTENT_MAX;

/// The end of a request's body; sent by a request without a body, too.
pub const STDIN_END: &[u8] = &header(wire::STDIN, 0);

/// Aborts the request (FastCGI 1.0, 5.4). Applications that do not check for it notice the end of
/// the connection instead.
pub const ABORT_REQUEST: &[u8] = &header(wire::ABORT_REQUEST, 0);

/// A record's header. Nothing is padded: padding is optional.
const fn header(kind: u8, length: u16) -> [u8; wire::HEADER_BYTES] {
    let [id_high, id_low] = wire::REQUEST_ID.to_be_bytes();
    let [high, low] = length.to_be_bytes();
    [wire::VERSION, kind, id_high, id_low, high, low, 0, 0]
}

/// Appends the record that begins a request in the role of a responder. `keep`: the application
/// leaves the connection open after its response.
pub fn begin_request(out: &mut Vec<u8>, keep: bool) {
    let flags = if keep { wire::KEEP_CONN } else { 0 };
    out.extend_from_slice(&header(wire::BEGIN_REQUEST, 8));
    out.extend_from_slice(&[0, wire::RESPONDER, flags, 0, 0, 0, 0, 0]);
}

/// Appends the header of a record with `len` bytes of body, at most [`STDIN_BYTES`]; the caller
/// appends them. `len` must not be 0, which would end the body.
pub fn stdin_start(out: &mut Vec<u8>, len: usize) {
    debug_assert!((1..=STDIN_BYTES).contains(&len), "a record's body has a byte and fits");
    let len = u16::try_from(len).unwrap_or(u16::MAX);
    out.extend_from_slice(&header(wire::STDIN, len));
}

/// Encoder of parameters; [`ParamsWriter::finish`] makes records of them.
#[derive(Debug)]
pub struct ParamsWriter<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
}

impl<'a> ParamsWriter<'a> {
    /// Begins the parameters of a request.
    pub fn new(out: &'a mut Vec<u8>) -> Self {
        let start = out.len();
        out.extend_from_slice(&header(wire::PARAMS, 0));
        Self { out, start }
    }

    /// Adds one parameter.
    pub fn add(&mut self, name: &[u8], value: &[u8]) {
        self.begin(name.len(), value.len());
        self.out.extend_from_slice(name);
        self.out.extend_from_slice(value);
    }

    /// Adds the parameter `HTTP_NAME` of a field, the name in capitals and with `_` for `-` (RFC
    /// 3875 4.1.18). Several values are joined by `separator`.
    pub(crate) fn add_field<'v>(
        &mut self,
        name: &[u8],
        values: impl Iterator<Item = &'v [u8]> + Clone,
        separator: &[u8],
    ) {
        const PREFIX: &[u8] = b"HTTP_";
        let count = values.clone().count();
        let joined: usize = values.clone().map(<[u8]>::len).sum();
        self.begin(PREFIX.len() + name.len(), joined + separator.len() * count.saturating_sub(1));
        self.out.extend_from_slice(PREFIX);
        let capital = |b: &u8| if *b == b'-' { b'_' } else { b.to_ascii_uppercase() };
        self.out.extend(name.iter().map(capital));
        for (at, value) in values.enumerate() {
            if at > 0 {
                self.out.extend_from_slice(separator);
            }
            self.out.extend_from_slice(value);
        }
    }

    /// Writes both lengths: one byte below 128, else four with the highest bit set (FastCGI 1.0,
    /// 3.4).
    fn begin(&mut self, name_len: usize, value_len: usize) {
        for len in [name_len, value_len] {
            match u8::try_from(len) {
                Ok(short @ 0..=127) => self.out.push(short),
                _ => {
                    // Heads are limited far below this.
                    let long = u32::try_from(len).unwrap_or(u32::MAX) | 1 << 31;
                    self.out.extend_from_slice(&long.to_be_bytes());
                }
            }
        }
    }

    /// Ends the parameters: encodes them as records of at most 65535 bytes, and the empty one.
    pub fn finish(self) {
        let Self { out, start } = self;
        let content = start + wire::HEADER_BYTES;
        let len = out.len() - content;
        if let Ok(len) = u16::try_from(len) {
            out[start..content].copy_from_slice(&header(wire::PARAMS, len));
        } else {
            // Only requests with very long fields get here.
            let rest = out.split_off(content);
            out.truncate(start);
            for part in rest.chunks(wire::CONTENT_MAX) {
                let len = u16::try_from(part.len()).unwrap_or(u16::MAX);
                out.extend_from_slice(&header(wire::PARAMS, len));
                out.extend_from_slice(part);
            }
        }
        if len > 0 {
            out.extend_from_slice(&header(wire::PARAMS, 0));
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Records, decoded independently of the crate: kind, id and content.
    pub(crate) fn records(mut bytes: &[u8]) -> Vec<(u8, u16, Vec<u8>)> {
        let mut found = Vec::new();
        while let [1, kind, i1, i0, l1, l0, padding, 0, rest @ ..] = bytes {
            let (content, rest) = rest.split_at(usize::from(*l1) << 8 | usize::from(*l0));
            found.push((*kind, u16::from(*i1) << 8 | u16::from(*i0), content.to_vec()));
            bytes = &rest[usize::from(*padding)..];
        }
        assert!(bytes.is_empty(), "records end where the bytes do");
        found
    }

    /// Parameters, as an application reads them from the records of one request.
    pub(crate) fn params(bytes: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
        let records = records(bytes);
        let (last, parts) = records.split_last().expect("a record");
        assert_eq!(*last, (4, 1, Vec::new()), "an empty record ends the parameters");
        assert!(parts.iter().all(|(kind, id, part)| (*kind, *id) == (4, 1) && !part.is_empty()));
        let stream: Vec<u8> = parts.iter().flat_map(|(_, _, part)| part.clone()).collect();
        let mut at = 0;
        let len = |at: &mut usize| {
            let first = usize::from(stream[*at]);
            *at += 1;
            if first < 128 {
                return first;
            }
            *at += 3;
            stream[*at - 3..*at].iter().fold(first & 0x7f, |n, b| n << 8 | usize::from(*b))
        };
        let mut pairs = Vec::new();
        while at < stream.len() {
            let (name, value) = (len(&mut at), len(&mut at));
            pairs.push((stream[at..at + name].to_vec(), stream[at + name..][..value].to_vec()));
            at += name + value;
        }
        pairs
    }

    #[test]
    fn a_request_begins_with_role_and_kept_connection() {
        for (keep, flag) in [(true, 1), (false, 0)] {
            let mut out = Vec::new();
            begin_request(&mut out, keep);
            assert_eq!(records(&out), [(1, 1, vec![0, 1, flag, 0, 0, 0, 0, 0])]);
        }
        assert_eq!(records(STDIN_END), [(5, 1, vec![])]);
        assert_eq!(records(ABORT_REQUEST), [(2, 1, vec![])]);
    }

    #[test]
    fn bodies_go_out_in_records_of_at_most_65535_bytes() {
        let mut out = Vec::new();
        stdin_start(&mut out, STDIN_BYTES);
        out.resize(8 + STDIN_BYTES, b'x');
        assert_eq!(records(&out), [(5, 1, vec![b'x'; STDIN_BYTES])]);
    }

    #[test]
    fn no_parameters_are_one_empty_record() {
        let mut out = Vec::new();
        ParamsWriter::new(&mut out).finish();
        assert_eq!(records(&out), [(4, 1, vec![])]);
    }

    #[test]
    fn parameters_beyond_one_record_are_split() {
        for len in [127, 128, 65_535 - 10, 65_535, 65_536, 200_000] {
            let mut out = vec![];
            let mut writer = ParamsWriter::new(&mut out);
            writer.add(b"NAME", &vec![b'v'; len]);
            writer.finish();
            assert_eq!(params(&out), [(b"NAME".to_vec(), vec![b'v'; len])], "{len}");
        }
    }

    proptest! {
        #[test]
        fn what_is_added_arrives(
            pairs in prop::collection::vec(
                (prop::collection::vec(any::<u8>(), 0..200),
                 prop::collection::vec(any::<u8>(), 0..40_000)),
                0..5,
            )
        ) {
            let mut out = Vec::new();
            let mut writer = ParamsWriter::new(&mut out);
            for (name, value) in &pairs {
                writer.add(name, value);
            }
            writer.finish();
            if !pairs.is_empty() {
                prop_assert_eq!(params(&out), pairs);
            }
        }
    }
}
