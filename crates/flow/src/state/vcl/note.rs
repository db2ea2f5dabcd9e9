//! Note of a program beside a stored response's head: the number of its fetch, its storage, and the
//! scheme, host, port and target of its request, which a program's key may not contain.

use base::KeyBuf;
use message::Request;

use crate::key::begin_key;

/// The first byte of such a note; notes of [`surrogate`](crate::surrogate) have another.
const MARK: u8 = b'p';
/// Bytes of the number.
const XID_BYTES: usize = 8;
/// The longest storage name in a note.
const NAME_BYTES_MAX: usize = u8::MAX as usize;

/// Returns the scheme, host, port and target of `request`, as [`begin_key`] writes them.
pub(crate) fn asked_of(request: &Request) -> Box<[u8]> {
    let mut asked = KeyBuf::new();
    begin_key(request, &mut asked);
    asked.bytes().into()
}

/// The note of fetch `xid`, for a request's [`asked_of`] bytes. The storage is noted by name, as
/// its index may change.
pub(crate) fn of(xid: u64, storage: &str, asked: &[u8]) -> Box<[u8]> {
    let storage = if storage.len() > NAME_BYTES_MAX { "" } else { storage };
    let length = [storage.len() as u8];
    [&[MARK][..], &xid.to_le_bytes(), &length, storage.as_bytes(), asked].concat().into()
}

/// The number of the fetch.
pub(crate) fn xid(note: &[u8]) -> u64 {
    own(note).first_chunk().map_or(0, |xid| u64::from_le_bytes(*xid))
}

/// The storage's name.
pub(crate) fn storage(note: &[u8]) -> Option<&[u8]> {
    parts(note).map(|(storage, _)| storage)
}

/// Returns the bytes of [`asked_of`] in `note`; `None` where there is no note.
pub(crate) fn asked(note: &[u8]) -> Option<&[u8]> {
    parts(note).map(|(_, asked)| asked)
}

/// The storage's name and the request's bytes.
fn parts(note: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = own(note).get(XID_BYTES..)?.split_first()?;
    rest.split_at_checked(usize::from(*length))
}

/// Returns the bytes behind the mark; none for another module's note.
fn own(note: &[u8]) -> &[u8] {
    note.strip_prefix(&[MARK]).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_holds_the_number_and_the_request() {
        let mut request = Request::new();
        request.host.extend_from_slice(b"example.com");
        request.target.extend_from_slice(b"/a?b");
        let note = of(77, "s1", &asked_of(&request));
        assert_eq!((xid(&note), storage(&note)), (77, Some(&b"s1"[..])));
        let fields: Vec<_> = base::key_fields(asked(&note).expect("a note")).collect();
        assert_eq!(fields, [&b""[..], b"example.com", b"", b"/a?b"]);
        assert_eq!((xid(b""), storage(b""), asked(b"")), (0, None, None));
        let long = of(77, &"s".repeat(NAME_BYTES_MAX + 1), b"asked");
        assert_eq!((storage(&long), asked(&long)), (Some(&b""[..]), Some(&b"asked"[..])));
    }
}
