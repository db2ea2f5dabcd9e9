//! Tables of fields: the static one, and the decoder's dynamic one (RFC 7541 2.3).

use std::collections::VecDeque;

use message::HeaderId;

/// Overhead of an entry in the size of a table (RFC 7541 4.1).
pub(crate) const OVERHEAD: usize = 32;

/// RFC 7541 Appendix A; index 1 is the first.
pub(crate) static STATIC: [(HeaderId, &str, &str); 61] = [
    (HeaderId::Other, ":authority", ""),
    (HeaderId::Other, ":method", "GET"),
    (HeaderId::Other, ":method", "POST"),
    (HeaderId::Other, ":path", "/"),
    (HeaderId::Other, ":path", "/index.html"),
    (HeaderId::Other, ":scheme", "http"),
    (HeaderId::Other, ":scheme", "https"),
    (HeaderId::Other, ":status", "200"),
    (HeaderId::Other, ":status", "204"),
    (HeaderId::Other, ":status", "206"),
    (HeaderId::Other, ":status", "304"),
    (HeaderId::Other, ":status", "400"),
    (HeaderId::Other, ":status", "404"),
    (HeaderId::Other, ":status", "500"),
    (HeaderId::Other, "accept-charset", ""),
    (HeaderId::AcceptEncoding, "accept-encoding", "gzip, deflate"),
    (HeaderId::AcceptLanguage, "accept-language", ""),
    (HeaderId::AcceptRanges, "accept-ranges", ""),
    (HeaderId::Accept, "accept", ""),
    (HeaderId::Other, "access-control-allow-origin", ""),
    (HeaderId::Age, "age", ""),
    (HeaderId::Allow, "allow", ""),
    (HeaderId::Authorization, "authorization", ""),
    (HeaderId::CacheControl, "cache-control", ""),
    (HeaderId::ContentDisposition, "content-disposition", ""),
    (HeaderId::ContentEncoding, "content-encoding", ""),
    (HeaderId::ContentLanguage, "content-language", ""),
    (HeaderId::ContentLength, "content-length", ""),
    (HeaderId::ContentLocation, "content-location", ""),
    (HeaderId::ContentRange, "content-range", ""),
    (HeaderId::ContentType, "content-type", ""),
    (HeaderId::Cookie, "cookie", ""),
    (HeaderId::Date, "date", ""),
    (HeaderId::Etag, "etag", ""),
    (HeaderId::Expect, "expect", ""),
    (HeaderId::Expires, "expires", ""),
    (HeaderId::Other, "from", ""),
    (HeaderId::Host, "host", ""),
    (HeaderId::IfMatch, "if-match", ""),
    (HeaderId::IfModifiedSince, "if-modified-since", ""),
    (HeaderId::IfNoneMatch, "if-none-match", ""),
    (HeaderId::IfRange, "if-range", ""),
    (HeaderId::IfUnmodifiedSince, "if-unmodified-since", ""),
    (HeaderId::LastModified, "last-modified", ""),
    (HeaderId::Link, "link", ""),
    (HeaderId::Location, "location", ""),
    (HeaderId::MaxForwards, "max-forwards", ""),
    (HeaderId::ProxyAuthenticate, "proxy-authenticate", ""),
    (HeaderId::ProxyAuthorization, "proxy-authorization", ""),
    (HeaderId::Range, "range", ""),
    (HeaderId::Referer, "referer", ""),
    (HeaderId::Other, "refresh", ""),
    (HeaderId::RetryAfter, "retry-after", ""),
    (HeaderId::Server, "server", ""),
    (HeaderId::SetCookie, "set-cookie", ""),
    (HeaderId::StrictTransportSecurity, "strict-transport-security", ""),
    (HeaderId::TransferEncoding, "transfer-encoding", ""),
    (HeaderId::UserAgent, "user-agent", ""),
    (HeaderId::Vary, "vary", ""),
    (HeaderId::Via, "via", ""),
    (HeaderId::WwwAuthenticate, "www-authenticate", ""),
];

/// One field of a table or block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry<'a> {
    /// Interned name; not set for pseudo-fields.
    pub(crate) id: HeaderId,
    pub(crate) name: &'a [u8],
    pub(crate) value: &'a [u8],
}

impl Entry<'_> {
    /// The entry's size in a table or a list (RFC 7541 4.1, RFC 9113 6.5.2).
    pub(crate) fn size(&self) -> usize {
        self.name.len() + self.value.len() + OVERHEAD
    }
}

/// The position of an entry in the dynamic table's bytes: its name, with its value behind it.
#[derive(Clone, Copy, Debug)]
struct EntryPosition {
    at: u32,
    name_len: u32,
    value_len: u32,
    id: HeaderId,
}

impl EntryPosition {
    fn len(self) -> usize {
        (self.name_len + self.value_len) as usize
    }
}

/// The dynamic table of one direction. Its memory is bounded by twice its largest size.
#[derive(Debug)]
pub(crate) struct DynamicTable {
    /// Entries, the oldest first, one behind the other; before them, evicted ones.
    bytes: Vec<u8>,
    places: VecDeque<EntryPosition>,
    size: usize,
    max: usize,
}

impl DynamicTable {
    pub(crate) fn new(max: usize) -> Self {
        Self { bytes: Vec::new(), places: VecDeque::new(), size: 0, max }
    }

