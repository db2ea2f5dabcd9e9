//! Record view: a record of the disk for people.

use base::Now;
use bytes::Bytes;
use cache::Record;

use crate::invalidate::StoredUrl;
use crate::state::tier::{Content, content};
use crate::stored_heads::stored_head;

/// A stored response without its body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordView {
    /// The URL that the response is stored under.
    pub url: String,
    /// Status code.
    pub status: u16,
    /// Status line and fields as bytes of HTTP/1, with the blank line at the end.
    pub head: Vec<u8>,
    /// Names and values of the fields, in their order.
    pub fields: Vec<(String, String)>,
    /// When its age was zero, in milliseconds since 1970.
    pub born_ms: i64,
    /// When it becomes stale, in milliseconds since 1970.
    pub fresh_until_ms: i64,
    /// Its body is in slices, which are separate records.
    pub is_sliced: bool,
}

impl RecordView {
    /// The view of a record with this `head`; `None` for an unknown version.
    pub fn of(head: &Bytes, now: Now) -> Option<Self> {
        let Content { record, set, .. } = content(head)?;
        let record = Record::decode(record, now)?;
        let under = StoredUrl::of(&record);
        let scheme = if under.secure { "https" } else { "http" };
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let url = format!("{scheme}://{}{}", text(&under.authority()), text(under.target));
        let fields = stored_head(&record)?;
        let fields = fields.headers.iter();
        let fields = fields.map(|field| (text(field.name), text(field.value))).collect();
        Some(Self {
            url,
            status: record.status().code(),
            head: [record.head(), b"\r\n"].concat(),
            fields,
            born_ms: now.unix_at(record.born_ms()),
            fresh_until_ms: now.unix_at(record.fresh_until_ms()),
            is_sliced: set.is_some(),
        })
    }
}