    /// Changes the largest size, evicting entries that no longer fit.
    pub(crate) fn resize(&mut self, max: usize) {
        self.max = max;
        self.evict(0);
    }

    /// The entry at `index` of both tables; 0 is invalid.
    pub(crate) fn get(&self, index: usize) -> Option<Entry<'_>> {
        let at = index.checked_sub(1)?;
        if let Some((id, name, value)) = STATIC.get(at) {
            return Some(Entry { id: *id, name: name.as_bytes(), value: value.as_bytes() });
        }
        // The newest entry has the lowest index.
        let newest = self.places.len().checked_sub(1)?;
        let place = self.places.get(newest.checked_sub(at - STATIC.len())?)?;
        let bytes = self.bytes.get(place.at as usize..)?;
        let (name, rest) = bytes.split_at_checked(place.name_len as usize)?;
        let value = rest.get(..place.value_len as usize)?;
        Some(Entry { id: place.id, name, value })
    }

    /// Adds an entry. One larger than the whole table empties it (RFC 7541 4.4).
    pub(crate) fn insert(&mut self, entry: Entry<'_>) {
        let size = entry.size();
        self.evict(size);
        if size > self.max {
            return;
        }
        self.compact(entry.name.len() + entry.value.len());
        self.places.push_back(EntryPosition {
            at: self.bytes.len() as u32,
            name_len: entry.name.len() as u32,
            value_len: entry.value.len() as u32,
            id: entry.id,
        });
        self.bytes.extend_from_slice(entry.name);
        self.bytes.extend_from_slice(entry.value);
        self.size += size;
    }

    /// Evicts until `room` more bytes fit, or the table is empty.
    fn evict(&mut self, room: usize) {
        while self.size + room > self.max {
            let Some(place) = self.places.pop_front() else { break };
            self.size -= place.len() + OVERHEAD;
        }
        if self.places.is_empty() {
            self.bytes.clear();
        }
    }

    /// Moves the entries to the front if the evicted bytes before them take as much as the table
    /// may.
    fn compact(&mut self, room: usize) {
        let first = self.places.front().map_or(0, |place| place.at);
        if self.bytes.len() + room <= 2 * self.max || first == 0 {
            return;
        }
        self.bytes.drain(..first as usize);
        for place in &mut self.places {
            place.at -= first;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entry<'a>(name: &'a str, value: &'a str) -> Entry<'a> {
        let (name, value) = (name.as_bytes(), value.as_bytes());
        Entry { id: HeaderId::of(name), name, value }
    }

    #[test]
    fn static_entries_are_where_the_rfc_has_them() {
        let table = DynamicTable::new(0);
        assert_eq!(table.get(0), None);
        assert_eq!(table.get(1), Some(entry(":authority", "")));
        assert_eq!(table.get(2), Some(entry(":method", "GET")));
        assert_eq!(table.get(16), Some(entry("accept-encoding", "gzip, deflate")));
        assert_eq!(table.get(61), Some(entry("www-authenticate", "")));
        assert_eq!(table.get(62), None);
        for (id, name, _) in STATIC {
            assert_eq!(id, HeaderId::of(name.as_bytes()), "{name}");
        }
        assert_eq!(table.get(usize::MAX), None);
    }

    #[test]
    fn the_newest_comes_first_and_the_oldest_goes() {
        let mut table = DynamicTable::new(100);
        table.insert(entry("a", "1"));
        table.insert(entry("b", "2"));
        assert_eq!(table.get(62), Some(entry("b", "2")));
        assert_eq!(table.get(63), Some(entry("a", "1")));
        // Three entries of 34 bytes exceed 100.
        table.insert(entry("c", "3"));
        assert_eq!(table.get(63), Some(entry("b", "2")));
        assert_eq!(table.get(64), None);
        table.resize(40);
        assert_eq!((table.get(62), table.get(63)), (Some(entry("c", "3")), None));
        table.insert(entry("too long for such a table", "1"));
        assert_eq!(table.get(62), None);
    }

    proptest! {
        /// The table equals a list of strings after any changes of its size, and does not take much
        /// more memory.
        #[test]
        fn it_is_a_bounded_list(
            steps in proptest::collection::vec((0..300_usize, 0..120_usize, any::<bool>()), 1..200)
        ) {
            let mut table = DynamicTable::new(200);
            let mut model: Vec<(String, String)> = Vec::new();
            let mut max = 200;
            for (at, (size, len, resize)) in steps.into_iter().enumerate() {
                if resize {
                    max = size;
                    table.resize(max);
                } else {
                    let (name, value) = (format!("n{at}"), "v".repeat(len));
                    table.insert(entry(&name, &value));
                    model.insert(0, (name, value));
                }
                let mut sum = 0;
                model.retain(|(name, value)| {
                    sum += name.len() + value.len() + OVERHEAD;
                    sum <= max
                });
                for (at, (name, value)) in model.iter().enumerate() {
                    prop_assert_eq!(table.get(62 + at), Some(entry(name, value)));
                }
                prop_assert_eq!(table.get(62 + model.len()), None);
                prop_assert!(table.bytes.len() <= 2 * max.max(300));
            }
        }
    }
}
